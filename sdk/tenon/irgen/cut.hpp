// Partitioning a graph into parts that programs can express and parts that are left to the host.
#pragma once
#include <memory>
#include <vector>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

enum class PartKind : uint8_t { program, host, late };
struct CutPart {
  PartKind kind = PartKind::host;
  GraphPart part;  // a late one is one operator
};

// The parts in an order in which the inputs of each are computed before it. Operators of the same kind are grouped by
// depth, the number of changes of kind on the path from the inputs (a late operator always counts as a change). This is
// linear and deterministic, and gives few, large parts. Values that cross are those of GraphPart::inputs and outputs. A
// graph that is one program, or that runs on the host as a whole, is one part with the graph's inputs and outputs.
TENON_API std::vector<CutPart> cut(const Graph& graph, const GraphTypes& types, const OpPlans& plans);

// The part as a graph of its own, with copies of the constants that it uses. Inputs have the types that `types` gives,
// where these are static; otherwise only their kind is stated.
TENON_API std::unique_ptr<Graph> extract(const Graph& graph, const GraphPart& part, const GraphTypes& types);

}  // namespace tenon::irgen
