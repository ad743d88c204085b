// Compilation: from a graph to an executable model.
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

// Result of a target on the whole graph before placement (TargetBackend::add_prepare). Passes that only change the form
// of the graph keep its numbers; those that quantise do not, so the graph before them is kept.
struct Preparation {
  std::string target;
  PassReport passes;
  std::shared_ptr<const Graph> before, after;
};

struct CompileOptions {
  // In order of preference; each operator goes to the first that accepts it. "auto": the best that is available. The
  // reference takes the rest.
  std::vector<std::string> targets = {"auto"};
  // Makes an operator that all `targets` refuse an error that names it and the reasons.
  bool no_fallback = false;
  // Least share of operators that the first target must run, 0 to 1; a smaller share is an error with the report.
  double min_coverage = 0;
  // False skips the generic passes, to test them.
  bool optimize = true;
  // Lets targets change the whole graph beforehand, and its numbers with it. Without, numbers stay those of the model.
  bool prepare = true;
  PassOptions passes;  // verify, dump, timing, stop after
  // Layouts by the name of a value of the model (set_layout); they take precedence over value_layouts of the targets'
  // descriptions. Passes run with them; a layout is lost, with a warning, with a value that a pass removes.
  std::map<std::string, std::string> layouts;
  // Receives the preparations that changed the graph, in order, with copies of it (weights are shared).
  std::vector<Preparation>* preparations = nullptr;
};

// Verifies, optimises, partitions, and compiles each part on its target. The graph is consumed.
TENON_API Result<std::unique_ptr<CompiledModel>> compile(std::unique_ptr<Graph> graph, TargetRegistry& registry,
                                                         const CompileOptions& options = {});

// The first step of compile() in tensor selection: assign-layouts with the target's kernels and costs, where the target
// has kernels for some operator of `graph` or a value has a pinned layout; nothing otherwise. `backend` must outlive
// the passes.
TENON_API Result<void> add_layouts(PassManager& passes, const Graph& graph, const TargetBackend& backend,
                                   std::shared_ptr<LayoutReport> report = nullptr);

// Loads the graph of a model file: text IR when the name ends in .tir, ONNX otherwise.
TENON_API Result<std::unique_ptr<Graph>> load_graph(const std::string& path);

// load_graph, then compile.
TENON_API Result<std::unique_ptr<CompiledModel>> compile_file(const std::string& path, TargetRegistry& registry,
                                                              const CompileOptions& options = {});

}  // namespace tenon
