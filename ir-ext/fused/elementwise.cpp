#include <tenon-ext/fused/elementwise.hpp>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>

namespace tenon::fused {
namespace {

Result<std::vector<Type>> infer_sum(const InferContext& context) {
  TENON_TRY(a, context.tensor(0));
  TENON_TRY(b, context.tensor(1));
  TENON_TRY(shape, merge(a.shape, b.shape), "the operands of ", context.op().describe());
  return std::vector<Type>{Type(kI8, std::move(shape))};
}

Result<void> verify_sum(const Op& op) {
  TENON_OK(verify_left_shift(op, "a_shift"));
  TENON_OK(verify_left_shift(op, "b_shift"));
  return verify_epilogue(op);
}

Result<std::vector<Value*>> decompose_sum(Builder& builder, const Op& op) {
  TENON_TRY(a, decompose_left_shift(builder, op.operand(0), op.attr<int64_t>("a_shift", 0)));
  TENON_TRY(b, decompose_left_shift(builder, op.operand(1), op.attr<int64_t>("b_shift", 0)));
  TENON_TRY(sum, builder.op("Add", {a, b}));
  TENON_TRY(y, decompose_epilogue(builder, sum, op));
  return std::vector<Value*>{y};
}

OpDef sum_definition() {
  OpDef def{Name(QAdd::kName)};
  def.summary("y = (a << a_shift) + (b << b_shift), shifted right, rounded and clipped")
      .operand("a", "i8")
      .operand("b", "i8")
      .result("y", "i8")
      .attribute("a_shift", int64_t{0})
      .attribute("b_shift", int64_t{0})
      .traits(Trait::pure | Trait::elementwise | Trait::layout_oblivious)
      .infer(infer_sum)
      .bounds(pointwise())
      .verify(verify_sum)
      .decompose(decompose_sum);
  return add_epilogue(def);
}

const OpRegistration kElementwiseRegistered({sum_definition()});

}  // namespace
}  // namespace tenon::fused
