// 512-bit loads as two of 256 bits, of which at most one crosses two cache lines. Pays for data from main memory
// (load_by_halves in passes.hpp).
#include "x86/passes/internal.hpp"

namespace tenon::x86 {
namespace {

bool is_whole_line(const LinearKernel& kernel, const Instruction& one) {
  static const Name kLoad("Load");
  if (one.op != kLoad || one.touched != Lanes::full || one.memory->index < 0) return false;
  const ElementType lane = kernel.registers[static_cast<size_t>(one.out[0])].element;
  return lane == one.memory->element && kernel.lanes * lane.bits() == 8 * kLineBytes;
}

}  // namespace

void load_by_halves(LinearKernel& kernel, ByHalves which) {
  std::set<RegisterId> near;
  if (which == ByHalves::first_walks) near = standing_pointers(kernel);
  FirstWalks walks(kernel);
  for (Instruction& one : kernel.body) {
    if (is_whole_line(kernel, one) && (which == ByHalves::all || (!near.contains(one.memory->base) && walks.has(one))))
      one.op = "LoadHalves";
    walks.follow(one);
  }
}

}  // namespace tenon::x86
