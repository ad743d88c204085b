// What a snippet saves: bytes read and written with it and without it.
#pragma once
#include <string>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>

namespace tenon::snippet {

struct SubgraphStatistics {
  std::string name;       // the operator's label
  size_t operators = 0;   // without constants
  size_t parameters = 0;  // operands
  size_t results = 0;
  size_t constants = 0;  // inside
  // Bytes of the inputs and outputs of each operator, without scalar constants, and of the subgraph. Symbols remain; an
  // unknown extent counts as 1, and `exact` is then false.
  Expr bytes_unfused, bytes_fused;
  bool exact = true;
};

// Of a snippet.Subgraph.
TENON_API SubgraphStatistics statistics_of(const Op& subgraph);
// Of every snippet.Subgraph of the graph, in order.
TENON_API std::vector<SubgraphStatistics> snippet_statistics(const Graph& graph);
// A table with a line of totals.
TENON_API std::string to_string(const std::vector<SubgraphStatistics>& statistics);

}  // namespace tenon::snippet
