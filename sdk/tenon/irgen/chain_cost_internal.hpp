// Inside the room: the cost of single operators that run whole.
#pragma once
#include <tenon/irgen/chains.hpp>

namespace tenon::irgen::detail {

// 0 for values that are not tensors of known extents.
double bytes_of(const Value& value, const TypeSource& types);
// The used results of the operator and the values that it reads, each counted once.
double working_set_of(const Op& op, const TypeSource& types);
// Seconds of arithmetic for a whole result.
double arithmetic_seconds(const Op& op, size_t result, const StripOptions& options, const TypeSource& types);
StripCost whole_cost(const Op& op, const StripOptions& options, const TypeSource& types);
// Results that have a reader.
std::vector<size_t> used_results(const Op& op);

}  // namespace tenon::irgen::detail
