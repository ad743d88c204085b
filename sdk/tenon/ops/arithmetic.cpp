#include <tenon/ops/arithmetic.hpp>

#include <array>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/elementwise_dims.hpp>
#include <tenon/ops/gradient.hpp>

namespace tenon {
namespace {

using Values = std::vector<Value*>;
using Gradients = std::span<Value* const>;

const TypeSet kUnsignedTypes("unsigned integer tensors", [](ElementType e) { return e.is_unsigned_int(); });

constexpr Trait kUnary = Trait::pure | Trait::elementwise | Trait::layout_oblivious;
constexpr Trait kBinary = kUnary | Trait::broadcasting;
constexpr Trait kCommuting = kBinary | Trait::commutative | Trait::associative;

// ---- Shape arithmetic ----

template <class F>
InferDimsFn dims_of(F f) {
  return [f](const InferContext& context) { return zip_dims(context, f); };
}

using Row = std::vector<Dim>;  // one dim per operand

std::optional<std::vector<Dim>> remainder_dims(const InferContext& context) {
  const bool c_remainder = context.attr<int64_t>("fmod") != 0;
  return zip_dims(context, [&](const Row& at) -> Dim {
    if (!at[0].known() || !at[1].is_static() || at[1].value() <= 0) return {};
    if (c_remainder && !never_negative(at[0])) return {};
    return mod(at[0].expr(), at[1].expr());
  });
}

template <class F>
Dim fold_exprs(const Row& at, F f) {
  std::vector<Expr> exprs;
  for (const Dim& dim : at) {
    if (!dim.known()) return {};
    exprs.push_back(dim.expr());
  }
  return f(std::span<const Expr>(exprs));
}
Dim least(const Row& at) {
  return fold_exprs(at, [](std::span<const Expr> exprs) { return min(exprs); });
}
Dim greatest(const Row& at) {
  return fold_exprs(at, [](std::span<const Expr> exprs) { return max(exprs); });
}
Dim total(const Row& at) {
  return fold_exprs(at, [](std::span<const Expr> exprs) { return sum(exprs); });
}

// ---- Gradients ----

Result<Values> to_operands(Builder& b, const Op& op, Value* first, Value* second) {
  TENON_TRY(to_first, sum_to_operand(b, first, op.operand(0)), op.describe());
  TENON_TRY(to_second, sum_to_operand(b, second, op.operand(1)), op.describe());
  return Values{to_first, to_second};
}

Result<Values> add_gradient(Builder& b, const Op& op, Gradients g) { return to_operands(b, op, g[0], g[0]); }

Result<Values> sub_gradient(Builder& b, const Op& op, Gradients g) {
  TENON_TRY(second, b.op("Neg", {g[0]}));
  return to_operands(b, op, g[0], second);
}

// d(ab) = b da + a db
Result<Values> mul_gradient(Builder& b, const Op& op, Gradients g) {
  TENON_TRY(first, b.op("Mul", {g[0], op.operand(1)}));
  TENON_TRY(second, b.op("Mul", {g[0], op.operand(0)}));
  return to_operands(b, op, first, second);
}

// d(a/b) = da / b - (a/b) / b db
Result<Values> div_gradient(Builder& b, const Op& op, Gradients g) {
  TENON_TRY(first, b.op("Div", {g[0], op.operand(1)}));
  TENON_TRY(scaled, b.op("Mul", {first, op.result(0)}));
  TENON_TRY(second, b.op("Neg", {scaled}));
  return to_operands(b, op, first, second);
}

Result<Values> neg_gradient(Builder& b, const Op&, Gradients g) {
  TENON_TRY(x, b.op("Neg", {g[0]}));
  return Values{x};
}

// d(e^x) = e^x dx
Result<Values> exp_gradient(Builder& b, const Op& op, Gradients g) {
  TENON_TRY(x, b.op("Mul", {g[0], op.result(0)}));
  return Values{x};
}

// d(ln x) = dx / x
Result<Values> log_gradient(Builder& b, const Op& op, Gradients g) {
  TENON_TRY(x, b.op("Div", {g[0], op.operand(0)}));
  return Values{x};
}

// d(sqrt x) = dx / (2 sqrt x)
Result<Values> sqrt_gradient(Builder& b, const Op& op, Gradients g) {
  TENON_TRY(twice, b.op("Add", {op.result(0), op.result(0)}));
  TENON_TRY(x, b.op("Div", {g[0], twice}));
  return Values{x};
}

// ---- Definitions ----

OpDef binary(Name name, std::string summary, const TypeSet& types, Trait traits = kBinary) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("A", "T")
      .operand("B", "T")
      .result("C", "T")
      .types("T", types)
      .traits(traits)
      .infer(broadcast_operands())
      .bounds(pointwise());
}

OpDef unary(Name name, std::string summary, const TypeSet& types) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("X", "T")
      .result("Y", "T")
      .types("T", types)
      .traits(kUnary)
      .infer(same_as_operand(0))
      .bounds(pointwise());
}

