// What results of a body may be, given how exact the code of each operator is: two ends for every element. The oracle
// of generated code, for tests and for the self-check of targets (irgen/snippet_check_internal.hpp).
//
// Each value is walked as an interval [low, high] that holds whatever code within the stated accuracies may make of the
// inputs. With u = 2^-24 for f32 and ulp(v) = 2^(max(floor(log2 |v|), -126) - 23), an operator's interval is, of its
// operands' intervals X, Y:
//
//   rounded once    + - * / sqrt        [fl(min X o Y), fl(max X o Y)]: rounding is monotone, so exact operands give
//                                       exact results, and only what is inexact spreads
//   a function      of U ulp            [min v - U ulp(v), max v + U ulp(v)] for v in f(X), f in f64
//   a product or sum that may skip its rounding (contraction): products that are added, perhaps negated; of x (c + f),
//   f being erf or tanh, the sum and the products of it
//                                       [below(min), above(max)]: the next floats outward hold the exact result
//   a table         of erf or tanh      [min v - E, max v + E], and that of the row; X of the polynomial that the
//                                       argument is of one value: steps between may skip their rounding, and those that
//                                       make coefficients, which are floats in the table, be a unit off
//   a sum of n      in any order        [sum of lows, sum of highs] -+ 1.01 n u sum of max |X|
//                                       (Higham, Accuracy and Stability, 4.2; contracted products included)
//   a product of n  in any order        the ends' products, each off by 1.01 n u of its magnitude
//   a jump          floor, <, cast ...  both ends through the operator itself: what lies on either side is allowed
//
// Tables stand only where f, as it is, negated, or times constants, is summed with constants of at least its size, and
// nothing else reads it (BoundRules::table_error).
//
// min and max are those at the ends where f is monotone in each operand. Of the others: |x|, cosh turn at 0; sin and
// cos have slope 1, gelu, swish and mish at most 1.2, which bounds what lies between the ends; x = y may hold wherever
// the intervals meet. Open, which is to say that everything is right, are: a quotient whose divisor may be 0, powers of
// what may be 0 or less, tan across a pole, remainders, bit patterns, shifts, and integers that may wrap around, of
// operands that are not known exactly; what a sum or product in another order may overflow or lose; and what is NaN at
// one end. How many are open is for the caller to look at.
//
// Intervals forget that two values come from one: x - x has twice the width of x, not 0. They never refuse what is
// right.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/linear/run_linear.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>

namespace tenon::snippet {

// Ends of lanes, or of elements of an output: bits, low bits first. A NaN at both ends: the result is one.
struct Bounds {
  LaneBits low, high;
  std::vector<char> open;  // nothing can be told

  size_t size() const { return low.size(); }
};

// Largest error of a node's code in units in the last place of its result; up to half a unit: exact, or rounded
// correctly. Reductions are not asked for.
using NodeUlpFn = std::function<double(const Body&, const BodyNode&)>;

struct BoundRules {
  NodeUlpFn max_ulp;                 // null: 0 for every node
  double constant_quotient_ulp = 0;  // of a Div by a Scalar, at least
  bool contract = false;             // what is only added, and sums with erf or tanh, may skip their rounding
  double table_error = 0;            // E of tables above; 0: there are none
  // Powers e^(x - m), m the greatest x, may be products e^(x - g) e^(g - m), g the greatest so far, as where two sweeps
  // are one. So there are two functions, each off by its units, and both arguments are rounded.
  bool moved_powers = false;
  // Any operator of the body may skip it, as evaluators do that compute a whole operator of the graph in f64: what the
  // reference may make of the body. Functions are off by one unit at least.
  bool in_any_precision = false;
};

// Of each output, in memory's order. `inputs`: first elements of the body's inputs, as a call of its code has them.
TENON_API Result<std::vector<Bounds>> bound_body(const Body& body, const Dims& extents,
                                                 std::span<const void* const> inputs, const BoundRules& rules);

// Is `bits` of type `element` within the bounds of element `i`?
TENON_API bool is_within(const Bounds& bounds, ElementType element, size_t i, uint64_t bits);

// How one elementwise operator is computed.
struct LaneRules {
  double max_ulp = 0;
  bool exact = false;  // its result may be the number that is not rounded, too
  double error = 0;    // or off by this much, whatever its size
};
TENON_API Result<Bounds> bound_lanes(Name op, const Attributes& attributes, std::span<const ElementType> from,
                                     std::span<const Bounds> operands, ElementType to, const LaneRules& rules);

}  // namespace tenon::snippet
