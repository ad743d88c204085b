// What is known of the numbers that a body computes, and bodies that compute less by it.
#pragma once
#include <limits>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/support/inline_vector.hpp>

namespace tenon::x86 {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of an f32 or 32-bit integer value: its numbers lie from `low` to `high`, infinities included, where `low` 0 that is
// not -0 says that there is no -0. It is NaN only where one of the values `only` is, and wherever one of `where` is:
// both ascending, and the value itself stands in `only` when nothing better is known. Magnitudes that are not 0 are
// `least` and more, and finite ones up to `most`; of f32 values alone.
// Of a condition: it holds exactly where the number of value `of` lies from `low` to `high`. Where `of` is -1 it is one
// of 0 and 1, as they say.
struct Numbers {
  static constexpr size_t kMostIds = 8;  // of a set; what a longer one would say is given up
  using Ids = InlineVector<snippet::ValueId, kMostIds>;
  static constexpr double kLeast = 0x1p-149, kMost = std::numeric_limits<float>::max();
  double low = 0, high = 0;
  Ids only = {}, where = {};
  snippet::ValueId of = -1;
  double least = kLeast, most = kMost;
};

// Of each value of a verified body; those of other types, and what most reductions make, are any
// number of their type.
std::vector<Numbers> numbers_of(const snippet::Body& body);

// The same results, bit for bit but for which NaN it is, of fewer instructions:
//
//   Max a, b          ClampLow b, a      a is NaN only where b is: one instruction, which gives b there
//                     ClampLow a, b      b only where a is, and no two zeros of different signs meet
//   Min a, b          ClampHigh          likewise
//   Convert x         ConvertInRange x {number = 1}   a float that is never NaN, to a 32-bit integer that holds all of
//                     its range
//                     Wrap ConvertInRange x   where it may be NaN, of what 8 or 16 bits hold
//   ConvertInRange RoundEven x   RoundInRange x
//   Convert u, to floats; Less u, v ...   with attribute `fits_i32`, where unsigned u and v do
//   Exp x             with attribute `below_1`, where x is not above 0, as less the greatest of its row
//   Pow x, c          PowBy x {exponent}, the bits of a constant that is finite and not 0, nor whole where x has a
//   sign;
//                     `no_sign` where x is not below 0, `normal` where it is no denormal either
//   Sqrt x            with attribute `moderate`, where |x| is 2^-100 or more, or 0, infinite or NaN
//   Div x, s          with attribute `moderate`, where |s| lies from 2^-126 to 2^122, or is 0, infinite or NaN
//   Abs x, ClampLow x, c, Max x, y, Where c, x, x ...   x, where nothing else can come out
//   And c, d; Or c, d  c, where d says no more
//   Where c, x, y     x or y, where c is known, as by bits that an integer cannot have; of one that varies over fewer
//                     dims a Spread
//   Where c, (Where d, a, b), x    Where c, a, x, where d holds wherever c does; alike where it does not
//   Where c, (Where d, a, x), x    Where (And c, d), a, x; alike Where c, x, (Where d, x, a) by Or, and by what holds
//                     where c or d does not, if that is made for fewer elements
//   BitwiseAnd x, (BitwiseNot x)   0
//   what can be but one number   a Spread of a Scalar
//   Neg (Spread x) ...           Spread (Neg x): what is made of such alone is made for as few elements
//   Less Sqrt x, c ... Less x, c', where nothing else reads the root of what is not below 0
//   Less (Convert i), c ... Less i, c', where nothing else reads the floats and they are exact; alike of two integers
//
// what identities.hpp says, and without nodes that nothing reads then. Products that may not lose their rounding, since
// more than a sum read them, have attribute `rounded` where that may be told no more.
snippet::Body with_fewer_checks(const snippet::Body& body);

}  // namespace tenon::x86
