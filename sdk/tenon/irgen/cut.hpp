// Cutting a graph into what programs can say and what is left to the host.
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

// The parts in an order in which each has its inputs made before it. Operators of a kind are put together by depth, the
// number of changes of kind on the way from the inputs (a late operator is always a change): linear, deterministic, few
// and large parts. Values that cross are those of GraphPart::inputs and outputs; a graph that is one program, or all
// for the host, is one part, with the graph's inputs and outputs.
TENON_API std::vector<CutPart> cut(const Graph& graph, const GraphTypes& types, const OpPlans& plans);

// The part as a graph of its own, with copies of the constants that it uses. Inputs have the types that `types` trusts,
// where they are static; of others only what kind they are.
TENON_API std::unique_ptr<Graph> extract(const Graph& graph, const GraphPart& part, const GraphTypes& types);

}  // namespace tenon::irgen
