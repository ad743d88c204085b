// Loads with a single use become memory operands of the instruction that uses them.
#include <algorithm>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

bool reads_lanes_as_they_are(const LinearKernel& kernel, const Instruction& load, Isa isa) {
  static const Name kLoad("Load"), kBroadcast("BroadcastLoad");
  if (load.touched != Lanes::full || (load.op != kLoad && load.op != kBroadcast)) return false;
  if (load.op == kBroadcast && isa != Isa::avx512) return false;
  const ElementType lane = kernel.registers[static_cast<size_t>(load.out[0])].element;
  return lane == load.memory->element && lane.bits() >= 32;
}

// No instruction set has integer quotients.
bool is_float(const LinearKernel& kernel, const Instruction& user) {
  return kernel.registers[static_cast<size_t>(user.out[0])].element.is_float();
}

// AVX2 has no product of 64-bit integers, so Mul of these has no memory operand.
bool machine_multiplies(const LinearKernel& kernel, const Instruction& user) {
  const ElementType element = kernel.registers[static_cast<size_t>(user.out[0])].element;
  return element.is_float() || element.bits() == 32;
}

// Makes `value` a memory operand of `user`. False when there is no such form.
bool fold(const LinearKernel& kernel, Instruction& user, RegisterId value) {
  static const Name kAdd("Add"), kSub("Sub"), kMul("Mul"), kDiv("Div"), kFma("Fma"), kMax("Max"), kMin("Min"),
      kDivOdd("DivOdd");
  const bool extreme = user.op == kMax || user.op == kMin;
  if (user.memory || std::count(user.in.begin(), user.in.end(), value) != 1) return false;
  const auto at = static_cast<size_t>(std::find(user.in.begin(), user.in.end(), value) - user.in.begin());
  if (user.op == kFma) {
    user.attributes.set("place", at == 2 ? 2 : 1);
  } else if (user.op == kAdd || (user.op == kMul && machine_multiplies(kernel, user))) {
    // either operand
  } else if (user.op == kDivOdd) {
    if (at != 2) return false;
  } else if (at != 1 || !(user.op == kSub || ((user.op == kDiv || extreme) && is_float(kernel, user)))) {
    return false;
  }
  user.op = user.op.str() + "Memory";
  user.in.erase(user.in.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

}  // namespace

void fold_loads(LinearKernel& kernel, Isa isa) {
  static const Name kBroadcast("BroadcastLoad");
  const Uses uses(kernel);
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& load = kernel.body[i];
    if (!load.memory || !reads_lanes_as_they_are(kernel, load, isa) || !uses.is_for_one(load.out[0])) continue;
    // The memory may also belong to an output, so no store may come between.
    const RegisterId address[] = {load.memory->base, load.memory->index};
    Instruction* const user = reader_of(kernel, uses, i, load.out[0], address, true);
    if (!user || !fold(kernel, *user, load.out[0])) continue;
    user->memory = load.memory;
    if (load.op == kBroadcast) user->attributes.set("broadcast", 1);
    gone[i] = 1;
  }
  erase_marked(kernel, gone);
}

}  // namespace tenon::x86
