#include "opencl/emitters/functions.hpp"
#include "opencl/emitters/pattern.hpp"

namespace tenon::opencl {
namespace {

using codegen::LaneTypes;

struct Function {
  std::string_view name;
  LaneTypes types;
  std::string_view text;
};

// ---- Integers: the device never divides by 0, nor the least number by -1 ----

constexpr std::string_view kDivideSigned = R"($T @($T a, $T b) {
  const $I zero = b == ($T)0, minus = b == ($T)-1;
  const $T quotient = a / select(b, ($T)1, zero | minus);
  return select(select(quotient, as_$T(($U)0 - as_$U(a)), minus), ($T)0, zero);
}
)";
constexpr std::string_view kDivideUnsigned = R"($T @($T a, $T b) {
  const $I zero = b == ($T)0;
  return select(a / select(b, ($T)1, zero), ($T)0, zero);
}
)";
constexpr std::string_view kRemainderSigned = R"($T @($T a, $T b) {
  return a % select(b, ($T)1, (b == ($T)0) | (b == ($T)-1));
}
)";
constexpr std::string_view kRemainderUnsigned = R"($T @($T a, $T b) {
  return a % select(b, ($T)1, b == ($T)0);
}
)";
constexpr std::string_view kModulusSigned = R"($T @($T a, $T b) {
  const $T r = @remainder(a, b);
  return select(r, as_$T(as_$U(r) + as_$U(b)), (r != ($T)0) & ((r ^ b) < ($T)0));
}
)";
// By repeated squaring. Negative exponents: 1 for base 1, 1 or -1 for base -1, else 0.
constexpr std::string_view kPowerUnsigned = R"($T @($T a, $T b) {
  $T result = ($T)1;
  while (any(b != ($T)0)) {
    result = select(result, result * a, (b & ($T)1) != ($T)0);
    a *= a;
    b >>= ($T)1;
  }
  return result;
}
)";
constexpr std::string_view kPowerSigned = R"($T @($T a, $T b) {
  const $I negative = b < ($T)0;
  $U result = ($U)1, power = as_$U(a), left = as_$U(select(b, ($T)0, negative));
  while (any(left != ($U)0)) {
    result = select(result, result * power, (left & ($U)1) != ($U)0);
    power *= power;
    left >>= ($U)1;
  }
  const $T minus = select(($T)1, ($T)-1, (b & ($T)1) != ($T)0);
  const $T unit = select(select(($T)0, ($T)1, a == ($T)1), minus, a == ($T)-1);
  return select(as_$T(result), unit, negative);
}
)";

// ---- Floats ----

// One lane at a time: PoCL's fmod and pow of double8 are wrong where lanes differ much (3.1: pow(4.3, -2.1) is 3.68
// beside zeros).
constexpr std::string_view kRemainderFloat = R"($T @($T a, $T b) {
  $S x[$N], y[$N];
  vstore$N(a, 0, x);
  vstore$N(b, 0, y);
  for (int i = 0; i < $N; ++i) x[i] = fmod(x[i], y[i]);
  return vload$N(0, x);
}
)";
constexpr std::string_view kPowerFloat = R"($T @($T a, $T b) {
  $S x[$N], y[$N];
  vstore$N(a, 0, x);
  vstore$N(b, 0, y);
  for (int i = 0; i < $N; ++i) x[i] = pow(x[i], y[i]);
  return vload$N(0, x);
}
)";
constexpr std::string_view kModulusFloat = R"($T @($T a, $T b) {
  const $T r = @remainder(a, b);
  return select(r, r + b, (r != ($T)0) & ((r < ($T)0) != (b < ($T)0)));
}
)";
// The exponential of a number that is not positive neither overflows nor causes cancellation.
constexpr std::string_view kSigmoid = R"($T @($T x) {
  const $T e = exp(-fabs(x));
  return select(($T)1, e, x < ($T)0) / (($T)1 + e);
}
)";
constexpr std::string_view kSoftplus = R"($T @($T x) {
  return fmax(x, ($T)0) + log1p(exp(-fabs(x)));
}
)";
constexpr std::string_view kMish = R"($T @($T x) {
  return x * tanh(@softplus(x));
}
)";
// By erfc, since 1 + erf loses digits by cancellation for negative x.
constexpr std::string_view kGelu = R"($T @($T x) {
  return ($T)0.5 * x * erfc(x * ($T)-0.70710678118654752440);
}
)";
// x / 2 (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
constexpr std::string_view kGeluByTanh = R"($T @($T x) {
  return x * @sigmoid(($T)1.5957691216057307 * (x + ($T)0.044715 * x * x * x));
}
)";

// |x|^y = exp(y log |x|), accurate in doubles to well below an ulp of f32 wherever the result is an f32. Odd y keep the
// sign; negative numbers only have integer powers.
constexpr std::string_view kPowerByExp = R"($T @($T x, $T y) {
  const $T size = exp(y * log(fabs(x))), half_y = ($T)0.5 * y;
  const $I whole = rint(y) == y, odd = whole & (rint(half_y) != half_y);
  const $T with_sign = select(size, -size, odd & (as_$I(x) < ($I)0));
  const $T number = select(with_sign, ($T)NAN, (x < ($T)0) & (x != ($T)-INFINITY) & ~whole);
  return select(number, ($T)1, (y == ($T)0) | (x == ($T)1) | ((x == ($T)-1) & isinf(y)));
}
)";

