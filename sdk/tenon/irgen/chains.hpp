// Chains: subgraphs whose operators can be computed strip by strip, so that the values between them stay in a small
// memory.
//
//   TENON_TRY(found, find_chains(graph, {.mode = StripMode::automatic, .model = strip_model(target)}));
//   found.chains[0].ops       // Conv, Relu, Conv, Add: producers first
//   found.chains[0].loops     // dim 2 of the last result, 16 rows at a time
//
// A chain is a connected subgraph with one result that leaves it: every other value that it computes is used only
// inside it, any number of times. Every operator has a bounds rule by which a strip of the last result determines the
// strips that it needs (strips_reads.hpp). Where an operator has several results, each used one is computed separately.
// Among all partitions of the operators into chains and whole operators, in one order of the graph, the cheapest is
// chosen by dynamic programming. Time: operators * longest chain * dims * steps.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/irgen/strips_cost.hpp>
#include <tenon/irgen/strips_reads.hpp>
#include <tenon/support/export.hpp>

namespace tenon::irgen {

enum class StripMode : uint8_t {
  automatic,  // where the model predicts a gain
  memory,     // where fewer bytes of values are held, unless the predicted time grows by half; see chains.cpp
  always,     // wherever it is possible: as few operators as possible are whole
  never,
};

// Arithmetic of a kernel per element of the result, per element of the operand of which most elements are read, and per
// element of operands that every strip reads as a whole, as products do that pack their factors.
struct ArithmeticCost {
  double seconds_per_element = 0, seconds_per_read = 0, seconds_per_reread = 0;
};

struct StripOptions {
  StripMode mode = StripMode::automatic;
  // Most bytes that one strip may use: windows, and its part of inputs and outputs. 0: limited by the model only. Where
  // not even one index fits, strips are of one index.
  int64_t bytes = 0;
  int dim = -1;         // of the last result, traversed by the innermost loop; -1: any, chosen by the model
  int64_t step = 0;     // indices of a strip along the innermost loop; 0: a power of two, chosen by the model
  int64_t workers = 1;  // most strips computed at the same time; limited by the threads of the run
  CostModel model = strip_model();
  // Speed of the kernels that an operator gets; null: as the model states it for each element that is read.
  std::function<ArithmeticCost(const Op&)> arithmetic = {};
};

struct ChainLoop {
  int dim = 0;       // of the last result
  int64_t step = 1;  // indices per strip
  bool operator==(const ChainLoop&) const = default;
};

// One result of an operator. Unused results are in no chain.
struct ChainOp {
  const Op* op = nullptr;
  size_t result = 0;
  std::vector<int> dims;  // the dim of the result that each loop traverses
  StripReads reads;

  const Value& value() const { return *op->result(result); }
};

struct Chain {
  std::vector<ChainOp> ops;      // producers first; the result of the last one leaves the chain
  std::vector<ChainLoop> loops;  // outermost first
  StripCost whole, strips;       // predicted

  const Op& last() const { return *ops.back().op; }
  const Value& value() const { return ops.back().value(); }
};

// Operators that must not be in chains, each with the reason.
using RefusedOps = std::map<const Op*, std::string>;

struct Chains {
  std::vector<Chain> chains;
  RefusedOps whole;  // why other operators are in no chain; without those that are never considered, such as constants
};

// Disjoint chains of some operators of one region, which are given in its order. Deterministic. The graph outlives
// them. `types` are the types of values, as strip_dims() takes them.
TENON_API Chains find_chains(std::span<const Op* const> ops, const StripOptions& options = {},
                             const RefusedOps& refused = {}, const TypeSource& types = TypeSource());
// The same for a graph's body.
TENON_API Chains find_chains(const Graph& graph, const StripOptions& options = {}, const RefusedOps& refused = {});
TENON_API std::vector<const Op*> body_ops(const Graph& graph);

}  // namespace tenon::irgen
