// GraphRunner: a graph, ready to run on the host: as programs where programs can express it, the rest operator by
// operator.
//
//   TENON_TRY(runner, GraphRunner::prepare(graph, reference_kernels()));
//   TENON_TRY(outputs, runner->run(inputs, {.parallel = pool}));
//
// A graph that programs can express as a whole is one program. In other graphs, the largest groups of operators that
// can be expressed are programs, and the operators between them (control flow, sequences, strings, shapes that depend
// on data, values in layouts) are run by the reference interpreter. An operator whose kernel depends on a value known
// only to a run (KernelSource::late_operand) has one program per value, of which some are cached. A program with
// symbolic shapes is bound to the extents of a run; a few bindings are cached. Extents for which the operators' shape
// rules disagree with the program are left to the interpreter, which runs or rejects them.
//
// Results equal those of the interpreter bit for bit if the kernels are the reference's.
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

// An operator that is in no program, and why.
struct HostOp {
  std::string op, label, reason;
};
struct RunnerReport {
  size_t programs = 0;
  size_t program_ops = 0;  // operators that are statements or views of programs
  size_t late_ops = 0;     // operators whose programs are made during runs
  std::vector<HostOp> host_ops;
};

// Resources of a run other than inputs and outputs.
struct RunMeans {
  ParallelFor& parallel = serial();
  std::vector<OpProfile>* profile = nullptr;  // gets an entry for each operator that ran, in order
  // Memory for intermediate values, lendable_bytes() long and aligned to kAlignBytes, exclusive to the run. Programs
  // that need more allocate their own memory once. So do the programs of late operators (RunnerReport::late_ops), which
  // lendable_bytes() does not count, where the memory counted for others does not suffice.
  std::span<std::byte> arena = {};
};

class TENON_API GraphRunner {
 public:
  // The graph is verified, stays alive and does not change. An operator that neither a program nor the reference can
  // run is Code::unsupported; the error names it.
  static Result<std::unique_ptr<GraphRunner>> prepare(const Graph& graph, const KernelSource& kernels,
                                                      const RunnerOptions& options = {});
  ~GraphRunner();

  // One datum per graph input, in order, checked against the declared types. Outputs own their bytes. Thread-safe.
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, const RunMeans& means = {}) const;
  // The same into `outputs`, one entry per output. Where programs compute the output, an entry that holds a tensor of
  // the output's element type and extents is written in place, even if its bytes are shared; every other entry is
  // replaced. Entries overlap neither an input nor each other; after an error their contents are unspecified. A graph
  // that is one program allocates no heap memory when it runs with extents that it has seen before, into tensors that
  // fit.
  Result<void> run_into(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                        const RunMeans& means = {}) const;
  // HostRun::bind, for a graph that is one program, once it has run with these extents.
  Result<std::unique_ptr<BoundRun>> bind(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                         const RunMeans& means = {}) const;

  const RunnerReport& report() const;
  // Memory of one run, and the lower bound of any plan: programs as bound so far, and what the interpreter plans.
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;
  // The part of arena_bytes() that may lie in RunMeans::arena.
  size_t lendable_bytes() const;

  // The programs, in the order in which they run.
  std::vector<const GraphProgram*> programs() const;
  // The arenas of each program as it was last run or bound, without what the interpreter plans.
  std::vector<MemoryChart> memory_charts() const;

 private:
  struct Impl;
  explicit GraphRunner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::irgen
