#include <tenon/ops/random.hpp>

#include <tenon/ir/op_def.hpp>

namespace tenon {
namespace {

const TypeSet kScalarTypes("number and bool tensors", [](ElementType e) { return e.is_number() || e.is_bool(); });

ElementType dtype_of(const InferContext& context, ElementType fallback) {
  const Type type = context.attr<Type>("dtype");
  return type.is_tensor() && type.element().valid() ? type.element() : fallback;
}

Result<std::vector<Type>> infer_shaped(const InferContext& context) {
  const auto dims = context.attr<Attribute::Integers>("shape");
  TENON_OK(element_count(dims), "the attribute 'shape' of ", context.op().describe());
  return std::vector<Type>{Type(dtype_of(context, kF32), Shape(dims))};
}

Result<std::vector<Type>> infer_like(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  return std::vector<Type>{Type(dtype_of(context, input.element), std::move(input.shape))};
}

Result<std::vector<Type>> infer_multinomial(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  if (input.shape.ranked() && input.shape.rank() != 2) {
    return error(Code::invalid_argument, context.op().describe(), ": the input must be [batch, classes], it has shape ",
                 input.shape);
  }
  const Dim batch = input.shape.ranked() ? input.shape[0] : Dim();
  return std::vector<Type>{Type(dtype_of(context, kI32), Shape{batch, context.attr<int64_t>("sample_size", 1)})};
}

Result<void> verify_sample_size(const Op& op) {
  const auto size = op.attr<int64_t>("sample_size", 1);
  if (size >= 0) return {};
  return error(Code::invalid_argument, op.describe(), ": sample_size is ", size, ", it must not be negative");
}

OpDef random(Name name, std::string summary) {
  return OpDef(name)
      .summary(std::move(summary))
      .result("output", "T2")
      .types("T2", kScalarTypes)
      .optional_attribute("seed", AttributeKind::real)
      .traits(Trait::random);
}
OpDef shaped(Name name, std::string summary) {
  return random(name, std::move(summary))
      .required_attribute("shape", AttributeKind::integers)
      .attribute("dtype", Type(kF32, Shape()))
      .infer(infer_shaped);
}
OpDef like(Name name, std::string summary) {
  return random(name, std::move(summary))
      .operand("input", "T1")
      .types("T1", kAnyTensor)
      .optional_attribute("dtype", AttributeKind::type)
      .infer(infer_like);
}
OpDef normal(OpDef def) { return def.attribute("mean", 0.0f).attribute("scale", 1.0f); }
OpDef uniform(OpDef def) { return def.attribute("low", 0.0f).attribute("high", 1.0f); }

const OpRegistration kRandomRegistered({
    normal(shaped(RandomNormal::kName, "Normal numbers of `mean` and standard deviation `scale`")),
    uniform(shaped(RandomUniform::kName, "Uniform numbers in [low, high)")),
    normal(like(RandomNormalLike::kName, "Normal numbers in the operand's shape")),
    uniform(like(RandomUniformLike::kName, "Uniform numbers in the operand's shape")),
    like(Bernoulli::kName, "1 with the probability that input gives, else 0").types("T1", kFloatTypes),
    random(Multinomial::kName, "Classes drawn by logarithms of their weights")
        .operand("input", "T1")
        .types("T1", kFloatTypes)
        .attribute("sample_size", int64_t{1})
        .attribute("dtype", Type(kI32, Shape()))
        .infer(infer_multinomial)
        .verify(verify_sample_size),
});

}  // namespace
}  // namespace tenon
