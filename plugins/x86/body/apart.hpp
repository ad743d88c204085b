// Quotients by what varies over outer dims alone, in rows so short that what is made of each divisor would take longer
// than the quotients by it: many divisors at once, in lanes (snippet::goes_apart).
#pragma once
#include <functional>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// Div x, s as products, where that pays: as by what stands while a loop runs (passes/standing_divisors.cpp, with how
// exact they are). `cycles`: of one vector, by one of `units` that work side by side; quotients are made by one alone.
snippet::Body with_factors_apart(const snippet::Body& body, int lanes, double units,
                                 const std::function<double(const snippet::Body&, const snippet::BodyNode&)>& cycles);

}  // namespace tenon::x86
