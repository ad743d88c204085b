// The part of compiling that lies before code: what all passes of a compilation make of a graph, standard ones, those
// of the targets' preparations, placement, and the four phases of each target on its parts. compile() goes to the end
// of it; whoever looks for a wrong pass stops on the way.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/compile/compile.hpp>
#include <tenon/compile/partition.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/ir/layout_report.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/plugin/target_registry.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// A graph somewhere on the walk.
struct WalkedGraph {
  std::string name;
  std::vector<ValueInfo> inputs, outputs;  // of the whole
  // Before placement one part, of no target: the whole graph. Its target is kNoTarget.
  static constexpr size_t kNoTarget = static_cast<size_t>(-1);
  Partition cut;
  LayoutReport layouts;
  int64_t steps = 0;            // made: runs of passes, and placement
  int64_t prepared_steps = 0;   // those before placement, as far as they were made
  std::string phase, pass;      // of the last step: "standard passes", "fold-pad"; empty when none was made
  bool in_preparation = false;  // that step: it may change numbers, see TargetBackend::add_prepare
};

class TENON_API PassWalk {
 public:
  // Opens the targets. `registry` and what `options` point to outlive the walk.
  static Result<PassWalk> open(TargetRegistry& registry, CompileOptions options);

  // In order of preference; GraphPart::target is an index here.
  const std::vector<std::unique_ptr<TargetBackend>>& backends() const { return backends_; }
  // What each was opened with; the backend may have filled it in.
  const std::vector<TargetDescription>& descriptions() const { return descriptions_; }

  // `limit` steps, all when negative. `finished` receives each part once all its phases are through, before those of
  // the next part begin, and may take the part's graph; it is not called for parts that a limit cuts off.
  using Finished = std::function<Result<void>(GraphPart&)>;
  Result<WalkedGraph> run(std::unique_ptr<Graph> graph, int64_t limit = -1, const Finished& finished = {}) const;

 private:
  class Run;
  explicit PassWalk(CompileOptions options) : options_(std::move(options)) {}
  // The wanted targets in order, then the reference to take what they leave.
  Result<void> open_targets(TargetRegistry& registry);
  std::vector<std::unique_ptr<TargetBackend>> backends_;
  std::vector<TargetDescription> descriptions_;
  CompileOptions options_;
};

// The four phases of one target on a graph for it alone; then TargetBackend::build makes code of it.
TENON_API Result<void> run_phases(Graph& graph, TargetBackend& backend, const PassOptions& options = {});

}  // namespace tenon
