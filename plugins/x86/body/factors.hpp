// The factors that replace a division by products (passes/standing_divisors.cpp derives them and states their
// accuracy), as registers or as values of a body; both are numbers. Where the divisor is moderate (body/numbers.hpp),
// the quotient of x is Fma x, high, (Mul x, low); elsewhere it is DivStanding of these.
#pragma once
#include "x86/names.hpp"

namespace tenon::x86 {

struct QuotientParts {
  int high = -1, low = -1;
};

// `make` returns the result of an operator on operands, `number` a float constant.
template <class Make, class Number>
QuotientParts parts_of_divisor(int divisor, const Make& make, const Number& number) {
  static const Name kFnma("Fnma");
  const int below_1 = number(1 - 0x1p-23f), one = number(1), least_lack = number(0x1p-60f);
  const int high = make(kDiv, {below_1, divisor});
  const int lack = make(kClampLow, {least_lack, make(kFnma, {high, divisor, one})});
  const int part = make(kMul, {lack, high});
  return {high, make(kFma, {part, lack, part})};
}

}  // namespace tenon::x86
