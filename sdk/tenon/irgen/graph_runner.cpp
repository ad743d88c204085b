#include <tenon/irgen/graph_runner.hpp>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/irgen/runner_part_internal.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/runtime/value_plan.hpp>

namespace tenon::irgen {

using detail::caught;
using detail::HostPart;
using detail::LatePart;
using detail::PartRun;
using detail::PartSource;
using detail::ProgramPart;
using detail::RunnerPart;
using detail::take_scalars;

namespace {

constexpr size_t kNowhere = SIZE_MAX;

// A part, with the sources of its inputs and the destinations of its outputs.
struct Step {
  std::unique_ptr<RunnerPart> part;
  std::vector<size_t> inputs, outputs;  // slots
  std::vector<size_t> dead;             // slots without later readers
};

// Whether the graph's inputs and outputs are those of the part, in order.
bool covers(const GraphPart& part, const Region& body) {
  bool same = part.inputs.size() == body.input_count() && part.outputs.size() == body.output_count();
  for (size_t i = 0; same && i < part.inputs.size(); ++i) same = part.inputs[i] == body.input(i);
  for (size_t i = 0; same && i < part.outputs.size(); ++i) same = part.outputs[i] == body.output(i);
  return same;
}

Result<std::unique_ptr<RunnerPart>> make_part(CutPart part, const PartSource& source, bool whole) {
  std::unique_ptr<RunnerPart> made;
  if (part.kind == PartKind::program) {
    TENON_TRY(program, ProgramPart::make(std::move(part.part), source, whole));
    made = std::move(program);
  } else if (part.kind == PartKind::host) {
    TENON_TRY(host, HostPart::make(part.part, source, whole));
    made = std::move(host);
  } else {
    made = std::make_unique<LatePart>(part.part, source);
  }
  return made;
}

bool has_symbols(const Type& type) { return type.is_tensor() && type.shape().ranked() && !type.shape().is_static(); }

}  // namespace

struct GraphRunner::Impl {
  std::unique_ptr<Graph> own_graph;  // when operators had to be decomposed
  const Graph* graph = nullptr;
  std::optional<GraphTypes> types;
  OpPlans plans;
  RunnerOptions options;
  std::optional<PartSource> source;
  std::vector<Step> steps;
  bool whole = false;              // one part, whose inputs and outputs are those of the graph
  ProgramPart* program = nullptr;  // that part, if it is a program
  size_t slots = 0;
  std::vector<std::pair<size_t, Tensor>> constants;  // that are outputs
  std::vector<size_t> input_slots, output_slots;
  std::vector<size_t> symbolic_inputs;  // whose extents are scalars of programs
  std::vector<bool> copy_output;        // outputs whose bytes may be those of an input, a constant or another output
  std::vector<const Value*> slot_values;
  RunnerReport report;

