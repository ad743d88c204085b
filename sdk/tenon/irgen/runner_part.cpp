#include <algorithm>
#include <chrono>

#include <tenon/irgen/number_types_internal.hpp>
#include <tenon/irgen/runner_part_internal.hpp>
#include <tenon/irgen/shape_check.hpp>
#include <tenon/runtime/value_plan.hpp>
#include <tenon/support/log.hpp>

namespace tenon::irgen::detail {
namespace {

// Times the operators of the body. Operators inside regions count for the operator that contains them.
class HostProfiler final : public Interpreter::Observer {
 public:
  explicit HostProfiler(std::vector<OpProfile>& out) : out_(out) {}
  void before(const Op& op) override {
    if (!op.parent()->parent()) begin_ = Clock::now();
  }
  void after(const Op& op, std::span<const Datum>) override {
    if (op.parent()->parent()) return;
    const std::chrono::duration<double, std::micro> taken = Clock::now() - begin_;
    out_.push_back({op.name().str(), op.label(), taken.count()});
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<OpProfile>& out_;
  Clock::time_point begin_;
};

// Statements in loops are counted together.
class StageProfiler final : public program::StageObserver {
 public:
  explicit StageProfiler(std::vector<OpProfile>& out) : out_(out), begin_(out.size()) {}
  void ran(std::string_view stage, double microseconds, bool in_loop) override {
    const auto [op, label] = label_of_stage(stage);
    if (in_loop) {
      for (size_t i = out_.size(); i-- > begin_;) {
        if (out_[i].op != op || out_[i].label != label) continue;
        out_[i].microseconds += microseconds;
        return;
      }
    }
    out_.push_back({std::string(op), std::string(label), microseconds});
  }

 private:
  std::vector<OpProfile>& out_;
  size_t begin_;
};

}  // namespace

void take_scalars(const Type& type, const Datum& datum, SymbolValues& scalars) {
  if (!type.is_tensor() || !type.shape().ranked() || !datum.is_tensor()) return;
  const Tensor& tensor = datum.tensor();
  if (tensor.rank() != type.shape().rank()) return;
  for (size_t d = 0; d < tensor.dims().size(); ++d) {
    const Dim& dim = type.shape()[d];
    if (dim.known() && dim.expr().is_symbol()) scalars.emplace(dim.expr().name(), tensor.dim(d));
  }
}

// ---- Host ----

Result<std::unique_ptr<HostPart>> HostPart::make(const GraphPart& part, const PartSource& from, bool whole) {
  auto made = std::make_unique<HostPart>();
  if (!whole) made->own_ = extract(from.graph, part, from.types);
  TENON_TRY(interpreter, Interpreter::prepare(whole ? from.graph : *made->own_));
  made->interpreter_ = std::move(interpreter);
  return made;
}

Result<void> HostPart::run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs, PartRun& with) {
  std::optional<HostProfiler> profiler;
  if (with.means.profile) profiler.emplace(*with.means.profile);
  std::vector<Datum> data;
  data.reserve(inputs.size());
  for (const Datum* input : inputs) data.push_back(*input);
  TENON_TRY(made, interpreter_->run(data, with.means.parallel, profiler ? &*profiler : nullptr));
  for (size_t i = 0; i < made.size(); ++i) *outputs[i] = std::move(made[i]);
  return {};
}

// ---- Programs ----

Result<std::unique_ptr<ProgramPart>> ProgramPart::make(GraphPart part, const PartSource& from, bool whole) {
  std::unique_ptr<ProgramPart> made(new ProgramPart(std::move(part), from, whole));
  TENON_TRY(lowered, lower_part(made->part_, from.types, from.plans, from.kernels, from.options.lower));
  const bool is_static = lowered.program.scalars.empty();
  const ProgramPart* self = made.get();
  ProgramCache::Check check;
  ProgramCache::Special special;
  if (!is_static)
    check = [self](const SymbolValues& scalars) {
      return check_shapes(self->part_, self->from_.types, self->from_.plans, scalars);
    };
  if (!is_static && from.options.lower.grouping)
    special = [self](const SymbolValues& scalars) { return self->special(scalars); };
  made->cache_.emplace(std::move(lowered), program::BindOptions{.threads = from.options.threads, .arena_of_runs = true},
                       std::move(check), std::move(special));
  if (!is_static) return made;
  made->static_shape_ = made->cache_->shape({});
  return made;
}

std::optional<GraphProgram> ProgramPart::special(const SymbolValues& scalars) const {
  const auto grouped = [&]() -> Result<std::optional<GraphProgram>> {
    const NumberTypes types(from_.types, scalars);
    LowerOptions options = from_.options.lower;
    TENON_TRY(groups, options.grouping(part_.ops, from_.kernels, types));
    if (groups.empty()) return std::optional<GraphProgram>();
    options.grouping = [groups = std::move(groups)](auto&&...) { return groups; };
    TENON_TRY(lowered, lower_part(part_, from_.types, from_.plans, from_.kernels, options));
    return std::optional(std::move(lowered));
  };
  auto made = grouped();
  if (made.ok()) return *std::move(made);
  log(LogLevel::warning, "'", part_.name, "' runs operator by operator: ", made.error().to_string());
  return std::nullopt;
}

bool ProgramPart::fits(const BoundShape& shape, std::span<const Datum* const> inputs) const {
  if (!shape.refusal.empty()) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!is_place_for(*inputs[i], cache_->program().input_types[i].element(), shape.input_dims[i])) return false;
  return true;
}

