// Rows that one vector holds: a reduction into the neutral element is the value itself, so the constant and the
// operation are dropped. This needs lanes beyond the row's end to hold the neutral element; otherwise the sum of the
// lanes could be -0 instead of 0.
//
//   %1 = Scalar {bits = 0xff800000}
//   %3 = FillTail %2, %m {bits = 0xff800000}      %1 = FillTail %2, %m {bits = 0xff800000}
//   %1 = Max %1, %3
#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

bool folds(const Instruction& one) {
  static const Name kNames[] = {"Add", "Mul", "Max", "Min"};
  return std::ranges::find(kNames, one.op) != std::end(kNames) && !one.memory && one.out[0] == one.in[0] &&
         one.in[1] != one.in[0];
}

// Whether lanes beyond the end hold this number; those of a Load are 0.
bool fills(const Instruction& one, const Attribute& bits) {
  static const Name kFill("FillTail"), kLoad("Load");
  if (one.op == kFill) return *one.attributes.find("bits") == bits;
  return one.op == kLoad && one.touched == Lanes::partial && *bits.get_if<int64_t>() == 0;
}

}  // namespace

void drop_neutral_folds(LinearKernel& kernel) {
  if (std::ranges::none_of(kernel.body, folds)) return;
  struct Register {
    size_t scalar = 0;  // position of the instruction that last wrote it as a constant
    int fresh = 0;      // the stretch of code in which that was, if nothing has read it since
  };
  int stretch = 1;
  const Uses uses(kernel);
  std::vector<Register> registers(kernel.registers.size());
  const auto at = [&](RegisterId id) -> Register& { return registers[static_cast<size_t>(id)]; };
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    Instruction& one = kernel.body[i];
    stretch += is_border(one.op);
    if (folds(one) && at(one.in[0]).fresh == stretch && uses.writes(one.in[0]) == 2 && uses.is_for_one(one.in[1])) {
      const size_t scalar = at(one.in[0]).scalar, fill = *uses.maker(one.in[1]);
      // The fill comes after the constant, so it can write the constant's register.
      if (scalar < fill && fill < i && fills(kernel.body[fill], *kernel.body[scalar].attributes.find("bits"))) {
        gone[scalar] = gone[i] = 1;
        kernel.body[fill].out[0] = one.out[0];
      }
    }
    for (const RegisterId id : one.in) at(id).fresh = 0;
    for (const RegisterId id : one.out) at(id) = one.op == kScalar ? Register{i, stretch} : Register{};
  }
  erase_marked(kernel, gone);
}

}  // namespace tenon::x86
