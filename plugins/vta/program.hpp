// DeviceProgram: a graph of device ops as streams, with the place of everything in the accelerator's DRAM.
//
//   TENON_TRY(program, DeviceProgram::compile(*graph, hardware));
//   TENON_TRY(loaded, LoadedProgram::load(program, driver));     // constants and streams go to the driver's memory
//   TENON_OK(loaded->run(inputs, outputs, &report));
//
// Each operator is one run of the driver, so what one stored is there when the next one loads it. Activations stay
// packed in DRAM between them; they share one arena by their lifetimes. Weights, biases, micro-ops and instructions lie
// beside it and are written once.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

#include "vta/device_op.hpp"
#include "vta/driver.hpp"

namespace tenon::vta {

class DeviceProgram {
 public:
  // Where something lies: bytes from the start of a window.
  struct Place {
    size_t window = 0;
    int64_t offset = 0;
  };
  struct Step {
    DeviceOp op;  // its constants are moved to `constants`
    Stream stream;
    std::vector<Place> segments;  // by number
    Place instructions;
  };
  // What is written before the first run.
  struct Constant {
    Place place;
    std::vector<std::byte> bytes;
  };
  // An input or output of the graph.
  struct Port {
    std::string name;
    Dims dims;
    Place place;
    Image image;
  };

  // An error names the operator that cannot be compiled, Code::resource_exhausted the DRAM that is too small.
  static Result<std::shared_ptr<const DeviceProgram>> compile(const Graph& graph, const Hardware& hardware,
                                                              const StreamOptions& options = {});

  const Hardware& hardware() const { return hardware_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Constant>& constants() const { return constants_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  // The first windows hold activations, the others constants; bytes of each.
  const std::vector<int64_t>& windows() const { return windows_; }
  size_t activation_bytes() const { return activation_bytes_; }
  size_t activation_bound_bytes() const { return activation_bound_; }
  // Instructions as text, with the operator above them.
  Result<std::string> listing() const;

 private:
  friend class ProgramCompiler;
  Hardware hardware_;
  std::vector<Step> steps_;
  std::vector<Constant> constants_;
  std::vector<Port> inputs_, outputs_;
  std::vector<int64_t> windows_;
  size_t activation_bytes_ = 0, activation_bound_ = 0;
};

// What one operator did in a run.
struct StepReport {
  std::string op, label;
  int64_t instructions = 0;
  std::optional<RunCounters> counters;  // none where the driver does not tell
};

// One thread at a time: whoever runs it holds the driver's lock.
class LoadedProgram {
 public:
  static Result<std::unique_ptr<LoadedProgram>> load(std::shared_ptr<const DeviceProgram> program,
                                                     std::shared_ptr<Driver> driver);
  // Inputs have the dims of the ports; outputs are allocated. `step_done`, if there, is called behind each operator.
  Result<void> run(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs,
                   std::vector<StepReport>* report,
                   const std::function<void(const DeviceProgram::Step&)>& step_done = {});
  const DeviceProgram& program() const { return *program_; }

 private:
  LoadedProgram(std::shared_ptr<const DeviceProgram> program, std::shared_ptr<Driver> driver)
      : program_(std::move(program)), driver_(std::move(driver)) {}
  Result<void> allocate();
  Result<void> write_constants();
  uint64_t address(const DeviceProgram::Place& place) const;
  Result<void> write(const DeviceProgram::Place& place, std::span<const std::byte> bytes);

  std::shared_ptr<const DeviceProgram> program_;
  std::shared_ptr<Driver> driver_;
  std::vector<DriverMemory> windows_;
  std::vector<int64_t> skipped_;  // bytes before the first aligned one of each window
};

}  // namespace tenon::vta
