// Algebraic identities: rewrites of bodies that hold for all numbers and leave fewer operators.
#pragma once
#include <vector>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The results are the same, bit for bit except for which NaN it is. An operator becomes another one, or an existing
// value:
//
//   Where (Less a, b), a, b    the minimum of a and b, as ClampHigh b, a, which is also right where one is NaN; the
//                              same for Greater, and for orders that include equality where no two zeros meet
//   Where c, (Where c, a, b), d    Where c, a, d
//   Where (Less a, b), (Min a, b), d    Where (Less a, b), a, d; the same for Max and other orders, of integers
//   Abs (Add (Where c, u, 3), v) ...    Where c, Abs (Add u, v), Abs (Add 3, v), where u and v are the same for all
//                              elements of a row and the number of choices does not grow; also through comparisons
//   Sub (Where c, a, b), b     Where c, (Sub a, b), 0, of integers
//   Or (Less a, b), (Equal a, b) ...   of integers: the comparison that covers both
//   Or (Greater a, 4), (LessOrEqual a, 3) ...   of integers: NotEqual a, 4
//   ReduceMax (Add x, 3) ...   Add (ReduceMax x), 3, of f32; the same for differences, products, Neg, and ReduceMin
//   Less a, (Max a, b) ...     Less a, b; and comparisons that always or never hold
//   Max (Min a, b), a of integers; And (Or c, d), c ...    a; c
//   Abs (Neg x), Abs (Mul (Neg x), y), Neg (Neg x), Mul (Neg x), c ...   without the redundant signs
//   Floor (Convert i), Ceil (Floor x), Floor (Add (Convert i), 3) ...   without the outer operator
//   Convert (ClampLow x, 0) to i32    Max (Convert x), 0, where x is converted as well; the same for other bounds
//   Sub (Add a, b), a; Add (Sub a, 3), (Sub b, a) ...   integers, also through Wraps of the same width: sums of
//                              products by constants, in which each value occurs once
//
// `rounded` marks values that are products which must keep their rounding; results of what replaces a product of such
// values are marked, too.
snippet::Body with_identities(snippet::Body body, std::vector<char>& rounded);

}  // namespace tenon::x86