std::optional<Result<void>> ProgramPart::run_known(std::span<const Datum* const> inputs,
                                                   std::span<Datum* const> outputs, const RunMeans& means) {
  if (!whole_ || inputs.size() != part_.inputs.size()) return std::nullopt;
  if (static_shape_) {
    if (!fits(*static_shape_, inputs)) return std::nullopt;
    return run_bound(*static_shape_, inputs, outputs, means);
  }
  const auto shape = cache_->find([&](const BoundShape& known) { return fits(known, inputs); });
  if (!shape) return std::nullopt;
  return run_bound(*shape, inputs, outputs, means);
}

Result<void> ProgramPart::run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs, PartRun& with) {
  const std::shared_ptr<BoundShape> shape = static_shape_ ? static_shape_ : cache_->shape(with.scalars);
  if (fits(*shape, inputs)) return run_bound(*shape, inputs, outputs, with.means);
  return run_on_host(inputs, outputs, with);
}

Result<void> ProgramPart::run_bound(BoundShape& shape, std::span<const Datum* const> inputs,
                                    std::span<Datum* const> outputs, const RunMeans& means) {
  TENON_TRY(context, ProgramCache::acquire(shape));
  TENON_OK(set_buffers(shape, *context, inputs, outputs));
  std::optional<StageProfiler> profiler;
  if (means.profile) profiler.emplace(*means.profile);
  return context->bound.run(
      context->buffers, {.pool = &means.parallel, .observer = profiler ? &*profiler : nullptr, .arena = means.arena});
}

Result<void> ProgramPart::set_buffers(const BoundShape& shape, ProgramContext& context,
                                      std::span<const Datum* const> inputs, std::span<Datum* const> outputs) const {
  const GraphProgram& program = cache_->program();
  const auto set = [&](size_t place, const std::byte* data) { context.buffers[place] = const_cast<std::byte*>(data); };
  for (size_t i = 0; i < inputs.size(); ++i) set(shape.inputs[i], inputs[i]->tensor().data());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ElementType element = program.output_types[i].element();
    if (!is_place_for(*outputs[i], element, shape.output_dims[i])) {
      TENON_TRY(made, Tensor::allocate(element, shape.output_dims[i]), "output '", part_.output_names[i], "'");
      *outputs[i] = Datum(std::move(made));
    }
    set(shape.outputs[i], outputs[i]->tensor().data());
  }
  return {};
}

namespace {

class BoundPart final : public BoundRun {
 public:
  static Result<std::unique_ptr<BoundRun>> make(std::shared_ptr<BoundShape> shape, ContextLease context,
                                                const RunMeans& means) {
    auto part = std::make_unique<BoundPart>(std::move(shape), std::move(context), means);
    TENON_TRY(settled, part->context_->bound.settle(part->context_->buffers, part->with_));
    part->settled_ = std::move(settled);
    return std::unique_ptr<BoundRun>(std::move(part));
  }
  BoundPart(std::shared_ptr<BoundShape> shape, ContextLease context, const RunMeans& means)
      : shape_(std::move(shape)), context_(std::move(context)), with_{.pool = &means.parallel, .arena = means.arena} {}

  Result<void> run() override {
    if (settled_.empty()) return caught([&] { return context_->bound.run(context_->buffers, with_); });
    for (const SettledCall& call : settled_) call.run(call.words);
    return {};
  }
  std::span<const SettledCall> settled() const override { return settled_; }

 private:
  std::shared_ptr<BoundShape> shape_;
  ContextLease context_;
  program::RunWith with_;
  std::vector<SettledCall> settled_;  // the whole run, or empty
};

}  // namespace

Result<std::unique_ptr<BoundRun>> ProgramPart::bind(std::span<const Datum* const> inputs,
                                                    std::span<Datum* const> outputs, const RunMeans& means) {
  std::unique_ptr<BoundRun> bound;
  if (!whole_ || inputs.size() != part_.inputs.size()) return bound;
  auto shape = cache_->find([&](const BoundShape& known) { return fits(known, inputs); });
  if (!shape) return bound;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!is_place_for(*outputs[i], cache_->program().output_types[i].element(), shape->output_dims[i])) return bound;
  TENON_TRY(context, ProgramCache::acquire(*shape));
  TENON_OK(set_buffers(*shape, *context, inputs, outputs));
  return BoundPart::make(std::move(shape), std::move(context), means);
}

Result<void> ProgramPart::run_on_host(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                      PartRun& with) {
  {
    const std::lock_guard lock(mutex_);
    if (!host_) {
      TENON_TRY(made, HostPart::make(part_, from_, whole_));
      host_ = std::move(made);
    }
  }
  return host_->run(inputs, outputs, with);
}

}  // namespace tenon::irgen::detail
