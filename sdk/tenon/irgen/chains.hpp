// Chains: pieces of a graph whose operators can be computed strip by strip, so that what they hand on stays in a small
// memory.
//
//   TENON_TRY(found, find_chains(graph, {.mode = StripMode::automatic, .model = strip_model(target)}));
//   found.chains[0].ops       // Conv, Relu, Conv, Add: producers first
//   found.chains[0].loops     // dim 2 of the last result, 16 rows at a time
//
// A chain is any piece of the graph with one result that leaves it: every other value that is made in it is used in it
// only, however often. Every operator in it has a bounds rule by which strips of the last result ask for strips of it
// (strips_reads.hpp); of several results, each that is used is computed by itself. Among all ways to cut the operators
// into chains and whole operators, in one order of the graph, the cheapest is taken (dynamic programming; time:
// operators * longest chain * dims * steps).
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
  automatic,  // where the model says that it pays
  memory,     // where fewer bytes of values are held, unless it is predicted to take half as long again; see chains.cpp
  always,     // wherever it can be done: as few operators as possible are whole
  never,
};

// Arithmetic of kernels: for each element of the result, and for each element of the operand of which most are read for
// it. And for each element of operands that every strip reads all of, as products do that pack their factors.
struct ArithmeticCost {
  double seconds_per_element = 0, seconds_per_read = 0, seconds_per_reread = 0;
};

struct StripOptions {
  StripMode mode = StripMode::automatic;
  // What one strip may have in use: windows, and its part of what goes in and out. 0: no limit but the model. When not
  // even one index fits, strips are of one index.
  int64_t bytes = 0;
  int dim = -1;         // of the last result, that the innermost loop goes along; -1: any, by the model
  int64_t step = 0;     // indices of a strip along the innermost loop; 0: a power of two, by the model
  int64_t workers = 1;  // strips computed at the same time, at most; limited by the threads of the run
  CostModel model = strip_model();
  // How fast the kernels are that an operator gets; null: as the model has it for each element that is read.
  std::function<ArithmeticCost(const Op&)> arithmetic = {};
};

struct ChainLoop {
  int dim = 0;       // of the last result
  int64_t step = 1;  // indices a strip
  bool operator==(const ChainLoop&) const = default;
};

// One result of an operator. Results that nobody uses are in no chain.
struct ChainOp {
  const Op* op = nullptr;
  size_t result = 0;
  std::vector<int> dims;  // which dim of the result each loop moves
  StripReads reads;

  const Value& value() const { return *op->result(result); }
};

struct Chain {
  std::vector<ChainOp> ops;      // producers first; the result of the last one leaves the chain
  std::vector<ChainLoop> loops;  // outermost first
  StripCost whole, strips;       // as predicted

  const Op& last() const { return *ops.back().op; }
  const Value& value() const { return ops.back().value(); }
};

// Operators that must not be in chains, with the reason.
using RefusedOps = std::map<const Op*, std::string>;

struct Chains {
  std::vector<Chain> chains;
  RefusedOps whole;  // why others are in none; not those that were never asked for, such as constants
};

// Chains of some operators of one region, which are given in its order; disjoint. Deterministic. The graph outlives
// them. `types`: those that values have, as strip_dims() takes them.
TENON_API Chains find_chains(std::span<const Op* const> ops, const StripOptions& options = {},
                             const RefusedOps& refused = {}, const TypeSource& types = TypeSource());
// Of a graph's body.
TENON_API Chains find_chains(const Graph& graph, const StripOptions& options = {}, const RefusedOps& refused = {});
TENON_API std::vector<const Op*> body_ops(const Graph& graph);

}  // namespace tenon::irgen
