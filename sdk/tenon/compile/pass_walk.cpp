#include <tenon/compile/pass_walk.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/assign_layouts.hpp>
#include <tenon/passes/standard.hpp>
#include <tenon/plugin/graph_values.hpp>
#include <tenon/support/log.hpp>

namespace tenon {
namespace {

using Backends = std::vector<std::unique_ptr<TargetBackend>>;

// By name of the value: text and names of dims, which may be empty.
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

// Applies the layouts of the targets, the first target last, so that it takes precedence; then those of the options.
// Returns them together with the existing ones.
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

// Passes create new values under old names, and remove some.
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

struct Phase {
  const char* name;
  Result<void> (TargetBackend::*add)(PassManager&);
};
constexpr Phase kPhases[] = {
    {"tensor selection", &TargetBackend::add_tensor_sel},
    {"tensor scheduling", &TargetBackend::add_tensor_sched},
    {"memory allocation", &TargetBackend::add_mem_alloc},
    {"code emission", &TargetBackend::add_code_emit},
};

Result<PassManager> passes_of(const Phase& phase, const Graph& graph, TargetBackend& backend,
                              const std::shared_ptr<LayoutReport>& layouts) {
  PassManager passes(str(phase.name, " of ", backend.name()));
  // First, while operators are still the generic ones for which kernels are stated.
  if (&phase == kPhases) TENON_OK(add_layouts(passes, graph, backend, layouts));
  TENON_OK((backend.*phase.add)(passes), "adding the passes of ", passes.name());
  return passes;
}

PassOptions without_stop(PassOptions options) {
  options.stop_after.clear();
  return options;
}

// The whole graph as the single part before placement.
Partition as_one_part(std::unique_ptr<Graph> graph) {
  Partition cut;
  GraphPart whole{WalkedGraph::kNoTarget, std::move(graph), {}, {}};
  for (size_t i = 0; i < whole.graph->body().input_count(); ++i) whole.inputs.push_back(cut.slots++);
  for (size_t i = 0; i < whole.graph->body().output_count(); ++i) whole.outputs.push_back(cut.slots++);
  cut.output_slots = whole.outputs;
  cut.parts.push_back(std::move(whole));
  return cut;
}

}  // namespace

// One walk. It stops at a step that the limit forbids.
class PassWalk::Run {
 public:
  Run(const PassWalk& walk, int64_t limit) : backends_(walk.backends_), options_(walk.options_), limit_(limit) {}

  Result<WalkedGraph> all(std::unique_ptr<Graph> graph, const Finished& finished) {
    TENON_OK(verify(*graph), "verifying graph '", graph->name(), "'");
    TENON_TRY(layouts, put_layouts(*graph, backends_, options_));
    walked_.name = graph->name();
    if (options_.optimize) {
      TENON_TRY(passes, standard_passes());
      TENON_OK(steps(passes, *graph, options_.passes), "optimising graph '", graph->name(), "'");
      if (stopped()) return whole(std::move(graph));
      TENON_OK(renew_layouts(*graph, layouts));
      TENON_OK(verify(*graph), "the verifier, after the standard passes");
    }
    if (options_.prepare) TENON_OK(prepare(*graph), "preparing graph '", graph->name(), "'");
    walked_.prepared_steps = walked_.steps;
    if (stopped()) return whole(std::move(graph));
    TENON_OK(place(*graph));
    describe(*graph);
    graph.reset();  // the parts hold what they need; weights are shared
    for (GraphPart& part : walked_.cut.parts) {
      if (stopped()) break;
      TargetBackend& backend = *backends_[part.target];
      TENON_OK(finish(part, backend, finished), "compiling '", walked_.name, "' for target '", backend.name(), "'");
    }
    return std::move(walked_);
  }

 private:
  bool stopped() const { return limit_ >= 0 && walked_.steps >= limit_; }

  void describe(const Graph& graph) {
    walked_.inputs = inputs_of(graph.body());
    walked_.outputs = outputs_of(graph.body());
  }
  WalkedGraph whole(std::unique_ptr<Graph> graph) {
    walked_.prepared_steps = walked_.steps;
    describe(*graph);
    walked_.cut = as_one_part(std::move(graph));
    return std::move(walked_);
  }

  Result<PassReport> steps(const PassManager& passes, Graph& graph, PassOptions options) {
    if (limit_ >= 0) {
      const int64_t left = limit_ - walked_.steps;
      options.limit = options.limit < 0 ? left : std::min(options.limit, left);
    }
    TENON_TRY(report, passes.run(graph, options), passes.name());
    walked_.steps += report.runs;
    if (report.runs > 0) walked_.phase = passes.name(), walked_.pass = report.last, walked_.in_preparation = false;
    return report;
  }

