// Contraction: products that are only added are fused with the sum (Fma, rounded once instead of twice), and negations
// that are only added become differences. Only with CompilerOptions::contract, because it changes the last bits.
#include "x86/passes/uses.hpp"

namespace tenon::x86 {
namespace {

// Fuses `sum`, an addition of the product `product` of `factors`, into one operation. False when it is another
// operator.
bool contract(Instruction& sum, RegisterId product, const snippet::RegisterIds& factors) {
  static const Name kAdd("Add"), kSub("Sub"), kFma("Fma"), kFms("Fms"), kFnma("Fnma");
  if ((sum.op != kAdd && sum.op != kSub) || sum.memory) return false;
  const bool first = sum.in[0] == product;
  const RegisterId other = sum.in[first ? 1 : 0];
  sum.op = sum.op == kAdd ? kFma : first ? kFms : kFnma;
  sum.in = {factors[0], factors[1], other};
  return true;
}

// Turns `sum`, an addition of `negated` = -x, into a difference. The sign of a NaN may change.
bool take_negated(Instruction& sum, RegisterId negated, const snippet::RegisterIds& x) {
  static const Name kAdd("Add"), kSub("Sub");
  if (sum.op != kAdd || sum.memory) return false;
  sum.op = kSub;
  sum.in = {sum.in[sum.in[0] == negated ? 1 : 0], x[0]};
  return true;
}

// Applies `into(sum, made, operands)` to each float that `maker` computes, that is not marked as rounded
// (body/numbers.hpp), and whose only reader is a sum.
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
  // After products, so that a negated product becomes one that is subtracted.
  take_into_sums(kernel, kNeg, take_negated);
  take_into_sums(kernel, kMul, contract);
}

}  // namespace tenon::x86