  size_t add_slot(const Value& value, std::unordered_map<const Value*, size_t>& slot_of) {
    slot_of[&value] = slots;
    slot_values.push_back(&value);
    return slots++;
  }
  size_t output_count() const { return graph->body().output_count(); }
  Result<void> make_steps(std::vector<CutPart> parts);
  void make_outputs(std::unordered_map<const Value*, size_t>& slot_of);
  void find_dead();
  void describe(const std::vector<CutPart>& parts);
  using Inputs = std::span<const Datum* const>;
  using Outputs = std::span<Datum* const>;
  Result<void> run(Inputs inputs, Outputs outputs, const RunMeans& means) const;
  Result<void> run_checked(Inputs inputs, Outputs outputs, const RunMeans& means) const;
  Result<void> run_in_slots(Inputs inputs, Outputs outputs, PartRun& with) const;
};

GraphRunner::GraphRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GraphRunner::~GraphRunner() = default;

Result<std::unique_ptr<GraphRunner>> GraphRunner::prepare(const Graph& graph, const KernelSource& kernels,
                                                          const RunnerOptions& options) {
  auto impl = std::make_unique<Impl>();
  TENON_TRY(rebuilt, decomposed(graph));
  impl->own_graph = std::move(rebuilt);
  impl->graph = impl->own_graph ? impl->own_graph.get() : &graph;
  impl->options = options;
  impl->types = GraphTypes::of(*impl->graph);
  impl->plans = plan_ops(*impl->graph, *impl->types, kernels);
  impl->source.emplace(PartSource{*impl->graph, *impl->types, impl->plans, kernels, impl->options});
  auto parts = cut(*impl->graph, *impl->types, impl->plans);
  impl->describe(parts);
  TENON_OK(impl->make_steps(std::move(parts)), "preparing graph '", graph.name(), "'");
  return std::unique_ptr<GraphRunner>(new GraphRunner(std::move(impl)));
}

void GraphRunner::Impl::describe(const std::vector<CutPart>& parts) {
  for (const CutPart& part : parts) {
    const bool program = part.kind == PartKind::program;
    report.programs += program;
    if (program) report.program_ops += part.part.ops.size();
    if (part.kind == PartKind::late) ++report.late_ops;
    if (part.kind != PartKind::host) continue;
    for (const Op* op : part.part.ops) {
      const std::string& why = plans.at(op).why_not;
      report.host_ops.push_back({op->name().str(), op->label(), why.empty() ? "it stands among such" : why});
    }
  }
}

Result<void> GraphRunner::Impl::make_steps(std::vector<CutPart> parts) {
  const Region& body = graph->body();
  std::unordered_map<const Value*, size_t> slot_of;
  for (size_t i = 0; i < body.input_count(); ++i) {
    input_slots.push_back(add_slot(*body.input(i), slot_of));
    if (has_symbols(types->type_of(*body.input(i)))) symbolic_inputs.push_back(i);
  }
  whole = parts.size() == 1 && covers(parts[0].part, body);
  for (CutPart& part : parts) {
    Step step;
    for (const Value* value : part.part.inputs) step.inputs.push_back(slot_of.at(value));
    // A part that is the whole graph has the graph's outputs, including inputs and repeated values.
    for (const Value* value : part.part.outputs)
      step.outputs.push_back(whole && slot_of.contains(value) ? slots++ : add_slot(*value, slot_of));
    slot_values.resize(slots);
    if (whole) output_slots = step.outputs;
    const bool is_program = part.kind == PartKind::program;
    TENON_TRY(made, make_part(std::move(part), *source, whole));
    step.part = std::move(made);
    if (whole && is_program) program = static_cast<ProgramPart*>(step.part.get());
    steps.push_back(std::move(step));
  }
  if (whole) return {};
  make_outputs(slot_of);
  find_dead();
  return {};
}

void GraphRunner::Impl::make_outputs(std::unordered_map<const Value*, size_t>& slot_of) {
  const Region& body = graph->body();
  std::unordered_set<const Value*> seen;
  for (size_t i = 0; i < body.output_count(); ++i) {
    const Value* value = body.output(i);
    if (!value) {
      output_slots.push_back(kNowhere);
      copy_output.push_back(false);
      continue;
    }
    if (!slot_of.contains(value)) constants.emplace_back(add_slot(*value, slot_of), *constant_of(value));
    output_slots.push_back(slot_of.at(value));
    const bool made = value->producer() && !isa<Constant>(*value->producer());
    copy_output.push_back(!made || !seen.insert(value).second);
  }
}

void GraphRunner::Impl::find_dead() {
  std::vector<size_t> last(slots, kNowhere);
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const size_t slot : steps[s].outputs) last[slot] = s;
    for (const size_t slot : steps[s].inputs) last[slot] = s;
  }
  for (const size_t slot : output_slots)
    if (slot != kNowhere) last[slot] = kNowhere;
  for (size_t slot = 0; slot < slots; ++slot)
    if (last[slot] != kNowhere) steps[last[slot]].dead.push_back(slot);
}

Result<void> GraphRunner::Impl::run_in_slots(Inputs inputs, Outputs outputs, PartRun& with) const {
  std::vector<Datum> values(slots);
  std::vector<const Datum*> at(slots);
  std::vector<Datum*> into(slots);
  for (size_t slot = 0; slot < slots; ++slot) at[slot] = into[slot] = &values[slot];
  for (const auto& [slot, tensor] : constants) values[slot] = tensor;
  for (size_t i = 0; i < inputs.size(); ++i) at[input_slots[i]] = inputs[i];
  for (size_t i = 0; i < outputs.size(); ++i)
    if (output_slots[i] != kNowhere && !copy_output[i]) at[output_slots[i]] = into[output_slots[i]] = outputs[i];
  std::vector<const Datum*> operands;
  std::vector<Datum*> results;
  for (const Step& step : steps) {
    operands.clear();
    results.clear();
    for (const size_t slot : step.inputs) operands.push_back(at[slot]);
    for (const size_t slot : step.outputs) results.push_back(into[slot]);
    TENON_OK(step.part->run(operands, results, with));
    for (const size_t slot : step.outputs)
      if (slot_values[slot]) take_scalars(types->type_of(*slot_values[slot]), *at[slot], with.scalars);
    for (const size_t slot : step.dead) values[slot] = Datum();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (output_slots[i] == kNowhere)
      *outputs[i] = Datum();
    else if (copy_output[i])
      TENON_OK(copy_value(*at[output_slots[i]], *outputs[i]), "output ", i);
  }
  return {};
}

