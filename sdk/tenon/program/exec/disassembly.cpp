#include <array>

#include <tenon/program/exec/disassembly_internal.hpp>
#include <tenon/program/ir/labels.hpp>
#include <tenon/support/str.hpp>

namespace tenon::program::detail {
namespace {

constexpr std::array<std::string_view, 32> kNames = {
    "set",     "move",       "linear",    "product",    "floordiv",      "mod",    "min",      "max",
    "select",  "at_least_0", "is_0",      "ring",       "grow",          "check",  "loop",     "next",
    "workers", "body_end",   "call",      "call_plain", "call_function", "copy",   "start",    "wait",
    "signal",  "await",      "read_soon", "write_soon", "prefetch",      "finish", "allocate", "free"};

std::string text(const Value& v) { return v.known() ? str(v.number) : str("r", v.place); }

std::string terms(const ByteCode& code, const Instr& i) {
  std::string result = str(i.number);
  for (int32_t t = i.first; t < i.last; ++t)
    result += str(" + ", code.terms[static_cast<size_t>(t)].factor, " * r", code.terms[static_cast<size_t>(t)].place);
  return result;
}

std::string increments(const ByteCode& code, const LoopCode& loop) {
  std::string result;
  for (int32_t n = loop.first_step; n < loop.last_step; ++n) {
    const Step& s = code.steps[static_cast<size_t>(n)];
    result += str(" r", s.place, " += ", s.by);
  }
  for (int32_t n = loop.first_ring_step; n < loop.last_ring_step; ++n) {
    const RingStep& s = code.ring_steps[static_cast<size_t>(n)];
    result += str(" r", s.place, " += ", s.by, " mod ", s.modulus);
  }
  for (int32_t n = loop.first_beside; n < loop.last_beside; ++n) {
    const BesideStep& s = code.beside_steps[static_cast<size_t>(n)];
    result += str(" r", s.place, " += ", s.by, " - ", s.back, " where r", s.ring, " < ", s.ring_by);
  }
  if (loop.has_turns()) result += str("; first turn after ", loop.to_first_turn);
  for (int32_t n = loop.first_turn; n < loop.last_turn; ++n) {
    const Turn& turn = code.turns[static_cast<size_t>(n)];
    result += ":";
    for (int32_t j = turn.first; j < turn.last; ++j)
      result += str(" r", code.jumps[static_cast<size_t>(j)].place, " += ", code.jumps[static_cast<size_t>(j)].by);
    result += str(", next after ", turn.next);
  }
  for (int32_t n = loop.first_increment; n < loop.last_increment; ++n) {
    const Increment& i = code.increments[static_cast<size_t>(n)];
    result += str(" r", i.place, " += ", text(i.by));
  }
  return result;
}

std::string ring(const RingView& r) {
  std::string result = str("r", r.view, " = ", text(r.base));
  for (const Fold& f : r.folds) result += str(", place ", text(f.place), " of ", text(f.fold));
  return result;
}

std::string operands(const ByteCode& code, const Program& program, const Instr& i) {
  switch (i.op) {
    case Op::set: return str("r", i.to, " = ", i.number);
    case Op::linear: return str("r", i.to, " = ", terms(code, i));
    case Op::ring: return ring(code.rings[static_cast<size_t>(i.index)]);
    case Op::loop:
    case Op::workers: {
      const LoopCode& l = code.loops[static_cast<size_t>(i.index)];
      return str(l.symbol, " = r", l.value, " from ", text(l.begin), " to ", text(l.end), " step ", text(l.step),
                 ", exit ", l.exit);
    }
    case Op::next: {
      const LoopCode& l = code.loops[static_cast<size_t>(i.index)];
      return str(l.symbol, ", body ", l.body, ";", increments(code, l));
    }
    case Op::call:
    case Op::call_plain:
    case Op::call_function:
    case Op::copy:
    case Op::start: return label_of(code.sites[static_cast<size_t>(i.index)], program);
    case Op::check: return str(text(i.a), " : ", code.checks[static_cast<size_t>(i.index)].message);
    case Op::signal:
    case Op::await: return str(i.number, " of ", code.loops[static_cast<size_t>(i.index)].symbol);
    case Op::read_soon:
    case Op::write_soon:
      return str(i.last, " lines from ", text(i.a), " + ", i.number,
                 i.first > 1 ? str(", ", i.first, " rows by ", i.b.number) : "");
    case Op::prefetch: {
      const PrefetchCode& p = code.prefetches[static_cast<size_t>(i.index)];
      return str(p.writes ? "out " : "in ", text(p.base), " part ", p.part, " of ", p.parts);
    }
    case Op::finish:
    case Op::body_end:
    case Op::end: return "";
    default: break;
  }
  std::string result = i.to >= 0 ? str("r", i.to, " = ") : "";
  result += text(i.a);
  if (i.op >= Op::product && i.op <= Op::select) result += ", " + text(i.b);
  if (i.op == Op::select) result += ", " + text(i.c);
  return result;
}

}  // namespace

std::string label_of(const Site& site, const Program& program) {
  std::vector<std::string> written;
  for (const BufferId root : site.written) written.push_back(program.buffer(root).name);
  return stage_label(site.call ? stage_of(*site.call) : stage_of(*site.copy), written);
}

std::string disassemble(const ByteCode& code, const Program& program) {
  std::string result;
  for (size_t n = 0; n < code.instrs.size(); ++n) {
    const Instr& i = code.instrs[n];
    const auto op = static_cast<size_t>(i.op);
    result += str(n, ": ", op < kNames.size() ? kNames[op] : "end", " ", operands(code, program, i), "\n");
  }
  return result;
}

}  // namespace tenon::program::detail
