// Elementwise operators on shape vectors: what shape arithmetic in a model (Shape -> Gather -> Mul -> Concat) computes.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include <tenon/expr/bounds.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/infer_util.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon {

// The result's elements, if every operand's are known as far as `f` needs them; a scalar or one-element operand is
// repeated. f takes one Dim per operand and returns the result's.
template <class F>
std::optional<std::vector<Dim>> zip_dims(const InferContext& context, F f) {
  std::vector<std::vector<Dim>> operands;
  size_t count = 1;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    // Float arithmetic rounds and divides differently.
    if (context.type(i).is_tensor() && context.type(i).element().is_float()) return std::nullopt;
    auto dims = context.dims_value(i);
    if (!dims || dims->size() > kMostTracedDims) return std::nullopt;
    if (dims->size() != 1) count = dims->size();
    operands.push_back(*std::move(dims));
  }
  std::vector<Dim> out(count), at(operands.size());
  for (size_t n = 0; n < count; ++n) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].size() != 1 && operands[i].size() != count) return std::nullopt;
      at[i] = operands[i][operands[i].size() == 1 ? 0 : n];
    }
    out[n] = f(at);
  }
  return out;
}

// Whether this is proved for all extents: symbols are extents, so they are never negative.
inline bool never_negative(const Dim& dim) {
  if (!dim.known()) return false;
  Assumptions extents;
  for (auto& symbol : dim.expr().symbols()) extents[symbol] = Interval{0, std::nullopt};
  return prove_le(Expr(0), dim.expr(), extents);
}

}  // namespace tenon
