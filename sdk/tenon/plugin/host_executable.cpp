#include <tenon/plugin/host_executable.hpp>

#include <utility>

#include <tenon/ir/serialize.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/plugin/checks_values_internal.hpp>
#include <tenon/plugin/graph_values.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/log.hpp>

namespace tenon {
namespace {

// A tensor in a buffer of the host device, in place.
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

// Its runner selects a program by the types and extents of inputs, and allocates outputs accordingly.
class GraphExecutable final : public HostExecutable, public MemoryMap, public plugin_room::ChecksValues {
 public:
  static Result<std::unique_ptr<Executable>> make(std::unique_ptr<Graph> graph, HostExecutableOptions options) {
    TENON_OK(check_outputs(*graph));
    TENON_TRY(runner, irgen::GraphRunner::prepare(*graph, *options.kernels, options.runner));
    say(graph->name(), options.target, runner->report());
    return std::unique_ptr<Executable>(new GraphExecutable(std::move(graph), std::move(options), std::move(runner)));
  }

  size_t arena_bytes() const override { return runner_->arena_bytes(); }
  size_t arena_lower_bound_bytes() const override { return runner_->arena_lower_bound_bytes(); }
  Result<std::string> serialize() const override { return tenon::serialize(*graph_); }
  Result<std::string> listing() const override {
    return options_.listing ? options_.listing(*graph_) : Executable::listing();
  }
  std::vector<KernelInfo> kernels() const override {
    return options_.kernel_infos ? options_.kernel_infos(*graph_) : std::vector<KernelInfo>();
  }

  Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                   const RunOptions& options) const override {
    TENON_OK(check_counts(inputs.size(), outputs.size()));
    return runner_->run_into(inputs, outputs, means_of(options));
  }
  Result<std::unique_ptr<BoundRun>> bind(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                         const RunOptions& options) const override {
    TENON_OK(check_counts(inputs.size(), outputs.size()));
    if (options.profile) return std::unique_ptr<BoundRun>();
    return runner_->bind(inputs, outputs, means_of(options));
  }
  size_t lendable_bytes() const override { return runner_->lendable_bytes(); }
  std::vector<MemoryChart> memory_charts() const override { return runner_->memory_charts(); }

 private:
  static irgen::RunMeans means_of(const RunOptions& options) {
    return {.parallel = options.parallel ? *options.parallel : default_pool(),
            .profile = options.profile,
            .arena = options.arena};
  }
  static void say(const std::string& name, const std::string& target, const irgen::RunnerReport& report) {
    log(LogLevel::info, "graph '", name, "' on ", target, ": ", report.program_ops, " operators in ", report.programs,
        " programs, ", report.late_ops == 0 ? "" : str(report.late_ops, " in programs that runs make, "),
        report.host_ops.size(), " on the host");
    for (const irgen::HostOp& op : report.host_ops)
      log(LogLevel::info, "  ", op.op, " ", quote(op.label), " is in no program: ", op.reason);
  }

  GraphExecutable(std::unique_ptr<Graph> graph, HostExecutableOptions options,
                  std::unique_ptr<irgen::GraphRunner> runner)
      : HostExecutable(*graph), graph_(std::move(graph)), options_(std::move(options)), runner_(std::move(runner)) {}

  std::unique_ptr<Graph> graph_;
  HostExecutableOptions options_;  // the runner borrows its kernels
  std::unique_ptr<irgen::GraphRunner> runner_;
};

}  // namespace

HostExecutable::HostExecutable(const Graph& graph)
    : device_(host_device()),
      name_(graph.name()),
      inputs_(inputs_of(graph.body())),
      outputs_(outputs_of(graph.body())) {}

Result<void> HostExecutable::check_outputs(const Graph& graph) {
  const Region& body = graph.body();
  for (size_t i = 0; i < body.output_count(); ++i) {
    if (body.output(i)) continue;
    return error(Code::invalid_argument, "output '", body.output_name(i), "' of graph '", graph.name(),
                 "' has no value");
  }
  return {};
}

Result<void> HostExecutable::check_counts(size_t inputs, size_t outputs) const {
  if (inputs == inputs_.size() && outputs == outputs_.size()) return {};
  return error(Code::invalid_argument, "graph '", name_, "' has ", inputs_.size(), " inputs and ", outputs_.size(),
               " outputs, ", inputs, " and ", outputs, " are given");
}

Result<EventPtr> HostExecutable::enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                                         const RunOptions& options) const {
  if (&stream.device() != device_.get()) {
    return error(Code::invalid_argument, "an executable of device '", device_->name(),
                 "' is enqueued on a stream of device '", stream.device().name(), "'");
  }
  TENON_OK(check_counts(inputs.size(), outputs.size()));
  // Owned copies: the stream may run later, when the caller's are gone.
  std::vector<Datum> data;
  data.reserve(inputs.size());
  for (const RunValue& input : inputs) {
    TENON_TRY(datum, host_view(input), "input '", inputs_[data.size()].name, "'");
    data.push_back(std::move(datum));
  }
  return stream.call([this, data = std::move(data), outputs, options] {
    std::vector<const Datum*> from;
    for (const Datum& input : data) from.push_back(&input);
    std::vector<Datum*> places;
    for (RunValue& output : outputs) {
      output.device = {};
      places.push_back(&output.host);
    }
    return run(from, places, options);
  });
}

Result<std::unique_ptr<Executable>> make_host_executable(std::unique_ptr<Graph> graph, HostExecutableOptions options) {
  return GraphExecutable::make(std::move(graph), std::move(options));
}

Result<std::unique_ptr<Executable>> load_host_executable(std::span<const std::byte> bytes, std::shared_ptr<void> owner,
                                                         HostExecutableOptions options) {
  TENON_TRY(graph, deserialize(bytes, std::move(owner)), "a graph stored for target '", options.target, "'");
  TENON_OK(verify(*graph), "a graph stored for target '", options.target, "'");
  return make_host_executable(std::move(graph), std::move(options));
}

}  // namespace tenon
