#include <tenon/ops/normalization.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

// The element type that ONNX's number for it in stash_type names.
Result<ElementType> stash_element(const Op& op) {
  const int64_t number = op.attr<int64_t>("stash_type", 1);
  switch (number) {
    case 1: return kF32;
    case 10: return kF16;
    case 11: return kF64;
    case 16: return kBF16;
    default:
      return error(Code::invalid_argument, "stash_type of ", op.describe(), " is ", number,
                   ", it must be 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)");
  }
}

// Operand `operand` must be a vector with one element a channel of x.
Result<void> one_per_channel(const InferContext& context, size_t operand, const Shape& x) {
  TENON_OK(require_rank(context, operand, 1));
  const Type& type = context.type(operand);
  if (!type.is_tensor() || !type.shape().ranked() || !x.ranked()) return {};
  const Dim channels = x.rank() > 1 ? x[1] : Dim(1);
  if (!certainly_differ(type.shape()[0], channels)) return {};
  return error(Code::invalid_argument, "operand ", operand, " of ", context.op().describe(), " has ", type.shape()[0],
               " elements, X has ", channels, " channels");
}

InferredTypes infer_by_channel(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  for (const size_t operand : {size_t{1}, size_t{2}}) TENON_OK(one_per_channel(context, operand, x.shape));
  return one_type(x.element, x.shape);
}

InferredTypes infer_batch(const InferContext& context) {
  TENON_TRY(types, infer_by_channel(context));
  for (const size_t operand : {size_t{3}, size_t{4}}) {
    TENON_OK(one_per_channel(context, operand, types[0].shape()));
    if (context.op().result_count() > operand - 2) types.push_back(context.type(operand));
  }
  return types;
}

InferredTypes infer_group(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 2));
  TENON_TRY(types, infer_by_channel(context));
  const int64_t groups = context.attr<int64_t>("num_groups");
  const Shape& x = types[0].shape();
  if (groups < 1 || (x.ranked() && x[1].is_static() && x[1].value() % groups != 0)) {
    return error(Code::invalid_argument, "num_groups of ", context.op().describe(), " is ", groups, ", X ", x,
                 " needs a divisor of its channels");
  }
  return types;
}

InferredTypes infer_layer(const InferContext& context) {
  const Op& op = context.op();
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(stash, stash_element(op));
  Shape statistics = x.shape;
  if (x.shape.ranked()) {
    TENON_TRY(axis, axis_attribute(context, "axis", -1, x.shape.rank()));
    for (size_t i = axis; i < statistics.dims().size(); ++i) statistics[i] = Dim(1);
    for (const size_t operand : {size_t{1}, size_t{2}}) {
      if (operand >= context.operand_count() || !context.has_operand(operand) || !context.type(operand).is_tensor())
        continue;
      const Shape& shape = context.type(operand).shape();
      TENON_TRY(joined, broadcast(x.shape, shape), "operand ", operand, " of ", op.describe());
      if (shape.ranked() && shape.rank() > x.shape.rank()) {
        return error(Code::invalid_argument, "operand ", operand, " of ", op.describe(), " is ", shape,
                     ", which does not broadcast to X ", x.shape);
      }
      for (size_t i = 0; joined.ranked() && i < joined.dims().size(); ++i) {
        if (certainly_differ(joined[i], x.shape[i])) {
          return error(Code::invalid_argument, "operand ", operand, " of ", op.describe(), " is ", shape,
                       ", which does not broadcast to X ", x.shape);
        }
      }
    }
  }
  std::vector<Type> types{Type(x.element, x.shape)};
  while (types.size() < op.result_count()) types.emplace_back(stash, statistics);
  return types;
}

InferredTypes infer_along_axis(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  if (x.shape.ranked()) TENON_OK(axis_attribute(context, "axis", -1, x.shape.rank()));
  return one_type(x.element, x.shape);
}

InferredTypes infer_along_axes(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  const auto axes = context.attr<Attribute::Integers>("axes", {0, 2, 3});
  if (x.shape.ranked()) TENON_OK(normalize_axes(axes, x.shape.rank()), "axes of ", context.op().describe());
  return one_type(x.element, x.shape);
}

InferredTypes infer_lrn(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 2));
  const int64_t size = context.attr<int64_t>("size");
  if (size < 1)
    return error(Code::invalid_argument, "size of ", context.op().describe(), " is ", size, ", the least is 1");
  return same_as_operand(0)(context);
}

InferredTypes infer_dropout(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  std::vector<Type> types{Type(data.element, data.shape)};
  if (context.op().result_count() > 1) types.emplace_back(kBool, data.shape);
  return types;
}

