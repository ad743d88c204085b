// Inside of the room: what single operators cost, whole.
#pragma once
#include <tenon/irgen/chains.hpp>

namespace tenon::irgen::detail {

// 0 for what is no tensor of known extents.
double bytes_of(const Value& value);
// Of the operator and each value it reads, once.
double working_set_of(const Op& op);
// Seconds of arithmetic for all of result 0.
double arithmetic_seconds(const Op& op, const StripOptions& options);
StripCost whole_cost(const Op& op, const StripOptions& options);

}  // namespace tenon::irgen::detail
