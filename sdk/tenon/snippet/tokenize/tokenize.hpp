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
  // Has the target an emitter for this operator of the dialect (body.hpp) on these lane types? None: for all of them.
  // An operator whose form in the dialect needs another one is never taken. Asked once for each distinct signature.
  std::function<bool(const codegen::Signature&)> can_emit;
  // Can the target load and store these elements? None: all that have a lane type.
  std::function<bool(ElementType)> can_access;
  // May this operator be part of a snippet? None: all may.
  std::function<bool(const Op&)> may_take;
  // Does a snippet that makes this value, which is several outputs of the graph's body, itself or views of it, store it
  // for each of them? None: no value. Else it is stored once, and copied by whoever runs the graph.
  std::function<bool(const Value&)> stores_again;
  // Inputs and outputs of one snippet together; 0: any number.
  size_t max_ports = 0;
  // Operators in one snippet; 0: any number.
  size_t max_operators = 0;
  // Of them, those that fold: reductions, softmax, normalisations. 0: any number. Each folds in sweeps of its own, so
  // what a snippet takes to lower grows with their number times the operators, while memory hardly sees what longer
  // ones save.
  size_t max_folding = 64;
  // What stands for a symbol when bytes are compared.
  int64_t assumed_extent = 64;
};

// Replaces operators of the graph's body and of the regions inside by snippet.Subgraph operators, and returns how many
// of these it made. What is taken: every operator that has a form in the dialect and that the options allow, single
// ones, too. Two parts become one where that is legal, the merges that save most bytes first:
//   - no value leaves the part and comes back (exact: any shape of graph),
//   - all operators run in one iteration space, reductions fold one set of its dims,
//   - the options' limits hold.
// Needs: inferred types. Keeps: names of values, outputs of the graph, every bit of them. Operators keep their order
// where they can. Time: about n log n.
TENON_API Result<size_t> tokenize_snippets(Graph& graph, const TokenizeOptions& options = {});

}  // namespace tenon::snippet