const OpRegistration kRegistered({
    OpDef(BatchNormalization::kName)
        .summary("Y = (X - mean) / sqrt(var + epsilon) * scale + B, by channel")
        .operand("X", "T")
        .operand("scale", "T1")
        .operand("B", "T1")
        .operand("input_mean", "T2")
        .operand("input_var", "T2")
        .result("Y", "T")
        .result("running_mean", "T2", Arity::optional)
        .result("running_var", "T2", Arity::optional)
        .types("T", kFloatTypes)
        .types("T1", kFloatTypes)
        .types("T2", kFloatTypes)
        .attribute("epsilon", 1e-5f)
        .attribute("momentum", 0.9f)
        .attribute("training_mode", int64_t{0})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_batch),
    OpDef(InstanceNormalization::kName)
        .summary("output = (input - mean) / sqrt(var + epsilon) * scale + B, by channel and image")
        .operand("input", "T")
        .operand("scale", "T")
        .operand("B", "T")
        .result("output", "T")
        .types("T", kFloatTypes)
        .attribute("epsilon", 1e-5f)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_by_channel),
    OpDef(GroupNormalization::kName)
        .summary("Y = (X - mean) / sqrt(var + epsilon) * scale + bias, by group of channels and image")
        .operand("X", "T")
        .operand("scale", "T")
        .operand("bias", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("epsilon", 1e-5f)
        .required_attribute("num_groups", AttributeKind::integer)
        .attribute("stash_type", int64_t{1})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_group),
    OpDef(LayerNormalization::kName)
        .summary("Y = (X - Mean) * InvStdDev * Scale + B over the axes from `axis` on")
        .operand("X", "T")
        .operand("Scale", "T")
        .optional_operand("B", "T")
        .result("Y", "T")
        .result("Mean", "U", Arity::optional)
        .result("InvStdDev", "U", Arity::optional)
        .types("T", kFloatTypes)
        .types("U", kFloatTypes)
        .attribute("axis", int64_t{-1})
        .attribute("epsilon", 1e-5f)
        .attribute("stash_type", int64_t{1})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_layer),
    OpDef(RMSNormalization::kName)
        .summary("Y = X / sqrt(mean(X^2) + epsilon) * scale over the axes from `axis` on")
        .operand("X", "T")
        .operand("scale", "V")
        .result("Y", "V")
        .types("T", kFloatTypes)
        .types("V", kFloatTypes)
        .attribute("axis", int64_t{-1})
        .attribute("epsilon", 1e-5f)
        .attribute("stash_type", int64_t{1})
        .traits(Trait::pure | Trait::layout_aware)
        .infer([](const InferContext& context) -> InferredTypes {
          TENON_TRY(types, infer_layer(context));
          TENON_TRY(scale, context.tensor(1));
          return one_type(scale.element, types[0].shape());
        }),
    OpDef(LpNormalization::kName)
        .summary("output = input / (its p-norm along `axis`)")
        .operand("input", "T")
        .result("output", "T")
        .types("T", kFloatTypes)
        .attribute("axis", int64_t{-1})
        .attribute("p", int64_t{2})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_along_axis)
        .verify([](const Op& op) -> Result<void> {
          const int64_t p = op.attr<int64_t>("p", 2);
          if (p == 1 || p == 2) return {};
          return error(Code::invalid_argument, "p of ", op.describe(), " is ", p, ", it must be 1 or 2");
        }),
    OpDef(MeanVarianceNormalization::kName)
        .summary("Y = (X - mean) / (sqrt(var) + 1e-9) over `axes`")
        .operand("X", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("axes", Attribute::Integers{0, 2, 3})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_along_axes),
    OpDef(LRN::kName)
        .summary("Y = X / (bias + alpha / size * sum of X^2 over `size` channels around)^beta")
        .operand("X", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("alpha", 0.0001f)
        .attribute("beta", 0.75f)
        .attribute("bias", 1.0f)
        .required_attribute("size", AttributeKind::integer)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_lrn),
    OpDef(Dropout::kName)
        .summary("output = data, or in training elements set to 0 at random and the rest scaled")
        .operand("data", "T")
        .optional_operand("ratio", "T1")
        .optional_operand("training_mode", "T2")
        .result("output", "T")
        .result("mask", "T2", Arity::optional)
        .types("T", kFloatTypes)
        .types("T1", kFloatTypes)
        .types("T2", kBoolType)
        .optional_attribute("seed", AttributeKind::integer)
        .traits(Trait::random | Trait::layout_oblivious)
        .infer(infer_dropout),
});

}  // namespace
}  // namespace tenon
