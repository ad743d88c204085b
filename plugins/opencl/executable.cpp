#include "opencl/executable.hpp"

#include <mutex>
#include <utility>

#include <tenon/ir/serialize.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/reference_kernels.hpp>
#include <tenon/plugin/graph_values.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/support/log.hpp>

#include "opencl/device_program.hpp"
#include "opencl/kernel_infos.hpp"
#include "opencl/late_program.hpp"
#include "opencl/listing.hpp"

namespace tenon::opencl {
namespace {

class ClExecutable final : public Executable {
 public:
  ClExecutable(std::unique_ptr<Graph> graph, std::shared_ptr<ClDevice> device, std::shared_ptr<const Compiler> compiler)
      : graph_(std::move(graph)),
        device_(std::move(device)),
        compiler_(std::move(compiler)),
        inputs_(inputs_of(graph_->body())),
        outputs_(outputs_of(graph_->body())) {}

  Result<void> prepare() {
    auto program = DeviceProgram::make(*graph_, device_, compiler_);
    if (program.ok()) {
      program_ = *std::move(program);
      return {};
    }
    if (program.error().code() != Code::unsupported) return program.error();
    // Runs may know more: extents, and values that determine them.
    late_ = std::make_unique<LatePrograms>(*graph_, device_, compiler_);
    return {};
  }

  Device& device() const override { return *device_; }
  const std::vector<ValueInfo>& inputs() const override { return inputs_; }
  const std::vector<ValueInfo>& outputs() const override { return outputs_; }
  size_t arena_bytes() const override { return program_ ? program_->arena_bytes() : late_->arena_bytes(); }
  size_t arena_lower_bound_bytes() const override {
    return program_ ? program_->arena_lower_bound_bytes() : late_->arena_lower_bound_bytes();
  }
  Result<std::string> serialize() const override { return tenon::serialize(*graph_); }

  Result<std::string> listing() const override {
    return opencl::listing(graph_->body(), *compiler_, device_->info().name);
  }

  std::vector<KernelInfo> kernels() const override { return kernel_infos(*graph_, *compiler_); }

  Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                           const RunOptions& options) const override {
    auto& queue = static_cast<ClStream&>(stream);
    bool on_device = true;
    for (const RunValue& input : inputs) on_device = on_device && input.on_device();
    if (!on_device) return run_on_host(queue, inputs, outputs, options, "an input is not on the device");
    auto done = run_on_device(queue, inputs, outputs, options);
    if (done.ok() || done.error().code() != Code::unsupported) return done;
    return run_on_host(queue, inputs, outputs, options, done.error().message());
  }

 private:
  // Code::unsupported when programs cannot express the graph for these inputs; then nothing is enqueued.
  Result<EventPtr> run_on_device(ClStream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                                 const RunOptions& options) const {
    if (program_) {
      TENON_TRY(plan, program_->plan(stream, inputs));
      return program_->run(stream, plan, inputs, outputs, options.profile);
    }
    TENON_TRY(program, late_->program(stream, inputs));
    TENON_TRY(plan, program->plan(stream, inputs));
    return program->run(stream, plan, inputs, outputs, options.profile);
  }

  Result<void> leave_to_host(const std::string& why) const {
    const std::lock_guard lock(mutex_);
    log(LogLevel::info, "graph '", graph_->name(), "' on ", device_->name(), " is left to the host: ", why);
    if (host_) return {};
    TENON_TRY(runner,
              irgen::GraphRunner::prepare(*graph_, irgen::reference_kernels(), {.threads = default_pool().threads()}));
    host_ = std::move(runner);
    return {};
  }

  Result<EventPtr> run_on_host(ClStream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                               const RunOptions& options, const std::string& why) const {
    TENON_OK(leave_to_host(why));
    std::vector<Datum> data;
    for (const RunValue& input : inputs) {
      TENON_TRY(datum, to_host(stream, input));
      data.push_back(std::move(datum));
    }
    ParallelFor& parallel = options.parallel ? *options.parallel : default_pool();
    TENON_TRY(made, host_->run(data, {.parallel = parallel, .profile = options.profile}));
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = RunValue{made[i], {}};
      if (!made[i].is_tensor() || made[i].tensor().element().is_string()) continue;
      TENON_TRY(placed, to_device(stream, made[i].tensor()));
      outputs[i] = std::move(placed);
    }
    return completed_event();
  }

  std::unique_ptr<Graph> graph_;
  std::shared_ptr<ClDevice> device_;
  std::shared_ptr<const Compiler> compiler_;
  std::vector<ValueInfo> inputs_, outputs_;
  std::unique_ptr<DeviceProgram> program_;  // null: `late_`
  std::unique_ptr<LatePrograms> late_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<irgen::GraphRunner> host_;
};

}  // namespace

Result<std::unique_ptr<Executable>> make_executable(std::unique_ptr<Graph> graph, std::shared_ptr<ClDevice> device,
                                                    std::shared_ptr<const Compiler> compiler) {
  const Region& body = graph->body();
  for (size_t i = 0; i < body.output_count(); ++i)
    if (!body.output(i))
      return error(Code::invalid_argument, "output '", body.output_name(i), "' of graph '", graph->name(),
                   "' has no value");
  auto made = std::make_unique<ClExecutable>(std::move(graph), std::move(device), std::move(compiler));
  TENON_OK(made->prepare());
  return std::unique_ptr<Executable>(std::move(made));
}

Result<std::unique_ptr<Executable>> load_executable(std::span<const std::byte> bytes, std::shared_ptr<void> owner,
                                                    std::shared_ptr<ClDevice> device,
                                                    std::shared_ptr<const Compiler> compiler) {
  const std::string target = compiler->target().name;
  TENON_TRY(graph, deserialize(bytes, std::move(owner)), "a graph stored for target '", target, "'");
  TENON_OK(verify(*graph), "a graph stored for target '", target, "'");
  return make_executable(std::move(graph), std::move(device), std::move(compiler));
}

}  // namespace tenon::opencl
