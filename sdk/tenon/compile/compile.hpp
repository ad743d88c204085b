// The walk: from a graph to something that runs.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/layout_report.hpp>
#include <tenon/model/compiled_model.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/target_registry.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// What a target made of the whole graph before operators were placed (TargetBackend::add_prepare). Passes that only
// bring the graph into another form keep its numbers; those that quantise do not, so that the graph before is kept.
struct Preparation {
  std::string target;
  PassReport passes;
  std::shared_ptr<const Graph> before, after;
};

struct CompileOptions {
  // In order of preference; each operator goes to the first that takes it. "auto": the best that is available. The
  // reference takes what is left.
  std::vector<std::string> targets = {"auto"};
  // An operator that none of `targets` takes is an error that names it and the reasons.
  bool no_fallback = false;
  // Least share of operators that the first target must run, 0 to 1; less is an error with the report.
  double min_coverage = 0;
  // Skip the generic passes: for checking them.
  bool optimize = true;
  // Let targets change the whole graph beforehand, and its numbers with it. Without, numbers stay those of the model.
  bool prepare = true;
  PassOptions passes;  // verify, dump, timing, stop after
  // Layouts by the name of a value of the model (set_layout); they overrule value_layouts of the targets' descriptions.
  // Passes run with them; a value that a pass has removed takes its layout along, with a warning.
  std::map<std::string, std::string> layouts;
  // Receives those that changed the graph, in order, with copies of it (weights are shared).
  std::vector<Preparation>* preparations = nullptr;
};

// Verifies, optimises, partitions, and compiles each part on its target. The graph is consumed.
TENON_API Result<std::unique_ptr<CompiledModel>> compile(std::unique_ptr<Graph> graph, TargetRegistry& registry,
                                                         const CompileOptions& options = {});

// What compile() does first in tensor selection: assign-layouts with the target's kernels and costs, where it has
// kernels for some operator of `graph` or a value has a pinned layout; nothing otherwise. `backend` must outlive the
// passes.
TENON_API Result<void> add_layouts(PassManager& passes, const Graph& graph, const TargetBackend& backend,
                                   std::shared_ptr<LayoutReport> report = nullptr);

// The graph of a model file: text IR when the name ends in .tir, ONNX otherwise.
TENON_API Result<std::unique_ptr<Graph>> load_graph(const std::string& path);

// load_graph, then compile.
TENON_API Result<std::unique_ptr<CompiledModel>> compile_file(const std::string& path, TargetRegistry& registry,
                                                              const CompileOptions& options = {});

}  // namespace tenon
