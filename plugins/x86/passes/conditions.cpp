// Comparisons that wait for others (avx512): one that is only an operand of And compares where the other one holds, and
// And is none. Or, where it only chooses, is And of the opposites, and the choice the other way round.
//
//   %3 = Less %1, %2                    %3 = Less %1, %2 {negated = 1}
//   %5 = Greater %1, %4                 %6 = Greater %1, %4, %3 {negated = 1}
//   %6 = Or %3, %5                      %9 = Where %6, %8, %7
//   %9 = Where %6, %7, %8
#include "x86/passes/uses.hpp"

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
  explicit Conditions(LinearKernel& kernel) : kernel_(kernel), uses_(kernel), gone_(kernel.body.size(), 0) {}

  void run() {
    for (size_t i = 0; i < kernel_.body.size(); ++i)
      if (kernel_.body[i].op == kOr) turn(i);
    for (size_t i = 0; i < kernel_.body.size(); ++i)
      if (kernel_.body[i].op == kAnd) join(i);
    erase_marked(kernel_, gone_);
  }

 private:
  // What instruction `user` alone reads, and is made in the same stretch of code of what stays as it is.
  std::optional<size_t> maker_for(RegisterId id, size_t user) const {
    if (!uses_.is_for_one(id)) return std::nullopt;
    const size_t made = *uses_.maker(id);
    const auto once = [&](RegisterId operand) { return uses_.once(operand); };
    const bool stays = uses_.in_one_stretch(made, user) && std::ranges::all_of(kernel_.body[made].in, once);
    return stays ? std::optional(made) : std::nullopt;
  }
  Instruction* comparison_for(RegisterId id, size_t user) {
    const auto made = maker_for(id, user);
    Instruction* const one = made ? &kernel_.body[*made] : nullptr;
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
        const auto made = maker_for(id, at);
        if (!made || kernel_.body[*made].op != kOr) return false;
        open.push_back(*made);
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
          open.push_back(*uses_.maker(id));
      }
    }
  }

  void turn(size_t at) {
    const RegisterId made = kernel_.body[at].out[0];
    const auto chooses = [&](size_t reader) { return chooses_by(kernel_.body[reader], made); };
    const auto readers = uses_.readers(made);
    if (!uses_.once(made) || readers.empty() || !std::ranges::all_of(readers, chooses) || !has_opposite(at)) return;
    make_opposite(at);
    for (const size_t reader : readers) std::swap(kernel_.body[reader].in[1], kernel_.body[reader].in[2]);
  }

  void join(size_t at) {
    Instruction& both = kernel_.body[at];
    if (both.in[0] == both.in[1]) return;
    for (const size_t i : {size_t{1}, size_t{0}}) {
      const Instruction* const one = comparison_for(both.in[i], at);
      if (!one) continue;
      gone_[*uses_.maker(both.in[i])] = 1;
      both.op = one->op;
      both.attributes = one->attributes;
      both.in = {one->in[0], one->in[1], both.in[1 - i]};
      return;
    }
  }

  LinearKernel& kernel_;
  const Uses uses_;
  std::vector<char> gone_;
};

}  // namespace

void join_conditions(LinearKernel& kernel) {
  const auto joins = [](const Instruction& one) { return one.op == kAnd || one.op == kOr; };
  if (std::ranges::any_of(kernel.body, joins)) Conditions(kernel).run();
}

}  // namespace tenon::x86
