// The results of memory allocation in the graph, in addition to the attribute `dram` of each operator.
#pragma once
#include <cstdint>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::nvdla {

// Bytes from the start of DRAM; from the properties nvdla.inputs, nvdla.outputs and nvdla.sizes.
struct Places {
  std::vector<int64_t> inputs, outputs;
  int64_t activation_bytes = 0, activation_bound_bytes = 0;
  int64_t dram_bytes = 0;  // activations, then constants
};
// An error where a property is missing or is not such a list.
Result<Places> places_of(const Graph& graph);

}  // namespace tenon::nvdla
