// Functions of one variable, clips and gates.
//
// Formulas are chosen for accuracy: no difference of nearly equal numbers, no product that overflows before the result
// does.
#include <cmath>

#include <tenon/snippet/canonical/rebuild_internal.hpp>

namespace tenon::snippet {
namespace {

// condition(x, bound) ? yes : no
ValueId choose(Rebuild& r, Name condition, ValueId x, double bound, ValueId yes, ValueId no) {
  return r.node("Where", {r.compare(condition, x, r.scalar_like(x, bound)), yes, no});
}
ValueId times(Rebuild& r, ValueId x, double factor) { return r.node("Mul", {x, r.scalar_like(x, factor)}); }
ValueId plus(Rebuild& r, ValueId x, double addend) { return r.node("Add", {x, r.scalar_like(x, addend)}); }
ValueId clamp(Rebuild& r, ValueId x, double low, double high) {
  x = r.node("ClampLow", {x, r.scalar_like(x, low)});
  return r.node("ClampHigh", {x, r.scalar_like(x, high)});
}

Result<ValueId> relu(Rebuild& r) {
  if (r.element(0).is_unsigned_int()) return r.in(0);
  return r.node("ClampLow", {r.in(0), r.scalar_like(r.in(0), 0)});
}

Result<ValueId> leaky_relu(Rebuild& r) {
  const ValueId x = r.in(0);
  return choose(r, "GreaterOrEqual", x, 0, x, times(r, x, r.real("alpha", 0.01f)));
}

Result<ValueId> prelu(Rebuild& r) {
  const ValueId x = r.in(0);
  if (r.element(0).is_unsigned_int()) return x;
  return choose(r, "Less", x, 0, r.node("Mul", {x, r.in(1)}), x);
}

Result<ValueId> elu(Rebuild& r) {
  const ValueId x = r.in(0);
  return choose(r, "GreaterOrEqual", x, 0, x, times(r, r.node("Expm1", {x}), r.real("alpha", 1)));
}

Result<ValueId> selu(Rebuild& r) {
  const double alpha = r.real("alpha", 1.67326319217681884765625f), gamma = r.real("gamma", 1.05070102214813232421875f);
  const ValueId x = r.in(0);
  return choose(r, "Greater", x, 0, times(r, x, gamma), times(r, r.node("Expm1", {x}), alpha * gamma));
}

Result<ValueId> celu(Rebuild& r) {
  const double alpha = r.real("alpha", 1);
  const ValueId x = r.in(0);
  const ValueId scaled = alpha == 1 ? x : r.node("Div", {x, r.scalar_like(x, alpha)});
  return choose(r, "GreaterOrEqual", x, 0, x, times(r, r.node("Expm1", {scaled}), alpha));
}

Result<ValueId> thresholded_relu(Rebuild& r) {
  const ValueId x = r.in(0);
  return choose(r, "LessOrEqual", x, r.real("alpha", 1), r.scalar_like(x, 0), x);
}

Result<ValueId> hard_sigmoid(Rebuild& r) {
  return clamp(r, plus(r, times(r, r.in(0), r.real("alpha", 0.2f)), r.real("beta", 0.5f)), 0, 1);
}

// x * clamp(x + 3, 0, 6) * (1 / 6): x + 3 is exact where it is near 0.
Result<ValueId> hard_swish(Rebuild& r) {
  const ValueId x = r.in(0), raised = clamp(r, plus(r, x, 3), 0, 6);
  return r.node("Mul", {x, times(r, raised, 1.0 / 6)});
}

Result<ValueId> softsign(Rebuild& r) { return r.node("Div", {r.in(0), plus(r, r.node("Abs", {r.in(0)}), 1)}); }

Attributes alpha_of(const Rebuild& r) { return {{"alpha", r.real("alpha", 1)}}; }
Result<ValueId> swish(Rebuild& r) { return r.node("Swish", {r.in(0)}, alpha_of(r)); }
Result<ValueId> swiglu(Rebuild& r) { return r.node("Mul", {r.node("Swish", {r.in(0)}, alpha_of(r)), r.in(1)}); }

Result<ValueId> gelu(Rebuild& r) {
  return r.node("Gelu", {r.in(0)}, {{"approximate", r.op().attr<std::string>("approximate", "none")}});
}

// Integers below 32 bits with an integral bias, and of 32 bits with none: their bounds are then integral, too, and f64
// represents every i32. x > lambd is equivalent to x > floor(lambd); bounds that no number exceeds are those of the
// type.
ValueId shrink_integers(Rebuild& r, double bias, double lambd) {
  const ElementType element = r.element(0), lane = r.lane(r.in(0));
  const bool is_signed = element.is_signed_int();
  const double greatest = std::ldexp(1.0, element.bits() - is_signed) - 1, least = is_signed ? -greatest - 1 : 0;
  const ValueId x = r.in(0);
  const auto moved = [&](double by) {
    if (by == 0) return x;
    return r.convert(clamp(r, plus(r, r.convert(x, kI32), by), least, greatest), lane);
  };
  const double above = std::floor(lambd), below = -above;
  if (below > greatest) return moved(bias);
  ValueId y = r.scalar_like(x, 0);
  if (above < least)
    y = moved(-bias);
  else if (above < greatest)
    y = choose(r, "Greater", x, above, moved(-bias), y);
  else if (below <= least)
    y = r.spread(y, x);
  return below > least ? choose(r, "Less", x, below, moved(bias), y) : y;
}

// Other integers are computed in f64, since their bounds are floats.
Result<ValueId> shrink(Rebuild& r) {
  const double bias = r.real("bias", 0), lambd = r.real("lambd", 0.5f);
  const ElementType element = r.element(0);
  constexpr double kMostMoved = 1 << 24;  // the result fits 32 bits
  const bool whole = bias == std::floor(bias) && std::abs(bias) <= kMostMoved && !std::isnan(lambd);
  if (element.is_int() && whole && (element.bits() < 32 || (element.bits() == 32 && bias == 0)))
    return shrink_integers(r, bias, lambd);
  const ValueId x = element.is_int() ? r.cast(r.in(0), element, kF64) : r.in(0);
  ValueId inside = r.scalar_like(x, 0);
  if (element.is_float()) inside = r.node("Where", {r.compare("NotEqual", x, x), x, inside});
  const ValueId above = choose(r, "Greater", x, lambd, plus(r, x, -bias), inside);
  const ValueId y = choose(r, "Less", x, -lambd, plus(r, x, bias), above);
  return element.is_int() ? r.cast(y, kF64, element) : r.fit(y, element);
}

// The bounds are scalars, whatever their rank.
Result<Space> clip_space(const Op& op) {
  Space space;
  TENON_TRY(axes, space.add_shape(op.operand(0)->type().shape()));
  for (size_t i = 1; i < op.operand_count(); ++i) {
    const Value* bound = op.operand(i);
    if (!bound) continue;
    const Shape& shape = bound->type().shape();
    if (!shape.ranked()) return error(Code::unsupported, "a bound of unknown rank");
    TENON_OK(space.set(*bound, ValueAxes(static_cast<size_t>(shape.rank()))));
  }
  TENON_OK(space.set(*op.operand(0), axes));
  TENON_OK(space.set(*op.result(0), axes));
  return space;
}

Result<ValueId> clip(Rebuild& r) {
  ValueId x = r.in(0);
  if (r.has(1)) x = r.node("ClampLow", {x, r.in(1)});
  if (r.has(2)) x = r.node("ClampHigh", {x, r.in(2)});
  return x;
}

}  // namespace

DecomposeRows activation_rows() {
  DecomposeRows rows = {
      {.op = "Relu", .space = broadcast_space, .rebuild = relu, .exact = true},
      {.op = "LeakyRelu", .space = broadcast_space, .rebuild = leaky_relu},
      {.op = "PRelu", .space = broadcast_space, .rebuild = prelu},
      {.op = "Elu", .space = broadcast_space, .rebuild = elu},
      {.op = "Selu", .space = broadcast_space, .rebuild = selu},
      {.op = "Celu", .space = broadcast_space, .rebuild = celu},
      {.op = "ThresholdedRelu", .space = broadcast_space, .rebuild = thresholded_relu, .exact = true},
      {.op = "HardSigmoid", .space = broadcast_space, .rebuild = hard_sigmoid},
      {.op = "HardSwish", .space = broadcast_space, .rebuild = hard_swish},
      {.op = "Softsign", .space = broadcast_space, .rebuild = softsign},
      {.op = "Swish", .space = broadcast_space, .rebuild = swish},
      {.op = "SwiGLU", .space = broadcast_space, .rebuild = swiglu},
      {.op = "Gelu", .space = broadcast_space, .rebuild = gelu},
      {.op = "Shrink", .space = broadcast_space, .rebuild = shrink, .exact = true},
      {.op = "Clip", .space = clip_space, .rebuild = clip, .exact = true},
  };
  for (const std::string_view name : {"Sigmoid", "Tanh", "Erf", "Softplus", "Mish", "Sin", "Cos", "Tan", "Asin", "Acos",
                                      "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"}) {
    rows.push_back({.op = name, .space = broadcast_space});
  }
  return rows;
}

}  // namespace tenon::snippet
