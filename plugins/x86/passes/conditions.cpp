// Cheaper conditions. On avx512, a comparison whose only reader is an And becomes a masked comparison: it compares
// where the other operand holds, and the And disappears. An Or whose only reader is a choice becomes the And of the
// opposite comparisons, with the alternatives of the choice exchanged (De Morgan).
//
//   %3 = Less %1, %2                    %3 = Less %1, %2 {negated = 1}
//   %5 = Greater %1, %4                 %6 = Greater %1, %4, %3 {negated = 1}
//   %6 = Or %3, %5                      %9 = Where %6, %8, %7
//   %9 = Where %6, %7, %8
//
// On avx2, a comparison that is only read by choices becomes its opposite where that takes fewer instructions: for
// integers there are only Equal and Greater, and for unsigned bytes the minimum.
//
//   %3 = LessOrEqual %1, %2             %3 = Greater %1, %2
//   %9 = Where %3, %7, %8               %9 = Where %3, %8, %7
//
// The same holds for the four comparisons of which PackMask makes one mask, and for comparisons that are joined by And
// or Or only to choose. A choice with 0 as one alternative takes one instruction instead of three.
//
//   %5 = And %3, %4                     %5 = Drop %3, %4          %4 where %3 does not hold
//   %9 = Where %5, %7, 0                %9 = Keep %5, %7
#include <optional>

#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

const Name kWhereBytes("WhereBytes");

bool is_comparison(const Instruction& one) {
  static const Name kNames[] = {"Equal",     "NotEqual",         "Less",         "LessOrEqual",
                                "Greater",   "GreaterOrEqual",   "EqualBytes",   "NotEqualBytes",
                                "LessBytes", "LessOrEqualBytes", "GreaterBytes", "GreaterOrEqualBytes"};
  return !one.memory && std::ranges::find(kNames, one.op) != std::end(kNames);
}

bool chooses_by(const Instruction& one, RegisterId condition) {
  static const Name kNames[] = {"Where", "WhereBytes"};
  return std::ranges::find(kNames, one.op) != std::end(kNames) && one.in[0] == condition && one.in[1] != condition &&
         one.in[2] != condition;
}

bool only_chooses(const LinearKernel& kernel, const Uses& uses, RegisterId condition) {
  const auto chooses = [&](size_t reader) { return chooses_by(kernel.body[reader], condition); };
  const auto readers = uses.readers(condition);
  return uses.once(condition) && !readers.empty() && std::ranges::all_of(readers, chooses);
}

void choose_otherwise(LinearKernel& kernel, const Uses& uses, RegisterId condition) {
  for (const size_t reader : uses.readers(condition)) std::swap(kernel.body[reader].in[1], kernel.body[reader].in[2]);
}

