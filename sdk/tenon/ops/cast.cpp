#include <tenon/ops/cast.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/elementwise_dims.hpp>

namespace tenon {

ConvertOptions convert_options_of(const Op& op) {
  using Rounding = ConvertOptions::Rounding;
  const auto mode = op.attr<std::string>("round_mode", "up");
  return {.saturate = op.attr<int64_t>("saturate", 1) != 0,
          .e8m0_rounding = mode == "down"      ? Rounding::down
                           : mode == "nearest" ? Rounding::nearest
                                               : Rounding::up};
}

namespace {

Result<std::vector<Type>> infer_to(const InferContext& context, ElementType to) {
  TENON_TRY(input, context.tensor(0));
  return std::vector<Type>{Type(to, std::move(input.shape))};
}

Result<std::vector<Type>> infer_cast(const InferContext& context) {
  return infer_to(context, context.attr<Type>("to").element());
}

Result<std::vector<Type>> infer_cast_like(const InferContext& context) {
  TENON_TRY(target, context.tensor(1));
  return infer_to(context, target.element);
}

Result<std::vector<Type>> infer_bit_cast(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  const ElementType from = input.element, to = context.attr<Type>("to").element();
  if (from.is_string() || to.is_string() || (from.valid() && from.bits() != to.bits())) {
    return error(Code::invalid_argument, context.op().describe(), " reads the bits of ", from, " as ", to,
                 "; both must have the same number of bits, and neither may be a string");
  }
  return infer_to(context, to);
}

Result<void> verify_target(const Op& op) {
  const Type to = op.attr<Type>("to");
  if (to.is_tensor() && to.element().valid()) return {};
  return error(Code::invalid_argument, op.describe(),
               ": the attribute 'to' must hold a tensor type such as f16[*], it is ", to);
}

// Integers wide enough for extents preserve them; casts to fewer bits or to floats are not followed.
std::optional<std::vector<Dim>> cast_dims(const InferContext& context) {
  const ElementType to =
      context.op().is(Name(CastLike::kName)) ? context.type(1).element() : context.attr<Type>("to").element();
  if (to.is_bool()) {
    return zip_dims(context,
                    [](const std::vector<Dim>& at) { return at[0].is_static() ? Dim(at[0].value() != 0) : Dim(); });
  }
  if (!to.is_int() || to.bits() < 32) return std::nullopt;
  return context.dims_value(0);
}

OpDef casting(Name name, std::string summary) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("input", "T1")
      .result("output", "T2")
      .types("T1", kAnyTensor)
      .types("T2", kAnyTensor)
      .traits(kElementwise)
      .bounds(pointwise());
}

const OpRegistration kCastRegistered({
    casting(Cast::kName, "input in the element type `to`")
        .required_attribute("to", AttributeKind::type)
        .attribute("saturate", int64_t{1})
        .attribute("round_mode", "up")
        .one_of({"up", "down", "nearest"})
        .infer(infer_cast)
        .infer_dims(cast_dims)
        .verify(verify_target),
    casting(CastLike::kName, "input in the element type of target_type")
        .operand("target_type", "T2")
        .attribute("saturate", int64_t{1})
        .attribute("round_mode", "up")
        .one_of({"up", "down", "nearest"})
        .infer(infer_cast_like)
        .bounds(pointwise(/*only_type=*/{1}))
        .infer_dims(cast_dims),
    casting(BitCast::kName, "The bits of input read as the element type `to`")
        .required_attribute("to", AttributeKind::type)
        .infer(infer_bit_cast)
        .verify(verify_target),
});

}  // namespace
}  // namespace tenon
