#include <tenon-ext/fused/dense.hpp>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>
#include <tenon/ops/matmul.hpp>

namespace tenon::fused {
namespace {

// Two unknown dims for a shape with unknown rank.
Shape matrix(const Shape& shape) { return shape.ranked() ? shape : unknown_shape(2); }

Result<std::vector<Type>> infer_dense(const InferContext& context) {
  TENON_OK(require_rank(context, 0, 2));
  TENON_OK(require_rank(context, 1, 2));
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(w, context.tensor(1));
  const Shape left = matrix(x.shape), right = matrix(w.shape);
  if (certainly_differ(left[1], right[1])) {
    return error(Code::invalid_argument, context.op().describe(), ": x is ", left, ", w ", right,
                 "; they must agree in their dim 1");
  }
  Shape shape{left[0], right[0]};
  if (context.has_operand(2) && context.type(2).is_tensor()) {
    TENON_TRY(bias, merge(Shape{shape[1]}, context.type(2).shape()), "the bias of ", context.op().describe());
    shape = {shape[0], bias[0]};
  }
  if (context.has_operand(3) && context.type(3).is_tensor()) {
    TENON_TRY(merged, merge(shape, context.type(3).shape()), "the residual of ", context.op().describe());
    shape = std::move(merged);
  }
  return one_type(kI8, std::move(shape));
}

Result<Bounds> bounds_of_dense(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = follow(query, 0, {0, kWhole});
  bounds.operands[1] = follow(query, 1, {1, kWhole});
  if (ranked_shape(query.context, 2)) bounds.operands[2] = follow(query, 2, {1});
  if (ranked_shape(query.context, 3)) bounds.operands[3] = follow(query, 3, {0, 1});
  return bounds;
}

Result<void> verify_dense(const Op& op) {
  TENON_OK(verify_residual(op, 3));
  return verify_epilogue(op);
}

Result<std::vector<Value*>> decompose_dense(Builder& builder, const Op& op) {
  TENON_TRY(w, builder.op("Transpose", {op.operand(1)}, {{"perm", Attribute::Integers{1, 0}}}));
  TENON_TRY(acc, builder.op(MatMulInteger::name(), {op.operand(0), w}));
  return decompose_layer_end(builder, acc, op.operand(2), op.operand(3), op);
}

OpDef dense_definition() {
  OpDef def{Name(QDense::kName)};
  def.summary("y = x * transpose(w), plus bias and residual << residual_shift, shifted right, rounded and clipped")
      .operand("x", "i8")
      .operand("w", "i8")
      .optional_operand("bias", "i32")
      .optional_operand("residual", "i8")
      .result("y", "i8")
      .attribute("residual_shift", int64_t{0})
      .traits(Trait::pure | Trait::layout_aware)
      .infer(infer_dense)
      .bounds({bounds_of_dense, runs_as_it_is()})
      .verify(verify_dense)
      .decompose(decompose_dense);
  return add_epilogue(def);
}

const OpRegistration kDenseRegistered({dense_definition()});

}  // namespace
}  // namespace tenon::fused
