// Inside the room: the parts of a runner.
#pragma once
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include <tenon/irgen/cut.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/program_cache.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/support/caught.hpp>

namespace tenon::irgen::detail {

// Resources of a run of a part, beside its inputs.
struct PartRun {
  const RunMeans& means;
  SymbolValues& scalars;  // of the run so far
};

// Runs `body` and converts exceptions of kernels and evaluators to errors.
template <class Body>
Result<void> caught(const Body& body) {
  return tenon::caught(body, "an evaluator");
}

// What all parts are made from.
struct PartSource {
  const Graph& graph;
  const GraphTypes& types;
  const OpPlans& plans;
  const KernelSource& kernels;
  const RunnerOptions& options;
};

class RunnerPart {
 public:
  virtual ~RunnerPart() = default;
  // One datum per input of the part. Outputs as for GraphRunner::run_into.
  virtual Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs, PartRun& with) = 0;
  virtual size_t arena_bytes() const = 0;
  virtual size_t arena_lower_bound_bytes() const = 0;
  // The part of arena_bytes() that may lie in the arena that a run brings.
  virtual size_t lendable_bytes() const { return 0; }
  // The rest. A snapshot: a run in another thread may make a program that needs more.
  virtual size_t own_bytes() const { return arena_bytes(); }
  virtual const GraphProgram* program() const { return nullptr; }
  virtual std::vector<MemoryChart> memory_charts() const { return {}; }
};

// Steps of the interpreter.
class HostPart final : public RunnerPart {
 public:
  // `whole`: the part is the whole graph.
  static Result<std::unique_ptr<HostPart>> make(const GraphPart& part, const PartSource& from, bool whole);
  Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs, PartRun& with) override;
  size_t arena_bytes() const override { return interpreter_->arena_bytes(); }
  size_t arena_lower_bound_bytes() const override { return interpreter_->arena_lower_bound_bytes(); }

 private:
  std::unique_ptr<Graph> own_;
  std::unique_ptr<Interpreter> interpreter_;
};

class ProgramPart final : public RunnerPart {
 public:
  // `from` outlives the part.
  static Result<std::unique_ptr<ProgramPart>> make(GraphPart part, const PartSource& from, bool whole);
  Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs, PartRun& with) override;
  // The same, when a program is known to serve inputs of these types and extents; otherwise empty. Only for a part that
  // is the whole graph: there the extents of inputs determine everything.
  std::optional<Result<void>> run_known(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                        const RunMeans& means);
  // Null: no program is known to serve these inputs and outputs.
  Result<std::unique_ptr<BoundRun>> bind(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                         const RunMeans& means);
  size_t arena_bytes() const override { return cache_->arena_bytes(); }
  size_t arena_lower_bound_bytes() const override { return cache_->arena_lower_bound_bytes(); }
  size_t lendable_bytes() const override { return cache_->lendable_bytes(); }
  size_t own_bytes() const override { return cache_->own_bytes(); }
  const GraphProgram* program() const override { return &cache_->program(); }
  std::vector<MemoryChart> memory_charts() const override { return cache_->memory_charts(); }

 private:
  ProgramPart(GraphPart part, const PartSource& from, bool whole)
      : part_(std::move(part)), from_(from), whole_(whole) {}
  Result<void> run_bound(BoundShape& shape, std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                         const RunMeans& means);
  // For extents at which options group operators that they do not group where extents are symbols, such as strips.
  std::optional<GraphProgram> special(const SymbolValues& scalars) const;
  bool fits(const BoundShape& shape, std::span<const Datum* const> inputs) const;
  // Sets the addresses of inputs and outputs in a context; outputs that cannot be written in place are allocated.
  Result<void> set_buffers(const BoundShape& shape, ProgramContext& context, std::span<const Datum* const> inputs,
                           std::span<Datum* const> outputs) const;
  // For extents that the program does not serve.
  Result<void> run_on_host(std::span<const Datum* const> inputs, std::span<Datum* const> outputs, PartRun& with);

  GraphPart part_;
  const PartSource& from_;
  bool whole_;
  std::optional<ProgramCache> cache_;
  std::shared_ptr<BoundShape> static_shape_;  // where no extent is a symbol
  std::mutex mutex_;
  std::unique_ptr<HostPart> host_;  // made on first use
};

// One operator whose kernel depends on the value of an operand. It has a separate runner for each value, made in the
// first run that has the value; the most recent are cached. Their memory is not known in advance, so a run brings none
// for them; they use what it brings for other parts where that is enough.
class LatePart final : public RunnerPart {
 public:
  // `from` outlives the part.
  LatePart(const GraphPart& part, const PartSource& from);
  Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs, PartRun& with) override;
  size_t arena_bytes() const override { return most(&GraphRunner::arena_bytes); }
  size_t arena_lower_bound_bytes() const override { return most(&GraphRunner::arena_lower_bound_bytes); }

  static constexpr size_t kMostValues = 32;

 private:
  struct Special {
    Tensor value;
    std::unique_ptr<Graph> graph;  // outlives the runner
    std::unique_ptr<GraphRunner> runner;
  };
  // For a run that lends `lent` bytes. Waits while another thread makes one.
  Result<std::shared_ptr<const Special>> special(const Tensor& value, size_t lent);
  Result<std::shared_ptr<const Special>> make(const Tensor& value) const;
  // Beyond what the last run has lent.
  size_t most(size_t (GraphRunner::*bytes)() const) const;

  const Op& op_;
  const PartSource& from_;
  size_t operand_ = 0, input_ = 0;  // of the operator and of the part: the value
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<const Special>> special_;  // the most recent first
  size_t last_lent_ = 0;                               // by the last run
};

// Adds the extents of `datum` for which `type` has names.
void take_scalars(const Type& type, const Datum& datum, SymbolValues& scalars);

}  // namespace tenon::irgen::detail
