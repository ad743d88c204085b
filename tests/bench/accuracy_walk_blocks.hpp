// Blocks of floats through the functions of test::math_cases(), in f64, and how far results are from them.
#pragma once
#include <cstddef>
#include <vector>

namespace tenon::test {

// y[i] = f(x[i]) within 1e-14, sines and tangents of large arguments among them; what is not finite, and the sign of
// zero, may come out otherwise. A multiple of 8 values.
using MathBlock = void (*)(const float* x, double* y, size_t count);
// Of each case, in order; null of two operands.
std::vector<MathBlock> math_blocks();

// The largest |got - exact| in units in the last place of f32 at `exact`, as test::ulp_error() counts; infinite where
// one of them is not finite and the other differs. Values that are the same, and NaN for NaN, count as none.
double largest_ulp_error(const float* got, const double* exact, size_t count);

}  // namespace tenon::test
