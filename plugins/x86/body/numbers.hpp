// Value ranges of the numbers that a body computes, and rewrites that follow from them.
#pragma once
#include <limits>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/support/inline_vector.hpp>

namespace tenon::x86 {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The range of an f32 or 32-bit integer value: its numbers are from `low` to `high`, infinities included; `low` 0 that
// is not -0 means that there is no -0. It is NaN only where one of the values `only` is, and it is NaN wherever one of
// the values `where` is. Both lists are ascending; `only` contains the value itself when nothing better is known. For
// f32 values only: nonzero magnitudes are at least `least`, and finite ones at most `most`.
// For a condition: it holds exactly where the number of value `of` is from `low` to `high`. Where `of` is -1 it is a
// constant or unknown: one of 0 and 1, as these say.
struct Numbers {
  static constexpr size_t kMostIds = 8;  // size of a set; the information of further ids is dropped
  using Ids = InlineVector<snippet::ValueId, kMostIds>;
  static constexpr double kLeast = 0x1p-149, kMost = std::numeric_limits<float>::max();
  double low = 0, high = 0;
  Ids only = {}, where = {};
  snippet::ValueId of = -1;
  double least = kLeast, most = kMost;
};

// For each value of a verified body. Values of other types, and the results of most reductions, are any number of their
// type.
std::vector<Numbers> numbers_of(const snippet::Body& body);

// The same results, bit for bit except for which NaN it is, with fewer instructions:
//
//   Max a, b          ClampLow b, a      a is NaN only where b is: one instruction, which gives b there
//                     ClampLow a, b      b only where a is, and no two zeros of different signs meet
//   Min a, b          ClampHigh          likewise
//   Convert x         ConvertInRange x {number = 1}   a float that is never NaN, to a 32-bit integer that holds all of
//                     its range
//                     Wrap ConvertInRange x   where it may be NaN, of what 8 or 16 bits hold
//   ConvertInRange RoundEven x   RoundInRange x
//   Convert u, to floats; Less u, v ...   with attribute `fits_i32`, where unsigned u and v do
//   Exp x             with attribute `below_1`, where x is at most 0, as after subtracting the maximum of its row
//   Pow x, c          PowBy x {exponent}, the bits of a constant that is finite and not 0, and not whole where x may be
//                     negative; `no_sign` where x is not below 0, `normal` where it is no denormal either
//   Sqrt x            with attribute `moderate`, where |x| is 2^-100 or more, or 0, infinite or NaN
//   Div x, s          with attribute `moderate`, where |s| is from 2^-126 to 2^122, or 0, infinite or NaN
//   Abs x, ClampLow x, c, Max x, y, Where c, x, x ...   x, where no other result is possible
//   And c, d; Or c, d  c, where d adds nothing
//   Where c, x, y     x or y, where c is known, for example from bits that an integer cannot have; a Spread of one that
//                     varies over fewer dims
//   Where c, (Where d, a, b), x    Where c, a, x, where c implies d; similarly where c excludes d
//   Where c, (Where d, a, x), x    Where (And c, d), a, x; similarly Where c, x, (Where d, x, a) with Or, and with the
//                     negation of c or d, if that is computed for fewer elements
//   BitwiseAnd x, (BitwiseNot x)   0
//   BitwiseOr x, (BitwiseNot x); BitwiseXor x, (BitwiseNot x)   all ones
//   a value with a single possible number   a Spread of a Scalar
//   Neg (Spread x) ...           Spread (Neg x): an expression of such values alone is computed for as few elements
//   Less Sqrt x, c ... Less x, c', where x is not below 0 and nothing else reads the root
//   Less (Convert i), c ... Less i, c', where nothing else reads the floats and they are exact; also for two integers
//
// It also applies the identities of identities.hpp, and removes nodes that nothing reads any more. Products that must
// keep their rounding, because more than a sum reads them, get the attribute `rounded` where a later rewrite would hide
// that.
snippet::Body with_fewer_checks(const snippet::Body& body);

}  // namespace tenon::x86
