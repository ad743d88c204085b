// DeviceProgram: a graph as a list of launches on one device.
//
// The graph becomes a program (irgen/from_graph.hpp). For each combination of extents, the program's calls and copies
// (program/exec/flatten.hpp) become launches; the plans used last are kept. Values are in one arena, which is planned
// by lifetimes; constants are in memory that is filled once; the arguments of kernels are in one table of words. A run
// sets the memory of inputs and outputs, and enqueues the launches.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/runtime/executable.hpp>

#include "opencl/cl_stream.hpp"
#include "opencl/compiler.hpp"

namespace tenon::opencl {

struct DevicePlan;  // for one combination of extents

// Any thread; each stream by one thread at a time.
class DeviceProgram {
 public:
  // The graph must stay alive and unchanged. Code::unsupported names the operator that programs cannot express.
  static Result<std::unique_ptr<DeviceProgram>> make(const Graph& graph, std::shared_ptr<ClDevice> device,
                                                     std::shared_ptr<const Compiler> compiler);
  ~DeviceProgram();

  // The plan for these inputs; Code::unsupported when they do not match the graph: other extents than its types and the
  // operators' rules allow.
  Result<std::shared_ptr<DevicePlan>> plan(ClStream& stream, std::span<const RunValue> inputs);
  // Enqueues a run. Inputs are on the device; outputs are allocated.
  Result<EventPtr> run(ClStream& stream, const std::shared_ptr<DevicePlan>& plan, std::span<const RunValue> inputs,
                       std::span<RunValue> outputs, std::vector<OpProfile>* profile);

  // Of the plan with the largest arena among those that are kept.
  size_t arena_bytes() const;
  size_t arena_lower_bound_bytes() const;

  static constexpr size_t kMostPlans = 16;

 private:
  DeviceProgram() = default;
  Result<std::shared_ptr<DevicePlan>> make_plan(ClStream& stream, const SymbolValues& scalars);
  Result<void> upload_constants(ClStream& stream);

  std::shared_ptr<ClDevice> device_;
  std::shared_ptr<const Compiler> compiler_;
  std::unique_ptr<irgen::GraphTypes> types_;
  irgen::OpPlans plans_;
  irgen::GraphPart part_;
  irgen::GraphProgram lowered_;
  Memory constants_;
  std::vector<int64_t> constant_offsets_;  // by GraphProgram::constants
  mutable std::mutex mutex_;
  std::list<std::pair<SymbolValues, std::shared_ptr<DevicePlan>>> kept_;  // most recently used first
};

}  // namespace tenon::opencl
