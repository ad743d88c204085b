// Tables for odd functions with a limit: erf and tanh of an odd polynomial, computed for the constants of a kernel.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include <tenon/ir/attribute.hpp>

#include "x86/isa.hpp"

namespace tenon::x86 {

// f(x) = scale outer(p[0] x + p[1] x^3 + p[2] x^5 + p[3] x^7), with no p negative and one positive: odd and increasing,
// with limit `scale`, which is positive.
struct OddFunction {
  enum class Outer : uint8_t { erf, tanh };
  Outer outer = Outer::erf;
  std::array<float, 4> inner = {};
  float scale = 1;
  bool operator==(const OddFunction&) const = default;

  double operator()(double x) const;
  double inner_of(double x) const;
};

// f on [0, inf) by one polynomial for each interval. Interval k is centred at k step, and its polynomial is in
// x - k step. Here the step is a power of two, so that additions alone find the interval. Otherwise step is 0 and the
// polynomial is in x per_x - k, from -1/2 to 1/2; interval 0 begins at 0. In the last interval, around `end`, f is
// `scale`.
struct OddTable {
  float step = 0, per_x = 0, end = 0;
  size_t intervals = 0;
  std::vector<float> terms;  // [power][interval]
  // [interval]: scale minus the term of power 0, increased so that scale minus the polynomial, in f32, is not negative.
  std::vector<float> lacks;
  size_t powers() const { return terms.size() / intervals; }
};

// Bound of the error of code that uses a table, relative to scale.
constexpr double kOddTableError = 0x1p-23;

// A value that is added to 1 needs no relative accuracy where it is small. The polynomials are within 7/8 of 2^-24 of
// f, and f as computed in f32 is within kOddTableError (tests/x86/tabulated_test.cpp), both relative to scale. The
// number of powers is the least that achieves this with the Chebyshev series of each interval, which is almost the best
// polynomial (Trefethen, Approximation Theory and Approximation Practice, chapter 16). Steps are powers of two where
// that takes no more powers. None where `most` powers do not suffice, or where f increases beyond what floats can
// scale.
std::optional<OddTable> odd_table(const OddFunction& function, Isa isa, size_t most);
// With as many powers as pay compared to Erf and Tanh themselves. Each thread keeps the last table.
std::optional<OddTable> odd_table(const OddFunction& function, Isa isa);

// The instructions have attribute `of`: p, without trailing zeros. TabulatedErf and TabulatedTanh are f with scale 1.
// TabulatedErfGate and TabulatedTanhGate, with attribute `scale`, a power of two, are scale x + x f(x): 0 for x far
// below 0, 2 scale x for large x.
Name odd_function_name(OddFunction::Outer outer);
Name odd_gate_name(OddFunction::Outer outer);
Attributes odd_function_attributes(const OddFunction& function);
Attributes odd_gate_attributes(const OddFunction& function);
OddFunction odd_function_of(OddFunction::Outer outer, const Attributes& attributes);

}  // namespace tenon::x86
