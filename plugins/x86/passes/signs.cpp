// -|x| of f32 becomes one instruction, which sets the sign bit:
//
//   %2 = Abs %1                   %3 = NegAbs %1
//   %3 = Neg %2
//
// where nothing else reads %2.
#include "x86/names.hpp"
#include "x86/passes/uses.hpp"

namespace tenon::x86 {

void set_signs(LinearKernel& kernel) {
  if (!has_any(kernel, {kAbs}) || !has_any(kernel, {kNeg})) return;
  const Uses uses(kernel);
  for (Instruction& one : kernel.body) {
    if (one.op != kNeg || one.memory || kernel.registers[static_cast<size_t>(one.out[0])].element != kF32) continue;
    const auto made = uses.maker(one.in[0]);
    if (!made || !uses.is_for_one(one.in[0])) continue;
    const Instruction& magnitude = kernel.body[*made];
    if (magnitude.op != kAbs || magnitude.memory || !uses.once(magnitude.in[0])) continue;
    one.op = "NegAbs";
    one.in = magnitude.in;
  }
  drop_unread(kernel, uses);
}

}  // namespace tenon::x86
