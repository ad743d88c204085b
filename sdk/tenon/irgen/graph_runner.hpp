// GraphRunner: a graph, ready to run on the host: as programs as far as programs can say it, the rest step by step.
//
//   TENON_TRY(runner, GraphRunner::prepare(graph, reference_kernels()));
//   TENON_TRY(outputs, runner->run(inputs, {.parallel = pool}));
//
// A graph that a program can say is one program. In others, the largest runs of operators that programs can say are
// programs, and what is between them (control flow, sequences, strings, shapes that depend on data, values in layouts)
// is run by the interpreter of the reference. An operator whose kernel depends on a value that only a run has
// (KernelSource::late_operand) is a program for each value, of which some are kept. A program of symbolic shapes is
// bound to the extents of a run, of which a few are kept; extents for which the operators' shape rules say otherwise
// than the program are left to the interpreter, which runs them or refuses.
//
// Results are those of the interpreter, bit for bit, if the kernels are the reference's.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/irgen/from_graph.hpp>
#include <tenon/program/exec/bound_program.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/runtime/host_run.hpp>
#include <tenon/runtime/memory_chart.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::irgen {

struct RunnerOptions {
  LowerOptions lower;
  int64_t threads = 1;  // most workers of loops in programs; kernels get the threads of a run
};

// An operator that no program has, and why.
struct HostOp {
  std::string op, label, reason;
};
struct RunnerReport {
  size_t programs = 0;
  size_t program_ops = 0;  // operators that are statements or views of programs
  size_t late_ops = 0;     // operators whose programs are made at runs
  std::vector<HostOp> host_ops;
};

// What a run has beside inputs and outputs.
struct RunMeans {
  ParallelFor& parallel = serial();
  std::vector<OpProfile>* profile = nullptr;  // gets an entry for each operator that ran, in order
  // Memory for intermediate values, of lendable_bytes(), aligned to kAlignBytes: the run's alone while it runs.
  // Programs that need more take memory of their own, once; so do those of late operators (RunnerReport::late_ops), for
  // which lendable_bytes() asks nothing, where what others asked is not enough.
  std::span<std::byte> arena = {};
};

class TENON_API GraphRunner {
 public:
  // The graph is verified, stays alive and does not change. An operator that neither a program nor the reference runs
  // is Code::unsupported, naming it.
  static Result<std::unique_ptr<GraphRunner>> prepare(const Graph& graph, const KernelSource& kernels,
                                                      const RunnerOptions& options = {});
  ~GraphRunner();

  // One datum per graph input, in order, checked against the declared types. Outputs own their bytes. Several threads
  // may run at once.
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, const RunMeans& means = {}) const;
  // The same into `outputs`, one for each output. One that holds a tensor of the output's element type and extents is
  // written to, whoever shares its bytes, where programs make the output; every other is replaced. They overlap no
  // input and not each other; after an error they hold anything. A graph that is one program takes nothing from the
  // heap when it runs with extents that it has seen, into tensors that fit.
  Result<void> run_into(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                        const RunMeans& means = {}) const;
  // HostRun::bind: of a graph that is one program, once it has run with these extents.
  Result<std::unique_ptr<BoundRun>> bind(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                         const RunMeans& means = {}) const;

  const RunnerReport& report() const;
  // Memory of one run, and what no plan could beat: programs as bound so far, and what the interpreter plans.
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;
  // Of these, what may lie in RunMeans::arena.
  size_t lendable_bytes() const;

  // The programs, in the order in which they run.
  std::vector<const GraphProgram*> programs() const;
  // Of each program as it was run last, or bound: its arenas. What the interpreter plans is not among them.
  std::vector<MemoryChart> memory_charts() const;

 private:
  struct Impl;
  explicit GraphRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::irgen