std::optional<Name> cheaper_opposite(const LinearKernel& kernel, const Instruction& one) {
  static const Name kOpposites[][2] = {{"LessOrEqual", "Greater"},
                                       {"GreaterOrEqual", "Less"},
                                       {"NotEqual", "Equal"},
                                       {"LessOrEqualBytes", "GreaterBytes"},
                                       {"GreaterOrEqualBytes", "LessBytes"}};
  if (one.memory || one.in.size() != 2 || !kernel.registers[static_cast<size_t>(one.in[0])].element.is_int())
    return std::nullopt;
  static const Name kSigned("signed"), kNotEqualBytes("NotEqualBytes");
  if (one.op == kNotEqualBytes) return Name("EqualBytes");
  const Attribute* const has_sign = one.attributes.find(kSigned);  // of byte comparisons
  const bool reversed = has_sign && *has_sign->get_if<int64_t>() == 0;
  for (const auto& [costly, cheap] : kOpposites)
    if (one.op == (reversed ? cheap : costly)) return reversed ? costly : cheap;
  return std::nullopt;
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
  // The instruction that computes `id`, if only `user` reads it, both are in one straight-line stretch of code, and its
  // operands do not change.
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

  // Whether negating an Or costs nothing: it must join comparisons, and further such Ors, that nothing else reads.
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
    if (!only_chooses(kernel_, uses_, made) || !has_opposite(at)) return;
    make_opposite(at);
    choose_otherwise(kernel_, uses_, made);
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

// The comparison that computes `id` for a single reader, if its opposite takes fewer instructions.
Instruction* costly_comparison(LinearKernel& kernel, const Uses& uses, RegisterId id) {
  if (!uses.is_for_one(id)) return nullptr;
  Instruction& made = kernel.body[*uses.maker(id)];
  return cheaper_opposite(kernel, made) ? &made : nullptr;
}

// And, Or of comparisons, in terms of the opposites: a & b is "b, where not a holds not" (Drop); a | b is the negation
// of "not a, where b does not hold".
void turn_joined(LinearKernel& kernel, const Uses& uses, Instruction& joined) {
  const bool is_or = joined.op == kOr;
  if ((!is_or && joined.op != kAnd) || joined.in.size() != 2 || joined.in[0] == joined.in[1]) return;
  if (!kernel.registers[static_cast<size_t>(joined.out[0])].element.is_bool()) return;
  Instruction* a = costly_comparison(kernel, uses, joined.in[0]);
  Instruction* b = costly_comparison(kernel, uses, joined.in[1]);
  if (!a && !b) return;
  const bool chooses = only_chooses(kernel, uses, joined.out[0]);
  if (is_or && !chooses) return;
  const auto turn = [&](Instruction* one) { one->op = *cheaper_opposite(kernel, *one); };
  if (a && b && chooses) {
    turn(a), turn(b);
    joined.op = is_or ? kAnd : kOr;
    return choose_otherwise(kernel, uses, joined.out[0]);
  }
  if (!a) std::swap(joined.in[0], joined.in[1]), a = b;
  turn(a);
  joined.op = "Drop";
  if (!is_or) return;
  std::swap(joined.in[0], joined.in[1]);
  choose_otherwise(kernel, uses, joined.out[0]);
}

void turn_packed(LinearKernel& kernel, const Uses& uses, const Instruction& packed) {
  static const Name kPackMask("PackMask");
  if (packed.op != kPackMask || !only_chooses(kernel, uses, packed.out[0])) return;
  if (!std::ranges::all_of(packed.in, [&](RegisterId id) { return costly_comparison(kernel, uses, id) != nullptr; }))
    return;
  for (const RegisterId id : packed.in) {
    Instruction& one = kernel.body[*uses.maker(id)];
    one.op = *cheaper_opposite(kernel, one);
  }
  choose_otherwise(kernel, uses, packed.out[0]);
}

bool is_nothing(const LinearKernel& kernel, const Uses& uses, RegisterId id) {
  static const Name kSpreadByte("SpreadByte");
  const auto made = uses.maker(id);
  if (!made) return false;
  const Instruction& one = kernel.body[*made];
  if (one.op == kSpreadByte) return is_nothing(kernel, uses, one.in[0]);
  return one.op == kScalar && *one.attributes.find(kBits)->get_if<int64_t>() == 0;
}

void choose_beside_nothing(const LinearKernel& kernel, const Uses& uses, Instruction& choice) {
  if ((choice.op != kWhere && choice.op != kWhereBytes) || choice.memory ||
      kernel.registers[static_cast<size_t>(choice.out[0])].element.is_bool())
    return;
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!is_nothing(kernel, uses, choice.in[i])) continue;
    choice.op = i == 2 ? "Keep" : "Drop";
    choice.attributes = {};
    choice.in = {choice.in[0], choice.in[3 - i]};
    return;
  }
}

}  // namespace

void turn_choices(LinearKernel& kernel) {
  const auto may_turn = [&](const Instruction& one) {
    return one.op == kWhere || one.op == kWhereBytes || cheaper_opposite(kernel, one).has_value();
  };
  if (std::ranges::none_of(kernel.body, may_turn)) return;
  const Uses uses(kernel);
  for (Instruction& one : kernel.body) {
    turn_joined(kernel, uses, one);
    turn_packed(kernel, uses, one);
    const std::optional<Name> opposite = cheaper_opposite(kernel, one);
    if (!opposite || !only_chooses(kernel, uses, one.out[0])) continue;
    one.op = *opposite;
    choose_otherwise(kernel, uses, one.out[0]);
  }
  for (Instruction& one : kernel.body) choose_beside_nothing(kernel, uses, one);
}

void join_conditions(LinearKernel& kernel) {
  const auto joins = [](const Instruction& one) { return one.op == kAnd || one.op == kOr; };
  if (std::ranges::any_of(kernel.body, joins)) Conditions(kernel).run();
}

}  // namespace tenon::x86
