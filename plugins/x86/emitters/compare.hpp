// Comparison of lanes of any number type, shared by several families of emitters.
#pragma once
#include "x86/emitters/vector_code.hpp"

namespace tenon::x86 {

// out = a how b, of c.element(). `unordered` is not for integers. avx2 needs two scratch vectors for unsigned integers.
// out may be a or b.
void compare_numbers(VectorCode& c, const Mask& out, Compare how, const Vec& a, const Vec& b);

// For the emission of a comparison (avx512): the result register, with the mask of the third operand if there is one,
// and the bits to flip in immediates of vcmpps and vpcmpd for attribute `negated`.
struct ComparedLanes {
  Xbyak::Opmask out;
  uint8_t flip = 0;
};
ComparedLanes where_compared(const VectorCode& c);

// The immediate of vpcmpd and similar instructions.
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
