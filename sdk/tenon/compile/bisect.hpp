// Which pass, or which operator, is the first that makes a compiled model differ from what the model says?
//
// The model as it was loaded, on the reference, is the oracle. If the model on its targets agrees with it, nothing is
// wrong. Else the steps of the compilation (pass_walk.hpp) are halved, with the graph after each number of them run on
// the reference: the first that spoils its results is the wrong pass. If no step does, an operator's code is at fault:
// operators run one by one on their target, on the operands that the reference has for them.
//
// Random operators without a seed take part as inputs of the model, with values that the reference has drawn once.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/plugin/target_registry.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/compare.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

struct BisectOptions {
  Tolerance tolerance;
  // A tensor agrees as well when max|got - expected| / max|expected| is at most this; 0: its elements alone count.
  double relative_max = 1e-3;
  // Compare with the graph that the targets' preparations have made, on the reference: what they did to the numbers, as
  // quantising does, is meant so, and their passes are not looked at.
  bool prepared = false;
  ParallelFor* parallel = nullptr;  // null: the process' pool
};

// How far one value is from what it should be.
struct ValueDifference {
  std::string value;  // name of the output or result
  std::string text;   // a sentence with the place of the largest difference and both numbers, or what else differs
  std::vector<int64_t> index;  // of the largest difference; with `got` and `expected` when `located`
  bool located = false;
  double got = 0, expected = 0;
  double max_abs = 0, relative_max = 0;
  int64_t mismatches = 0;
};

// Operators in the report are texts: the graphs are gone.
struct WrongPass {
  std::string phase, pass;  // "tensor selection of x86-avx2", "fold-pad"
  int64_t step = 0;         // its run's number, from 1, among all of them
  // A preparation's: such passes may change numbers, so that this may be meant. BisectOptions::prepared skips them.
  bool in_preparation = false;
  std::string error;                          // the reference cannot run the graph behind it; else `difference`
  std::optional<ValueDifference> difference;  // of an output of the model
  std::vector<std::string> before, after;     // operators that it took away, and that it made
};
struct WrongOperator {
  std::string target, op, label, text, types;
  std::vector<std::string> nodes;  // the model's operators in it, where it is a snippet: "Mul attn/scale"
  // It was compiled from the graph as placed, all phases for it alone, since after them the reference runs it no more.
  bool through_phases = false;
  // Alone it agrees: only behind the operators before it does its result differ.
  bool in_company = false;
  std::string error;                          // its run on the target failed; else `difference`
  std::optional<ValueDifference> difference;  // of a result
  // The first operator of a snippet's body behind which the snippet, cut there, differs. Empty text: none, or no cut
  // can be compiled.
  std::string body_operator;
  std::optional<ValueDifference> body_difference;
};
struct NotCompared {
  std::string op, label, reason;
};

struct BisectReport {
  bool agrees = false;
  int64_t steps = 0;                            // of the compilation: runs of passes, and placement
  int64_t reference_runs = 0, target_runs = 0;  // of whole graphs
  int64_t operators_compared = 0;
  std::vector<Datum> oracle;                 // outputs; empty when the reference cannot run the model
  bool random = false;                       // they are of one draw
  std::vector<ValueDifference> differences;  // of outputs on the target
  std::string error;                         // of the run on the target
  std::optional<WrongPass> pass;
  std::optional<WrongOperator> op;
  std::optional<WrongOperator> nearest;  // where no operator alone is beyond tolerance, the one that is farthest off
  std::vector<NotCompared> not_compared;
  std::vector<std::string> notes;
};

// `inputs` are those of the model. What cannot be compiled is an error that names the pass.
TENON_API Result<BisectReport> bisect(const Graph& model, std::span<const Datum> inputs, TargetRegistry& registry,
                                      const CompileOptions& compile_options, const BisectOptions& options = {});

}  // namespace tenon
