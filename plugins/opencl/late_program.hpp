// LatePrograms: programs of graphs whose extents depend on values that only a run has, such as the pads of a Pad or the
// shape of a Reshape that are inputs.
//
// A run reads the inputs that decide (small tensors of numbers), puts them and all extents into the graph as constants,
// and runs the program of that graph; what was made for the values seen last is kept.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "opencl/device_program.hpp"

namespace tenon::opencl {

// Will a graph of known values say the operator without a kernel, once its deciding operands are known: a Reshape by an
// input? Its element types have a form on the device.
bool is_late_movement(const Op& op);

// Any thread; a stream by one at a time. The graph outlives it.
class LatePrograms {
 public:
  LatePrograms(const Graph& graph, std::shared_ptr<ClDevice> device, std::shared_ptr<const Compiler> compiler);

  // Waits for the stream where inputs decide. Code::unsupported with a reason when no program says the graph for these
  // inputs.
  Result<std::shared_ptr<DeviceProgram>> program(ClStream& stream, std::span<const RunValue> inputs);

  // Of the program that needs most among those that are kept.
  size_t arena_bytes() const { return most_of(&DeviceProgram::arena_bytes); }
  size_t arena_lower_bound_bytes() const { return most_of(&DeviceProgram::arena_lower_bound_bytes); }

  static constexpr size_t kMostKept = 16;
  // A tensor with more elements decides about nothing.
  static constexpr int64_t kMostElements = 4096;

 private:
  struct Key {
    std::vector<Dims> dims;      // of all inputs
    std::vector<Tensor> values;  // of those that decide
    bool equals(const Key& other) const;
  };
  // One that other threads run lives on when it is no longer kept.
  struct Special {
    Key key;
    std::unique_ptr<Graph> graph;  // outlives the program
    std::unique_ptr<DeviceProgram> program;
    std::optional<Error> why_not;  // there is no program
  };
  Result<Key> key_of(ClStream& stream, std::span<const RunValue> inputs) const;
  Result<void> make(Special& special) const;
  size_t most_of(size_t (DeviceProgram::*bytes)() const) const;

  const Graph& graph_;
  std::shared_ptr<ClDevice> device_;
  std::shared_ptr<const Compiler> compiler_;
  std::vector<size_t> deciding_;  // inputs
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Special>> kept_;  // the most recent first
};

}  // namespace tenon::opencl