OpDef variadic(Name name, std::string summary, const TypeSet& types, Trait traits) {
  return OpDef(name)
      .summary(std::move(summary))
      .variadic_operands("data_0", "T", 1)
      .result("result", "T")
      .types("T", types)
      .traits(traits)
      .infer(broadcast_operands())
      .bounds(pointwise());
}

const OpRegistration kArithmeticRegistered({
    binary(Add::kName, "A + B", kNumberTypes, kCommuting).gradient(add_gradient).infer_dims(dims_of([](const Row& at) {
      return at[0] + at[1];
    })),
    binary(Sub::kName, "A - B", kNumberTypes).gradient(sub_gradient).infer_dims(dims_of([](const Row& at) {
      return at[0] - at[1];
    })),
    binary(Mul::kName, "A * B", kNumberTypes, kCommuting).gradient(mul_gradient).infer_dims(dims_of([](const Row& at) {
      return at[0] * at[1];
    })),
    binary(Div::kName, "A / B; integers: rounded towards zero, and 0 where B is 0", kNumberTypes)
        .gradient(div_gradient)
        .infer_dims(dims_of([](const Row& at) { return truncating_div(at[0], at[1]); })),
    binary(Mod::kName, "A - n * B for the integer n that gives the result B's sign, or with `fmod` A's", kNumberTypes)
        .attribute("fmod", int64_t{0})
        .infer_dims(remainder_dims),
    OpDef(Pow::kName)
        .summary("X ^ Y, of X's element type")
        .operand("X", "T")
        .operand("Y", "T1")
        .result("Z", "T")
        .types("T", kNumberTypes)
        .types("T1", kNumberTypes)
        .traits(kBinary)
        .infer(broadcast_operands())
        .bounds(pointwise()),
    binary(BitShift::kName, "X * 2^Y (LEFT) or floor(X / 2^Y) (RIGHT)", kUnsignedTypes)
        .required_attribute("direction", AttributeKind::text)
        .one_of({"LEFT", "RIGHT"}),
    binary(BitwiseAnd::kName, "A & B, bit by bit", kIntTypes, kCommuting),
    binary(BitwiseOr::kName, "A | B, bit by bit", kIntTypes, kCommuting),
    binary(BitwiseXor::kName, "A ^ B, bit by bit", kIntTypes, kCommuting),
    unary(BitwiseNot::kName, "~X, bit by bit", kIntTypes),
    unary(Neg::kName, "-X", kNumberTypes).gradient(neg_gradient).infer_dims(dims_of([](const Row& at) {
      return Dim(0) - at[0];
    })),
    unary(Abs::kName, "|X|", kNumberTypes),
    unary(Sign::kName, "1, 0 or -1 as X is above, at or below 0", kNumberTypes),
    unary(Reciprocal::kName, "1 / X", kFloatTypes),
    unary(Sqrt::kName, "The square root of X", kFloatTypes).gradient(sqrt_gradient),
    unary(Ceil::kName, "The least integer >= X", kFloatTypes),
    unary(Floor::kName, "The greatest integer <= X", kFloatTypes),
    unary(Round::kName, "The integer nearest to X, halves to the even one", kFloatTypes),
    unary(Exp::kName, "e^X", kFloatTypes).gradient(exp_gradient),
    unary(Log::kName, "The natural logarithm of X", kFloatTypes).gradient(log_gradient),
    variadic(Max::kName, "The greatest operand; NaN where one is NaN", kNumberTypes, kCommuting)
        .infer_dims(dims_of(greatest)),
    variadic(Min::kName, "The least operand; NaN where one is NaN", kNumberTypes, kCommuting)
        .infer_dims(dims_of(least)),
    variadic(Sum::kName, "The sum of the operands", kNumberTypes, kCommuting).infer_dims(dims_of(total)),
    variadic(Mean::kName, "The sum of the operands over their number", kFloatTypes, kBinary | Trait::commutative),
});

}  // namespace
}  // namespace tenon
