// Which rounded values must have steps that are powers of two of each other: the terms of a sum and the sum, a mean and
// what it is of, a value that is rounded twice. Each such family gets one factor.
#pragma once
#include <utility>
#include <vector>

#include <tenon-ext/quant/scales.hpp>
#include <tenon/ir/graph.hpp>

namespace tenon::quant {

// Every quant.Round of a family that has a factor, with the step that it gets; none when nobody has one. A value alone
// keeps its step. Of several, the factor is the one of them that costs least: a step above what was asked for loses
// bits, one below cuts large numbers off, which costs more.
std::vector<std::pair<Op*, Step>> family_steps(Region& body);

}  // namespace tenon::quant
