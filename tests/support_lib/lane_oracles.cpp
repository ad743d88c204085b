#include <support_lib/lane_oracles.hpp>

#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include <support_lib/math_functions.hpp>
#include <tenon/support/check.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::test {
namespace {

// ---- Functions of f32, in f64 ----

struct Singly {};
std::vector<MathCase> list_math() {
  std::vector<MathCase> cases;
  each_math_function<Singly>([&](std::string_view op, const Attributes& attributes, auto function) {
    if constexpr (std::is_invocable_v<decltype(function), double>)
      cases.push_back({op, attributes, function, nullptr});
    else
      cases.push_back({op, attributes, nullptr, function});
  });
  return cases;
}

// ---- Exact ones ----

template <size_t kBytes>
using Bits = std::conditional_t<kBytes == 8, uint64_t, uint32_t>;
template <class T>
T from_bits(uint64_t bits) {
  return std::bit_cast<T>(static_cast<Bits<sizeof(T)>>(bits));
}

// Applies f to the C++ type of the lanes; returns the bits of the result, or 0 and 1 for truth values.
template <auto kF, size_t kOperands>
uint64_t on_lanes(ElementType type, const uint64_t* operands) {
  uint64_t result = 0;
  const auto apply = [&]<class T>() {
    if constexpr (sizeof(T) >= 4) {  // lanes are no narrower
      const auto value = [&] {
        if constexpr (kOperands == 1) return kF(from_bits<T>(operands[0]));
        if constexpr (kOperands == 2) return kF(from_bits<T>(operands[0]), from_bits<T>(operands[1]));
        if constexpr (kOperands == 3)
          return kF(from_bits<T>(operands[0]), from_bits<T>(operands[1]), from_bits<T>(operands[2]));
      }();
      if constexpr (std::is_same_v<decltype(value), const bool>)
        result = value ? 1 : 0;
      else
        result = std::bit_cast<Bits<sizeof(T)>>(static_cast<T>(value));
    }
  };
  TENON_CHECK(dispatch_number(type, apply), "no lanes of ", type);
  return result;
}

template <class T>
auto bits_of(T value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else
    return value;
}
constexpr auto kAdd = [](auto a, auto b) { return bits_of(a) + bits_of(b); };
constexpr auto kSub = [](auto a, auto b) { return bits_of(a) - bits_of(b); };
constexpr auto kMul = [](auto a, auto b) { return bits_of(a) * bits_of(b); };
constexpr auto kNeg = [](auto x) {
  if constexpr (std::is_integral_v<decltype(x)>)
    return decltype(bits_of(x))(0) - bits_of(x);
  else
    return -x;
};
constexpr auto kAbs = [](auto x) {
  if constexpr (std::is_integral_v<decltype(x)>)
    return x < 0 ? decltype(bits_of(x))(0) - bits_of(x) : bits_of(x);
  else
    return std::fabs(x);
};
constexpr auto kDiv = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return T{0};
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(T{0} - bits_of(a));
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
};
constexpr auto kFmod = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return T{0};
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
};
constexpr auto kMod = [](auto a, auto b) {
  using T = decltype(a);
  const T remainder = kFmod(a, b);
  if constexpr (std::is_unsigned_v<T>)
    return remainder;
  else
    return remainder != 0 && (remainder < 0) != (b < 0) ? static_cast<T>(remainder + b) : remainder;
};
constexpr auto kPow = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    if (b < 0) return a == 1 ? T{1} : a == static_cast<T>(-1) ? (b % 2 == 0 ? T{1} : static_cast<T>(-1)) : T{0};
    uint64_t result = 1, power = static_cast<uint64_t>(a);
    for (uint64_t left = static_cast<uint64_t>(b); left != 0; left /= 2, power *= power)
      if (left % 2 != 0) result *= power;
    return static_cast<T>(result);
  } else {
    return static_cast<T>(std::pow(a, b));
  }
};
constexpr auto kMax = [](auto a, auto b) { return a > b || a != a ? a : b; };
constexpr auto kMin = [](auto a, auto b) { return a < b || a != a ? a : b; };
constexpr auto kClampLow = [](auto x, auto low) { return x < low ? low : x; };
constexpr auto kClampHigh = [](auto x, auto high) { return x > high ? high : x; };
constexpr auto kFma = [](auto a, auto b, auto c) {
  if constexpr (std::is_integral_v<decltype(a)>)
    return a;
  else
    return std::fma(a, b, c);
};
// For floats only, given as a function of double that is exact for f32 as well.
template <double (*kF)(double)>
constexpr auto kRounded = [](auto x) { return static_cast<decltype(x)>(kF(static_cast<double>(x))); };
double square_root(double x) { return std::sqrt(x); }
double down(double x) { return std::floor(x); }
double up(double x) { return std::ceil(x); }
double cut(double x) { return std::trunc(x); }
double nearest(double x) { return std::rint(x); }
// For integers only.
template <auto kF>
constexpr auto kBitwise = []([[maybe_unused]] auto... x) {
  using T = std::common_type_t<decltype(x)...>;
  if constexpr (std::is_integral_v<T>)
    return kF(x...);
  else
    return T{0};
};
constexpr auto kAnd = [](auto a, auto b) { return a & b; };
constexpr auto kOr = [](auto a, auto b) { return a | b; };
constexpr auto kXor = [](auto a, auto b) { return a ^ b; };
constexpr auto kNot = [](auto a) { return ~a; };
constexpr auto kShiftLeft = [](auto a, auto b) {
  return bits_of(b) >= sizeof a * 8 ? bits_of(a) * 0 : bits_of(a) << bits_of(b);
};
constexpr auto kShiftRight = [](auto a, auto b) {
  return bits_of(b) >= sizeof a * 8 ? bits_of(a) * 0 : bits_of(a) >> bits_of(b);
};

