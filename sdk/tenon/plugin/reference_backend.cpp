#include <tenon/plugin/reference_backend.hpp>

#include <utility>

#include <tenon/ir/op_def.hpp>
#include <tenon/ir/serialize.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/reference_kernels.hpp>
#include <tenon/irgen/reference_strips.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/plugin/graph_values.hpp>
#include <tenon/plugin/limits.hpp>
#include <tenon/plugin/reference_layouts.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/log.hpp>

namespace tenon {
namespace {

// A tensor that lies in a buffer of the host device, where it is.
Result<Datum> host_view(const RunValue& value) {
  if (!value.on_device()) return value.host;
  const DeviceTensor& device = value.device;
  std::byte* data = device.buffer->host_data();
  if (!data || device.offset > device.buffer->bytes()) {
    return error(Code::invalid_argument, "a tensor at byte ", device.offset, " of a buffer of ", device.buffer->bytes(),
                 " bytes on device '", device.buffer->device().name(), "' cannot be read on the host");
  }
  TENON_TRY(tensor, Tensor::share(device.element, device.dims, device.buffer, data + device.offset,
                                  device.buffer->bytes() - device.offset));
  return Datum(std::move(tensor));
}

class ReferenceExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> make(std::unique_ptr<Graph> graph, const TargetDescription& target) {
    const Region& body = graph->body();
    for (size_t i = 0; i < body.output_count(); ++i) {
      if (body.output(i)) continue;
      return error(Code::invalid_argument, "output '", body.output_name(i), "' of graph '", graph->name(),
                   "' has no value");
    }
    irgen::RunnerOptions options{.threads = default_pool().threads()};
    options.lower.grouping = irgen::strip_grouping(irgen::reference_strips(target, options.threads));
    TENON_TRY(runner, irgen::GraphRunner::prepare(*graph, irgen::reference_kernels(), options));
    say(graph->name(), runner->report());
    return std::unique_ptr<Executable>(new ReferenceExecutable(std::move(graph), std::move(runner)));
  }

  Device& device() const override { return *device_; }
  const std::vector<ValueInfo>& inputs() const override { return inputs_; }
  const std::vector<ValueInfo>& outputs() const override { return outputs_; }
  size_t arena_bytes() const override { return runner_->arena_bytes(); }
  size_t arena_lower_bound_bytes() const override { return runner_->arena_lower_bound_bytes(); }
  Result<std::string> serialize() const override { return tenon::serialize(*graph_); }

  Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                           const RunOptions& options) const override {
    if (&stream.device() != device_.get()) {
      return error(Code::invalid_argument, "an executable of device '", device_->name(),
                   "' is enqueued on a stream of device '", stream.device().name(), "'");
    }
    if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size()) {
      return error(Code::invalid_argument, "graph '", graph_->name(), "' has ", inputs_.size(), " inputs and ",
                   outputs_.size(), " outputs, ", inputs.size(), " and ", outputs.size(), " are given");
    }
    std::vector<Datum> data;
    data.reserve(inputs.size());
    for (const RunValue& input : inputs) {
      TENON_TRY(datum, host_view(input), "input '", inputs_[data.size()].name, "'");
      data.push_back(std::move(datum));
    }
    return stream.call([this, data = std::move(data), outputs, options] { return run(data, outputs, options); });
  }

 private:
  static void say(const std::string& name, const irgen::RunnerReport& report) {
    log(LogLevel::info, "graph '", name, "' on the reference: ", report.program_ops, " operators in ", report.programs,
        " programs, ", report.host_ops.size(), " on the host");
    for (const irgen::HostOp& op : report.host_ops)
      log(LogLevel::info, "  ", op.op, " ", quote(op.label), " is in no program: ", op.reason);
  }

  ReferenceExecutable(std::unique_ptr<Graph> graph, std::unique_ptr<irgen::GraphRunner> runner)
      : device_(host_device()),
        graph_(std::move(graph)),
        runner_(std::move(runner)),
        inputs_(inputs_of(graph_->body())),
        outputs_(outputs_of(graph_->body())) {}

  Result<void> run(std::span<const Datum> inputs, std::span<RunValue> outputs, const RunOptions& options) const {
    ParallelFor& parallel = options.parallel ? *options.parallel : default_pool();
    TENON_TRY(made, runner_->run(inputs, parallel, options.profile));
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = {std::move(made[i]), {}};
    return {};
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<irgen::GraphRunner> runner_;
  std::vector<ValueInfo> inputs_, outputs_;
};

class ReferenceBackend final : public TargetBackend {
 public:
  explicit ReferenceBackend(TargetDescription description) : description_(std::move(description)) {}

  const TargetDescription& description() const override { return description_; }
  std::shared_ptr<Device> device() const override { return host_device(); }
  std::optional<Refusal> refuses(const Op& op) const override {
    if (auto refusal = reference_refuses(op)) return refusal;
    return limits_refuse(description_, op);
  }
  std::vector<LayoutKernel> layout_kernels(const Op& op) const override {
    return reference_layout_kernels(description_, op);
  }
  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    return ReferenceExecutable::make(std::move(graph), description_);
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    TENON_TRY(graph, deserialize(bytes, std::move(owner)), "a graph stored for target '", name(), "'");
    TENON_OK(verify(*graph), "a graph stored for target '", name(), "'");
    return ReferenceExecutable::make(std::move(graph), description_);
  }

 private:
  TargetDescription description_;
};

}  // namespace

std::optional<Refusal> reference_refuses(const Op& op) {
  const bool runs = isa<Constant>(op) || find_evaluator(op.name()) || (op.def() && op.def()->decompose_fn());
  if (!runs) {
    return Refusal{
        str("the reference has no evaluator for operator '", op.name(), "', and the operator no decomposition")};
  }
  for (size_t i = 0; i < op.region_count(); ++i) {
    for (const Op& inner : op.region(i)) {
      if (auto refusal = reference_refuses(inner)) return refusal;
    }
  }
  return std::nullopt;
}

std::unique_ptr<TargetBackend> create_reference_backend(TargetDescription description) {
  return std::make_unique<ReferenceBackend>(std::move(description));
}

Result<std::unique_ptr<TargetBackend>> create_reference_backend() {
  TargetDescription description;
  description.name = "reference";
  description.plugin = "reference";
  return create_reference_backend(std::move(description));
}

}  // namespace tenon
