// Extrema of floats that are one instruction, since what they make of NaN shows nowhere.
#pragma once
#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The same results, bit for bit but for which NaN it is:
//
//   Max a, b      ClampLow b, a   where each output is NaN by other ways wherever a is, as an overlap of boxes is by
//                                 their areas
//   Min a, b      ClampHigh b, a  likewise
//   ReduceMax x   with attribute `numbers`: it may be any number where one of its x is NaN. So if each output is NaN in
//                 all of such a row by other ways, as softmax is by its sum. ReduceMin likewise
//   ReduceMax x   with attribute `magnitudes`: x is made by Abs, so that its bits are in the order of integers, NaN
//                 above all
//   ReduceMin x, ReduceMax x   both with attribute `numbers`, and a Where of the ReduceMax of |x|, whose NaN they take
//
// Reductions only if `folds`: two sweeps in one move what they have by the greatest so far, NaN included.
snippet::Body with_spared_nan(snippet::Body body, bool folds);

}  // namespace tenon::x86
