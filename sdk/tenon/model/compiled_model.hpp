// CompiledModel: what integrators run. A graph cut into segments, each an executable of one target, with copies where
// values cross between devices. Needs no compiler: it may be loaded from an artefact with libtenon_runtime.so alone.
#pragma once
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/ir/layout_report.hpp>
#include <tenon/plugin/target_registry.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/support/settled_call.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

class BoundModel;

// Where one operator went, and who refused it first.
struct PlacementEntry {
  std::string op, label, target;
  std::vector<std::pair<std::string, std::string>> refusals;  // target, reason
};
struct TENON_API PlacementReport {
  std::vector<PlacementEntry> entries;  // in graph order
  // Share of operators (not counting constants) that run on `target`; 1 for an empty graph.
  double coverage(std::string_view target) const;
  // A table: per target the operators it runs; per refusal reason how often.
  std::string to_string() const;
};

class TENON_API CompiledModel {
 public:
  struct Segment {
    std::string target;
    std::shared_ptr<const Executable> executable;
    std::vector<size_t> inputs, outputs;  // slots
  };
  // Slots 0 .. inputs-1 hold the model's inputs; segments run in order; output i is slot output_slots[i].
  struct Parts {
    std::string name;
    std::vector<ValueInfo> inputs, outputs;
    size_t slots = 0;
    std::vector<std::pair<size_t, Tensor>> constants;  // slots known beforehand
    std::vector<Segment> segments;
    std::vector<TargetDescription> targets;  // of segments, as they were compiled for
    std::vector<size_t> output_slots;
    PlacementReport placement;
    LayoutReport layouts;  // of all segments
  };
  static Result<std::unique_ptr<CompiledModel>> assemble(Parts parts);
  ~CompiledModel();

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  const PlacementReport& placement() const;
  const LayoutReport& layouts() const { return parts().layouts; }
  const std::vector<Segment>& segments() const;
  const Parts& parts() const;
  // Memory of one run: of segments, and for values between them where their extents are known (from types, or runs).
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;

  // One datum per input, in order, of its declared type. Outputs own their bytes. Several threads may run at once; each
  // run is apart. Outputs of 1 MiB and more: once nobody holds the last run's any more, the next run writes to their
  // memory, which stays with the model until then.
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, const RunOptions& options = {}) const;
  // The same into `outputs`, one for each output. One that holds a tensor of the output's element type and extents is
  // written to where the target can, whoever shares its bytes; every other is replaced. None overlaps an input or
  // another; after an error they hold anything. On targets of the host, such a run with extents of inputs as before
  // takes no memory.
  Result<void> run_into(std::span<const Datum> inputs, std::span<Datum> outputs, const RunOptions& options = {}) const;
  // Runs on these inputs into these outputs, again and again: CompiledModel::run_into without what need not be done
  // each time. Outputs as run_into has them; those that are no places are made by the first run. The model, and what
  // `options` point to, outlive it.
  Result<std::unique_ptr<BoundModel>> bind(std::vector<Datum> inputs, std::vector<Datum> outputs = {},
                                           const RunOptions& options = {}) const;
  // The same in the background. The model must outlive the future; inputs are shared, not copied.
  std::future<Result<std::vector<Datum>>> run_async(std::vector<Datum> inputs, RunOptions options = {}) const;

  // Artefacts: one file with every segment's compiled form, and the description of its target, so that none has to be
  // installed where it runs. Code::unsupported names the target that has none.
  Result<void> save(const std::string& path) const;
  // `targets` describe targets of the artefact anew, such as one whose driver lies elsewhere here; one that it has
  // nothing for is an error. A driver that is the path of a library is taken from there alone: an artefact says nothing
  // about which code is loaded.
  static Result<std::unique_ptr<CompiledModel>> load(const std::string& path, TargetRegistry& registry,
                                                     std::span<const TargetDescription> targets = {});
  // Does the file begin like an artefact?
  static bool is_artefact(const std::string& path);

 private:
  struct Impl;
  explicit CompiledModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  friend class BoundModel;
};

// One thread at a time; several of a model may run at once.
//
//   TENON_TRY(bound, model->bind({x}, {y}));
//   for (;;) {
//     fill(x);                    // new bytes where they lie
//     TENON_OK(bound->run());     // y has the results
//   }
class TENON_API BoundModel {
 public:
  ~BoundModel();
  // After an error outputs hold anything, and runs may go on.
  Result<void> run() {
    if (!only_.run) [[unlikely]]
      return run_steps();
    only_.run(only_.words);
    return {};
  }
  const std::vector<Datum>& inputs() const;
  // Where every run writes them: from the first one on they stay where they are, unless their extents depend on the
  // inputs' values.
  const std::vector<Datum>& outputs() const;

 private:
  friend class CompiledModel;
  struct Impl;
  explicit BoundModel(std::unique_ptr<Impl> impl);
  Result<void> run_steps();
  std::unique_ptr<Impl> impl_;
  std::vector<SettledCall> settled_;  // all that a run does, or none
  SettledCall only_;  // when it is one call: whoever makes short ones again and again feels each pointer on the way
};

}  // namespace tenon
