// Uniform registers (the same value in all lanes), and the operators that are cheaper on them: a quotient or root of a
// uniform value is computed in 128 bits and broadcast (DivAlike, SqrtAlike).
#include <algorithm>

#include "x86/names.hpp"
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

namespace {

bool is_narrow(const Instruction& one) { return one.op == kDivAlike || one.op == kSqrtAlike; }
bool reads_first_lane(const Instruction& one) {
  return is_narrow(one) || (one.op == kStore && one.touched == codegen::Lanes::one);
}

// Whether the first lane of the result depends only on the first lanes of the operands.
bool goes_lane_by_lane(const Instruction& one) {
  static const Name kOperators[] = {Name("Add"), Name("Sub"),  Name("Mul"),      Name("Neg"),      Name("Fma"),
                                    Name("Fms"), Name("Fnma"), Name("ClampLow"), Name("ClampHigh")};
  return !one.memory && std::ranges::find(kOperators, one.op) != std::end(kOperators);
}

// Where only lane 0 of a reduction, quotient or root is read, by a further one of these or by a store of one element,
// the broadcast is omitted (attribute `first_lane`).
void leave_in_first_lane(LinearKernel& kernel, const Uses& uses) {
  std::vector<char> first_lane(kernel.body.size(), 0);  // whether only lane 0 of its result is read
  for (size_t i = kernel.body.size(); i-- > 0;) {
    Instruction& one = kernel.body[i];
    const bool spreads = is_narrow(one) || one.op == kFoldLanes;
    if (!spreads && !goes_lane_by_lane(one)) continue;
    const RegisterId made = one.out[0];
    first_lane[i] = uses.once(made) && std::ranges::all_of(uses.readers(made), [&](size_t reader) {
                      return reader > i && (reads_first_lane(kernel.body[reader]) || first_lane[reader]);
                    });
    if (first_lane[i] && spreads) one.attributes.set("first_lane", 1);
  }
}

}  // namespace

void narrow_alike(LinearKernel& kernel) {
  if (!has_any(kernel, {kDiv, kSqrt, kFoldLanes})) return;
  const Uses uses(kernel);
  const Alike alike(kernel, uses);
  for (Instruction& instruction : kernel.body) {
    if (instruction.op != kDiv && instruction.op != kSqrt) continue;
    const RegisterId out = instruction.out[0];
    if (instruction.memory || !alike.holds(out) || !kernel.registers[static_cast<size_t>(out)].element.is_float())
      continue;
    instruction.op = instruction.op == kDiv ? kDivAlike : kSqrtAlike;
  }
  leave_in_first_lane(kernel, uses);
}

}  // namespace tenon::x86