Result<void> GraphRunner::Impl::run_checked(Inputs inputs, Outputs outputs, const RunMeans& means) const {
  std::vector<Datum> data;
  for (const Datum* input : inputs) data.push_back(*input);
  TENON_OK(check_inputs(*graph, data));
  SymbolValues scalars;
  for (const size_t i : symbolic_inputs)
    take_scalars(types->type_of(*slot_values[input_slots[i]]), *inputs[i], scalars);
  PartRun with{means, scalars};
  return whole ? steps[0].part->run(inputs, outputs, with) : run_in_slots(inputs, outputs, with);
}

Result<void> GraphRunner::Impl::run(Inputs inputs, Outputs outputs, const RunMeans& means) const {
  return caught([&]() -> Result<void> {
    // Inputs that a bound program serves are of the declared types, and consistent in their symbols.
    if (program)
      if (auto done = program->run_known(inputs, outputs, means)) return *std::move(done);
    return run_checked(inputs, outputs, means);
  });
}

Result<std::vector<Datum>> GraphRunner::run(std::span<const Datum> inputs, const RunMeans& means) const {
  std::vector<const Datum*> given;
  for (const Datum& input : inputs) given.push_back(&input);
  std::vector<Datum> outputs(impl_->output_count());
  std::vector<Datum*> places;
  for (Datum& output : outputs) places.push_back(&output);
  TENON_OK(run_into(given, places, means));
  return outputs;
}

Result<void> GraphRunner::run_into(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                   const RunMeans& means) const {
  if (outputs.size() != impl_->output_count())
    return error(Code::invalid_argument, "graph '", impl_->graph->name(), "' has ", impl_->output_count(),
                 " outputs, places for ", outputs.size(), " are given");
  TENON_OK(impl_->run(inputs, outputs, means), "graph '", impl_->graph->name(), "'");
  return {};
}

Result<std::unique_ptr<BoundRun>> GraphRunner::bind(std::span<const Datum* const> inputs,
                                                    std::span<Datum* const> outputs, const RunMeans& means) const {
  if (!impl_->program || outputs.size() != impl_->output_count()) return std::unique_ptr<BoundRun>();
  return impl_->program->bind(inputs, outputs, means);
}

const RunnerReport& GraphRunner::report() const { return impl_->report; }

// Parts run one after another and share the lent memory.
size_t GraphRunner::lendable_bytes() const {
  size_t most = 0;
  for (const Step& step : impl_->steps) most = std::max(most, step.part->lendable_bytes());
  return most;
}

size_t GraphRunner::arena_bytes() const {
  size_t bytes = lendable_bytes();
  for (const Step& step : impl_->steps) bytes += step.part->own_bytes();
  return bytes;
}

size_t GraphRunner::arena_lower_bound_bytes() const {
  size_t own = 0, most = 0;
  for (const Step& step : impl_->steps) {
    const size_t bytes = step.part->arena_lower_bound_bytes();
    if (step.part->lendable_bytes() > 0)
      most = std::max(most, bytes);
    else
      own += bytes;
  }
  return own + most;
}

std::vector<const GraphProgram*> GraphRunner::programs() const {
  std::vector<const GraphProgram*> programs;
  for (const Step& step : impl_->steps)
    if (const GraphProgram* program = step.part->program()) programs.push_back(program);
  return programs;
}

std::vector<MemoryChart> GraphRunner::memory_charts() const {
  std::vector<MemoryChart> charts;
  for (const Step& step : impl_->steps)
    for (MemoryChart& chart : step.part->memory_charts()) charts.push_back(std::move(chart));
  return charts;
}

}  // namespace tenon::irgen