const ExactCase kExact[] = {
    {"Add", "TT>T", on_lanes<kAdd, 2>},
    {"Sub", "TT>T", on_lanes<kSub, 2>},
    {"Mul", "TT>T", on_lanes<kMul, 2>},
    {"Div", "TT>T", on_lanes<kDiv, 2>},
    {"Mod", "TT>T", on_lanes<kMod, 2>},
    {"Fmod", "TT>T", on_lanes<kFmod, 2>},
    {"Pow", "TT>T", on_lanes<kPow, 2>},
    {"Fma", "TTT>T", on_lanes<kFma, 3>},
    {"Neg", "T>T", on_lanes<kNeg, 1>},
    {"Abs", "T>T", on_lanes<kAbs, 1>},
    {"Sqrt", "T>T", on_lanes<kRounded<square_root>, 1>},
    {"Floor", "T>T", on_lanes<kRounded<down>, 1>},
    {"Ceil", "T>T", on_lanes<kRounded<up>, 1>},
    {"Trunc", "T>T", on_lanes<kRounded<cut>, 1>},
    {"RoundEven", "T>T", on_lanes<kRounded<nearest>, 1>},
    {"Max", "TT>T", on_lanes<kMax, 2>},
    {"Min", "TT>T", on_lanes<kMin, 2>},
    {"ClampLow", "TT>T", on_lanes<kClampLow, 2>},
    {"ClampHigh", "TT>T", on_lanes<kClampHigh, 2>},
    {"Equal", "TT>b", on_lanes<[](auto a, auto b) { return a == b; }, 2>},
    {"NotEqual", "TT>b", on_lanes<[](auto a, auto b) { return a != b; }, 2>},
    {"Less", "TT>b", on_lanes<[](auto a, auto b) { return a < b; }, 2>},
    {"LessOrEqual", "TT>b", on_lanes<[](auto a, auto b) { return a <= b; }, 2>},
    {"Greater", "TT>b", on_lanes<[](auto a, auto b) { return b < a; }, 2>},
    {"GreaterOrEqual", "TT>b", on_lanes<[](auto a, auto b) { return b <= a; }, 2>},
    {"And", "TT>T", [](ElementType, const uint64_t* x) { return x[0] & x[1]; }},
    {"Or", "TT>T", [](ElementType, const uint64_t* x) { return x[0] | x[1]; }},
    {"Xor", "TT>T", [](ElementType, const uint64_t* x) { return x[0] ^ x[1]; }},
    {"Not", "T>T", [](ElementType, const uint64_t* x) { return x[0] ^ 1; }},
    {"Where", "bTT>T", [](ElementType, const uint64_t* x) { return x[0] != 0 ? x[1] : x[2]; }},
    {"BitwiseAnd", "TT>T", on_lanes<kBitwise<kAnd>, 2>},
    {"BitwiseOr", "TT>T", on_lanes<kBitwise<kOr>, 2>},
    {"BitwiseXor", "TT>T", on_lanes<kBitwise<kXor>, 2>},
    {"BitwiseNot", "T>T", on_lanes<kBitwise<kNot>, 1>},
    {"ShiftLeft", "TT>T", on_lanes<kBitwise<kShiftLeft>, 2>},
    {"ShiftRight", "TT>T", on_lanes<kBitwise<kShiftRight>, 2>},
};

}  // namespace

std::span<const MathCase> math_cases() {
  static const std::vector<MathCase> kCases = list_math();
  return kCases;
}
std::span<const ExactCase> exact_cases() { return kExact; }

}  // namespace tenon::test
