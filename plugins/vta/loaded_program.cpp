#include "vta/loaded_program.hpp"

#include <cstring>

#include "vta/pack.hpp"

namespace tenon::vta {
namespace {

constexpr uint32_t kWaitForever = UINT32_MAX;

}  // namespace

Result<std::unique_ptr<LoadedProgram>> LoadedProgram::load(std::shared_ptr<const DeviceProgram> program,
                                                           std::shared_ptr<Driver> driver) {
  std::unique_ptr<LoadedProgram> loaded(new LoadedProgram(std::move(program), std::move(driver)));
  TENON_OK(loaded->allocate(), "memory of driver ", quote(loaded->driver_->name()));
  TENON_OK(loaded->write_constants());
  return loaded;
}

Result<void> LoadedProgram::allocate() {
  const int64_t align = dram_alignment(program_->hardware());
  for (const int64_t bytes : program_->windows()) {
    TENON_TRY(memory, DriverMemory::allocate(driver_, static_cast<size_t>(bytes + align)));
    const auto first = static_cast<int64_t>(memory.address());
    skipped_.push_back((first + align - 1) / align * align - first);
    windows_.push_back(std::move(memory));
  }
  return {};
}

uint64_t LoadedProgram::address(const DeviceProgram::Place& place) const {
  return windows_[place.window].address() + static_cast<uint64_t>(skipped_[place.window] + place.offset);
}

Result<void> LoadedProgram::write(const DeviceProgram::Place& place, std::span<const std::byte> bytes) {
  return windows_[place.window].write(static_cast<size_t>(skipped_[place.window] + place.offset), bytes);
}

Result<void> LoadedProgram::write_activation(const DeviceProgram::Place& place, const Tensor& x) {
  const Hardware& hardware = program_->hardware();
  TENON_TRY(image, image_of(x.dims(), hardware));
  std::vector<std::byte> packed(static_cast<size_t>(image.elements() * hardware.element_bytes(Memory::inp)));
  pack_activation(x, hardware, packed);
  return write(place, packed);
}

Result<void> LoadedProgram::write_constants() {
  for (const DeviceProgram::Constant& constant : program_->constants()) {
    if (constant.activation)
      TENON_OK(write_activation(constant.place, constant.tensor));
    else
      TENON_OK(write(constant.place, {constant.tensor.data(), constant.tensor.bytes()}));
  }
  return write_instructions();
}

// Writes instructions with the addresses of segments in this driver's memory.
Result<void> LoadedProgram::write_instructions() {
  for (const DeviceProgram::Step& step : program_->steps()) {
    std::vector<uint64_t> addresses;
    for (const DeviceProgram::Place& place : step.segments) addresses.push_back(address(place));
    std::vector<Words> words;
    words.reserve(step.entries.size());
    for (const StreamEntry& entry : step.entries) {
      TENON_TRY(instruction, bound(entry, addresses[entry.segment], program_->hardware()));
      TENON_TRY(encoded, encode(instruction, program_->hardware()), step.op, " ", quote(step.label));
      words.push_back(encoded);
    }
    TENON_OK(write(step.instructions, std::as_bytes(std::span(words))));
  }
  return {};
}

Result<void> LoadedProgram::run(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs,
                                std::vector<StepReport>* report,
                                const std::function<void(const DeviceProgram::Step&)>& step_done) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DeviceProgram::Port& port = program_->inputs()[i];
    if (port.place) TENON_OK(write_activation(*port.place, *inputs[i]), "input '", port.name, "'");
  }
  for (const DeviceProgram::Step& step : program_->steps()) {
    const auto count = static_cast<uint32_t>(step.entries.size());
    TENON_OK(driver_->run(static_cast<uint32_t>(address(step.instructions)), count, kWaitForever), step.op, " ",
             quote(step.label), " on driver ", quote(driver_->name()));
    if (step_done) step_done(step);
    if (!report) continue;
    const auto last = driver_->last_run();
    report->push_back({step.op, step.label, count, last ? std::optional(last->counters) : std::nullopt});
  }
  const Hardware& hardware = program_->hardware();
  std::vector<std::byte> packed;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DeviceProgram::Port& port = program_->outputs()[i];
    packed.resize(static_cast<size_t>(port.image.elements() * hardware.element_bytes(Memory::inp)));
    const size_t first = static_cast<size_t>(skipped_[port.place->window] + port.place->offset);
    TENON_OK(windows_[port.place->window].read(first, packed), "output '", port.name, "'");
    unpack_activation(packed, hardware, *outputs[i]);
  }
  return {};
}

}  // namespace tenon::vta
