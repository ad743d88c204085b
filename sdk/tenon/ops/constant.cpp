#include <tenon/ops/constant.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>

namespace tenon {
namespace {

Result<std::vector<Type>> infer_constant(const InferContext& context) {
  const Attribute* value = context.op().attributes().find("value");
  const Tensor* tensor = value ? value->get_if<Tensor>() : nullptr;
  if (!tensor)
    return error(Code::invalid_argument, context.op().describe(), " needs a tensor in its attribute 'value'");
  return std::vector<Type>{Type(tensor->type())};
}

const OpRegistration kConstantRegistered({
    OpDef(Constant::kName)
        .summary("The tensor `value`")
        .result("output", "T")
        .types("T", kAnyTensor)
        .required_attribute("value", AttributeKind::tensor)
        .infer(infer_constant)
        .bounds(whole_operands()),
    OpDef(Identity::kName)
        .summary("output = input")
        .operand("input", "T")
        .result("output", "T")
        .types("T", kAnyType)
        .traits(Trait::pure | Trait::elementwise | Trait::layout_oblivious | Trait::movement | Trait::view)
        .infer(same_as_operand(0))
        .bounds(pointwise())
        .infer_dims([](const InferContext& context) { return context.dims_value(0); }),
});

}  // namespace
}  // namespace tenon
