#include "vta/stream_check.hpp"

#include <algorithm>
#include <map>

#include "vta/stream_order.hpp"

namespace tenon::vta {
namespace {

constexpr int64_t kNobody = -1;

// The last writer of a location, and the last reader of each unit since then.
struct Seen {
  int64_t writer = kNobody;
  std::array<int64_t, kUnits> readers{kNobody, kNobody, kNobody};
  bool operator==(const Seen&) const = default;
};

class Check {
 public:
  Check(const std::vector<Instruction>& stream, const Hardware& hardware, const CheckOptions& options,
        const StreamOrder& order, std::vector<Finding>& findings)
      : stream_(stream), hardware_(hardware), options_(options), order_(order), findings_(findings) {
    for (const Memory memory : {Memory::uop, Memory::wgt, Memory::inp, Memory::acc})
      seen_[static_cast<size_t>(memory)].resize(static_cast<size_t>(hardware.depth(memory)));
    micro_ops_.resize(static_cast<size_t>(hardware.depth(Memory::uop)));
    dram_[0] = Seen{};
  }

  Result<void> take(uint32_t number) {
    now_ = number;
    const Instruction& instruction = stream_[number];
    last_[static_cast<size_t>(instruction.unit())] = number;
    switch (instruction.opcode) {
      case Opcode::load: return load(instruction.transfer);
      case Opcode::store: return store(instruction.transfer);
      case Opcode::gemm:
      case Opcode::alu: return compute(instruction);
      case Opcode::finish: finish(); break;
    }
    return {};
  }

 private:
  // A FINISH implies that all instructions are complete.
  void finish() {
    for (const int64_t last : last_)
      if (!before(last)) report(Finding::Kind::unfinished, last, {});
  }

  // ACC, OUT and ACC8 are the same memory.
  static Memory home(Memory memory) { return memory == Memory::out || memory == Memory::acc8 ? Memory::acc : memory; }

  bool before(int64_t first) const {
    return first == kNobody || first == now_ || order_.ordered(static_cast<uint32_t>(first), now_);
  }

  void report(Finding::Kind kind, int64_t first, const Finding& place) {
    if (findings_.size() >= options_.most_findings) return;
    Finding found = place;
    found.kind = kind, found.first = first, found.second = now_;
    // At most one finding for each pair of instructions and kind.
    for (const Finding& other : findings_)
      if (other.kind == kind && other.first == first && other.second == now_) return;
    findings_.push_back(found);
  }

  void read(Seen& seen, const Finding& place) {
    if (!before(seen.writer)) report(Finding::Kind::read_after_write, seen.writer, place);
    seen.readers[static_cast<size_t>(stream_[now_].unit())] = now_;
  }
  void write(Seen& seen, const Finding& place) {
    if (!before(seen.writer)) report(Finding::Kind::write_after_write, seen.writer, place);
    for (const int64_t reader : seen.readers)
      if (reader != now_ && !before(reader)) report(Finding::Kind::write_after_read, reader, place);
    seen = Seen{.writer = now_};
  }

  Result<Seen*> element(Memory memory, int64_t at) {
    auto& all = seen_[static_cast<size_t>(home(memory))];
    if (at < 0 || static_cast<size_t>(at) >= all.size())
      return error(Code::invalid_argument, memory_name(memory), "[", at, "] is outside of its ", all.size(),
                   " elements");
    return &all[static_cast<size_t>(at)];
  }
  Result<void> read_element(Memory memory, int64_t at) {
    TENON_TRY(seen, element(memory, at));
    const Finding place{.memory = memory, .at = at};
    if (seen->writer == kNobody) report(Finding::Kind::not_written, kNobody, place);
    read(*seen, place);
    return {};
  }
  Result<void> write_element(Memory memory, int64_t at) {
    TENON_TRY(seen, element(memory, at));
    write(*seen, {.memory = memory, .at = at});
    return {};
  }

  // Splits the intervals of DRAM so that one begins at `at`.
  std::map<int64_t, Seen>::iterator cut(int64_t at) {
    const auto next = dram_.upper_bound(at);
    const auto here = std::prev(next);
    return here->first == at ? here : dram_.emplace_hint(next, at, here->second);
  }
  void touch_dram(int64_t begin, int64_t bytes, bool writes) {
    if (bytes == 0) return;
    const auto first = cut(begin), end = cut(begin + bytes);
    for (auto at = first; at != end; ++at) {
      const Finding place{.in_dram = true, .at = at->first};
      writes ? write(at->second, place) : read(at->second, place);
    }
  }

  Result<void> load(const Transfer& t) {
    for (int64_t i = 0; i < t.elements(); ++i) TENON_OK(write_element(t.memory, t.sram_base + i));
    if (t.x_size == 0) return {};
    const int64_t bytes = hardware_.element_bytes(t.memory);
    for (int64_t y = 0; y < t.y_size; ++y) {
      const int64_t row = int64_t{t.dram_base} + y * t.x_stride;
      touch_dram(row * bytes, t.x_size * bytes, false);
      if (t.memory == Memory::uop) TENON_OK(load_micro_ops(t, y, row));
    }
    return {};
  }

