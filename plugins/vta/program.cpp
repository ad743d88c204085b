#include "vta/program.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/runtime/memory_plan.hpp>

#include "vta/pack.hpp"

namespace tenon::vta {
namespace {

constexpr int64_t kInstructionBytes = 16;
constexpr uint32_t kWaitForever = UINT32_MAX;

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

// ---- Compiling ----

class ProgramCompiler {
 public:
  ProgramCompiler(const Graph& graph, const Hardware& hardware, const StreamOptions& options)
      : graph_(graph), options_(options), made_(std::make_shared<DeviceProgram>()) {
    made_->hardware_ = hardware;
  }

  Result<std::shared_ptr<const DeviceProgram>> compile() {
    for (size_t i = 0; i < graph_.body().input_count(); ++i) TENON_OK(add_block(graph_.body().input(i), 0));
    for (const Op& op : graph_.body())
      if (!isa<Constant>(op)) TENON_OK(add_op(op), op.describe());
    const size_t end = made_->steps_.size() + 1;
    for (size_t i = 0; i < graph_.body().output_count(); ++i) TENON_OK(use(graph_.body().output(i), end));
    TENON_OK(place_activations());
    for (DeviceProgram::Step& step : made_->steps_) place_constants(step);
    for (size_t i = 0; i < graph_.body().input_count(); ++i)
      TENON_OK(add_port(*graph_.body().input(i), graph_.body().input(i)->name(), made_->inputs_));
    for (size_t i = 0; i < graph_.body().output_count(); ++i)
      TENON_OK(add_port(*graph_.body().output(i), graph_.body().output_name(i), made_->outputs_));
    return std::shared_ptr<const DeviceProgram>(std::move(made_));
  }

 private:
  const Hardware& hardware() const { return made_->hardware_; }
  static Dims dims_of(const Value& value) { return value.type().shape().static_dims().value_or(Dims{}); }

  // A place in the arena for a value that is made at `step`; step 0 is before the first operator.
  Result<void> add_block(const Value* value, size_t step) {
    TENON_TRY(image, image_of(dims_of(*value), hardware()), "value '", value->name(), "'");
    block_of_[value] = blocks_.size();
    blocks_.push_back({.bytes = static_cast<size_t>(image.elements() * hardware().element_bytes(Memory::inp)),
                       .first = step,
                       .last = step,
                       .align_bytes = static_cast<size_t>(dram_alignment(hardware())),
                       .window_bytes = static_cast<size_t>(dram_window_bytes(hardware())),
                       .name = value->name()});
    return {};
  }

  // A constant activation is packed once; anything else is alive until `step`.
  Result<void> use(const Value* value, size_t step) {
    const auto block = block_of_.find(value);
    if (block != block_of_.end()) {
      blocks_[block->second].last = std::max(blocks_[block->second].last, step);
      return {};
    }
    const Tensor* constant = constant_of(value);
    if (!constant) return error(Code::internal, "value '", value->name(), "' has no place");
    if (constant_of_.contains(value)) return {};
    TENON_TRY(image, image_of(constant->dims(), hardware()));
    std::vector<std::byte> packed(static_cast<size_t>(image.elements() * hardware().element_bytes(Memory::inp)));
    pack_activation(*constant, hardware(), packed);
    constant_of_.emplace(value, std::move(packed));
    return {};
  }

  Result<void> add_op(const Op& op) {
    TENON_TRY(made, device_op(op, hardware()));
    const size_t step = made_->steps_.size() + 1;
    for (const Value* operand : made.operands) TENON_OK(use(operand, step));
    if (std::holds_alternative<DeviceView>(made.work)) {
      const auto block = block_of_.find(made.operands[0]);
      if (block == block_of_.end()) return error(Code::unsupported, "a view of a constant is not folded");
      block_of_[made.result] = block->second;
      return {};
    }
    TENON_TRY(stream, stream_of(made, hardware(), options_));
    TENON_OK(add_block(made.result, step));
    made_->steps_.push_back({.op = std::move(made), .stream = std::move(stream), .segments = {}, .instructions = {}});
    return {};
  }

  Result<void> place_activations() {
    const ArenaSpace space{.name = "dram", .limit_bytes = static_cast<size_t>(hardware().dram_bytes)};
    TENON_TRY(plan, plan_memory(blocks_, std::span(&space, 1)), "the activations of graph '", graph_.name(),
              "' in DRAM");
    offsets_ = plan.offsets;
    made_->activation_bytes_ = plan.spaces[0].bytes;
    made_->activation_bound_ = plan.spaces[0].lower_bound_bytes;
    const int64_t window = dram_window_bytes(hardware());
    for (auto left = static_cast<int64_t>(plan.spaces[0].bytes); left > 0; left -= window)
      made_->windows_.push_back(std::min(left, window));
    first_constant_window_ = made_->windows_.size();
    return {};
  }

  DeviceProgram::Place reserve(int64_t bytes) {
    const int64_t align = dram_alignment(hardware()), size = (bytes + align - 1) / align * align;
    auto& windows = made_->windows_;
    if (windows.size() == first_constant_window_ || windows.back() + size > dram_window_bytes(hardware()))
      windows.push_back(0);
    const DeviceProgram::Place place{windows.size() - 1, windows.back()};
    windows.back() += size;
    return place;
  }
  DeviceProgram::Place keep(std::vector<std::byte> bytes) {
    const auto place = reserve(static_cast<int64_t>(bytes.size()));
    if (!bytes.empty()) made_->constants_.push_back({place, std::move(bytes)});
    return place;
  }

