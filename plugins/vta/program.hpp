// DeviceProgram: a graph of streams in executable form: the DRAM addresses of everything, and the order of operators.
//
//   TENON_OK(run_phases(*graph, context));                       // backend.hpp: the passes of the four phases
//   TENON_TRY(program, DeviceProgram::of(*graph, hardware));
//   TENON_TRY(loaded, LoadedProgram::load(program, driver));     // loaded_program.hpp
//
// Each operator is one run of the driver, so its stores are complete before the next one loads. Nothing is decided
// here: addresses and instructions come from the graph.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/tensor.hpp>

#include "vta/layer.hpp"
#include "vta/stream.hpp"

namespace tenon::vta {

class DeviceProgram {
 public:
  // A location in DRAM: bytes from the start of a window, which is a buffer of the driver.
  struct Place {
    size_t window = 0;
    int64_t offset = 0;
  };
  struct Step {
    std::string op, label;             // of the model's operator
    std::vector<StreamEntry> entries;  // addresses are relative to the segments' first bytes
    size_t micro_ops = 0;
    std::vector<Place> segments;  // by number
    Place instructions;
  };
  // Data written before the first run: as it is, or an activation to be packed.
  struct Constant {
    Place place;
    Tensor tensor;
    bool activation = false;
  };
  // An input or output of the graph. An unused input has no place.
  struct Port {
    std::string name;
    Dims dims;
    std::optional<Place> place;
    Image image;
  };

  // An error names what in the graph is not a stream, or is a stream for another machine. Also checks that instructions
  // decode, segments exist, and transfers stay within them.
  static Result<std::shared_ptr<const DeviceProgram>> of(const Graph& graph, const Hardware& hardware);

  const Hardware& hardware() const { return hardware_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Constant>& constants() const { return constants_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  // The sizes of the windows in bytes. The first ones hold activations, the others constants.
  const std::vector<int64_t>& windows() const { return windows_; }
  size_t activation_bytes() const { return activation_bytes_; }
  // Lower bound for any plan: bytes of activations that are live at once.
  size_t activation_bound_bytes() const { return activation_bound_; }
  // The instructions as text, with the operator above them.
  std::string listing() const;

 private:
  friend class ProgramReader;
  Hardware hardware_;
  std::vector<Step> steps_;
  std::vector<Constant> constants_;
  std::vector<Port> inputs_, outputs_;
  std::vector<int64_t> windows_;
  size_t activation_bytes_ = 0, activation_bound_ = 0;
};

}  // namespace tenon::vta
