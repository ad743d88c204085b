// Tokenisation: which operators of a graph become one kernel.
//
//   TokenizeOptions options;
//   options.can_emit = [&](const codegen::Signature& s) { return table.find(s, machine) != nullptr; };
//   TENON_TRY(snippets, tokenize_snippets(graph, options));
#pragma once
#include <functional>
#include <vector>

#include <tenon/codegen/jitter_table.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::snippet {

struct TokenizeOptions {
  // Whether the target has an emitter for this operator of the dialect (body.hpp) on these lane types. None: for all of
  // them. An operator is not taken if its decomposition needs another one. Called once for each distinct signature.
  std::function<bool(const codegen::Signature&)> can_emit;
  // Whether the target can load and store these elements. None: all that have a lane type.
  std::function<bool(ElementType)> can_access;
  // Whether this operator may be part of a snippet. None: all may.
  std::function<bool(const Op&)> may_take;
  // Whether a snippet that computes this value stores it once for each of several outputs of the graph's body that are
  // the value or views of it. None, or false: it is stored once, and copied by the runner of the graph.
  std::function<bool(const Value&)> stores_again;
  // Maximum number of inputs and outputs of one snippet together; 0: any number.
  size_t max_ports = 0;
  // Maximum number of operators in one snippet; 0: any number.
  size_t max_operators = 0;
  // Maximum number of these that reduce: reductions, softmax, normalisations. 0: any number. Each reduces in sweeps of
  // its own, so the time to lower a snippet grows with their number times the operators, while longer snippets save
  // hardly any memory traffic.
  size_t max_folding = 64;
  // The extent assumed for a symbol when bytes are compared.
  int64_t assumed_extent = 64;
};

// Replaces operators of the graph's body, and of the regions inside, by snippet.Subgraph operators, and returns how
// many of these it made. It takes every operator that can be expressed in the dialect and that the options allow,
// including single ones. Two subgraphs are merged where that is legal, those merges first that save most bytes:
//   - no value leaves the merged subgraph and comes back (exact, for any shape of graph),
//   - all operators run in one iteration space, and reductions reduce the same set of its dims,
//   - the options' limits hold.
// Needs: inferred types. Keeps: names of values, outputs of the graph, every bit of them. Operators keep their order
// where possible. Time: about n log n.
TENON_API Result<size_t> tokenize_snippets(Graph& graph, const TokenizeOptions& options = {});

}  // namespace tenon::snippet
