#include <tenon-ext/fused/convolution.hpp>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/fused/window_internal.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/convolution.hpp>

namespace tenon::fused {
namespace {

// Shapes, windows and bounds are those of Conv, which has the same first three operands.
const OpDef& conv() { return *find_op(Conv::name()); }

Result<std::vector<Type>> infer_convolution(const InferContext& context) {
  TENON_TRY(types, conv().infer_fn()(context));
  if (!context.has_operand(3) || !context.type(3).is_tensor()) return types;
  TENON_TRY(shape, merge(types[0].shape(), context.type(3).shape()), "the residual of ", context.op().describe());
  return std::vector<Type>{Type(kI8, std::move(shape))};
}

Result<Bounds> bounds_of_convolution(const BoundsQuery& query) {
  TENON_TRY(bounds, conv().bounds_fn()(query));
  bounds.same_bits = true;  // sums of integers
  if (ranked_shape(query.context, 3)) bounds.operands[3] = follow(query, 3, each_dim(query.box.size()));
  return bounds;
}

Result<void> sub_box_of_convolution(const SubBoxQuery& query, SubBoxOp& op) {
  return conv().bounds_rule().sub_box(query, op);
}

Result<void> verify_convolution(const Op& op) {
  TENON_OK(verify_residual(op, 3));
  return verify_epilogue(op);
}

// bias[o] as [1, O, 1 ...], to be added to values with rank `rank`.
Result<Value*> per_channel(Builder& builder, Value* bias, int64_t rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims[1] = -1;
  return builder.op("Reshape", {bias, builder.constant_ints(dims)});
}

Result<std::vector<Value*>> decompose_convolution(Builder& builder, const Op& op) {
  const Shape& shape = op.result()->type().shape();
  if (!shape.ranked()) return error(Code::unsupported, op.describe(), " has no rank yet: infer its types first");
  TENON_TRY(acc, builder.op(ConvInteger::name(), {op.operand(0), op.operand(1)}, window_attributes(op, {"group"})));
  Value* bias = op.operand(2);
  if (bias) {
    TENON_TRY(channels, per_channel(builder, bias, shape.rank()));
    bias = channels;
  }
  return decompose_layer_end(builder, acc, bias, op.operand(3), op);
}

OpDef convolution_definition() {
  OpDef def{Name(QConv::kName)};
  def.summary("y = x convolved with w, plus bias and residual << residual_shift, shifted right, rounded and clipped")
      .operand("x", "i8")
      .operand("w", "i8")
      .optional_operand("bias", "i32")
      .optional_operand("residual", "i8")
      .result("y", "i8")
      .optional_attribute("strides", AttributeKind::integers)
      .optional_attribute("pads", AttributeKind::integers)
      .optional_attribute("dilations", AttributeKind::integers)
      .attribute("group", int64_t{1})
      .attribute("residual_shift", int64_t{0})
      .traits(Trait::pure | Trait::layout_aware)
      .infer(infer_convolution)
      .bounds({bounds_of_convolution, sub_box_of_convolution})
      .verify(verify_convolution)
      .decompose(decompose_convolution);
  return add_epilogue(def);
}

const OpRegistration kConvolutionRegistered({convolution_definition()});

}  // namespace
}  // namespace tenon::fused
