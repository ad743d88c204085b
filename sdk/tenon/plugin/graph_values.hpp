// The inputs and outputs of a graph as executables state them.
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

TENON_API std::vector<ValueInfo> inputs_of(const Region& body);
// An output without a value has the unknown type.
TENON_API std::vector<ValueInfo> outputs_of(const Region& body);

}  // namespace tenon
