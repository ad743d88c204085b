// Arithmetic on numbers.
#include <limits>

#include <tenon/snippet/canonical/rebuild_internal.hpp>

namespace tenon::snippet {
namespace {

Result<ValueId> remainder(Rebuild& r) {
  return r.node(r.op().attr<int64_t>("fmod") != 0 ? "Fmod" : "Mod", {r.in(0), r.in(1)});
}

// x > 0 ? 1 : x < 0 ? -1 : x, where adding 0 turns -0 into 0 and keeps NaN.
Result<ValueId> sign(Rebuild& r) {
  const ValueId x = r.in(0), zero = r.scalar_like(x, 0), one = r.scalar_like(x, 1);
  ValueId rest = zero;
  if (r.element(0).is_float()) rest = r.node("Add", {x, zero});
  if (!r.element(0).is_unsigned_int()) rest = r.node("Where", {r.compare("Less", x, zero), r.scalar_like(x, -1), rest});
  return r.node("Where", {r.compare("Greater", x, zero), one, rest});
}

Result<ValueId> magnitude(Rebuild& r) { return r.element(0).is_unsigned_int() ? r.in(0) : r.node("Abs", {r.in(0)}); }

Result<ValueId> reciprocal(Rebuild& r) { return r.node("Div", {r.scalar_like(r.in(0), 1), r.in(0)}); }

// op(... op(op(x0, x1), x2) ..., xn)
ValueId folded(Rebuild& r, Name op) {
  ValueId so_far = r.in(0);
  for (size_t i = 1; i < r.op().operand_count(); ++i) so_far = r.node(op, {so_far, r.in(i)});
  return so_far;
}
Result<ValueId> greatest(Rebuild& r) { return folded(r, "Max"); }
Result<ValueId> least(Rebuild& r) { return folded(r, "Min"); }
Result<ValueId> total(Rebuild& r) { return folded(r, "Add"); }
Result<ValueId> mean(Rebuild& r) {
  const ValueId sum = folded(r, "Add");
  return r.node("Div", {sum, r.scalar_like(sum, static_cast<double>(r.op().operand_count()))});
}

// ---- Pow ----

// x^0.5: as Sqrt, but 0 for -0 and infinity for -infinity.
ValueId root(Rebuild& r, ValueId x) {
  const double infinity = std::numeric_limits<double>::infinity();
  const ValueId at_infinity = r.compare("Equal", x, r.scalar_like(x, -infinity));
  const ValueId of_rest = r.node("Sqrt", {r.node("Add", {x, r.scalar_like(x, 0)})});
  return r.node("Where", {at_infinity, r.scalar_like(x, infinity), of_rest});
}

// x^0.75, within 1.75 units in the last place: the half unit of the first root counts one and a half times.
ValueId three_quarters(Rebuild& r, ValueId x) {
  const ValueId half = root(r, x);
  return r.node("Mul", {half, r.node("Sqrt", {half})});
}

// x^n of integers by repeated squaring, for n of a few bits; -1: other exponents.
ValueId written_out(Rebuild& r, ValueId x, double exponent) {
  constexpr double kMost = 1 << 16;
  if (!(exponent >= 1 && exponent <= kMost)) return -1;
  ValueId result = -1;
  for (auto left = static_cast<uint32_t>(exponent);;) {
    if (left & 1) result = result == -1 ? x : r.node("Mul", {result, x});
    if ((left >>= 1) == 0) return result;
    x = r.node("Mul", {x, x});
  }
}

// Exponents that a few operations suffice for; -1: other exponents.
ValueId easy_power(Rebuild& r, ValueId x, double exponent) {
  const auto square = [&](ValueId v) { return r.node("Mul", {v, v}); };
  const auto inverse = [&](ValueId v) { return r.node("Div", {r.scalar_like(v, 1), v}); };
  if (exponent == 0) return r.spread(r.scalar_like(x, 1), x);
  if (exponent == 1) return x;
  if (exponent == 2) return square(x);
  if (exponent == 3) return r.node("Mul", {square(x), x});
  if (exponent == 4) return square(square(x));
  if (!r.lane(x).is_float()) return written_out(r, x, exponent);
  if (exponent == -1) return inverse(x);
  if (exponent == -2) return square(inverse(x));  // not the inverse of the square, which overflows sooner
  if (exponent == 0.5) return root(r, x);
  if (exponent == -0.5) return inverse(root(r, x));
  if (exponent == 0.25) return r.node("Sqrt", {root(r, x)});
  if (exponent == 0.75) return three_quarters(r, x);
  if (exponent == -0.75) return inverse(three_quarters(r, x));
  if (exponent == 1.5) return r.node("Mul", {r.node("Abs", {x}), root(r, x)});  // infinity for -infinity
  return -1;
}

// Modulo 2^32 or 2^64, whichever holds both operands: truncated bits do not affect the low ones. With an unsigned
// exponent the bits of the base are used as they are, whatever its sign. In an unsigned base only 1 has an inverse.
Result<ValueId> integer_power(Rebuild& r) {
  const ValueId x = r.in(0), y = r.in(1);
  const ElementType lane = r.lane(x);
  const bool is_wide = lane.bits() == 64 || r.lane(y).bits() == 64, has_inverses = r.element(1).is_signed_int();
  const bool is_signed = has_inverses && lane.is_signed_int();
  const ElementType both = is_wide ? (is_signed ? kI64 : kU64) : (is_signed ? kI32 : kU32);
  const ValueId raised = r.convert(r.node("Pow", {r.convert(x, both), r.convert(y, both)}), lane);
  if (!has_inverses || is_signed) return raised;
  const ValueId one = r.scalar(lane, 1);
  const ValueId inverse = r.node("Where", {r.compare("Equal", x, one), one, r.scalar(lane, 0)});
  return r.node("Where", {r.compare("Less", y, r.scalar_like(y, 0)), inverse, raised});
}

// x^n in f32, for integers n that f32 cannot represent: x^high * x^low, where n = high + low, both with the sign of n,
// and |low| < 2^16. Neither overflows or underflows unless x^n does. Beyond 2^31 any x^high but 1 is 0 or infinity.
ValueId power_in_parts(Rebuild& r, ValueId x, ValueId n) {
  const ValueId low = r.node("Fmod", {n, r.scalar_like(n, 0x1p16)});
  ValueId high = r.node("Sub", {n, low});
  const ElementType lane = r.lane(n);
  if (lane.bits() == 64) high = r.node("Min", {high, r.scalar_like(n, 0x1p31)});
  if (lane == kI64) high = r.node("Max", {high, r.scalar_like(n, -0x1p31)});
  const auto raised = [&](ValueId part) { return r.node("Pow", {x, r.convert(part, kF32)}); };
  return r.node("Mul", {raised(high), raised(low)});
}

Result<ValueId> power(Rebuild& r) {
  const ElementType base = r.element(0), exponent = r.element(1);
  const ValueId x = r.in(0), y = r.in(1);
  if (const auto number = r.constant(1); number && (base.is_float() || exponent.is_int())) {
    if (const ValueId easy = easy_power(r, x, *number); easy != -1) return easy;
  }
  if (base.is_int() && exponent.is_int()) return integer_power(r);
  // Whether a lane of the base represents the exponent. f32 represents floats and integers of 16 bits.
  const bool fits = r.lane(x).is_float() && (r.lane(x) == kF64 || exponent.bits() <= 16 || exponent == kF32);
  if (fits) return r.node("Pow", {x, r.convert(y, r.lane(x))});
  if (r.lane(x) == kF32 && exponent.is_int()) return power_in_parts(r, x, y);
  const ValueId wide = r.node("Pow", {r.convert(x, kF64), r.convert(y, kF64)});
  return r.cast(wide, kF64, r.out());
}

}  // namespace

DecomposeRows arithmetic_rows() {
  return {
      {.op = "Add", .space = broadcast_space},
      {.op = "Sub", .space = broadcast_space},
      {.op = "Mul", .space = broadcast_space},
      {.op = "Div", .space = broadcast_space},
      {.op = "Mod", .space = broadcast_space, .rebuild = remainder},
      {.op = "Pow", .space = broadcast_space, .rebuild = power},
      {.op = "Neg", .space = broadcast_space},
      {.op = "Abs", .space = broadcast_space, .rebuild = magnitude},
      {.op = "Sign", .space = broadcast_space, .rebuild = sign, .exact = true},
      {.op = "Reciprocal", .space = broadcast_space, .rebuild = reciprocal},
      {.op = "Sqrt", .space = broadcast_space},
      {.op = "Ceil", .space = broadcast_space, .exact = true},
      {.op = "Floor", .space = broadcast_space, .exact = true},
      {.op = "Round", .space = broadcast_space, .dialect = "RoundEven", .exact = true},
      {.op = "Exp", .space = broadcast_space},
      {.op = "Log", .space = broadcast_space},
      {.op = "Max", .space = broadcast_space, .rebuild = greatest, .exact = true},
      {.op = "Min", .space = broadcast_space, .rebuild = least, .exact = true},
      {.op = "Sum", .space = broadcast_space, .rebuild = total},
      {.op = "Mean", .space = broadcast_space, .rebuild = mean},
  };
}

}  // namespace tenon::snippet
