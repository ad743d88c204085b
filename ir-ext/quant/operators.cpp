#include <tenon-ext/quant/operators.hpp>

#include <cmath>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/quant/scales.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/quantize.hpp>

namespace tenon::quant {
namespace {

constexpr TypeSet kIntegers("i8 and i32", [](ElementType e) { return e == kI8 || e == kI32; });
constexpr Trait kTraits = Trait::pure | Trait::elementwise | Trait::layout_oblivious;

InferFn shape_of_x(ElementType element) {
  return [element](const InferContext& context) -> Result<std::vector<Type>> {
    TENON_TRY(x, context.tensor(0));
    return std::vector<Type>{Type(element, std::move(x.shape))};
  };
}

Result<void> verify_exponent(const Op& op) {
  const int64_t exponent = op.attr<int64_t>("exponent", 0);
  if (exponent < -kMostExponent || exponent > kMostExponent)
    return error(Code::invalid_argument, "exponent of ", op.describe(), " is ", exponent, ", which is outside [",
                 -kMostExponent, ", ", kMostExponent, "]");
  const float factor = op.attr<float>("factor", 1);
  if (factor >= 0x1p-20f && factor <= 0x1p20f) return {};
  return error(Code::invalid_argument, "factor of ", op.describe(), " is ", factor, ", which is outside [2^-20, 2^20]");
}

Value* scale_of(Builder& builder, const Op& op) {
  return builder.constant_scalar(kF32, step_of(op.attr<int64_t>("exponent", 0), op.attr<float>("factor", 1)));
}
Result<Value*> quantized(Builder& builder, const Op& op) {
  Value* const zero = builder.constant_scalar(kI8, 0);
  return builder.op(QuantizeLinear::name(), {op.operand(0), scale_of(builder, op), zero});
}

Result<std::vector<Value*>> decompose_quantize(Builder& builder, const Op& op) {
  TENON_TRY(y, quantized(builder, op));
  return std::vector<Value*>{y};
}
Result<std::vector<Value*>> decompose_dequantize(Builder& builder, const Op& op) {
  TENON_TRY(y, builder.op(DequantizeLinear::name(), {op.operand(0), scale_of(builder, op)}));
  return std::vector<Value*>{y};
}
Result<std::vector<Value*>> decompose_round(Builder& builder, const Op& op) {
  TENON_TRY(narrow, quantized(builder, op));
  TENON_TRY(y, builder.op(DequantizeLinear::name(), {narrow, scale_of(builder, op)}));
  return std::vector<Value*>{y};
}
Result<std::vector<Value*>> decompose_requantize(Builder& builder, const Op& op) {
  TENON_TRY(wide, fused::decompose_left_shift(builder, op.operand(0), op.attr<int64_t>("left_shift", 0)));
  TENON_TRY(y, fused::decompose_epilogue(builder, wide, op));
  return std::vector<Value*>{y};
}

Result<void> verify_requantize(const Op& op) {
  TENON_OK(fused::verify_left_shift(op, "left_shift"));
  return fused::verify_epilogue(op);
}

OpDef with_exponent(std::string_view name, const char* from, const char* to, ElementType element,
                    const DecomposeFn& decompose) {
  OpDef def{Name(name)};
  def.operand("x", from)
      .result("y", to)
      .required_attribute("exponent", AttributeKind::integer)
      .attribute("factor", 1.0f)
      .traits(kTraits)
      .infer(shape_of_x(element))
      .bounds(pointwise())
      .verify(verify_exponent)
      .decompose(decompose);
  return def;
}

OpDef requantize() {
  OpDef def{Name(Requantize::kName)};
  def.summary("y = x << left_shift, shifted right, rounded and clipped")
      .operand("x", "T")
      .result("y", "i8")
      .types("T", kIntegers)
      .attribute("left_shift", int64_t{0})
      .traits(kTraits)
      .infer(shape_of_x(kI8))
      .bounds(pointwise())
      .verify(verify_requantize)
      .decompose(decompose_requantize);
  return fused::add_epilogue(def);
}

const OpRegistration kOperatorsRegistered({
    with_exponent(Quantize::kName, "f32", "i8", kI8, decompose_quantize)
        .summary("saturate(round(x / (factor * 2^exponent)))"),
    with_exponent(Dequantize::kName, "i8", "f32", kF32, decompose_dequantize).summary("x * (factor * 2^exponent)"),
    with_exponent(Round::kName, "f32", "f32", kF32, decompose_round)
        .summary("saturate(round(x / step)) * step with step = factor * 2^exponent: x as 8 bits hold it"),
    requantize(),
});

}  // namespace
}  // namespace tenon::quant
