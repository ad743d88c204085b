// The part of compilation before code generation: all passes on a graph, which are the standard ones, those of the
// targets' preparations, placement, and the four phases of each target on its parts. compile() runs all of it; the
// search for a wrong pass stops after a given step.
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

// A graph at some point of the walk.
struct WalkedGraph {
  std::string name;
  std::vector<ValueInfo> inputs, outputs;  // of the whole graph
  // Before placement there is one part without a target: the whole graph. Its target is kNoTarget.
  static constexpr size_t kNoTarget = static_cast<size_t>(-1);
  Partition cut;
  LayoutReport layouts;
  int64_t steps = 0;            // done so far: runs of passes, and placement
  int64_t prepared_steps = 0;   // those of them before placement
  std::string phase, pass;      // of the last step: "standard passes", "fold-pad"; empty before the first
  bool in_preparation = false;  // for that step: it may change numbers, see TargetBackend::add_prepare
};

class TENON_API PassWalk {
 public:
  // Opens the targets. `registry` and the objects that `options` points to outlive the walk.
  static Result<PassWalk> open(TargetRegistry& registry, CompileOptions options);

  // In order of preference; GraphPart::target is an index here.
  const std::vector<std::unique_ptr<TargetBackend>>& backends() const { return backends_; }
  // The description with which each was opened; the backend may have completed it.
  const std::vector<TargetDescription>& descriptions() const { return descriptions_; }

  // Runs `limit` steps, all when negative. `finished` receives each part after all its phases, before those of the next
  // part begin, and may take the part's graph; it is not called for parts that a limit cuts off.
  using Finished = std::function<Result<void>(GraphPart&)>;
  Result<WalkedGraph> run(std::unique_ptr<Graph> graph, int64_t limit = -1, const Finished& finished = {}) const;

 private:
  class Run;
  explicit PassWalk(CompileOptions options) : options_(std::move(options)) {}
  // The requested targets in order, then the reference for the remaining operators.
  Result<void> open_targets(TargetRegistry& registry);
  std::vector<std::unique_ptr<TargetBackend>> backends_;
  std::vector<TargetDescription> descriptions_;
  CompileOptions options_;
};

// The four phases of one target on a graph for it alone; TargetBackend::build then generates code.
TENON_API Result<void> run_phases(Graph& graph, TargetBackend& backend, const PassOptions& options = {});

}  // namespace tenon