// ---- Narrow floats, as bits in lanes of f32 ----

// The nearest f16, ties to even. Below 2^-14, f16 are multiples of 2^-24, which is the ulp of 0.5 in f32.
constexpr std::string_view kToHalf = R"(ushort$N @(float$N x) {
  const uint$N bits = as_uint$N(x), size = bits & 0x7fffffffu;
  const uint$N small = as_uint$N(fabs(x) + 0.5f) - 0x3f000000u;
  const uint$N normal = min((size + 0xfffu + ((size >> 13) & 1u) - 0x38000000u) >> 13, (uint$N)0x7c00u);
  const uint$N number = select(normal, small, size < 0x38800000u);
  return convert_ushort$N(select(number, (uint$N)0x7e00u, size > 0x7f800000u) | ((bits >> 16) & 0x8000u));
}
)";
constexpr std::string_view kFromHalf = R"(float$N @(ushort$N half_bits) {
  const uint$N bits = convert_uint$N(half_bits), size = bits & 0x7fffu;
  const uint$N normal = (size << 13) + 0x38000000u;
  const uint$N number = select(normal, as_uint$N(convert_float$N(size) * 0x1p-24f), size < 0x400u);
  const uint$N all = select(number, (size << 13) | 0x7f800000u, size >= 0x7c00u);
  return as_float$N(all | ((bits & 0x8000u) << 16));
}
)";
constexpr std::string_view kToBfloat = R"(ushort$N @(float$N x) {
  const uint$N bits = as_uint$N(x);
  const uint$N number = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return convert_ushort$N(select(number, (bits >> 16) | 0x40u, (bits & 0x7fffffffu) > 0x7f800000u));
}
)";
constexpr std::string_view kFromBfloat = R"(float$N @(ushort$N bits) {
  return as_float$N(convert_uint$N(bits) << 16);
}
)";
// Rounds doubles in one step: normal results, with 10 or 7 fraction bits, by their bits; results below the least normal
// number by adding a number with the required ulp.
constexpr std::string_view kRoundHalfDouble = R"(double$N @(double$N x) {
  const ulong$N bits = as_ulong$N(x), size = bits & 0x7ffffffffffffffful;
  const ulong$N normal = (size + 0x1fffffffffful + ((size >> 42) & 1ul)) & ~0x3fffffffffful;
  const double$N small = (fabs(x) + 0x1p28) - 0x1p28;
  const double$N number = select(as_double$N(normal), small, fabs(x) < 0x1p-14);
  const double$N all = select(number, (double$N)INFINITY, number > 65504.0);
  return copysign(select(all, x, isnan(x)), x);
}
)";
constexpr std::string_view kRoundBfloatDouble = R"(double$N @(double$N x) {
  const ulong$N bits = as_ulong$N(x), size = bits & 0x7ffffffffffffffful;
  const ulong$N normal = (size + 0xffffffffffful + ((size >> 45) & 1ul)) & ~0x1ffffffffffful;
  const double$N small = (fabs(x) + 0x1p-81) - 0x1p-81;
  const double$N number = select(as_double$N(normal), small, fabs(x) < 0x1p-126);
  const double$N all = select(number, (double$N)INFINITY, number > 0x1.fep127);
  return copysign(select(all, x, isnan(x)), x);
}
)";

constexpr Function kFunctions[] = {
    {"divide", kSigned, kDivideSigned},
    {"divide", kUnsigned, kDivideUnsigned},
    {"remainder", kSigned, kRemainderSigned},
    {"remainder", kUnsigned, kRemainderUnsigned},
    {"remainder", codegen::kFloatLanes, kRemainderFloat},
    {"modulus", kSigned, kModulusSigned},
    {"modulus", codegen::kFloatLanes, kModulusFloat},
    {"power", kSigned, kPowerSigned},
    {"power", kUnsigned, kPowerUnsigned},
    {"power", codegen::kFloatLanes, kPowerFloat},
    {"power_by_exp", {kF64}, kPowerByExp},
    {"sigmoid", codegen::kFloatLanes, kSigmoid},
    {"softplus", codegen::kFloatLanes, kSoftplus},
    {"mish", codegen::kFloatLanes, kMish},
    {"gelu", codegen::kFloatLanes, kGelu},
    {"gelu_by_tanh", codegen::kFloatLanes, kGeluByTanh},
    {"to_half", codegen::kF32Lanes, kToHalf},
    {"from_half", codegen::kF32Lanes, kFromHalf},
    {"to_bfloat", codegen::kF32Lanes, kToBfloat},
    {"from_bfloat", codegen::kF32Lanes, kFromBfloat},
    {"round_half", {kF64}, kRoundHalfDouble},
    {"round_bfloat", {kF64}, kRoundBfloatDouble},
};

}  // namespace

std::string_view function_text(std::string_view name, ElementType element) {
  for (const Function& function : kFunctions)
    if (function.name == name && function.types.contains(element)) return function.text;
  return {};
}

}  // namespace tenon::opencl
