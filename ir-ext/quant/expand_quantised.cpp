#include <optional>

#include <tenon-ext/quant/float_forms_internal.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon-ext/quant/qlinear.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ops/cast.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/ops/pooling.hpp>
#include <tenon/ops/quantize.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/rewrite.hpp>

namespace tenon::quant {
namespace {

// DequantizeLinear needs scale and zero point of the same shape; other combinations are rare and left unchanged.
bool are_alike(const Value* scale, const Value* zero_point) {
  return !zero_point || scale->type().shape() == zero_point->type().shape();
}

// Weights and their scales: per output channel, or one for all.
Result<Value*> weights(Builder& builder, Value* w, Value* scale, Value* zero_point, int64_t axis) {
  return builder.op(DequantizeLinear::name(), {w, scale, zero_point}, {{"axis", axis}});
}
Result<Value*> reals(Builder& builder, Value* x, Value* scale, Value* zero_point) {
  return builder.op(DequantizeLinear::name(), {x, scale, zero_point});
}

// The bias has the scale x_scale * w_scale.
Result<Value*> bias(Builder& builder, const QLinearConv& conv) {
  if (!conv.b()) return nullptr;
  TENON_TRY(scale, builder.op("Mul", {conv.x_scale(), conv.w_scale()}));
  return builder.op(DequantizeLinear::name(), {conv.b(), scale}, {{"axis", int64_t{0}}});
}

Result<Value*> qlinear_conv(Builder& builder, const Match& match) {
  const auto conv = cast<QLinearConv>(match.root());
  if (!are_alike(conv.w_scale(), conv.w_zero_point())) return nullptr;
  TENON_TRY(x, reals(builder, conv.x(), conv.x_scale(), conv.x_zero_point()));
  TENON_TRY(w, weights(builder, conv.w(), conv.w_scale(), conv.w_zero_point(), 0));
  TENON_TRY(b, bias(builder, conv));
  TENON_TRY(y, builder.op(Conv::name(), {x, w, b}, conv->attributes()));
  return builder.op(QuantizeLinear::name(), {y, conv.y_scale(), conv.y_zero_point()});
}

Result<Value*> qlinear_matmul(Builder& builder, const Match& match) {
  const auto product = cast<QLinearMatMul>(match.root());
  if (!are_alike(product.b_scale(), product.b_zero_point())) return nullptr;
  TENON_TRY(a, reals(builder, product.a(), product.a_scale(), product.a_zero_point()));
  TENON_TRY(b, weights(builder, product.b(), product.b_scale(), product.b_zero_point(), -1));
  TENON_TRY(y, builder.op(MatMul::name(), {a, b}));
  return builder.op(QuantizeLinear::name(), {y, product.y_scale(), product.y_zero_point()});
}

bool is_constant_or_absent(const Value* value) { return !value || constant_of(value); }

// The reals of an integer operand: its own reals if a QuantizeLinear produces it, in which case weights are divided by
// that scale; otherwise the integers themselves.
struct Integers {
  Value* reals;
  double scale;
};
Result<std::optional<Integers>> integers(Builder& builder, Value* x, Value* zero_point) {
  const auto quantize = producer_as<QuantizeLinear>(x);
  const Tensor* scale = quantize ? constant_of(quantize.scale()) : nullptr;
  if (!scale || scale->size() != 1) return std::optional<Integers>();
  TENON_TRY(made, reals(builder, x, quantize.scale(), zero_point));
  return std::optional<Integers>(Integers{made, scale->double_at(0)});
}

// Cast<f32>(ConvInteger(x, w, x_zero_point, w_zero_point)), with w / scale as weights.
Result<Value*> integer_product(Builder& builder, const Match& match) {
  const Op& product = match.op("product");
  if (match.root().attr<Type>("to").element() != kF32) return nullptr;
  Value *x_zero = product.operand(2), *w_zero = product.operand(3);
  if (!constant_of(product.operand(1)) || !is_constant_or_absent(x_zero) || !is_constant_or_absent(w_zero)) {
    return nullptr;
  }
  TENON_TRY(x, integers(builder, product.operand(0), x_zero));
  if (!x) return nullptr;
  Value* step = builder.constant_scalar(kF32, 1 / x->scale);
  const bool is_conv = isa<ConvInteger>(product);
  if (w_zero && constant_of(w_zero)->size() > 1) {
    const std::vector<float> steps(static_cast<size_t>(constant_of(w_zero)->size()), static_cast<float>(1 / x->scale));
    step = builder.constant(Tensor::of<float>({static_cast<int64_t>(steps.size())}, steps));
  }
  TENON_TRY(w, weights(builder, product.operand(1), step, w_zero, is_conv ? 0 : -1));
  return builder.op(is_conv ? Conv::name() : MatMul::name(), {x->reals, w}, product.attributes());
}

// Uses the decompositions of the domain's operators.
Result<Change> expand_qlinear(Graph& graph) {
  Change change = Change::no;
  for (Op* op : graph.body().ops()) {
    if (!is_qlinear(*op)) continue;
    Builder builder(graph.body(), op);
    TENON_TRY(made, op->def()->decompose_fn()(builder, *op), op->describe());
    TENON_OK(replace_value(*op->result(), *made[0]));
    op->erase();
    change = Change::yes;
  }
  return change;
}

// Integers that are selected or moved between QuantizeLinear and DequantizeLinear become reals with the same scale,
// which keeps every bit, and makes the scales on both sides adjacent.
Result<bool> move_reals(Graph& graph, Op& op) {
  const bool picks = isa<MaxPool>(op) && op.result_count() == 1;
  const auto quantize = picks || moves_only(op) ? producer_as<QuantizeLinear>(op.operand(0)) : QuantizeLinear();
  const Tensor* const scale = quantize ? constant_of(quantize.scale()) : nullptr;
  if (!scale || scale->size() != 1) return false;
  Builder builder(graph.body(), &op);
  TENON_TRY(x, reals(builder, op.operand(0), quantize.scale(), quantize.zero_point()));
  std::vector<Value*> operands = op.operands();
  operands[0] = x;
  TENON_TRY(y, builder.op(op.name(), operands, op.attributes()));
  y->producer()->set_label(op.label());
  TENON_TRY(back,
            builder.op(QuantizeLinear::name(), {y, quantize.scale(), quantize.zero_point()}, quantize->attributes()));
  TENON_OK(replace_value(*op.result(), *back));
  op.erase();
  return true;
}
Result<Change> move_reals(Graph& graph) {
  Change change = Change::no;
  for (Op* op : graph.body().ops()) {
    TENON_TRY(moved, move_reals(graph, *op), op->describe());
    if (moved) change = Change::yes;
  }
  return change;
}

}  // namespace

Result<Change> expand_quantised(Graph& graph) {
  using namespace pattern;
  static const std::vector<Rewrite> rewrites = {
      Rewrite("qlinear-conv").match(op(QLinearConv::name(), {}).and_more()).with(qlinear_conv),
      Rewrite("qlinear-matmul").match(op(QLinearMatMul::name(), {}).and_more()).with(qlinear_matmul),
      Rewrite("integer-product")
          .match(op("Cast", {op({ConvInteger::name(), MatMulInteger::name()}, {}).and_more().as("product")}).and_more())
          .with(integer_product),
  };
  TENON_TRY(expanded, expand_qlinear(graph));
  TENON_TRY(rewritten, apply_rewrites(graph, rewrites));
  TENON_TRY(moved, move_reals(graph));
  return expanded == Change::yes || rewritten == Change::yes ? Change::yes : moved;
}

namespace {

const PassRegistration kExpandQuantisedRegistered({{
    .name = "expand-quantised",
    .contract = "QLinearConv, QLinearMatMul, those of com.microsoft, and ConvInteger and MatMulInteger before a Cast "
                "to f32, become "
                "DequantizeLinear, a float\noperator and QuantizeLinear. Needs inferred types; keeps numbers but for "
                "the rounding of floats.",
    .run = expand_quantised,
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon::quant