  Result<void> load_micro_ops(const Transfer& t, int64_t y, int64_t row) {
    if (!options_.micro_op)
      return error(Code::invalid_argument, "micro-ops are loaded, and nothing tells what they are");
    const int64_t width = int64_t{t.x_pad_0} + t.x_size + t.x_pad_1;
    const int64_t first = t.sram_base + (t.y_pad_0 + y) * width + t.x_pad_0;
    for (int64_t x = 0; x < t.x_size; ++x) {
      TENON_TRY(word, options_.micro_op(row + x));
      micro_ops_[static_cast<size_t>(first + x)] = decode_micro_op(word, hardware_);
    }
    return {};
  }

  Result<void> store(const Transfer& t) {
    const int64_t bytes = hardware_.element_bytes(t.memory);
    for (int64_t y = 0; y < t.y_size; ++y) {
      for (int64_t x = 0; x < t.x_size; ++x) TENON_OK(read_element(Memory::acc, t.sram_base + y * t.x_size + x));
      touch_dram((int64_t{t.dram_base} + y * t.x_stride) * bytes, t.x_size * bytes, true);
    }
    return {};
  }

  Result<void> compute(const Instruction& instruction) {
    const Steps& s = instruction.steps;
    if (s.count() == 0) return {};
    const bool gemm = instruction.opcode == Opcode::gemm;
    const bool reads_dst = !(gemm && s.reset);
    const bool reads_src = gemm ? !s.reset : !instruction.use_imm;
    for (int64_t u = s.uop_begin; u < s.uop_end; ++u) {
      TENON_OK(read_element(Memory::uop, u));
      const MicroOp& op = micro_ops_[static_cast<size_t>(u)];
      for (int64_t i = 0; i < s.iter_out; ++i)
        for (int64_t j = 0; j < s.iter_in; ++j) {
          const int64_t dst = op.dst + i * s.dst_factor_out + j * s.dst_factor_in;
          const int64_t src = op.src + i * s.src_factor_out + j * s.src_factor_in;
          if (reads_src) TENON_OK(read_element(gemm ? Memory::inp : Memory::acc, src));
          if (reads_src && gemm)
            TENON_OK(read_element(Memory::wgt, op.wgt + i * s.wgt_factor_out + j * s.wgt_factor_in));
          if (reads_dst) TENON_OK(read_element(Memory::acc, dst));
          TENON_OK(write_element(Memory::acc, dst));
        }
    }
    return {};
  }

  const std::vector<Instruction>& stream_;
  const Hardware& hardware_;
  const CheckOptions& options_;
  const StreamOrder& order_;
  std::vector<Finding>& findings_;
  uint32_t now_ = 0;
  std::array<int64_t, kUnits> last_{kNobody, kNobody, kNobody};  // last instruction of each unit
  std::array<std::vector<Seen>, kMemories> seen_;
  std::map<int64_t, Seen> dram_;  // intervals, each from its key to the next key
  std::vector<MicroOp> micro_ops_;
};

std::string_view words_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::read_after_write: return "read after write";
    case Finding::Kind::write_after_read: return "write after read";
    case Finding::Kind::write_after_write: return "write after write";
    case Finding::Kind::deadlock: return "deadlock";
    case Finding::Kind::left_over: return "token left over";
    case Finding::Kind::not_written: return "read before write";
    case Finding::Kind::unfinished: return "finished too early";
  }
  return "";
}

}  // namespace

std::string Finding::to_string(const std::vector<Instruction>& stream) const {
  const auto named = [&](int64_t i) {
    const std::string text = print(stream[static_cast<size_t>(i)]);
    return str(text.substr(0, text.find(' ')), " (#", i, ")");
  };
  const std::string place = in_dram ? str("byte ", at, " of DRAM") : str(memory_name(memory), "[", at, "]");
  std::string text = str(words_of(kind), ": ");
  switch (kind) {
    case Kind::read_after_write:
      return text + str(named(first), " may not have written ", place, " yet when ", named(second), " reads it");
    case Kind::write_after_read:
      return text + str(named(first), " may still read ", place, " when ", named(second), " writes it");
    case Kind::write_after_write: return text + str(named(first), " may write ", place, " after ", named(second));
    case Kind::deadlock: return text + str(named(second), " waits for a token that nobody pushes");
    case Kind::left_over: return text + str("nobody pops what ", named(first), " pushes");
    case Kind::unfinished:
      return text + str(named(first), " may still run when ", named(second), " says that all is done");
    case Kind::not_written: return text + str(named(second), " reads ", place, ", which nothing has written");
  }
  return text;
}

Result<std::vector<Finding>> check_stream(const std::vector<Instruction>& stream, const Hardware& hardware,
                                          const CheckOptions& options) {
  TENON_TRY(order, order_of(stream));
  std::vector<Finding> findings;
  for (const uint32_t number : order.stuck)
    findings.push_back({.kind = Finding::Kind::deadlock, .second = int64_t{number}});
  for (const uint32_t number : order.left_over)
    findings.push_back({.kind = Finding::Kind::left_over, .first = int64_t{number}});
  // Instructions that never begin are not ordered.
  if (!order.stuck.empty()) return findings;
  Check check(stream, hardware, options, order, findings);
  for (uint32_t i = 0; i < stream.size(); ++i) TENON_OK(check.take(i), "instruction ", i, ": ", print(stream[i]));
  return findings;
}

}  // namespace tenon::vta
