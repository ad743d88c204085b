// Comparison of lanes of any number type, for emitters of several families.
#pragma once
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

// out = a how b, of c.element(). Integers know no `unordered`. Unsigned ones take two scratch vectors on avx2. out may
// be a or b.
void compare_numbers(VectorCode& c, const Mask& out, Compare how, const Vec& a, const Vec& b);

// Of a comparison's emission (avx512): the result, under the mask of its third operand where there is one, and what to
// flip in immediates of vcmpps and vpcmpd for attribute `negated`.
struct ComparedLanes {
  Xbyak::Opmask out;
  uint8_t flip = 0;
};
ComparedLanes where_compared(const VectorCode& c);

// The immediate of vpcmpd and its like.
constexpr uint8_t integer_predicate(Compare how) {
  switch (how) {
    case Compare::less: return 1;
    case Compare::less_equal: return 2;
    case Compare::not_equal: return 4;
    case Compare::greater_equal: return 5;
    case Compare::greater: return 6;
    default: return 0;
  }
}

}  // namespace tenon::x86
