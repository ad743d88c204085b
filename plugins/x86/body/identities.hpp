// Bodies of fewer operators, by algebra that holds of all numbers.
#pragma once
#include <vector>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The same results, bit for bit but for which NaN it is. One operator becomes one, or a value that is there already:
//
//   Where (Less a, b), a, b    the less of a and b, as ClampHigh b, a gives it also where one is NaN; alike Greater,
//                              and what holds of equal ones, where no two zeros meet
//   Where c, (Where c, a, b), d    Where c, a, d
//   Where (Less a, b), (Min a, b), d    Where (Less a, b), a, d; alike Max and other orders, of integers
//   Abs (Add (Where c, u, 3), v) ...    Where c, Abs (Add u, v), Abs (Add 3, v), where u and v are the same for all
//                              elements of a row and no more choices come of it; also by way of comparisons
//   Sub (Where c, a, b), b     Where c, (Sub a, b), 0, of integers
//   Or (Less a, b), (Equal a, b) ...   of integers: the comparison that holds of both
//   Or (Greater a, 4), (LessOrEqual a, 3) ...   of integers: NotEqual a, 4
//   ReduceMax (Add x, 3) ...   Add (ReduceMax x), 3, of f32; alike differences, products, Neg, and ReduceMin
//   Less a, (Max a, b) ...     Less a, b; and what is always so, or never
//   Max (Min a, b), a of integers; And (Or c, d), c ...    a; c
//   Abs (Neg x), Abs (Mul (Neg x), y), Neg (Neg x), Mul (Neg x), c ...   without the signs
//   Floor (Convert i), Ceil (Floor x), Floor (Add (Convert i), 3) ...   without the outer one
//   Convert (ClampLow x, 0) to i32    Max (Convert x), 0, where x is converted as well; alike other bounds
//   Sub (Add a, b), a; Add (Sub a, 3), (Sub b, a) ...   integers, also among Wrap of as many bits: sums of products by
//                              constants, each value once
//
// `rounded` says of values that they are products which may not lose their rounding; results of what becomes a product
// of such are, too.
snippet::Body with_identities(snippet::Body body, std::vector<char>& rounded);

}  // namespace tenon::x86
