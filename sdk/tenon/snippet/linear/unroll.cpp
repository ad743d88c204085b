#include <tenon/snippet/linear/unroll.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <tenon/snippet/linear/linear_names.hpp>
#include <tenon/snippet/linear/loop_moves_internal.hpp>

namespace tenon::snippet {
namespace {

// Most instructions of an unrolled loop.
constexpr size_t kInstructions = 128;
constexpr int64_t kTimes = 3;

class Unroller {
 public:
  explicit Unroller(LinearKernel& kernel) : kernel_(kernel) {}

  void run() {
    const std::vector<Instruction> body = std::exchange(kernel_.body, {});
    uses_ = uses_of(body);
    walk(body);
    kernel_.body.insert(kernel_.body.begin(), entry_.begin(), entry_.end());
    erase_idle_counters();
  }

 private:
  using Body = std::span<const Instruction>;
  static bool begins(Name op) { return op == kLoopBegin || op == kTailBegin; }
  static bool ends(Name op) { return op == kLoopEnd || op == kTailEnd; }

  void walk(Body body) {
    static const Name kZero("Zero");
    for (size_t i = 0; i < body.size();) {
      if (body[i].op == kWhenBegin) {
        i = walk_when(body, i);
        continue;
      }
      if (!begins(body[i].op)) {
        if (body[i].op == kZero) counters_[body[i].out[0]] = 0, held_[body[i].out[0]] = 0;
        kernel_.body.push_back(renamed(body[i++]));
        continue;
      }
      const size_t end = end_of_region(body, i) + 1;
      const Body loop = body.subspan(i, end - i);
      if (!without_borders(loop)) as_it_is(loop);
      i = end;
    }
  }

  // Keeps it. Where it does not run, counters keep their values. Returns the position after its end.
  size_t walk_when(Body body, size_t begin) {
    const size_t end = end_of_region(body, begin) + 1;
    const auto counters = counters_, held = held_;
    kernel_.body.push_back(renamed(body[begin]));
    ++depth_;
    walk(body.subspan(begin + 1, end - begin - 2));
    --depth_;
    kernel_.body.push_back(body[end - 1]);
    counters_ = counters, held_ = held;
    return end;
  }

  void as_it_is(Body loop) {
    const Loop& which = kernel_.loops[static_cast<size_t>(loop.front().number)];
    const std::optional<int64_t> times = times_of(loop);
    const RegisterId counter = loop.front().in[0];
    const int64_t ended = times ? counters_[counter] + *times * which.increment : 0;
    // Loops before it that were unrolled have not advanced its counter.
    if (const auto at = counters_.find(counter); at != counters_.end() && at->second != held_[counter])
      kernel_.body.push_back({.op = "Number", .attributes = {{"value", at->second}}, .out = {counter}});
    // Its own counter and those inside it.
    counters_.clear();
    kernel_.body.push_back(loop.front());
    ++depth_;
    walk(loop.subspan(1, loop.size() - 2));
    --depth_;
    kernel_.body.push_back(loop.back());
    counters_.clear();
    if (times && which.kind != Loop::Kind::tail) counters_[counter] = held_[counter] = ended;
  }

  // Trip count; for a tail: its lanes.
  std::optional<int64_t> times_of(Body loop) const {
    const Loop& which = kernel_.loops[static_cast<size_t>(loop.front().number)];
    const std::optional<int64_t> limit = kernel_.params[static_cast<size_t>(which.limit)].known;
    const auto at = counters_.find(loop.front().in[0]);
    if (!limit || at == counters_.end()) return std::nullopt;
    if (which.kind == Loop::Kind::tail) return std::max<int64_t>(*limit - at->second, 0);
    return *limit < at->second ? 0 : (*limit - at->second) / which.increment + 1;
  }

  // Whether an instruction inside reads the counter, as an operand or as an address.
  static bool counts_elsewhere(Body inside, RegisterId counter) {
    return std::ranges::any_of(inside, [&](const Instruction& one) {
      const bool reads = std::ranges::find(one.in, counter) != one.in.end() && !begins(one.op) && !ends(one.op);
      return reads || (one.memory && one.memory->base == counter);
    });
  }