  // Each target's passes on the whole graph, in the order in which targets were named.
  Result<void> prepare(Graph& graph) {
    for (const auto& backend : backends_) {
      PassManager passes(str("preparation of ", backend->name()));
      TENON_OK(backend->add_prepare(passes), "adding the passes of ", passes.name());
      if (passes.passes().empty()) continue;
      const std::shared_ptr<const Graph> before = options_.preparations ? graph.clone() : nullptr;
      TENON_TRY(report, steps(passes, graph, without_stop(options_.passes)));
      walked_.in_preparation = walked_.in_preparation || report.runs > 0;
      if (stopped()) return {};
      TENON_OK(verify(graph), "the verifier, after ", passes.name());
      if (!changed(report)) continue;
      log(LogLevel::info, passes.name(), " of '", graph.name(), "':\n", report.to_string());
      if (options_.preparations)
        options_.preparations->push_back({backend->name(), std::move(report), before, graph.clone()});
    }
    return {};
  }

  Result<void> place(const Graph& graph) {
    std::vector<const TargetBackend*> views;
    for (const auto& backend : backends_) views.push_back(backend.get());
    TENON_TRY(cut, partition(graph, views), "placing graph '", graph.name(), "'");
    log(LogLevel::info, "placement of '", graph.name(), "':\n", cut.placement.to_string());
    const double coverage = cut.placement.coverage(backends_[0]->name());
    if (coverage < options_.min_coverage) {
      return error(Code::unsupported, "target '", backends_[0]->name(), "' runs ", coverage * 100,
                   "% of the operators of '", graph.name(), "', min_coverage asks for ", options_.min_coverage * 100,
                   "%\n", cut.placement.to_string());
    }
    walked_.cut = std::move(cut);
    ++walked_.steps;
    walked_.phase = "placement", walked_.pass = "partition", walked_.in_preparation = false;
    return {};
  }

  Result<void> finish(GraphPart& part, TargetBackend& backend, const Finished& finished) {
    const auto report = std::make_shared<LayoutReport>();
    for (const Phase& phase : kPhases) {
      TENON_TRY(passes, passes_of(phase, *part.graph, backend, report));
      if (passes.passes().empty()) continue;
      TENON_OK(steps(passes, *part.graph, without_stop(options_.passes)));
      if (stopped()) return {};
      TENON_OK(verify(*part.graph), "the verifier, after ", passes.name());
    }
    walked_.layouts.append(*report);
    return finished ? finished(part) : Result<void>();
  }

  const std::vector<std::unique_ptr<TargetBackend>>& backends_;
  const CompileOptions& options_;
  const int64_t limit_;
  WalkedGraph walked_;
};

Result<PassWalk> PassWalk::open(TargetRegistry& registry, CompileOptions options) {
  PassWalk walk(std::move(options));
  TENON_OK(walk.open_targets(registry));
  return walk;
}

Result<void> PassWalk::open_targets(TargetRegistry& registry) {
  const auto open = [&](const std::string& wanted) -> Result<void> {
    TENON_TRY(description, registry.describe(wanted), "opening target '", wanted, "'");
    TENON_TRY(backend, registry.open(description), "opening target '", wanted, "'");
    const bool twice =
        std::ranges::any_of(backends_, [&](const auto& other) { return other->name() == backend->name(); });
    if (twice) return {};
    backends_.push_back(std::move(backend));
    descriptions_.push_back(std::move(description));
    return {};
  };
  if (options_.targets.empty()) return error(Code::invalid_argument, "no target is given to compile for");
  for (const std::string& target : options_.targets) TENON_OK(open(target == "auto" ? registry.best_target() : target));
  return options_.no_fallback ? Result<void>() : open("reference");
}

Result<WalkedGraph> PassWalk::run(std::unique_ptr<Graph> graph, int64_t limit, const Finished& finished) const {
  return Run(*this, limit).all(std::move(graph), finished);
}

Result<void> run_phases(Graph& graph, TargetBackend& backend, const PassOptions& options) {
  const auto layouts = std::make_shared<LayoutReport>();
  for (const Phase& phase : kPhases) {
    TENON_TRY(passes, passes_of(phase, graph, backend, layouts));
    if (passes.passes().empty()) continue;
    TENON_OK(passes.run(graph, without_stop(options)), passes.name());
    TENON_OK(verify(graph), "the verifier, after ", passes.name());
  }
  return {};
}

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

}  // namespace tenon
