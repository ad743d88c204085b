#include <algorithm>
#include <array>
#include <cstring>

#include <tenon/model/compiled_model_internal.hpp>

namespace tenon {

using Parts = CompiledModel::Parts;

namespace {

// An output that is a copy of an input, a constant, or another output.
struct OutputCopy {
  const Datum* from = nullptr;
  Datum* to = nullptr;
  std::array<int64_t, 3> words{};  // of a settled call: addresses to and from, bytes

  static void run(const int64_t* words) {
    const auto address = [&](size_t i) { return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(words[i])); };
    std::memmove(address(0), address(1), static_cast<size_t>(words[2]));
  }
  // For tensors with fixed addresses; none where elements are not plain bytes.
  std::optional<SettledCall> settled() {
    if (!from->is_tensor() || from->tensor().element().is_string()) return std::nullopt;
    const auto word = [](const std::byte* at) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(at)); };
    words = {word(to->tensor().data()), word(from->tensor().data()), static_cast<int64_t>(from->tensor().bytes())};
    return SettledCall{&run, words.data()};
  }
};

}  // namespace

struct BoundModel::Impl {
  Impl(CompiledModel::Impl& m, std::vector<Datum> in, std::vector<Datum> out, const RunOptions& o)
      : model(m), inputs(std::move(in)), outputs(std::move(out)), options(o) {}
  ~Impl() {
    steps.clear();
    if (state) model.states.release(std::move(state));
  }

  CompiledModel::Impl& model;
  std::vector<Datum> inputs, outputs;
  const RunOptions options;
  bool asked = false;                            // whether segments have been asked to bind
  bool is_bound = false;                         // all segments are bound; otherwise runs take the usual path
  std::vector<std::unique_ptr<BoundRun>> steps;  // of all segments; none where all outputs are copies
  std::vector<OutputCopy> copies;                // after the steps
  std::unique_ptr<detail::RunState> state;       // holds the values between them

  Result<void> bind();
  // All settled calls of the steps, when each step has them; else none.
  std::vector<SettledCall> settled();
  // Whether all segments run synchronously.
  bool may_bind() const;
  // Where every run makes the value of a slot, and where it reads it; null: not known.
  Datum* made_at(size_t slot);
  const Datum* read_at(size_t slot);
};

bool BoundModel::Impl::may_bind() const {
  const auto at_once = [](const detail::RunPlan::Step& step) { return step.at_once != nullptr; };
  return options.profile == nullptr && std::ranges::all_of(model.plan.steps, at_once);
}

Datum* BoundModel::Impl::made_at(size_t slot) {
  const detail::RunPlan& plan = model.plan;
  if (plan.output_of_slot[slot] != detail::RunPlan::kNoOutput) return &outputs[plan.output_of_slot[slot]];
  return plan.passed_of_slot[slot] != SIZE_MAX ? &state->slots[slot].host : nullptr;
}

const Datum* BoundModel::Impl::read_at(size_t slot) {
  if (const Datum* made = made_at(slot)) return made;
  if (slot < inputs.size()) return &inputs[slot];
  for (const auto& [constant, tensor] : model.parts.constants)
    if (constant == slot) return state->values[slot];
  return nullptr;
}

// Called after a run, when extents are known and outputs exist.
Result<void> BoundModel::Impl::bind() {
  asked = true;
  if (!may_bind()) return {};
  TENON_TRY(taken, model.states.acquire(inputs));
  state = std::move(taken);
  if (!state->placed) return {};
  std::vector<std::unique_ptr<BoundRun>> made;
  for (size_t s = 0; s < model.plan.steps.size(); ++s) {
    const CompiledModel::Segment& segment = model.parts.segments[s];
    std::vector<const Datum*> arguments;
    std::vector<Datum*> results;
    for (const size_t slot : segment.inputs) arguments.push_back(read_at(slot));
    for (const size_t slot : segment.outputs) results.push_back(made_at(slot));
    // A slot that is filled twice cannot be bound.
    if (std::ranges::count(arguments, nullptr) + std::ranges::count(results, nullptr) > 0) return {};
    RunOptions with = options;
    with.arena = state->arena_of(s);
    TENON_TRY(bound, model.plan.steps[s].at_once->bind(arguments, results, with), "target '", segment.target, "'");
    if (!bound) return {};
    made.push_back(std::move(bound));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!model.plan.copied[i]) continue;
    const Datum* from = read_at(model.parts.output_slots[i]);
    if (from == nullptr) return {};
    copies.push_back({from, &outputs[i]});
  }
  steps = std::move(made);
  is_bound = true;
  return {};
}

std::vector<SettledCall> BoundModel::Impl::settled() {
  std::vector<SettledCall> calls;
  if (!is_bound) return calls;
  for (const std::unique_ptr<BoundRun>& step : steps) {
    const std::span<const SettledCall> of_step = step->settled();
    if (of_step.empty()) return {};
    calls.insert(calls.end(), of_step.begin(), of_step.end());
  }
  for (OutputCopy& copy : copies) {
    const std::optional<SettledCall> call = copy.settled();
    if (!call) return {};
    calls.push_back(*call);
  }
  return calls;
}

BoundModel::BoundModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BoundModel::~BoundModel() = default;
const std::vector<Datum>& BoundModel::inputs() const { return impl_->inputs; }
const std::vector<Datum>& BoundModel::outputs() const { return impl_->outputs; }

Result<void> BoundModel::run_steps() {
  for (const SettledCall& call : settled_) call.run(call.words);
  if (!settled_.empty()) return {};
  Impl& impl = *impl_;
  const Parts& parts = impl.model.parts;
  if (impl.is_bound) {
    for (size_t s = 0; s < impl.steps.size(); ++s)
      TENON_OK(impl.steps[s]->run(), "running model '", parts.name, "': target '", parts.segments[s].target, "'");
    for (const OutputCopy& copy : impl.copies)
      TENON_OK(copy_value(*copy.from, *copy.to), "running model '", parts.name, "'");
    return {};
  }
  TENON_OK(impl.model.run(impl.inputs, impl.outputs, impl.options));
  if (impl.asked) return {};
  TENON_OK(impl.bind());
  settled_ = impl.settled();
  if (settled_.size() == 1) only_ = settled_.front();
  return {};
}

Result<std::unique_ptr<BoundModel>> CompiledModel::bind(std::vector<Datum> inputs, std::vector<Datum> outputs,
                                                        const RunOptions& options) const {
  if (outputs.empty()) outputs.resize(impl_->parts.outputs.size());
  TENON_OK(impl_->check_given(inputs, outputs.size()));
  auto impl = std::make_unique<BoundModel::Impl>(*impl_, std::move(inputs), std::move(outputs), options);
  return std::unique_ptr<BoundModel>(new BoundModel(std::move(impl)));
}

}  // namespace tenon
