// Families of rounded values whose steps must differ by powers of two: the terms of a sum and the sum, a mean and its
// operand, a value that is rounded twice. Each family gets one factor.
#pragma once
#include <utility>
#include <vector>

#include <tenon-ext/quant/scales.hpp>
#include <tenon/ir/graph.hpp>

namespace tenon::quant {

// Every quant.Round of a family with a factor, and its new step; empty if no Round has a factor. A single value keeps
// its step. In a family, the factor is the one of its members that costs least: a step above the requested one loses
// bits, one below clips large values, which costs more.
std::vector<std::pair<Op*, Step>> family_steps(Region& body);

}  // namespace tenon::quant
