// Tables for odd functions that become level: erf and tanh of an odd polynomial, made for a kernel's own constants.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include <tenon/ir/attribute.hpp>

#include "x86/isa.hpp"

namespace tenon::x86 {

// f(x) = scale outer(p[0] x + p[1] x^3 + p[2] x^5 + p[3] x^7), no p below 0 and one above: odd, rising, `scale`, which
// is above 0, for large x.
struct OddFunction {
  enum class Outer : uint8_t { erf, tanh };
  Outer outer = Outer::erf;
  std::array<float, 4> inner = {};
  float scale = 1;
  bool operator==(const OddFunction&) const = default;

  double operator()(double x) const;
  double inner_of(double x) const;
};

// f of 0 and above by polynomials, one for each interval. Interval k, of 0 to the last one, lies around k step, and its
// polynomial is in x - k step, where the step is a power of two: finding it then takes additions alone. Else step is 0
// and the polynomial is in x per_x - k, from -1/2 to 1/2; of interval 0 from 0. In the last one, around `end`, f
// is `scale`.
struct OddTable {
  float step = 0, per_x = 0, end = 0;
  size_t intervals = 0;
  std::vector<float> terms;  // [power][interval]
  // [interval]: scale less the term of power 0, as much more as keeps scale less the polynomial, in f32, from being
  // below 0.
  std::vector<float> lacks;
  size_t powers() const { return terms.size() / intervals; }
};

// How far code of a table may be from f, times scale.
constexpr double kOddTableError = 0x1p-23;

// What is summed with 1 needs no small numbers right in all their digits: the polynomials lie within 7/8 of 2^-24 of f,
// and f as computed in f32 within kOddTableError (tests/x86/tabulated_test.cpp), both times scale. Of as few powers as
// that takes, by Chebyshev's series of each interval, which differs from the best polynomial by little (Trefethen,
// Approximation Theory and Approximation Practice, chapter 16). Steps are powers of two where that takes no more
// powers. None where `most` powers do not suffice, or where f rises beyond what floats can scale.
std::optional<OddTable> odd_table(const OddFunction& function, Isa isa, size_t most);
// As many powers as pay beside Erf and Tanh by themselves. A thread keeps the last one.
std::optional<OddTable> odd_table(const OddFunction& function, Isa isa);

// As instructions, with attribute `of`: p, without zeros behind. TabulatedErf and TabulatedTanh are f of scale 1;
// TabulatedErfGate and TabulatedTanhGate, with `scale`, a power of two, are scale x + x f(x): 0 for small x, 2 scale x
// for large x.
Name odd_function_name(OddFunction::Outer outer);
Name odd_gate_name(OddFunction::Outer outer);
Attributes odd_function_attributes(const OddFunction& function);
Attributes odd_gate_attributes(const OddFunction& function);
OddFunction odd_function_of(OddFunction::Outer outer, const Attributes& attributes);

}  // namespace tenon::x86
