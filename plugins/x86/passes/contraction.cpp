// Products that are only added, as one operation with the sum; what is negated and only added, as a difference.
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

// `sum` adds the product `product` of `factors`: as one operation. False when it does something else with it.
bool contract(Instruction& sum, RegisterId product, const snippet::RegisterIds& factors) {
  static const Name kAdd("Add"), kSub("Sub"), kFma("Fma"), kFms("Fms"), kFnma("Fnma");
  if ((sum.op != kAdd && sum.op != kSub) || sum.memory) return false;
  const bool first = sum.in[0] == product;
  const RegisterId other = sum.in[first ? 1 : 0];
  sum.op = sum.op == kAdd ? kFma : first ? kFms : kFnma;
  sum.in = {factors[0], factors[1], other};
  return true;
}

// `sum` adds `negated`, which is -x: as a difference. The sign of a NaN may be another.
bool take_negated(Instruction& sum, RegisterId negated, const snippet::RegisterIds& x) {
  static const Name kAdd("Add"), kSub("Sub");
  if (sum.op != kAdd || sum.memory) return false;
  sum.op = kSub;
  sum.in = {sum.in[sum.in[0] == negated ? 1 : 0], x[0]};
  return true;
}

// Floats that `maker` makes, not marked as rounded (body/numbers.hpp), and that one sum alone reads, taken into that
// sum by `into(sum, made, operands)`.
template <class Into>
void take_into_sums(LinearKernel& kernel, Name maker, Into into) {
  if (!has_any(kernel, {maker})) return;
  const Uses uses(kernel);
  std::vector<char> gone(kernel.body.size(), 0);
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& one = kernel.body[i];
    if (one.op != maker || one.attributes.has(kRounded)) continue;
    const RegisterId made = one.out[0];
    if (!kernel.registers[static_cast<size_t>(made)].element.is_float() || !uses.is_for_one(made)) continue;
    Instruction* const sum = reader_of(kernel, uses, i, made, one.in, false);
    if (sum) gone[i] = into(*sum, made, one.in);
  }
  erase_marked(kernel, gone);
}

}  // namespace

void contract_multiply_add(LinearKernel& kernel) {
  static const Name kMul("Mul"), kNeg("Neg");
  // Negated products become products that are subtracted.
  take_into_sums(kernel, kNeg, take_negated);
  take_into_sums(kernel, kMul, contract);
}

}  // namespace tenon::x86