  // False: it stays a loop.
  bool without_borders(Body loop) {
    const std::optional<int64_t> times = times_of(loop);
    if (!times) return false;
    const Loop& of = kernel_.loops[static_cast<size_t>(loop.front().number)];
    const RegisterId counter = loop.front().in[0];
    const Body inside = loop.subspan(1, loop.size() - 2);
    const auto move = [&](ParamId Loop::Shift::*which) { append_moves(kernel_.body, of, which, loop.back().label); };
    if (*times == 0) return move(&Loop::Shift::rewind), true;
    const bool tail = of.kind == Loop::Kind::tail;
    const bool several = of.kind == Loop::Kind::vector && of.increment == kernel_.lanes;
    const bool nested = std::ranges::any_of(inside, [](const Instruction& one) { return begins(one.op); });
    const int64_t copies = tail ? 1 : *times;
    if (copies > (several && !nested ? kTimes : 1) || static_cast<size_t>(copies) * inside.size() > kInstructions ||
        counts_elsewhere(inside, counter) || (tail && *times >= kernel_.lanes))
      return false;
    const int64_t begin = counters_[counter];
    if (tail) lanes_for(loop.front(), *times);
    const std::vector<RegisterId> own = copies > 1 ? own_lanes(inside) : std::vector<RegisterId>();
    for (int64_t copy = 0; copy < copies; ++copy) {
      // Otherwise the values of all copies would be live from the first to the last copy.
      if (copy > 0)
        for (const RegisterId id : own) renamed_[id] = another(id);
      at_[counter] = begin + copy * of.increment;
      counters_[counter] = at_[counter];
      walk(inside);
      move(&Loop::Shift::each);
    }
    for (const RegisterId id : own) renamed_.erase(id);
    move(&Loop::Shift::rewind);
    at_.erase(counter);
    if (!tail) counters_[counter] = begin + copies * of.increment;
    return true;
  }

  // The number of reads and writes of each register.
  std::vector<int> uses_of(Body body) const {
    std::vector<int> uses(kernel_.registers.size(), 0);
    for (const Instruction& one : body) {
      for (const RegisterId id : one.in) ++uses[static_cast<size_t>(id)];
      for (const RegisterId id : one.out) ++uses[static_cast<size_t>(id)];
    }
    return uses;
  }
  RegisterId another(RegisterId id) {
    const Register like = kernel_.registers[static_cast<size_t>(id)];
    return kernel_.add_register(like.file, like.element);
  }
  // Lanes that each iteration defines anew, and that nothing reads after it.
  std::vector<RegisterId> own_lanes(Body inside) const {
    const std::vector<int> uses = uses_of(inside);
    std::vector<char> seen(uses.size(), 0);
    std::vector<RegisterId> own;
    for (const Instruction& one : inside) {
      for (const RegisterId id : one.in) seen[static_cast<size_t>(id)] = 1;
      for (const RegisterId id : one.out) {
        const auto i = static_cast<size_t>(id);
        const bool is_first = !std::exchange(seen[i], 1);
        if (is_first && i < uses_.size() && uses[i] == uses_[i] &&
            kernel_.registers[i].file != codegen::RegisterFile::general)
          own.push_back(id);
      }
    }
    return own;
  }

  // Mask and count of a tail: outside of loops and whens they are defined at the tail, else before all loops.
  void lanes_for(const Instruction& begin, int64_t lanes) {
    std::vector<Instruction>& made = depth_ == 0 ? kernel_.body : entry_;
    auto [known, is_new] = tails_.try_emplace(lanes, begin.out[0], begin.out[1]);
    if (is_new) {
      made.push_back({.op = "Number", .attributes = {{"value", lanes}}, .out = {begin.out[1]}});
      made.push_back({.op = "FirstLanes", .in = {begin.out[1]}, .out = {begin.out[0]}});
    }
    renamed_[begin.out[0]] = known->second.first;
    renamed_[begin.out[1]] = known->second.second;
  }

  void erase_idle_counters() {
    static const Name kZero("Zero");
    std::vector<char> read(kernel_.registers.size(), 0);
    for (const Instruction& one : kernel_.body) {
      for (const RegisterId id : one.in) read[static_cast<size_t>(id)] = 1;
      if (one.memory && one.memory->index >= 0) read[static_cast<size_t>(one.memory->index)] = 1;
    }
    std::erase_if(kernel_.body,
                  [&](const Instruction& one) { return one.op == kZero && !read[static_cast<size_t>(one.out[0])]; });
  }

  // With the lanes of its tail or copy, and with numbers for counters that are known.
  Instruction renamed(Instruction one) const {
    for (RegisterIds* ids : {&one.in, &one.out})
      for (RegisterId& id : *ids)
        if (const auto other = renamed_.find(id); other != renamed_.end()) id = other->second;
    if (!one.memory) return one;
    if (const auto at = at_.find(one.memory->index); at != at_.end()) {
      one.memory->displacement_bytes += at->second * (one.memory->element.bits() / 8);
      one.memory->index = -1;
    }
    return one;
  }

  LinearKernel& kernel_;
  std::vector<Instruction> entry_;
  std::map<RegisterId, int64_t> counters_;  // known values of counters, by register
  std::map<RegisterId, int64_t> held_;      // the values that their machine registers hold at this point
  std::map<RegisterId, int64_t> at_;        // of loops that are unrolled
  std::map<int64_t, std::pair<RegisterId, RegisterId>> tails_;
  std::map<RegisterId, RegisterId> renamed_;
  std::vector<int> uses_;
  int depth_ = 0;
};

}  // namespace

void unroll_known_loops(LinearKernel& kernel) {
  const auto ends = [&](const Loop& loop) { return kernel.params[static_cast<size_t>(loop.limit)].known.has_value(); };
  if (std::ranges::any_of(kernel.loops, ends)) Unroller(kernel).run();
}

}  // namespace tenon::snippet
