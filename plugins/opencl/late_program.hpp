// LatePrograms: programs of graphs whose extents depend on values known only to a run, such as the pads of a Pad or the
// shape of a Reshape that are inputs.
//
// A run reads the inputs that determine extents (small tensors of numbers), puts them and all extents into the graph as
// constants, and runs the program of that graph. The programs for the values used last are kept.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "opencl/device_program.hpp"

namespace tenon::opencl {

// Whether an operator without a kernel can be expressed once its deciding operands are known, such as a Reshape by an
// input. Its element types must be supported by the device.
bool is_late_movement(const Op& op);

// Any thread; a stream by one thread at a time. The graph must outlive it.
class LatePrograms {
 public:
  LatePrograms(const Graph& graph, std::shared_ptr<ClDevice> device, std::shared_ptr<const Compiler> compiler);

  // Waits for the stream where inputs determine extents. Code::unsupported with a reason when programs cannot express
  // the graph for these inputs.
  Result<std::shared_ptr<DeviceProgram>> program(ClStream& stream, std::span<const RunValue> inputs);

  // Of the program with the largest arena among those that are kept.
  size_t arena_bytes() const { return most_of(&DeviceProgram::arena_bytes); }
  size_t arena_lower_bound_bytes() const { return most_of(&DeviceProgram::arena_lower_bound_bytes); }

  static constexpr size_t kMostKept = 16;
  // Larger tensors never determine extents.
  static constexpr int64_t kMostElements = 4096;

 private:
  struct Key {
    std::vector<Dims> dims;      // of all inputs
    std::vector<Tensor> values;  // of the deciding ones
    bool equals(const Key& other) const;
  };
  // Shared: other threads may still run it when it is no longer kept.
  struct Special {
    Key key;
    std::unique_ptr<Graph> graph;  // outlives the program
    std::unique_ptr<DeviceProgram> program;
    std::optional<Error> why_not;  // set where there is no program
  };
  Result<Key> key_of(ClStream& stream, std::span<const RunValue> inputs) const;
  Result<void> make(Special& special) const;
  size_t most_of(size_t (DeviceProgram::*bytes)() const) const;

  const Graph& graph_;
  std::shared_ptr<ClDevice> device_;
  std::shared_ptr<const Compiler> compiler_;
  std::vector<size_t> deciding_;  // indices of inputs
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Special>> kept_;  // most recently used first
};

}  // namespace tenon::opencl
