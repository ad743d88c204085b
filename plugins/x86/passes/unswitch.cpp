// Loop unswitching: a choice by a loop-invariant condition becomes two loops, of which one runs.
//
//   loop 0 ... {                          when %3 {
//     %5 = Exp %4                           loop 0 ... {
//     %6 = Where %3, %5, %4                   %5 = Exp %4
//     Store [...], %6                         Store [...], %5
//   }                                       }
//                                         }
//                                         when not %3 {
//                                           loop 1 ... {
//                                             Store [...], %4
//                                           }
//                                         }
//
// Instructions that have become invariant in such a loop are hoisted, and may in turn be conditions. Right because the
// condition is uniform and loop-invariant: lane 0 decides for all lanes and iterations. Pays where the loops, on
// average over both outcomes, save a tenth of their cycles and more than a mispredicted branch
// (PassOptions::unswitch_cycles).
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

using snippet::begins_region, snippet::ends_region, snippet::RegisterIds;

class Unswitch {
 public:
  static constexpr size_t kMostInstructions = 800;  // of the resulting kernel

  Unswitch(LinearKernel& kernel, const PassOptions& options) : kernel_(kernel), options_(options) {}

  // False: no choice is worth two loops.
  bool run() {
    const Uses uses(kernel_);
    uses_ = &uses;
    const std::optional<Choice> best = best_choice();
    if (best) divide(*best);
    uses_ = nullptr;
    return best.has_value();
  }

 private:
  // A condition, and what it guards: [begin, end), from the first loop after it to the end of the enclosing region.
  struct Choice {
    RegisterId condition = -1;
    size_t begin = 0, end = 0;
    double gain = 0;
  };
  using Instructions = std::vector<Instruction>;

  static size_t index(RegisterId id) { return static_cast<size_t>(id); }
  bool is_lanes(RegisterId id) const { return kernel_.registers[index(id)].file != codegen::RegisterFile::general; }
  // Whether it only computes lanes from other lanes.
  bool is_pure(const Instruction& one) const {
    const auto are_lanes = [&](const RegisterIds& ids) {
      return !ids.empty() && std::ranges::all_of(ids, [&](RegisterId id) { return is_lanes(id); });
    };
    return !one.memory && are_lanes(one.out) && are_lanes(one.in) && !is_border(one.op) && one.touched == Lanes::full;
  }
  std::span<const Instruction> body() const { return kernel_.body; }
  bool once(RegisterId id) const { return uses_->once(id); }

  std::optional<Choice> best_choice() const {
    const Alike alike(kernel_, *uses_);
    std::optional<Choice> best;
    std::vector<size_t> around;  // ends of the open regions
    for (size_t i = 0; i < body().size(); ++i) {
      const Instruction& one = body()[i];
      if (begins_region(one.op)) around.push_back(snippet::end_of_region(body(), i));
      if (ends_region(one.op)) around.pop_back();
      if (is_border(one.op) || one.out.size() != 1) continue;
      const RegisterId made = one.out[0];
      if (kernel_.registers[index(made)].file != codegen::RegisterFile::mask || !alike.holds(made) || !is_chooser(made))
        continue;
      const size_t end = around.empty() ? body().size() : around.back();
      size_t begin = i + 1;
      while (begin < end && !begins_region(body()[begin].op)) ++begin;
      if (begin == end || kernel_.body.size() + (end - begin) > kMostInstructions) continue;
      const Choice choice{made, begin, end, gain_of(made, begin, end, around.empty())};
      if (choice.gain > 0 && (!best || choice.gain > best->gain)) best = choice;
    }
    return best;
  }
  bool is_chooser(RegisterId id) const {
    return std::ranges::any_of(uses_->readers(id), [&](size_t reader) {
      const Name op = body()[reader].op;
      return op == kWhere || op == kAnd || op == kOr;
    });
  }

