// Rows that one vector holds: what is folded into the neutral number is itself. Where lanes behind the row's end are
// filled, they hold that number as well, so that the lanes' sum is not -0 for it either.
//
//   %1 = Scalar {bits = 0xff800000}
//   %3 = FillTail %2, %m {bits = 0xff800000}      %1 = FillTail %2, %m {bits = 0xff800000}
//   %1 = Max %1, %3
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

const Name kScalar("Scalar");

bool folds(const Instruction& one) {
  static const Name kNames[] = {"Add", "Mul", "Max", "Min"};
  return std::ranges::find(kNames, one.op) != std::end(kNames) && !one.memory && one.out[0] == one.in[0] &&
         one.in[1] != one.in[0];
}

// Are lanes behind the end of this number? Those of a Load are 0.
bool fills(const Instruction& one, const Attribute& bits) {
  static const Name kFill("FillTail"), kLoad("Load");
  if (one.op == kFill) return *one.attributes.find("bits") == bits;
  return one.op == kLoad && one.touched == Lanes::partial && *bits.get_if<int64_t>() == 0;
}

}  // namespace

void drop_neutral_folds(LinearKernel& kernel) {
  struct Register {
    int writes = 0, reads = 0;
    size_t last = 0, scalar = 0;  // instructions: that wrote it last, and as a constant
    bool fresh = false;           // in this stretch of code, as a constant that nothing has read
  };
  std::vector<Register> registers(kernel.registers.size());
  const auto at = [&](RegisterId id) -> Register& { return registers[static_cast<size_t>(id)]; };
  for (const Instruction& one : kernel.body) {
    for (const RegisterId id : one.in) ++at(id).reads;
    for (const RegisterId id : one.out) ++at(id).writes;
  }
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    Instruction& one = kernel.body[i];
    if (is_border(one.op))
      for (Register& any : registers) any.fresh = false;
    if (folds(one) && at(one.in[0]).fresh && at(one.in[0]).writes == 2) {
      const Register value = at(one.in[1]);
      const Register& into = at(one.in[0]);
      Instruction& fill = kernel.body[value.last];
      // The fill comes behind the constant, in whose register it then writes.
      if (value.writes == 1 && value.reads == 1 && value.last > into.scalar &&
          fills(fill, *kernel.body[into.scalar].attributes.find("bits"))) {
        gone[into.scalar] = gone[i] = 1;
        fill.out[0] = one.out[0];
      }
    }
    for (const RegisterId id : one.in) at(id).fresh = false;
    for (const RegisterId id : one.out) {
      at(id).last = i;
      at(id).fresh = one.op == kScalar;
      if (at(id).fresh) at(id).scalar = i;
    }
  }
  size_t i = 0;
  std::erase_if(kernel.body, [&](const Instruction&) { return gone[i++] != 0; });
}

}  // namespace tenon::x86
