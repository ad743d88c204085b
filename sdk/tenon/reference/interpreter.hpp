// The interpreter: runs a verified graph with the reference evaluators.
//
// Prepared once, run many times, from several threads at once. Values of static shape are in one arena per run context,
// at offsets that are planned in advance; run contexts are kept and reused. Everything else (dynamic shapes, sequences)
// is allocated when it is produced and freed after its last use.
//
// Values with a layout (Value::layout()) are stored in it between operators; docs/layouts.md says how operators run
// then. Data that enter or leave the interpreter are row-major.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

// For tests of layouts: what is written to every slot without an element after a value with a layout whose PadState is
// dirty has been produced. Padding that promises a value is then checked, too. Results must not change.
enum class PoisonPadding : uint8_t {
  none,
  ones,  // all bits 1 (booleans: true)
  nan,   // a quiet NaN; all bits 1 in integers
};
struct InterpreterOptions {
  // none: use the environment variable TENON_POISON_PADDING (ones, nan).
  PoisonPadding poison_padding = PoisonPadding::none;
};

class TENON_API Interpreter {
 public:
  // The graph must be verified, stay alive and not change. An operator without an evaluator or a decomposition is
  // Code::unsupported, naming it.
  static Result<std::unique_ptr<Interpreter>> prepare(const Graph& graph, const InterpreterOptions& options = {});
  ~Interpreter();

  // One datum per graph input, in order; types are checked against the graph's, and symbols must be consistent. Outputs
  // own their bytes. `parallel` must outlive the call.
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, ParallelFor& parallel = serial()) const;

  // Called after each operator with its results; for shadow runs, profiles and bisecting. Null: none.
  struct Observer {
    virtual ~Observer() = default;
    virtual void before(const Op& op) = 0;
    virtual void after(const Op& op, std::span<const Datum> results) = 0;
  };
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, ParallelFor& parallel, Observer* observer) const;

  // Bytes of the arena of one run context, and the most bytes that are live at any operator: a lower bound for any
  // plan.
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;

 private:
  struct Impl;
  explicit Interpreter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The graph with operators that have no evaluator replaced by their decompositions; null when there are none.
TENON_API Result<std::unique_ptr<Graph>> decomposed(const Graph& graph);
// Checks that there is one datum per input, of the declared type. Symbols of shapes must be consistent among the
// inputs.
TENON_API Result<void> check_inputs(const Graph& graph, std::span<const Datum> inputs);
// For EvalContext::random_seed(): a new number in each call, from a sequence that differs between processes.
TENON_API uint64_t fresh_seed();

// Runs one operator without a graph: for tests and constant folding. `results` is the number of its results.
TENON_API Result<std::vector<Datum>> evaluate(Name op, std::vector<Datum> operands, const Attributes& attributes = {},
                                              size_t results = 1, ParallelFor& parallel = serial());

}  // namespace tenon
