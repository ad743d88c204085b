#include <tenon/compile/compile.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <tenon/compile/partition.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/passes/assign_layouts.hpp>
#include <tenon/passes/standard.hpp>
#include <tenon/plugin/graph_values.hpp>
#include <tenon/support/log.hpp>

namespace tenon {
namespace {

using Backends = std::vector<std::unique_ptr<TargetBackend>>;

// The wanted targets in order, then the reference to take what they leave.
Result<Backends> open_targets(TargetRegistry& registry, const CompileOptions& options) {
  Backends backends;
  const auto open = [&](const std::string& wanted) -> Result<void> {
    TENON_TRY(backend, registry.open(wanted), "opening target '", wanted, "'");
    const bool twice = std::any_of(backends.begin(), backends.end(),
                                   [&](const auto& other) { return other->name() == backend->name(); });
    if (!twice) backends.push_back(std::move(backend));
    return {};
  };
  if (options.targets.empty()) return error(Code::invalid_argument, "no target is given to compile for");
  for (const std::string& target : options.targets) {
    TENON_OK(open(target == "auto" ? registry.best_target() : target));
  }
  if (!options.no_fallback) TENON_OK(open("reference"));
  return backends;
}

// By name: text and names of dims, which may be empty.
using Layouts = std::map<std::string, std::pair<std::string, std::string>>;

// Of values in the graph.
Layouts pinned_layouts(const Graph& graph) {
  Layouts all;
  const auto add = [&](const Value& value) {
    const ValueLayout* layout = value.layout();
    if (layout && layout->pinned && !value.name().empty()) all[value.name()] = {layout->text, layout->dims};
  };
  for (size_t i = 0; i < graph.body().input_count(); ++i) add(*graph.body().input(i));
  for (const Op& op : graph.body()) {
    for (size_t i = 0; i < op.result_count(); ++i) add(*op.result(i));
  }
  return all;
}

// Of the targets, the first of them last, so that its word counts; then of the options. With those that were there.
Result<Layouts> put_layouts(Graph& graph, const Backends& backends, const CompileOptions& options) {
  Layouts all = pinned_layouts(graph);
  const auto put = [&](const std::map<std::string, std::string>& layouts) -> Result<void> {
    for (const auto& [value, layout] : layouts) {
      TENON_OK(set_layout(graph, value, layout), "the layout ", quote(layout), " for '", value, "'");
      all[value] = {layout, ""};
    }
    return {};
  };
  for (auto backend = backends.rbegin(); backend != backends.rend(); ++backend) {
    TENON_OK(put((*backend)->description().value_layouts), "value_layouts of target '", (*backend)->name(), "'");
  }
  TENON_OK(put(options.layouts));
  return all;
}

// Passes make new values under old names, and remove some.
Result<void> renew_layouts(Graph& graph, const Layouts& layouts) {
  for (const auto& [value, layout] : layouts) {
    auto set = set_layout(graph, value, layout.first, layout.second);
    if (set.ok()) continue;
    if (set.error().code() != Code::not_found) return set;
    log(LogLevel::warning, "value '", value, "' was optimised away, and its layout ", quote(layout.first), " with it");
  }
  return {};
}

bool changed(const PassReport& report) {
  return std::any_of(report.passes.begin(), report.passes.end(), [](const PassTiming& pass) { return pass.changed; });
}

// Each target's passes on the whole graph, in the order in which targets were named.
Result<void> prepare(Graph& graph, const Backends& backends, const CompileOptions& options) {
  for (const auto& backend : backends) {
    PassManager passes(str("preparation of ", backend->name()));
    TENON_OK(backend->add_prepare(passes), "adding the passes of ", passes.name());
    if (passes.passes().empty()) continue;
    const std::shared_ptr<const Graph> before = options.preparations ? graph.clone() : nullptr;
    PassOptions pass_options = options.passes;
    pass_options.stop_after.clear();
    TENON_TRY(report, passes.run(graph, pass_options), passes.name());
    TENON_OK(verify(graph), "the verifier, after ", passes.name());
    if (!changed(report)) continue;
    log(LogLevel::info, passes.name(), " of '", graph.name(), "':\n", report.to_string());
    if (options.preparations)
      options.preparations->push_back({backend->name(), std::move(report), before, graph.clone()});
  }
  return {};
}

// The four phases of one target on its part of the graph.
Result<std::unique_ptr<Executable>> compile_part(std::unique_ptr<Graph> graph, TargetBackend& backend,
                                                 const PassOptions& options, LayoutReport& layouts) {
  using AddPasses = Result<void> (TargetBackend::*)(PassManager&);
  static constexpr std::pair<const char*, AddPasses> kPhases[] = {
      {"tensor selection", &TargetBackend::add_tensor_sel},
      {"tensor scheduling", &TargetBackend::add_tensor_sched},
      {"memory allocation", &TargetBackend::add_mem_alloc},
      {"code emission", &TargetBackend::add_code_emit},
  };
  const auto report = std::make_shared<LayoutReport>();
  for (const auto& entry : kPhases) {
    const auto& [name, add] = entry;
    PassManager passes(str(name, " of ", backend.name()));
    // First, where operators are still the generic ones that kernels are stated for.
    if (&entry == kPhases) TENON_OK(add_layouts(passes, *graph, backend, report));
    TENON_OK((backend.*add)(passes), "adding the passes of ", passes.name());
    if (passes.passes().empty()) continue;
    PassOptions phase = options;
    phase.stop_after.clear();
    TENON_OK(passes.run(*graph, phase), passes.name());
    TENON_OK(verify(*graph), "the verifier, after ", passes.name());
  }
  layouts.append(*report);
  return backend.build(std::move(graph));
}

}  // namespace

Result<void> add_layouts(PassManager& passes, const Graph& graph, const TargetBackend& backend,
                         std::shared_ptr<LayoutReport> report) {
  const auto has_kernels = [&](const Op& op) { return !backend.layout_kernels(op).empty(); };
  const Region& body = graph.body();
  if (!has_pinned_layouts(graph) && std::none_of(body.begin(), body.end(), has_kernels)) return {};
  AssignLayoutsOptions options;
  options.kernels = [&backend](const Op& op) { return backend.layout_kernels(op); };
  options.costs = backend.layout_costs();
  return passes.add(assign_layouts_pass(std::move(options), std::move(report)));
}

Result<std::unique_ptr<CompiledModel>> compile(std::unique_ptr<Graph> graph, TargetRegistry& registry,
                                               const CompileOptions& options) {
  // Targets first: a plugin may define operators that the graph uses.
  TENON_TRY(backends, open_targets(registry, options));
  TENON_OK(verify(*graph), "verifying graph '", graph->name(), "'");
  TENON_TRY(layouts, put_layouts(*graph, backends, options));
  if (options.optimize) {
    TENON_TRY(passes, standard_passes());
    TENON_OK(passes.run(*graph, options.passes), "optimising graph '", graph->name(), "'");
    TENON_OK(renew_layouts(*graph, layouts));
    TENON_OK(verify(*graph), "the verifier, after the standard passes");
  }
  if (options.prepare) TENON_OK(prepare(*graph, backends, options), "preparing graph '", graph->name(), "'");
  std::vector<const TargetBackend*> views;
  for (const auto& backend : backends) views.push_back(backend.get());
  TENON_TRY(cut, partition(*graph, views), "placing graph '", graph->name(), "'");
  log(LogLevel::info, "placement of '", graph->name(), "':\n", cut.placement.to_string());
  const double coverage = cut.placement.coverage(backends[0]->name());
  if (coverage < options.min_coverage) {
    return error(Code::unsupported, "target '", backends[0]->name(), "' runs ", coverage * 100,
                 "% of the operators of '", graph->name(), "', min_coverage asks for ", options.min_coverage * 100,
                 "%\n", cut.placement.to_string());
  }

  CompiledModel::Parts parts;
  parts.name = graph->name();
  parts.inputs = inputs_of(graph->body());
  parts.outputs = outputs_of(graph->body());
  parts.slots = cut.slots;
  parts.constants = std::move(cut.constants);
  parts.output_slots = std::move(cut.output_slots);
  parts.placement = std::move(cut.placement);
  graph.reset();  // the parts hold what they need; weights are shared
  for (GraphPart& part : cut.parts) {
    TargetBackend& backend = *backends[part.target];
    TENON_TRY(executable, compile_part(std::move(part.graph), backend, options.passes, parts.layouts), "compiling '",
              parts.name, "' for target '", backend.name(), "'");
    parts.segments.push_back({backend.name(), std::move(executable), std::move(part.inputs), std::move(part.outputs)});
  }
  if (!parts.layouts.empty()) {
    log(LogLevel::info, "layouts of '", parts.name, "':\n", parts.layouts.to_string());
  }
  return CompiledModel::assemble(std::move(parts));
}

Result<std::unique_ptr<Graph>> load_graph(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) return error(Code::not_found, "there is no file '", path, "'");
  if (std::filesystem::is_directory(path, status))
    return error(Code::io, "'", path, "' is a folder; name the file of a model");
  if (CompiledModel::is_artefact(path))
    return error(Code::invalid_argument, "'", path, "' is a compiled artefact; name the model that it was made of");
  if (!path.ends_with(".tir")) return import_model(path);
  if (!std::filesystem::is_regular_file(path, status)) return error(Code::io, "'", path, "' is not a regular file");
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) return error(Code::io, "cannot read '", path, "'");
  return parse_graph(text, path);
}

Result<std::unique_ptr<CompiledModel>> compile_file(const std::string& path, TargetRegistry& registry,
                                                    const CompileOptions& options) {
  // A plugin's operators must be known before its models are read.
  TENON_OK(open_targets(registry, options));
  TENON_TRY(graph, load_graph(path));
  return compile(std::move(graph), registry, options);
}

}  // namespace tenon
