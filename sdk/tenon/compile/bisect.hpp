// Bisection: finds the first pass, or the first operator, that makes a compiled model differ from the model's
// semantics.
//
// The loaded model on the reference is the oracle. If the model on its targets agrees with it, nothing is wrong.
// Otherwise the steps of the compilation (pass_walk.hpp) are bisected: the graph after a given number of steps runs on
// the reference, and the first step that spoils its results is the wrong pass. If there is none, the code of an
// operator is at fault: operators run one by one on their target, on the operands that the reference computes.
//
// Random operators without a seed become inputs of the model, with values drawn once by the reference.
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
  // A tensor also agrees when max|got - expected| / max|expected| is at most this; 0: only its elements count.
  double relative_max = 1e-3;
  // Compare with the graph after the targets' preparations, on the reference: changes of numbers by preparations, such
  // as quantisation, are then intended, and their passes are not examined.
  bool prepared = false;
  ParallelFor* parallel = nullptr;  // null: the process' pool
};

// The difference between a value and its expected value.
struct ValueDifference {
  std::string value;           // name of the output or result
  std::string text;            // a sentence: place of the largest difference and both numbers, or what else differs
  std::vector<int64_t> index;  // of the largest difference; with `got` and `expected` when `located`
  bool located = false;
  double got = 0, expected = 0;
  double max_abs = 0, relative_max = 0;
  int64_t mismatches = 0;
};

// Operators in the report are texts, since the graphs no longer exist.
struct WrongPass {
  std::string phase, pass;  // "tensor selection of x86-avx2", "fold-pad"
  int64_t step = 0;         // index of its run among all runs, from 1
  // A pass of a preparation: such passes may change numbers, so this may be intended. BisectOptions::prepared skips
  // them.
  bool in_preparation = false;
  std::string error;                          // the reference cannot run the graph after it; else `difference`
  std::optional<ValueDifference> difference;  // of an output of the model
  std::vector<std::string> before, after;     // operators that it removed, and that it made
};
struct WrongOperator {
  std::string target, op, label, text, types;
  std::vector<std::string> nodes;  // the model's operators in it, if it is a snippet: "Mul attn/scale"
  // It was compiled from the graph as placed, through all phases on its own, since the reference cannot run it after
  // them.
  bool through_phases = false;
  // On its own it agrees: its result differs only after the operators before it have run.
  bool in_company = false;
  std::string error;                          // its run on the target failed; else `difference`
  std::optional<ValueDifference> difference;  // of a result
  // The first operator of a snippet's body after which the snippet, cut there, differs. Empty text: none, or no cut can
  // be compiled.
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
  bool random = false;                       // they are of one random draw
  std::vector<ValueDifference> differences;  // of outputs on the target
  std::string error;                         // of the run on the target
  std::optional<WrongPass> pass;
  std::optional<WrongOperator> op;
  std::optional<WrongOperator> nearest;  // the operator that is farthest off, where none on its own is beyond tolerance
  std::vector<NotCompared> not_compared;
  std::vector<std::string> notes;
};

// `inputs` are those of the model. A failure to compile is an error that names the pass.
TENON_API Result<BisectReport> bisect(const Graph& model, std::span<const Datum> inputs, TargetRegistry& registry,
                                      const CompileOptions& compile_options, const BisectOptions& options = {});

}  // namespace tenon