  // Cycles saved for one element; 0: not enough.
  double gain_of(RegisterId condition, size_t begin, size_t end, bool is_outermost) const {
    constexpr double kLeastPart = 0.1;
    const Instructions all(body().begin() + static_cast<std::ptrdiff_t>(begin),
                           body().begin() + static_cast<std::ptrdiff_t>(end));
    const double before = cycles_of(all);
    const double after = (cycles_of(chosen(all, condition, true)) + cycles_of(chosen(all, condition, false))) / 2;
    const double gain = before - after;
    if (options_.unswitch_cycles == 0) return std::max(gain, std::numeric_limits<double>::min());
    if (gain < kLeastPart * before) return 0;
    // Outside all loops the condition is the same for all calls, so the branch is predicted.
    const double least = is_outermost ? options_.unswitch_cycles / 4 : options_.unswitch_cycles;
    const std::optional<double> elements = elements_of(all);
    return elements && gain * *elements < least ? 0 : gain;
  }
  // Cycles of vector loops for one element.
  double cycles_of(const Instructions& code) const {
    double cycles = 0;
    std::vector<double> elements{0};
    for (const Instruction& one : code) {
      if (begins_region(one.op)) {
        const Loop* const loop = one.op == kWhenBegin ? nullptr : &kernel_.loops[static_cast<size_t>(one.number)];
        const bool is_vector = loop && loop->kind == Loop::Kind::vector;
        elements.push_back(is_vector ? static_cast<double>(loop->increment) : 0);
      }
      if (elements.back() > 0) cycles += (options_.cycles ? options_.cycles(kernel_, one) : 1) / elements.back();
      if (ends_region(one.op)) elements.pop_back();
    }
    return cycles;
  }
  // The number of elements that all of its loops traverse together, where that is known.
  std::optional<double> elements_of(const Instructions& code) const {
    const std::vector<int64_t>& extents = kernel_.extents;
    double elements = 1;
    std::set<int> dims;
    for (const Instruction& one : code) {
      if (one.op != kLoopBegin) continue;
      const int dim = kernel_.loops[static_cast<size_t>(one.number)].dim;
      if (!dims.insert(dim).second) continue;
      const bool is_stretch = dim == static_cast<int>(extents.size()) && kernel_.stretch >= 0;
      if (!is_stretch && (dim < 0 || static_cast<size_t>(dim) >= extents.size())) return std::nullopt;
      const auto first = extents.begin() + (is_stretch ? kernel_.stretch : dim);
      for (auto extent = first; extent != (is_stretch ? extents.end() : first + 1); ++extent) {
        if (*extent < 0) return std::nullopt;
        elements *= static_cast<double>(*extent);
      }
    }
    return elements;
  }

  // ---- One of the two versions ----

