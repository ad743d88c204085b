#include <algorithm>

#include <tenon-ext/quant/accumulator_internal.hpp>
#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/ops/pooling.hpp>

namespace tenon::quant {
namespace {

bool is_mean_of_image(const Op& op) {
  if (!op.is("ReduceMean") || op.attr<int64_t>("keepdims", 1) == 0) return false;
  const Shape& x = op.operand(0)->type().shape();
  auto axes = constant_ints_of(op.operand(1));
  if (!axes || !x.ranked() || x.rank() < 3) return false;
  for (int64_t& axis : *axes) axis += axis < 0 ? x.rank() : 0;
  std::sort(axes->begin(), axes->end());
  if (axes->size() != static_cast<size_t>(x.rank()) - 2) return false;
  for (size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] != static_cast<int64_t>(i) + 2) return false;
  }
  return true;
}

}  // namespace

bool moves_only(const Op& op) {
  static const Name kMoves[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity"};
  return std::find(std::begin(kMoves), std::end(kMoves), op.name()) != std::end(kMoves);
}

bool is_mean(const Op& op) { return isa<AveragePool>(op) || isa<GlobalAveragePool>(op) || is_mean_of_image(op); }

const Tensor* float_constant(const Value* value) {
  const Tensor* tensor = constant_of(value);
  return tensor && tensor->element() == kF32 ? tensor : nullptr;
}

bool is_product(const Op& op) {
  if (!isa<Conv>(op) && !isa<Gemm>(op) && !isa<MatMul>(op)) return false;
  return float_constant(op.operand(1)) && (!op.operand(2) || float_constant(op.operand(2)));
}

bool is_transparent(const Op& op) {
  if (isa<MaxPool>(op)) return op.result_count() == 1 || !op.result(1)->used();
  return moves_only(op) || is_mean(op) || clip_of(op).has_value();
}

Result<Value*> make_round(Builder& builder, Value* x, const Step& step) {
  Attributes attributes{{"exponent", step.exponent}};
  if (const auto factor = static_cast<float>(step.factor); factor != 1) attributes.set("factor", factor);
  return builder.op(Round::name(), {x}, std::move(attributes));
}

}  // namespace tenon::quant
