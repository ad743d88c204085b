// Comparisons that wait for others (avx512): one that is only an operand of And compares where the other one holds, and
// And is none. Or, where it only chooses, is And of the opposites, and the choice the other way round.
//
//   %3 = Less %1, %2                    %3 = Less %1, %2 {negated = 1}
//   %5 = Greater %1, %4                 %6 = Greater %1, %4, %3 {negated = 1}
//   %6 = Or %3, %5                      %9 = Where %6, %8, %7
//   %9 = Where %6, %7, %8
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

const Name kAnd("And"), kOr("Or");

bool is_comparison(const Instruction& one) {
  static const Name kNames[] = {
      "Equal",     "NotEqual",         "Less",         "LessOrEqual",        "Greater", "GreaterOrEqual", "EqualBytes",
      "LessBytes", "LessOrEqualBytes", "GreaterBytes", "GreaterOrEqualBytes"};
  return !one.memory && std::ranges::find(kNames, one.op) != std::end(kNames);
}

bool chooses_by(const Instruction& one, RegisterId condition) {
  static const Name kNames[] = {"Where", "WhereBytes"};
  return std::ranges::find(kNames, one.op) != std::end(kNames) && one.in[0] == condition && one.in[1] != condition &&
         one.in[2] != condition;
}

class Conditions {
 public:
  explicit Conditions(LinearKernel& kernel)
      : kernel_(kernel),
        writes_(kernel.registers.size()),
        maker_(kernel.registers.size(), -1),
        readers_(kernel.registers.size()),
        region_(kernel.body.size()),
        gone_(kernel.body.size(), 0) {
    for (size_t i = 0, region = 0; i < kernel.body.size(); ++i) {
      const Instruction& one = kernel.body[i];
      region_[i] = is_border(one.op) ? ++region : region;
      for (const RegisterId id : one.out) ++writes_[index(id)], maker_[index(id)] = static_cast<int>(i);
      for (const RegisterId id : one.in) readers_[index(id)].push_back(i);
    }
  }

  void run() {
    for (size_t i = 0; i < kernel_.body.size(); ++i)
      if (kernel_.body[i].op == kOr) turn(i);
    for (size_t i = 0; i < kernel_.body.size(); ++i)
      if (kernel_.body[i].op == kAnd) join(i);
    size_t i = 0;
    std::erase_if(kernel_.body, [&](const Instruction&) { return gone_[i++] != 0; });
  }

 private:
  static size_t index(RegisterId id) { return static_cast<size_t>(id); }

  // What instruction `user` alone reads, and is made in the same stretch of code of what stays as it is; else -1.
  int maker_for(RegisterId id, size_t user) const {
    const int made = maker_[index(id)];
    if (made < 0 || writes_[index(id)] != 1 || readers_[index(id)].size() != 1) return -1;
    const auto at = static_cast<size_t>(made);
    const auto once = [&](RegisterId operand) { return writes_[index(operand)] == 1; };
    return region_[at] == region_[user] && std::ranges::all_of(kernel_.body[at].in, once) ? made : -1;
  }
  Instruction* comparison_for(RegisterId id, size_t user) {
    const int made = maker_for(id, user);
    Instruction* const one = made < 0 ? nullptr : &kernel_.body[static_cast<size_t>(made)];
    return one && is_comparison(*one) && one->in.size() == 2 ? one : nullptr;
  }

  // Is the opposite of an Or for nothing: is it one of comparisons, and of such Ors, that nothing else reads?
  bool has_opposite(size_t root) {
    std::vector<size_t> open{root};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      const Instruction& one = kernel_.body[at];
      if (one.in[0] == one.in[1]) return false;
      for (const RegisterId id : one.in) {
        if (comparison_for(id, at)) continue;
        const int made = maker_for(id, at);
        if (made < 0 || kernel_.body[static_cast<size_t>(made)].op != kOr) return false;
        open.push_back(static_cast<size_t>(made));
      }
    }
    return true;
  }
  void make_opposite(size_t root) {
    std::vector<size_t> open{root};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      kernel_.body[at].op = kAnd;
      for (const RegisterId id : kernel_.body[at].in) {
        if (Instruction* const one = comparison_for(id, at))
          one->attributes.set("negated", 1);
        else
          open.push_back(static_cast<size_t>(maker_[index(id)]));
      }
    }
  }

  void turn(size_t at) {
    const RegisterId made = kernel_.body[at].out[0];
    const auto chooses = [&](size_t reader) { return chooses_by(kernel_.body[reader], made); };
    if (writes_[index(made)] != 1 || readers_[index(made)].empty() ||
        !std::ranges::all_of(readers_[index(made)], chooses) || !has_opposite(at))
      return;
    make_opposite(at);
    for (const size_t reader : readers_[index(made)]) std::swap(kernel_.body[reader].in[1], kernel_.body[reader].in[2]);
  }

  void join(size_t at) {
    Instruction& both = kernel_.body[at];
    if (both.in[0] == both.in[1]) return;
    for (const size_t i : {size_t{1}, size_t{0}}) {
      const Instruction* const one = comparison_for(both.in[i], at);
      if (!one) continue;
      gone_[static_cast<size_t>(maker_[index(both.in[i])])] = 1;
      both.op = one->op;
      both.attributes = one->attributes;
      both.in = {one->in[0], one->in[1], both.in[1 - i]};
      return;
    }
  }

  LinearKernel& kernel_;
  std::vector<int> writes_, maker_;
  std::vector<std::vector<size_t>> readers_;  // of each register
  std::vector<size_t> region_;                // of each instruction: the stretch of code without borders
  std::vector<char> gone_;
};

}  // namespace

void join_conditions(LinearKernel& kernel) {
  const auto joins = [](const Instruction& one) { return one.op == kAnd || one.op == kOr; };
  if (std::ranges::any_of(kernel.body, joins)) Conditions(kernel).run();
}

}  // namespace tenon::x86