  // The code for one outcome of the condition.
  Instructions chosen(const Instructions& code, RegisterId condition, bool holds) const {
    std::map<RegisterId, bool> known{{condition, holds}};
    std::map<RegisterId, RegisterId> same;
    Instructions made;
    for (Instruction one : code) {
      rename(one, same);
      const std::optional<RegisterId> is = is_border(one.op) ? std::nullopt : value_of(one, known);
      if (!is)
        made.push_back(std::move(one));
      else if (once(one.out[0]) && once(*is))
        same[one.out[0]] = *is;
      else
        made.push_back({.op = "Copy", .in = {*is}, .out = one.out, .label = one.label});
    }
    made = hoisted(std::move(made));
    drop_idle(made);
    return made;
  }
  static void rename(Instruction& one, const std::map<RegisterId, RegisterId>& same) {
    for (RegisterId& id : one.in)
      if (const auto found = same.find(id); found != same.end()) id = found->second;
  }
  // The operand that the instruction is equal to, if any; records the outcomes of conditions that follow.
  std::optional<RegisterId> value_of(const Instruction& one, std::map<RegisterId, bool>& known) const {
    const auto truth = [&](size_t i) -> std::optional<bool> {
      const auto found = known.find(one.in[i]);
      return found == known.end() ? std::nullopt : std::optional(found->second);
    };
    if (one.memory || one.out.size() != 1) return std::nullopt;
    if (one.op == kWhere && one.in.size() == 3) {
      const auto condition = truth(0);
      return condition ? std::optional(one.in[*condition ? 1 : 2]) : std::nullopt;
    }
    if (kernel_.registers[index(one.out[0])].file != codegen::RegisterFile::mask || !once(one.out[0]))
      return std::nullopt;
    if (one.op == "Not") {
      if (const auto condition = truth(0)) known[one.out[0]] = !*condition;
      return std::nullopt;
    }
    if (one.op != kAnd && one.op != kOr) return std::nullopt;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const auto condition = truth(i);
      if (!condition) continue;
      if (*condition == (one.op == kAnd)) return one.in[1 - i];
      known[one.out[0]] = *condition;
    }
    return std::nullopt;
  }

  // Loop-invariant code motion: moves what is invariant in a loop before it, without duplicates.
  Instructions hoisted(Instructions code) const {
    Instructions made, before;
    std::map<RegisterId, RegisterId> same;
    for (size_t i = 0; i < code.size(); ++i) {
      rename(code[i], same);
      if (!begins_region(code[i].op)) {
        made.push_back(std::move(code[i]));
        continue;
      }
      const size_t end = snippet::end_of_region(code, i);
      const auto at = [&](size_t k) { return std::make_move_iterator(code.begin() + static_cast<std::ptrdiff_t>(k)); };
      Instructions inside = hoisted(Instructions(at(i + 1), at(end)));
      std::set<RegisterId> written(code[i].out.begin(), code[i].out.end());
      for (const Instruction& one : inside) written.insert(one.out.begin(), one.out.end());
      Instructions left;
      int open = 0;
      for (Instruction& one : inside) {
        open += begins_region(one.op) ? 1 : ends_region(one.op) ? -1 : 0;
        rename(one, same);
        const bool stands = open == 0 && is_pure(one) &&
                            std::ranges::all_of(one.out, [&](RegisterId id) { return once(id); }) &&
                            std::ranges::none_of(one.in, [&](RegisterId id) { return written.contains(id); });
        if (!stands) {
          left.push_back(std::move(one));
          continue;
        }
        for (const RegisterId id : one.out) written.erase(id);
        const auto alike =
            std::ranges::find_if(before, [&](const Instruction& other) { return are_alike(one, other); });
        if (alike != before.end()) {
          for (size_t k = 0; k < one.out.size(); ++k) same[one.out[k]] = alike->out[k];
          continue;
        }
        before.push_back(one);
        made.push_back(std::move(one));
      }
      made.push_back(std::move(code[i]));
      std::ranges::move(left, std::back_inserter(made));
      made.push_back(std::move(code[end]));
      i = end;
    }
    return made;
  }
  // Do they make the same? What is written again between the two is not.
  bool are_alike(const Instruction& one, const Instruction& other) const {
    const auto element = [&](RegisterId id) { return kernel_.registers[index(id)].element; };
    if (!std::ranges::all_of(one.in, [&](RegisterId id) { return once(id); })) return false;
    return one.op == other.op && one.in == other.in && one.attributes == other.attributes &&
           one.out.size() == other.out.size() && element(one.out[0]) == element(other.out[0]);
  }

  // Dead code elimination for instructions that only compute or load lanes.
  void drop_idle(Instructions& code) const {
    static const Name kLoads[] = {kLoad, kBroadcastLoad};
    std::map<RegisterId, int> reads;
    for (const Instruction& one : code)
      for (const RegisterId id : one.in) ++reads[id];
    const auto is_idle = [&](RegisterId id) { return once(id) && is_lanes(id) && reads[id] == 0; };
    std::vector<char> gone(code.size(), 0);
    for (size_t i = code.size(); i-- > 0;) {
      const Instruction& one = code[i];
      const bool may_go = is_pure(one) || std::ranges::find(kLoads, one.op) != std::end(kLoads);
      if (!may_go || !std::ranges::all_of(one.out, is_idle)) continue;
      gone[i] = 1;
      for (const RegisterId id : one.in) --reads[id];
    }
    size_t i = 0;
    std::erase_if(code, [&](const Instruction&) { return gone[i++] != 0; });
  }

  // ---- Both versions ----

  void divide(const Choice& choice) {
    const auto at = [&](size_t i) { return kernel_.body.begin() + static_cast<std::ptrdiff_t>(i); };
    const Instructions all(at(choice.begin), at(choice.end));
    Instructions holds = chosen(all, choice.condition, true), fails = chosen(all, choice.condition, false);
    take_other_registers(all, fails);
    Instructions made(std::make_move_iterator(at(0)), std::make_move_iterator(at(choice.begin)));
    const auto add_when = [&](bool when, Instructions& code) {
      Instruction begin{.op = kWhenBegin, .in = {choice.condition}};
      if (!when) begin.attributes.set(snippet::kHolds, 0);
      made.push_back(std::move(begin));
      std::ranges::move(code, std::back_inserter(made));
      made.push_back({.op = kWhenEnd});
    };
    add_when(true, holds), add_when(false, fails);
    made.insert(made.end(), std::make_move_iterator(at(choice.end)), std::make_move_iterator(kernel_.body.end()));
    kernel_.body = std::move(made);
  }
  // Gives the copy its own loops, and its own registers for those used only in `all`; others are read or written
  // outside.
  void take_other_registers(const Instructions& all, Instructions& copy) {
    std::map<RegisterId, int> uses;
    const auto for_each_use = [](Instruction& one, auto&& take) {
      for (RegisterIds* ids : {&one.in, &one.out})
        for (RegisterId& id : *ids) take(id);
      if (!one.memory) return;
      take(one.memory->base);
      if (one.memory->index >= 0) take(one.memory->index);
    };
    for (Instruction one : all) for_each_use(one, [&](RegisterId& id) { ++uses[id]; });
    std::map<RegisterId, RegisterId> renamed;
    std::map<int64_t, LoopId> loops;
    const auto is_own = [&](RegisterId id) {
      const int seen = uses_->writes(id) + static_cast<int>(uses_->readers(id).size());
      return seen == uses[id] && uses_->writes(id) > 0;
    };
    for (Instruction& one : copy) {
      for_each_use(one, [&](RegisterId& id) {
        if (!is_own(id)) return;
        const auto [found, is_new] = renamed.try_emplace(id, -1);
        if (is_new) {
          const snippet::Register like = kernel_.registers[index(id)];
          found->second = kernel_.add_register(like.file, like.element);
        }
        id = found->second;
      });
      if (one.op == kWhenBegin || one.op == kWhenEnd || !is_border(one.op)) continue;
      const auto [found, is_new] = loops.try_emplace(one.number, static_cast<LoopId>(kernel_.loops.size()));
      if (is_new) {
        Loop loop = kernel_.loops[static_cast<size_t>(one.number)];
        const auto rename_one = [&](RegisterId& id) {
          if (const auto own = renamed.find(id); own != renamed.end()) id = own->second;
        };
        rename_one(loop.counter);
        for (Loop::Shift& shift : loop.shifts) rename_one(shift.pointer);
        kernel_.loops.push_back(std::move(loop));
      }
      one.number = found->second;
    }
  }

  LinearKernel& kernel_;
  const PassOptions& options_;
  const Uses* uses_ = nullptr;  // of the kernel as it is looked at
};

}  // namespace

void unswitch_loops(LinearKernel& kernel, const PassOptions& options) {
  constexpr int kMostChoices = 3;
  if (!has_any(kernel, {kWhere}) || kernel.body.size() > Unswitch::kMostInstructions) return;
  for (int i = 0; i < kMostChoices && Unswitch(kernel, options).run(); ++i) {}
}

}  // namespace tenon::x86
