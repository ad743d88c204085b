#include <tenon/ops/activations.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/gradient.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

using Values = std::vector<Value*>;
using Gradients = std::span<Value* const>;

// ---- Gradients ----

// A constant with the element type of `value`.
Value* scalar_like(Builder& b, const Value* value, double number) {
  return b.constant_scalar(value->type().element(), number);
}

// dx where x > 0
Result<Values> relu_gradient(Builder& b, const Op& op, Gradients g) {
  Value* zero = scalar_like(b, op.operand(0), 0);
  TENON_TRY(passes, b.op("Greater", {op.operand(0), zero}));
  TENON_TRY(x, b.op("Where", {passes, g[0], zero}));
  return Values{x};
}

// d(sigmoid x) = y (1 - y) dx
Result<Values> sigmoid_gradient(Builder& b, const Op& op, Gradients g) {
  TENON_TRY(rest, b.op("Sub", {scalar_like(b, op.operand(0), 1), op.result(0)}));
  TENON_TRY(slope, b.op("Mul", {op.result(0), rest}));
  TENON_TRY(x, b.op("Mul", {g[0], slope}));
  return Values{x};
}

// d(tanh x) = (1 - y^2) dx
Result<Values> tanh_gradient(Builder& b, const Op& op, Gradients g) {
  TENON_TRY(square, b.op("Mul", {op.result(0), op.result(0)}));
  TENON_TRY(slope, b.op("Sub", {scalar_like(b, op.operand(0), 1), square}));
  TENON_TRY(x, b.op("Mul", {g[0], slope}));
  return Values{x};
}

// ---- Shape rules ----

// The result has the type of the first operand; the second must broadcast to it without changing it.
Result<std::vector<Type>> infer_prelu(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(slope, context.tensor(1));
  TENON_TRY(wide, broadcast(x.shape, slope.shape), "the slope of ", context.op().describe());
  const auto have = x.shape.static_dims(), become = wide.static_dims();
  if (x.shape.ranked() && wide.ranked() && (wide.rank() != x.shape.rank() || (have && become && *have != *become))) {
    return error(Code::invalid_argument, context.op().describe(), ": the slope of shape ", slope.shape,
                 " would stretch X of shape ", x.shape, "; it must broadcast to X");
  }
  return std::vector<Type>{Type(x.element, x.shape.ranked() ? x.shape : Shape())};
}

// A single number: of rank 0 or, as in models of opset 6, a tensor of one element.
Result<std::vector<Type>> infer_clip(const InferContext& context) {
  for (const size_t i : {1, 2}) {
    if (!context.has_operand(i) || !context.type(i).is_tensor()) continue;
    const Shape& shape = context.type(i).shape();
    if (!may_be_one_number(shape)) {
      return error(Code::invalid_argument, context.op().describe(), ": the bound '", i == 1 ? "min" : "max",
                   "' must be a scalar, it has shape ", shape);
    }
  }
  return std::vector<Type>{context.type(0)};
}

Result<std::vector<Type>> infer_swiglu(const InferContext& context) {
  TENON_TRY(a, context.tensor(0));
  TENON_TRY(b, context.tensor(1));
  TENON_TRY(shape, merge(a.shape, b.shape), "the operands of ", context.op().describe(), ", which do not broadcast");
  return std::vector<Type>{Type(a.element, std::move(shape))};
}

// ---- Definitions ----

OpDef function(Name name, std::string summary, const TypeSet& types = kFloatTypes) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("X", "T")
      .result("Y", "T")
      .types("T", types)
      .traits(kElementwise)
      .infer(same_as_operand(0))
      .bounds(pointwise());
}

const OpRegistration kActivationsRegistered({
    function(Relu::kName, "max(X, 0)", kNumberTypes).gradient(relu_gradient),
    function(LeakyRelu::kName, "X >= 0 ? X : alpha * X").attribute("alpha", 0.01f),
    function(Elu::kName, "X >= 0 ? X : alpha * (e^X - 1)").attribute("alpha", 1.0f),
    function(Selu::kName, "gamma * (X > 0 ? X : alpha * (e^X - 1))")
        .attribute("alpha", 1.67326319217681884765625f)
        .attribute("gamma", 1.05070102214813232421875f),
    function(Celu::kName, "max(0, X) + min(0, alpha * (e^(X / alpha) - 1))").attribute("alpha", 1.0f),
    function(ThresholdedRelu::kName, "X > alpha ? X : 0").attribute("alpha", 1.0f),
    function(Sigmoid::kName, "1 / (1 + e^-X)").gradient(sigmoid_gradient),
    function(HardSigmoid::kName, "max(0, min(1, alpha * X + beta))").attribute("alpha", 0.2f).attribute("beta", 0.5f),
    function(HardSwish::kName, "X * max(0, min(1, X / 6 + 1/2))"),
    function(Swish::kName, "X / (1 + e^(-alpha * X))").attribute("alpha", 1.0f),
    function(Mish::kName, "X * tanh(ln(1 + e^X))"),
    function(Softplus::kName, "ln(1 + e^X)"),
    function(Softsign::kName, "X / (1 + |X|)"),
    function(Tanh::kName, "The hyperbolic tangent of X").gradient(tanh_gradient),
    function(Erf::kName, "The error function of X: 2 / sqrt(pi) * integral of e^(-t^2) over [0, X]"),
    function(Gelu::kName, "X / 2 * (1 + erf(X / sqrt(2))), or with `approximate` tanh a formula by tanh")
        .attribute("approximate", "none")
        .one_of({"none", "tanh"}),
    function(Shrink::kName, "X < -lambd ? X + bias : X > lambd ? X - bias : 0", kNumberTypes)
        .attribute("bias", 0.0f)
        .attribute("lambd", 0.5f),
    OpDef(PRelu::kName)
        .summary("X >= 0 ? X : slope * X; slope broadcasts to X")
        .operand("X", "T")
        .operand("slope", "T")
        .result("Y", "T")
        .types("T", kNumberTypes)
        .traits(kElementwise | Trait::broadcasting)
        .infer(infer_prelu)
        .bounds(pointwise()),
    OpDef(Clip::kName)
        .summary("min(max(input, min), max); either bound may be absent")
        .operand("input", "T")
        .optional_operand("min", "T")
        .optional_operand("max", "T")
        .result("output", "T")
        .types("T", kNumberTypes)
        .traits(kElementwise)
        .infer(infer_clip)
        .bounds(pointwise()),
    OpDef(SwiGLU::kName)
        .summary("A / (1 + e^(-alpha * A)) * B")
        .operand("A", "T")
        .operand("B", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("alpha", 1.0f)
        .traits(kElementwise)
        .infer(infer_swiglu)
        .bounds(pointwise()),
    function(Sin::kName, "The sine of X, in radians"),
    function(Cos::kName, "The cosine of X, in radians"),
    function(Tan::kName, "The tangent of X, in radians"),
    function(Asin::kName, "The arc sine of X, NaN outside [-1, 1]"),
    function(Acos::kName, "The arc cosine of X, NaN outside [-1, 1]"),
    function(Atan::kName, "The arc tangent of X"),
    function(Sinh::kName, "The hyperbolic sine of X"),
    function(Cosh::kName, "The hyperbolic cosine of X"),
    function(Asinh::kName, "The inverse hyperbolic sine of X"),
    function(Acosh::kName, "The inverse hyperbolic cosine of X, NaN below 1"),
    function(Atanh::kName, "The inverse hyperbolic tangent of X, NaN outside [-1, 1]"),
});

}  // namespace
}  // namespace tenon
