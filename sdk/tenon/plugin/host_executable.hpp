// Executables of targets that run graphs in host memory: programs of the graph, with the target's kernels.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/irgen/graph_runner.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/runtime/host_run.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Common base of all executables of host_device(); a derived class implements HostRun::run.
class TENON_API HostExecutable : public Executable, public HostRun {
 public:
  Device& device() const override { return *device_; }
  const std::vector<ValueInfo>& inputs() const override { return inputs_; }
  const std::vector<ValueInfo>& outputs() const override { return outputs_; }
  // Calls run() in the order of the stream. Inputs in buffers of the host device are read in place.
  Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                           const RunOptions& options) const override;

 protected:
  // Inputs and outputs are those of the graph, which is not kept.
  explicit HostExecutable(const Graph& graph);
  // An output of the graph without a value is an error.
  static Result<void> check_outputs(const Graph& graph);
  Result<void> check_counts(size_t inputs, size_t outputs) const;

 private:
  std::shared_ptr<Device> device_;
  std::string name_;
  std::vector<ValueInfo> inputs_, outputs_;
};

struct HostExecutableOptions {
  std::string target;  // for messages
  std::shared_ptr<const irgen::KernelSource> kernels;
  irgen::RunnerOptions runner;
  // Executable::listing and Executable::kernels, for the graph that runs. Empty: there is nothing to show.
  std::function<Result<std::string>(const Graph&)> listing = {};
  std::function<std::vector<KernelInfo>(const Graph&)> kernel_infos = {};
};

// Runs on host_device(). Stored as the graph itself, from which load_host_executable makes it again.
TENON_API Result<std::unique_ptr<Executable>> make_host_executable(std::unique_ptr<Graph> graph,
                                                                   HostExecutableOptions options);
TENON_API Result<std::unique_ptr<Executable>> load_host_executable(std::span<const std::byte> bytes,
                                                                   std::shared_ptr<void> owner,
                                                                   HostExecutableOptions options);

}  // namespace tenon
