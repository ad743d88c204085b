// Executables of targets that run graphs on the host's memory: programs of the graph, on the target's kernels.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/irgen/graph_runner.hpp>
#include <tenon/runtime/executable.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct HostExecutableOptions {
  std::string target;  // for messages
  std::shared_ptr<const irgen::KernelSource> kernels;
  irgen::RunnerOptions runner;
  // Executable::listing and Executable::kernels; asked of the graph that runs. None: there is nothing to show.
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
