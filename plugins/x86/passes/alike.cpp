// Which registers hold one value in all lanes, and the operators that are cheaper on these.
#include <algorithm>

#include "x86/passes/uses.hpp"

namespace tenon::x86 {
Alike::Alike(const LinearKernel& kernel, const Uses& uses) : alike_(kernel.registers.size(), 0) {
  for (const Instruction& instruction : kernel.body) {
    if (!makes_alike(instruction)) continue;
    for (const RegisterId id : instruction.out) alike_[static_cast<size_t>(id)] = uses.once(id);
  }
}

bool Alike::makes_alike(const Instruction& instruction) const {
  static const Name kMakers[] = {"Scalar",    "BroadcastLoad", "BroadcastParameter",
                                 "FoldLanes", "FoldRows",      "SpreadFour"};
  if (std::find(std::begin(kMakers), std::end(kMakers), instruction.op) != std::end(kMakers)) return true;
  return !instruction.memory && !instruction.in.empty() &&
         std::all_of(instruction.in.begin(), instruction.in.end(), [&](RegisterId id) { return holds(id); });
}

void narrow_alike(LinearKernel& kernel) {
  static const Name kDiv("Div"), kSqrt("Sqrt"), kDivAlike("DivAlike"), kSqrtAlike("SqrtAlike");
  const Alike alike(kernel, Uses(kernel));
  for (Instruction& instruction : kernel.body) {
    if (instruction.op != kDiv && instruction.op != kSqrt) continue;
    const RegisterId out = instruction.out[0];
    if (instruction.memory || !alike.holds(out) || !kernel.registers[static_cast<size_t>(out)].element.is_float())
      continue;
    instruction.op = instruction.op == kDiv ? kDivAlike : kSqrtAlike;
  }
}

}  // namespace tenon::x86
