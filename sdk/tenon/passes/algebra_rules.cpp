#include <cmath>

#include <tenon/ir/builder.hpp>
#include <tenon/passes/algebra.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::algebra {
namespace {

bool numbers(ElementType e) { return e.is_number(); }
bool ints(ElementType e) { return e.is_int(); }
bool signed_ints(ElementType e) { return e.is_signed_int(); }
bool floats(ElementType e) { return e.is_float(); }
// Types with signed zeros and NaN, as in IEEE 754.
bool ieee(ElementType e) { return e.kind() == ElementKind::ieee || e == kBF16; }
bool ints_and_ieee(ElementType e) { return ints(e) || ieee(e); }
bool signed_ints_and_ieee(ElementType e) { return signed_ints(e) || ieee(e); }
bool booleans(ElementType e) { return e.is_bool(); }
bool all(ElementType) { return true; }
bool ints_and_booleans(ElementType e) { return ints(e) || booleans(e); }

// Whether every value of `from` is also a value of `to`.
bool holds_all_of(ElementType to, ElementType from) {
  if (to == from) return true;
  if (from.is_bool()) return to.is_int() || to == kF64 || to == kF32;
  if (from.is_int() && to.is_int()) {
    return from.is_signed_int() ? to.is_signed_int() && to.bits() >= from.bits()
                                : to.bits() >= from.bits() + (to.is_signed_int() ? 1 : 0);
  }
  const int digits = to == kF64 ? 53 : to == kF32 ? 24 : 0;
  if (from.is_int()) return from.bits() <= digits;
  if (from == kF16 || from == kBF16) return digits > 0;
  return from == kF32 && to == kF64;
}

bool inner_cast_loses_nothing(const Match& match) {
  const ElementType x = match.value("x")->type().element(), inner = match.value("inner")->type().element();
  const ElementType outer = match.root().result()->type().element();
  // 1 and 1.0 are different texts. Conversions to integers wrap around for integers and saturate for floats; both give
  // the same for values that fit.
  if (outer.is_string() && inner != x) return false;
  if (x.is_int() && inner.is_float() && !outer.is_float() && !(outer.is_int() && holds_all_of(outer, x))) return false;
  return holds_all_of(inner, x);
}

// With three constants, pairs could be regrouped for ever.
bool x_is_no_constant(const Match& match) { return !constant_of(match.value("x")); }

// Integers to a float power are computed in f64.
bool power_stays_exact(const Match& match) {
  const Op& root = match.root();
  return root.operand(0)->type().element().is_float() || root.operand(1)->type().element().is_int();
}

// Neither NaN, nor a zero whose sign would depend on the order of comparisons.
bool bounds_are_plain(const Match& match) {
  for (const char* name : {"k0", "k1", "k2", "k3"}) {
    const Tensor& bound = match.constant(name);
    const double value = bound.size() == 1 ? bound.double_at(0) : NAN;
    if (std::isnan(value) || (value == 0 && std::signbit(value))) return false;
  }
  return true;
}

const Rule kRules[] = {
    // Neutral elements.
    {"Add(x, 0)", "x", ints, "floats: -0 + 0 is 0"},
    {"Add(x, -0)", "x", ieee, ""},
    {"Sub(x, 0)", "x", ints_and_ieee, "-0 - 0 is -0"},
    {"Mul(x, 1)", "x", ints_and_ieee, ""},
    {"Div(x, 1)", "x", ints_and_ieee, ""},
    {"Pow(x, 1)", "x", ints, "floats: the power of a NaN may have another sign", power_stays_exact},
    {"BitwiseOr(x, 0)", "x", ints, ""},
    {"BitwiseXor(x, 0)", "x", ints, ""},
    {"BitwiseAnd(x, -1)", "x", signed_ints, "all bits"},
    {"And(x, true)", "x", booleans, ""},
    {"Or(x, false)", "x", booleans, ""},
    {"Xor(x, false)", "x", booleans, ""},

    // Absorbing elements, and terms that cancel.
    {"Mul(x, 0)", "0", ints, "floats: NaN and infinity times 0 are NaN, -1 * 0 is -0"},
    {"BitwiseAnd(x, 0)", "0", ints, ""},
    {"And(x, false)", "false", booleans, ""},
    {"Or(x, true)", "true", booleans, ""},
    {"Pow(x, 0)", "1", ints_and_ieee, "NaN ^ 0 is 1, as in C"},
    {"Sub(x, x)", "0", ints, "floats: NaN - NaN and infinity - infinity are NaN"},
    {"BitwiseXor(x, x)", "0", ints, ""},
    {"Xor(x, x)", "false", booleans, ""},
    {"Sub(Add(x, y), x)", "y", ints, "modulo 2^bits; floats round the sum"},
    {"Sub(x, Sub(x, y))", "y", ints, "modulo 2^bits"},
    {"Add(Sub(x, y), y)", "x", ints, "modulo 2^bits"},
    {"Sub(x, Add(x, y))", "Neg(y)", signed_ints, "unsigned ones have no Neg"},
    {"Sub(Sub(x, y), x)", "Neg(y)", signed_ints, "unsigned ones have no Neg"},
    {"Equal(x, x)", "true", ints_and_booleans, "floats: NaN differs from itself"},
    {"Less(x, x)", "false", numbers, ""},
    {"Greater(x, x)", "false", numbers, ""},
    {"LessOrEqual(x, x)", "true", ints, "floats: false for NaN"},
    {"GreaterOrEqual(x, x)", "true", ints, "floats: false for NaN"},

    // Idempotent operators and involutions.
    {"Neg(Neg(x))", "x", ints_and_ieee, ""},
    {"Not(Not(x))", "x", booleans, ""},
    {"BitwiseNot(BitwiseNot(x))", "x", ints, ""},
    {"Relu(Relu(x))", "Relu(x)", numbers, ""},
    {"Abs(Abs(x))", "Abs(x)", numbers, ""},
    {"Abs(Neg(x))", "Abs(x)", signed_ints_and_ieee, ""},
    {"Relu(Abs(x))", "Abs(x)", floats, "integers: |least| is negative"},
    {"Sign(Sign(x))", "Sign(x)", numbers, ""},
    {"Ceil(Ceil(x))", "Ceil(x)", floats, ""},
    {"Ceil(Floor(x))", "Floor(x)", floats, ""},
    {"Ceil(Round(x))", "Round(x)", floats, ""},
    {"Floor(Ceil(x))", "Ceil(x)", floats, ""},
    {"Floor(Floor(x))", "Floor(x)", floats, ""},
    {"Floor(Round(x))", "Round(x)", floats, ""},
    {"Round(Ceil(x))", "Ceil(x)", floats, ""},
    {"Round(Floor(x))", "Floor(x)", floats, ""},
    {"Round(Round(x))", "Round(x)", floats, ""},
    {"Min(x, x)", "x", numbers, ""},
    {"Max(x, x)", "x", numbers, ""},
    {"Max(Max(x, y), x)", "Max(x, y)", ints, "floats: which zero it is"},
    {"Min(Min(x, y), x)", "Min(x, y)", ints, "floats: which zero it is"},
    {"Min(Max(x, y), x)", "x", ints, "floats: NaN of y"},
    {"Max(Min(x, y), x)", "x", ints, "floats: NaN of y"},
    {"And(x, x)", "x", booleans, ""},
    {"Or(x, x)", "x", booleans, ""},
    {"BitwiseAnd(x, x)", "x", ints, ""},
    {"BitwiseOr(x, x)", "x", ints, ""},
    {"Cast(Cast(x) as inner)", "Cast(x)", all, "the inner type holds every value of x's", inner_cast_loses_nothing},
    {"Clip(Clip(x, k0, k1), k2, k3)", "Clip(x, Clip(k0, k2, k3), Clip(k1, k2, k3))", numbers,
     "clipping keeps order, so that the bounds may be clipped instead; -0 is left out: which zero wins depends on the "
     "order of comparisons",
     bounds_are_plain},
    {"Clip(x, _, _)", "x", numbers, ""},

    // Simpler operators.
    {"Sub(0, x)", "Neg(x)", signed_ints, "floats: 0 - 0 is 0, its negative is -0"},
    {"Mul(x, -1)", "Neg(x)", signed_ints, "floats: a NaN keeps its sign in a product"},
    {"Add(x, Neg(y))", "Sub(x, y)", ints, "floats: the sign of a NaN in y"},
    {"Sub(x, Neg(y))", "Add(x, y)", ints, "floats: the sign of a NaN in y"},
    {"Mul(Neg(x), Neg(y))", "Mul(x, y)", ints, "floats: the sign of a NaN"},
    {"Pow(x, 2)", "Mul(x, x)", ints_and_ieee, "the square is rounded once in both", power_stays_exact},
    {"Sum(x, y)", "Add(x, y)", ints_and_ieee, "a sum of two is rounded once in both"},
    {"Not(Less(x, y))", "GreaterOrEqual(x, y)", ints, "floats: both are false for NaN"},
    {"Not(LessOrEqual(x, y))", "Greater(x, y)", ints, "floats: both are false for NaN"},
    {"Not(Greater(x, y))", "LessOrEqual(x, y)", ints, "floats: both are false for NaN"},
    {"Not(GreaterOrEqual(x, y))", "Less(x, y)", ints, "floats: both are false for NaN"},
    {"Xor(x, true)", "Not(x)", booleans, ""},

    // Selection.
    {"Where(true, x, y)", "x", all, ""},
    {"Where(false, x, y)", "y", all, ""},
    {"Where(c, x, x)", "x", all, ""},
    {"Where(c, Where(c, x, y), z)", "Where(c, x, z)", all, ""},
    {"Where(c, x, Where(c, y, z))", "Where(c, x, z)", all, ""},
    {"Where(Not(c), x, y)", "Where(c, y, x)", all, ""},

    // Combining constants. Integers only: sums and products of floats round differently when regrouped.
    {"Add(Add(x, k0), k1)", "Add(x, Add(k0, k1))", ints, "", x_is_no_constant},
    {"Mul(Mul(x, k0), k1)", "Mul(x, Mul(k0, k1))", ints, "", x_is_no_constant},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

}  // namespace tenon::algebra