  DeviceProgram::Place place_of(const Value* value) {
    const auto block = block_of_.find(value);
    if (block == block_of_.end()) {
      const auto constant = constant_of_.find(value);
      const auto [known, first] = constant_places_.try_emplace(value);
      if (first) known->second = keep(std::move(constant->second));
      return known->second;
    }
    const auto offset = static_cast<int64_t>(offsets_[block->second]);
    const int64_t window = dram_window_bytes(hardware());
    return {static_cast<size_t>(offset / window), offset % window};
  }

  void place_constants(DeviceProgram::Step& step) {
    step.segments.resize(kOperandSegment + step.op.operands.size());
    step.segments[kMicroOpSegment] = keep(bytes_of(step.stream.micro_ops));
    step.segments[kWeightSegment] = keep(std::move(step.op.weights));
    step.segments[kBiasSegment] = keep(std::move(step.op.bias));
    step.segments[kOutputSegment] = place_of(step.op.result);
    for (size_t i = 0; i < step.op.operands.size(); ++i)
      step.segments[kOperandSegment + i] = place_of(step.op.operands[i]);
    step.instructions = reserve(static_cast<int64_t>(step.stream.commands.size()) * kInstructionBytes);
  }

  Result<void> add_port(const Value& value, const std::string& name, std::vector<DeviceProgram::Port>& ports) {
    TENON_TRY(image, image_of(dims_of(value), hardware()));
    ports.push_back({name, dims_of(value), place_of(&value), image});
    return {};
  }

  const Graph& graph_;
  const StreamOptions& options_;
  std::shared_ptr<DeviceProgram> made_;
  std::vector<MemoryBlock> blocks_;
  std::vector<size_t> offsets_;
  std::unordered_map<const Value*, size_t> block_of_;
  std::unordered_map<const Value*, std::vector<std::byte>> constant_of_;
  std::unordered_map<const Value*, DeviceProgram::Place> constant_places_;
  size_t first_constant_window_ = 0;
};

Result<std::shared_ptr<const DeviceProgram>> DeviceProgram::compile(const Graph& graph, const Hardware& hardware,
                                                                    const StreamOptions& options) {
  TENON_TRY(made, ProgramCompiler(graph, hardware, options).compile(), "compiling graph '", graph.name(), "' for '",
            hardware.name, "'");
  return made;
}

Result<std::string> DeviceProgram::listing() const {
  std::string text;
  for (const Step& step : steps_) {
    text += str("// ", step.op.op, " ", step.op.label, ": ", step.stream.commands.size(), " instructions, ",
                step.stream.micro_ops.size(), " micro-ops\n");
    for (const Command& command : step.stream.commands) text += str(print(command.instruction), "\n");
  }
  return text;
}

// ---- Running ----

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

Result<void> LoadedProgram::write_constants() {
  for (const DeviceProgram::Constant& constant : program_->constants()) TENON_OK(write(constant.place, constant.bytes));
  for (const DeviceProgram::Step& step : program_->steps()) {
    std::vector<uint64_t> addresses;
    for (const DeviceProgram::Place& place : step.segments) addresses.push_back(address(place));
    TENON_TRY(bound, step.stream.bound(addresses, program_->hardware()));
    std::vector<Words> words;
    for (const Instruction& instruction : bound) {
      TENON_TRY(encoded, encode(instruction, program_->hardware()), step.op.op, " ", quote(step.op.label));
      words.push_back(encoded);
    }
    TENON_OK(write(step.instructions, bytes_of(words)));
  }
  return {};
}

Result<void> LoadedProgram::run(std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs,
                                std::vector<StepReport>* report,
                                const std::function<void(const DeviceProgram::Step&)>& step_done) {
  const Hardware& hardware = program_->hardware();
  std::vector<std::byte> packed;
  const auto bytes = [&](const DeviceProgram::Port& port) {
    return static_cast<size_t>(port.image.elements() * hardware.element_bytes(Memory::inp));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DeviceProgram::Port& port = program_->inputs()[i];
    packed.resize(bytes(port));
    pack_activation(*inputs[i], hardware, packed);
    TENON_OK(write(port.place, packed), "input '", port.name, "'");
  }
  for (const DeviceProgram::Step& step : program_->steps()) {
    const auto count = static_cast<uint32_t>(step.stream.commands.size());
    TENON_OK(driver_->run(static_cast<uint32_t>(address(step.instructions)), count, kWaitForever), step.op.op, " ",
             quote(step.op.label), " on driver ", quote(driver_->name()));
    if (step_done) step_done(step);
    if (!report) continue;
    const auto last = driver_->last_run();
    report->push_back({step.op.op, step.op.label, count, last ? std::optional(last->counters) : std::nullopt});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DeviceProgram::Port& port = program_->outputs()[i];
    packed.resize(bytes(port));
    TENON_OK(
        windows_[port.place.window].read(static_cast<size_t>(skipped_[port.place.window] + port.place.offset), packed),
        "output '", port.name, "'");
    unpack_activation(packed, hardware, *outputs[i]);
  }
  return {};
}

}  // namespace tenon::vta
