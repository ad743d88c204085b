// Loads of whole lines where rows begin at none.
#include "x86/passes/internal.hpp"

namespace tenon::x86 {

void load_by_halves(LinearKernel& kernel) {
  static const Name kLoad("Load"), kHalves("LoadHalves");
  for (Instruction& instruction : kernel.body) {
    if (instruction.op != kLoad || instruction.touched != Lanes::full || instruction.memory->index < 0) continue;
    const ElementType lane = kernel.registers[static_cast<size_t>(instruction.out[0])].element;
    if (lane == instruction.memory->element && kernel.lanes * lane.bits() == 8 * kLineBytes) instruction.op = kHalves;
  }
}

}  // namespace tenon::x86
