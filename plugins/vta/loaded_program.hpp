// LoadedProgram: a program in the memory of a driver, ready to run.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vta/driver.hpp"
#include "vta/program.hpp"

namespace tenon::vta {

// The result of one operator in a run.
struct StepReport {
  std::string op, label;
  int64_t instructions = 0;
  std::optional<RunCounters> counters;  // none where the driver does not provide them
};

// One thread at a time, which holds the driver's lock.
class LoadedProgram {
 public:
  static Result<std::unique_ptr<LoadedProgram>> load(std::shared_ptr<const DeviceProgram> program,
                                                     std::shared_ptr<Driver> driver);
  // Inputs have the dims of the ports; outputs are allocated. `step_done`, if not empty, is called after each operator.
  Result<void> run(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs,
                   std::vector<StepReport>* report,
                   const std::function<void(const DeviceProgram::Step&)>& step_done = {});
  const DeviceProgram& program() const { return *program_; }

 private:
  LoadedProgram(std::shared_ptr<const DeviceProgram> program, std::shared_ptr<Driver> driver)
      : program_(std::move(program)), driver_(std::move(driver)) {}
  Result<void> allocate();
  Result<void> write_constants();
  Result<void> write_instructions();
  uint64_t address(const DeviceProgram::Place& place) const;
  Result<void> write(const DeviceProgram::Place& place, std::span<const std::byte> bytes);
  Result<void> write_activation(const DeviceProgram::Place& place, const Tensor& x);

  std::shared_ptr<const DeviceProgram> program_;
  std::shared_ptr<Driver> driver_;
  std::vector<DriverMemory> windows_;
  std::vector<int64_t> skipped_;  // by window: bytes before its first aligned one
};

}  // namespace tenon::vta
