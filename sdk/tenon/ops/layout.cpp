#include <tenon/ops/layout.hpp>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ops/bounds_rules.hpp>

namespace tenon {
namespace {

Result<std::vector<Value*>> decompose_to_identity(Builder& builder, const Op& op) {
  TENON_TRY(copy, builder.op("Identity", {op.operand(0)}));
  return std::vector<Value*>{copy};
}

Result<std::vector<Value*>> gradient_of_identity(Builder&, const Op&, std::span<Value* const> gradients) {
  return std::vector<Value*>{gradients[0]};
}

Result<void> verify_numbers(const Op& op) {
  const Type& type = op.operand(0)->type();
  if (!type.is_tensor() || !type.element().is_string()) return {};
  return error(Code::invalid_argument, op.describe(), " has an operand of type ", type, "; strings have no layout");
}

Result<void> verify_scrub(const Op& op) {
  TENON_OK(verify_numbers(op));
  const ValueLayout* from = op.operand(0)->layout();
  const ValueLayout* to = op.result()->layout();
  if (!from || !to || (from->text == to->text && from->dims == to->dims)) return {};
  return error(Code::invalid_argument, op.describe(), " writes padding only: its operand lies in ", quote(from->text),
               " and its result in ", quote(to->text), "; use layout.Reorder");
}

OpDef identity_op(Name name, std::string summary) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("input", "T")
      .result("output", "T")
      .types("T", kAnyTensor)
      .traits(Trait::pure | Trait::movement | Trait::layout_dependent)
      .infer(same_as_operand(0))
      .bounds(pointwise())
      .infer_dims([](const InferContext& context) { return context.dims_value(0); })
      .decompose(decompose_to_identity)
      .gradient(gradient_of_identity);
}

const OpRegistration kLayoutRegistered({
    identity_op(LayoutReorder::kName, "output = input, in the layout of output").verify(verify_numbers),
    identity_op(LayoutScrub::kName, "output = input, with `bits` in all padding of its layout")
        .attribute("bits", int64_t{0})
        .verify(verify_scrub),
});

}  // namespace
}  // namespace tenon
