// Bounds of a body's results, given the accuracy of each operator's code: a lower and an upper bound for every element.
// They are the oracle for generated code, in tests and in the self-check of targets
// (irgen/snippet_check_internal.hpp).
//
// Each value is evaluated as an interval [low, high] that contains every result that code within the stated accuracies
// may compute from the inputs. With u = 2^-24 for f32 and ulp(v) = 2^(max(floor(log2 |v|), -126) - 23), the interval of
// an operator follows from the intervals X, Y of its operands:
//
//   rounded once    + - * / sqrt        [fl(min X o Y), fl(max X o Y)]: rounding is monotone, so exact operands give
//                                       exact results, and only inexactness widens intervals
//   a function      of U ulp            [min v - U ulp(v), max v + U ulp(v)] for v in f(X), f in f64
//   a product or sum that may skip its rounding (contraction): products that are added, perhaps negated; for x (c + f),
//   f being erf or tanh, its sum and products
//                                       [below(min), above(max)]: the next floats outward enclose the exact result
//   a table         of erf or tanh      [min v - E, max v + E], and that of the row. X is that of the argument, which
//                                       is a polynomial of one value: its steps may skip their rounding, and those that
//                                       make coefficients, which are floats in the table, may be a unit off
//   a sum of n      in any order        [sum of lows, sum of highs] -+ 1.01 n u sum of max |X|
//                                       (Higham, Accuracy and Stability, 4.2; contracted products included)
//   a product of n  in any order        the products of the ends, each off by 1.01 n u of its magnitude
//   discontinuous   floor, <, cast ...  both ends through the operator itself: results on either side are allowed
//
// Tables are used only where f, as it is, negated, or times constants, is added to constants of at least its size, and
// nothing else reads it (BoundRules::table_error).
//
// min and max are those at the ends where f is monotone in each operand. For the others: |x| and cosh have their
// minimum at 0; sin and cos have slope 1, gelu, swish and mish at most 1.2, which bounds the values between the ends; x
// = y may hold wherever the intervals meet.
//
// An element is open, that is, every result is accepted, for: a quotient whose divisor may be 0; powers of what may be
// 0 or less; tan across a pole; remainders, bit patterns, shifts, and integers that may wrap around, of operands that
// are not known exactly; what a sum or product in another order may overflow or lose; and what is NaN at one end. The
// caller has to limit how many elements are open.
//
// Intervals ignore correlation: x - x has twice the width of x, not 0. They never reject a correct result.
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

// The bounds of lanes, or of elements of an output: bits, low bits first. NaN at both ends: the result is NaN.
struct Bounds {
  LaneBits low, high;
  std::vector<char> open;  // no bound can be given

  size_t size() const { return low.size(); }
};

// The largest error of a node's code in units in the last place of its result; at most half a unit: exact, or correctly
// rounded. Not called for reductions.
using NodeUlpFn = std::function<double(const Body&, const BodyNode&)>;

struct BoundRules {
  NodeUlpFn max_ulp;                 // null: 0 for every node
  double constant_quotient_ulp = 0;  // of a Div by a Scalar, at least
  bool contract = false;             // what is only added, and sums with erf or tanh, may skip their rounding
  double table_error = 0;            // E of tables above; 0: there are none
  // Powers e^(x - m), where m is the greatest x, may be computed as e^(x - g) e^(g - m), where g is the greatest x so
  // far, as in merged sweeps. There are then two functions, each with its own error, and both arguments are rounded.
  bool moved_powers = false;
  // Any operator of the body may skip its rounding, as in evaluators that compute a whole graph operator in f64: the
  // results that the reference may have. Functions are off by at least one unit.
  bool in_any_precision = false;
};

// The bounds of each output, in memory order. `inputs`: the first elements of the body's inputs, as for a call of code.
TENON_API Result<std::vector<Bounds>> bound_body(const Body& body, const Dims& extents,
                                                 std::span<const void* const> inputs, const BoundRules& rules);

// Whether `bits` of type `element` are within the bounds of element `i`.
TENON_API bool is_within(const Bounds& bounds, ElementType element, size_t i, uint64_t bits);

// How one elementwise operator is computed.
struct LaneRules {
  double max_ulp = 0;
  bool exact = false;  // its result may also be the unrounded number
  double error = 0;    // or off by this much, whatever its size
};
TENON_API Result<Bounds> bound_lanes(Name op, const Attributes& attributes, std::span<const ElementType> from,
                                     std::span<const Bounds> operands, ElementType to, const LaneRules& rules);

}  // namespace tenon::snippet
