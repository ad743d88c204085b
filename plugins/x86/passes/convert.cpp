// Conversions to floats of what was loaded from 8 or 16 bits.
#include "x86/passes/internal.hpp"

namespace tenon::x86 {

void convert_as_signed(LinearKernel& kernel) {
  static const Name kConvert("Convert"), kLoad("Load"), kBroadcast("BroadcastLoad");
  const auto is_narrow_load = [&](const Instruction& one) {
    if (one.op.str().starts_with("UnpackBytes")) return true;
    return (one.op == kLoad || one.op == kBroadcast) && one.memory->element.bits() < 32;
  };
  std::vector<char> wide(kernel.registers.size(), 1);  // may have its highest bit
  for (const Instruction& one : kernel.body)
    if (is_narrow_load(one)) wide[static_cast<size_t>(one.out[0])] = 0;
  for (const Instruction& one : kernel.body)
    for (const RegisterId id : one.out)
      if (!is_narrow_load(one)) wide[static_cast<size_t>(id)] = 1;
  for (Instruction& one : kernel.body) {
    if (one.op != kConvert || wide[static_cast<size_t>(one.in[0])]) continue;
    const auto element = [&](RegisterId id) { return kernel.registers[static_cast<size_t>(id)].element; };
    if (element(one.in[0]) == kU32 && element(one.out[0]).is_float()) one.attributes.set("fits_i32", 1);
  }
}

}  // namespace tenon::x86
