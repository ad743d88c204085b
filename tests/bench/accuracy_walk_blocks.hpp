// Blocks of floats through the functions of test::math_cases(), in f64, and the errors of results against them.
#pragma once
#include <cstddef>
#include <vector>

namespace tenon::test {

// y[i] = f(x[i]) within 1e-14, including sines and tangents of large arguments; non-finite results and the sign of zero
// may differ. A multiple of 8 values.
using MathBlock = void (*)(const float* x, double* y, size_t count);
// For each case, in order; null for two operands.
std::vector<MathBlock> math_blocks();

// The largest |got - exact| in units in the last place of f32 at `exact`, as test::ulp_error() counts; infinite if one
// of them is not finite and the other differs. Equal values, and NaN for NaN, count as no error.
double largest_ulp_error(const float* got, const double* exact, size_t count);

}  // namespace tenon::test
