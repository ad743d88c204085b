// CompiledModel: the interface for integrators. A graph cut into segments, each an executable of one target, with
// copies where values cross between devices. Needs no compiler: it can be loaded from an artefact with
// libtenon_runtime.so alone.
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

// Where one operator was placed, and which targets refused it first.
struct PlacementEntry {
  std::string op, label, target;
  std::vector<std::pair<std::string, std::string>> refusals;  // target, reason
};
struct TENON_API PlacementReport {
  std::vector<PlacementEntry> entries;  // in graph order
  // Share of operators (not counting constants) that run on `target`; 1 for an empty graph.
  double coverage(std::string_view target) const;
  // A table: the operators of each target, and the number of refusals per reason.
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
    std::vector<std::pair<size_t, Tensor>> constants;  // slots known before a run
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
  // Memory of one run: that of segments, and for values between them where extents are known (from types, or from
  // runs).
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;

  // One datum per input, in order, of its declared type. Outputs own their bytes. Thread-safe; concurrent runs are
  // independent. For outputs of 1 MiB and more: once nobody holds those of the last run any more, the next run reuses
  // their memory, which stays with the model until then.
  Result<std::vector<Datum>> run(std::span<const Datum> inputs, const RunOptions& options = {}) const;
  // The same into `outputs`, one entry per output. An entry that holds a tensor of the output's element type and
  // extents is written in place where the target can, even if its bytes are shared; every other entry is replaced.
  // Entries overlap neither an input nor each other; after an error their contents are unspecified. On targets of the
  // host, such a run allocates nothing when its inputs have the same extents as before.
  Result<void> run_into(std::span<const Datum> inputs, std::span<Datum> outputs, const RunOptions& options = {}) const;
  // For repeated runs on these inputs into these outputs: CompiledModel::run_into without the work that need not be
  // repeated. Outputs as for run_into; those that are not places are allocated by the first run. The model, and the
  // objects that `options` points to, outlive the result.
  Result<std::unique_ptr<BoundModel>> bind(std::vector<Datum> inputs, std::vector<Datum> outputs = {},
                                           const RunOptions& options = {}) const;
  // The same in the background. The model must outlive the future; inputs are shared, not copied.
  std::future<Result<std::vector<Datum>>> run_async(std::vector<Datum> inputs, RunOptions options = {}) const;

  // Artefacts: one file with the compiled form of every segment, and the description of its target, which then need not
  // be installed where it runs. Code::unsupported names the target that has no compiled form.
  Result<void> save(const std::string& path) const;
  // `targets` replace descriptions of targets in the artefact, for example where a driver is elsewhere on this machine;
  // a target that the artefact does not use is an error. Only `targets` may give a driver as the path of a library: an
  // artefact does not determine which code is loaded.
  static Result<std::unique_ptr<CompiledModel>> load(const std::string& path, TargetRegistry& registry,
                                                     std::span<const TargetDescription> targets = {});
  // Whether the file begins like an artefact.
  static bool is_artefact(const std::string& path);

 private:
  struct Impl;
  explicit CompiledModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  friend class BoundModel;
};

// Not thread-safe; several bound models of one model may run concurrently.
//
//   TENON_TRY(bound, model->bind({x}, {y}));
//   for (;;) {
//     fill(x);                    // new bytes in place
//     TENON_OK(bound->run());     // y has the results
//   }
class TENON_API BoundModel {
 public:
  ~BoundModel();
  // After an error the contents of outputs are unspecified, and further runs are allowed.
  Result<void> run() {
    if (!only_.run) [[unlikely]]
      return run_steps();
    only_.run(only_.words);
    return {};
  }
  const std::vector<Datum>& inputs() const;
  // Where every run writes them. After the first run they do not move, unless their extents depend on the inputs'
  // values.
  const std::vector<Datum>& outputs() const;

 private:
  friend class CompiledModel;
  struct Impl;
  explicit BoundModel(std::unique_ptr<Impl> impl);
  Result<void> run_steps();
  std::unique_ptr<Impl> impl_;
  std::vector<SettledCall> settled_;  // all that a run does, or empty
  SettledCall only_;                  // when it is a single call: for short models each indirection is measurable
};

}  // namespace tenon
