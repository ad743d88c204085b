// Quotients whose divisors vary over outer dims alone, in rows so short that preparing a divisor for products would
// take longer than the quotients save. The factors of many divisors are computed at once, one per lane
// (snippet::goes_apart).
#pragma once
#include <functional>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// Div x, s becomes products where that pays, with the accuracy of loop-invariant divisors
// (passes/standing_divisors.cpp). `cycles`: of one vector, on one of `units` parallel vector units; only one unit
// divides.
snippet::Body with_factors_apart(const snippet::Body& body, int lanes, double units,
                                 const std::function<double(const snippet::Body&, const snippet::BodyNode&)>& cycles);

}  // namespace tenon::x86
