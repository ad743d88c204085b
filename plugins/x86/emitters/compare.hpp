// Comparison of lanes of any number type, for emitters of several families.
#pragma once
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

// out = a how b, of c.element(). Integers know no `unordered`. Unsigned ones take two scratch vectors on avx2. out may
// be a or b.
void compare_numbers(VectorCode& c, const Mask& out, Compare how, const Vec& a, const Vec& b);

}  // namespace tenon::x86
