// Functions of f32 lanes by piecewise polynomials on 16 or 32 (avx512) or 8 (avx2) intervals, in the distance from a
// point of the interval. Coefficients are looked up in registers, one permutation each. piecewise_tables.hpp has the
// tables, with their errors and sources.
#pragma once
#include <array>
#include <span>

#include "x86/emitters/odd_table.hpp"
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

// Intervals that grow with x: high mantissa bits and low exponent bits of x + bias are the index.
template <size_t kTerms, size_t kIntervals>
struct GrownPieces {
  float bias;
  uint8_t shift;  // of the bits of x + bias, so that the index is in the lowest ones
  std::array<float, kIntervals> centers;
  std::array<std::array<float, kIntervals>, kTerms> terms;  // [k][index]: of (x - center)^k
};
// Intervals of equal length, centred at multiples of `step`; the index is the multiple. avx512 computes the distance
// faster where the step is a power of two, from 2^-15 to 1.
template <size_t kTerms, size_t kIntervals>
struct EvenPieces {
  float step;
  std::array<std::array<float, kIntervals>, kTerms> terms;
};

// Borrows a table of either kind.
struct PiecesView {
  float step = 0, per_x = 0, bias = 0;
  uint8_t shift = 0;
  size_t intervals;
  std::span<const float> centers, terms;
  bool below_zero = false;  // x and the centres are negative or 0; only for the intervals of an OddTable

  template <size_t kTerms, size_t kIntervals>
  constexpr PiecesView(const GrownPieces<kTerms, kIntervals>& pieces)
      : bias(pieces.bias),
        shift(pieces.shift),
        intervals(kIntervals),
        centers(pieces.centers),
        terms(pieces.terms[0].data(), kTerms * kIntervals) {}
  template <size_t kTerms, size_t kIntervals>
  constexpr PiecesView(const EvenPieces<kTerms, kIntervals>& pieces)
      : step(pieces.step), intervals(kIntervals), terms(pieces.terms[0].data(), kTerms * kIntervals) {}
  PiecesView(const OddTable& table)
      : step(table.step), per_x(table.per_x), intervals(table.intervals), terms(table.terms) {}
};

// out = the polynomial of the interval that contains x (0 or above, or below_zero). NaN gives NaN. Takes three scratch
// vectors; out differs from x.
void piecewise_polynomial(VectorCode& c, const Vec& out, const Vec& x, const PiecesView& pieces);

}  // namespace tenon::x86
