// From a pipeline to a program.
#include <algorithm>

#include <tenon/program/pipeline/plan_internal.hpp>

namespace tenon::program {

namespace {

Result<void> declare(Plan& plan, const std::vector<int>& buffers, Role role) {
  for (const int b : buffers) {
    if (plan.buffer(b).role != Role::local)
      return error(Code::invalid_argument, "buffer '", plan.buffer_spec(b).name, "' is declared twice");
    plan.buffer(b).role = role;
  }
  return {};
}

// Checks symbols in the author's expressions, which may be scalars, bounds of buffers, and for a stage its indices.
Result<void> check_symbols(const Plan& plan, const Expr& e, const StagePlan* stage, std::string_view where) {
  for (const std::string& symbol : e.symbols()) {
    if (stage && stage->index_of(symbol) >= 0) continue;
    if (std::ranges::count(plan.scalars, symbol) || symbol == kThreadsSymbol) continue;
    if (const auto meta = parse_meta(symbol))
      if (std::ranges::any_of(plan.data.buffers,
                              [&](const BufferSpec& b) { return b.name == meta->buffer && meta->dim < b.rank; }))
        continue;
    return error(Code::invalid_argument, where, ": '", symbol, "' in ", e.to_string(), " is no index, scalar or bound");
  }
  return {};
}

Result<void> check_all_symbols(const Plan& plan) {
  for (const int s : plan.order) {
    const StageSpec& spec = plan.spec(s);
    const std::string where = str("stage '", spec.name, "'");
    for (const ReadSpec& read : spec.reads)
      for (const Window& w : read.windows)
        for (const Expr* e : {&w.first, &w.last}) TENON_OK(check_symbols(plan, *e, &plan.stage(s), where));
    for (const Expr& e : spec.scalars) TENON_OK(check_symbols(plan, e, nullptr, where));
    for (const LoopOver& loop : spec.loops)
      for (const Expr* e : {&loop.step, &loop.workers}) TENON_OK(check_symbols(plan, *e, nullptr, where));
  }
  return {};
}

// Bounds that the author declared for inputs and outputs replace the symbols of these.
void know_declared_bounds(Plan& plan) {
  for (int b = 0; b < static_cast<int>(plan.buffers.size()); ++b) {
    const BufferSpec& spec = plan.buffer_spec(b);
    for (int d = 0; plan.is_declared(b) && d < spec.rank; ++d)
      if (const auto& bounds = spec.dims[static_cast<size_t>(d)].bounds) {
        plan.known_bounds[std::string(min_of(spec.name, d).name())] = bounds->first;
        plan.known_bounds[std::string(extent_of(spec.name, d).name())] = bounds->extent();
      }
  }
}

Result<void> place(Plan& plan) {
  plan.stages.resize(plan.data.stages.size());
  plan.buffers.resize(plan.data.buffers.size());
  for (size_t b = 0; b < plan.data.buffers.size(); ++b)
    if (plan.data.buffers[b].constant) plan.buffers[b].role = Role::constant;
  TENON_OK(declare(plan, plan.inputs, Role::input));
  TENON_OK(declare(plan, plan.outputs, Role::output));
  TENON_OK(order_stages(plan));
  TENON_OK(check_all_symbols(plan));
  know_declared_bounds(plan);
  find_repeats(plan);
  return place_stages(plan);
}

}  // namespace

Result<Plan> plan_unscheduled(const PipelineData& data, const std::vector<BufferRef>& inputs,
                              const std::vector<BufferRef>& outputs, const BuildOptions& options) {
  Plan plan{data, options, {}, {}, data.scalars, {}, {}, {}, {}, {}, {}};
  for (const BufferRef& b : inputs) plan.inputs.push_back(PipelineData::id(b));
  for (const BufferRef& b : outputs) plan.outputs.push_back(PipelineData::id(b));
  TENON_OK(place(plan));
  return plan;
}

Result<Program> build_program(const PipelineData& stated, const std::vector<int>& inputs,
                              const std::vector<int>& outputs, const std::vector<std::string>& scalars,
                              const BuildOptions& options) {
  TENON_TRY(data, with_non_temporal_results(stated));
  Plan plan{data, options, inputs, outputs, scalars, {}, {}, {}, {}, {}, {}};
  TENON_OK(place(plan));
  if (std::ranges::any_of(plan.order, [&](int s) { return plan.spec(s).is_copy(); })) {
    alias_copies(plan);
    TENON_OK(place_stages(plan));
  }
  plan_windows(plan);
  alias_in_place(plan);
  return emit_program(plan);
}

}  // namespace tenon::program
