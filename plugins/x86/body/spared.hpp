// Maxima and minima of floats that need no NaN check, because their result for NaN is never observed.
#pragma once
#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// The same results, bit for bit except for which NaN it is:
//
//   Max a, b      ClampLow b, a   where each output becomes NaN in other ways wherever a is NaN, as an overlap of boxes
//                                 does through their areas
//   Min a, b      ClampHigh b, a  likewise
//   ReduceMax x   with attribute `numbers`: its result may be any number where an x is NaN. Allowed if each output
//                 becomes NaN in all of such a row in other ways, as softmax does through its sum. ReduceMin likewise
//   ReduceMax x   with attribute `magnitudes`: x comes from Abs, so that its bits are ordered as integers, with NaN
//                 above all numbers
//   ReduceMin x, ReduceMax x   both with attribute `numbers`, and a Where with the ReduceMax of |x|, from which they
//                 get NaN
//
// Reductions only with `folds`: merged sweeps rescale by the running maximum, NaN included.
snippet::Body with_spared_nan(snippet::Body body, bool folds);

}  // namespace tenon::x86
