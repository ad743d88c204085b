// Inside of the room: what single operators cost, whole.
#pragma once
#include <tenon/irgen/chains.hpp>

namespace tenon::irgen::detail {

// 0 for what is no tensor of known extents.
double bytes_of(const Value& value, const TypeSource& types);
// Of the used results of the operator and each value it reads, once.
double working_set_of(const Op& op, const TypeSource& types);
// Seconds of arithmetic for all of a result.
double arithmetic_seconds(const Op& op, size_t result, const StripOptions& options, const TypeSource& types);
StripCost whole_cost(const Op& op, const StripOptions& options, const TypeSource& types);
// Those that somebody uses.
std::vector<size_t> used_results(const Op& op);

}  // namespace tenon::irgen::detail
