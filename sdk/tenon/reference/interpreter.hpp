// The interpreter: runs a verified graph with the reference evaluators.
//
// Prepared once, run many times, from several threads at once. Values of static shape lie in one arena per run context,
// at offsets planned beforehand; run contexts are kept and reused. Everything else (dynamic shapes, sequences) is
// allocated as it is made and dropped after its last use.
//
// Values with a layout (Value::layout()) lie in it between operators; docs/layouts.md says how operators run then. Data
// that come from outside or leave are row-major.
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

// Tests of layouts: what is written into every slot without an element, whenever a value in a layout has been made
// whose PadState is dirty. Padding that promises a value is then checked, too. Results must not change.
enum class PoisonPadding : uint8_t {
  none,
  ones,  // all bits 1 (booleans: true)
  nan,   // a quiet NaN; all bits 1 in integers
};
struct InterpreterOptions {
  // none: as the environment variable TENON_POISON_PADDING says (ones, nan).
  PoisonPadding poison_padding = PoisonPadding::none;
};

class TENON_API Interpreter {
 public:
  // The graph must be verified, stay alive and not change. An operator without evaluator or decomposition is
  // Code::unsupported, naming it.
  static Result<std::unique_ptr<Interpreter>> prepare(const Graph& graph, const InterpreterOptions& options = {});
  ~Interpreter();

  // One datum per graph input, in order; types are checked against the graph's (symbols must agree among themselves).
  // Outputs own their bytes. `parallel` must outlive the call.
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, ParallelFor& parallel = serial()) const;

  // Called after each operator with its results; for shadow runs, profiles and bisecting. Null: nothing.
  struct Observer {
    virtual ~Observer() = default;
    virtual void before(const Op& op) = 0;
    virtual void after(const Op& op, std::span<const Datum> results) = 0;
  };
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, ParallelFor& parallel, Observer* observer) const;

  // Bytes of the arena of one run context, and the most bytes live at any one operator: what no plan can beat.
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;

 private:
  struct Impl;
  explicit Interpreter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The graph with operators that have no evaluator rebuilt from simpler ones; null when there are none.
TENON_API Result<std::unique_ptr<Graph>> decomposed(const Graph& graph);
// Is there one datum for each input, of the declared type? Symbols of shapes must agree among the inputs.
TENON_API Result<void> check_inputs(const Graph& graph, std::span<const Datum> inputs);
// For EvalContext::random_seed(): another number each time, of a sequence that differs from process to process.
TENON_API uint64_t fresh_seed();

// Runs one operator, without a graph around it: for tests and constant folding. `results` is how many it makes.
TENON_API Result<std::vector<Datum>> evaluate(Name op, std::vector<Datum> operands, const Attributes& attributes = {},
                                              size_t results = 1, ParallelFor& parallel = serial());

}  // namespace tenon
