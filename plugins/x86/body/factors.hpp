// What quotients by one divisor are made of, as products (passes/standing_divisors.cpp says why, and how exact they
// are), of registers or values of a body: both are numbers.
#pragma once
#include <array>

#include <tenon/support/name.hpp>

namespace tenon::x86 {

// `scale` -1: by none.
struct QuotientParts {
  int scale = -1, high = -1, low = -1;
};

// `make` of an operator and its operands, `number` of a float. `moderate`: see body/numbers.hpp.
template <class Make, class Number>
QuotientParts parts_of_divisor(int divisor, bool moderate, const Make& make, const Number& number) {
  static const Name kDiv("Div"), kMul("Mul"), kFma("Fma"), kFnma("Fnma"), kClampLow("ClampLow"), kScale("DivisorScale");
  const int below_1 = number(1 - 0x1p-23f), one = number(1), least_lack = number(0x1p-60f);
  const int scale = moderate ? -1 : make(kScale, {divisor});
  const int scaled = moderate ? divisor : make(kMul, {divisor, scale});
  const int high = make(kDiv, {below_1, scaled});
  const int lack = make(kClampLow, {least_lack, make(kFnma, {high, scaled, one})});
  const int part = make(kMul, {lack, high});
  return {scale, high, make(kFma, {part, lack, part})};
}

// The quotient is Fma of these.
template <class Make>
std::array<int, 3> factors_of_quotient(int x, const QuotientParts& by, const Make& make) {
  static const Name kMul("Mul");
  if (by.scale >= 0) x = make(kMul, {x, by.scale});
  return {x, by.high, make(kMul, {x, by.low})};
}

}  // namespace tenon::x86
