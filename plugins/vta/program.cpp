#include "vta/program.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <tenon-ext/dma/operators.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>

#include "vta/operators.hpp"
#include "vta/pack.hpp"

namespace tenon::vta {
namespace {

Dims dims_of(const Value& value) { return value.type().shape().static_dims().value_or(Dims{}); }

const Value* source_of(const Value* value) {
  while (value && isa<ViewOp>(value->producer())) value = value->producer()->operand(0);
  return value;
}

// The end of the bytes that a transfer accesses, relative to the start of the segment.
int64_t end_of(const Transfer& t, const Hardware& hardware) {
  if (t.x_size == 0 || t.y_size == 0) return 0;
  const int64_t last = int64_t{t.dram_base} + int64_t{t.y_size - 1} * t.x_stride + t.x_size;
  return last * hardware.element_bytes(t.memory);
}

}  // namespace

class ProgramReader {
 public:
  ProgramReader(const Graph& graph, const Hardware& hardware)
      : graph_(graph), made_(std::make_shared<DeviceProgram>()) {
    made_->hardware_ = hardware;
  }

  Result<std::shared_ptr<const DeviceProgram>> read() {
    for (const Op& op : graph_.body()) {
      ++step_;
      TENON_OK(read_op(op), op.describe());
    }
    TENON_OK(add_ports());
    measure_activations();
    for (DeviceProgram::Step& step : made_->steps_)
      step.instructions = reserve(static_cast<int64_t>(step.entries.size()) * kInstructionBytes);
    return std::shared_ptr<const DeviceProgram>(std::move(made_));
  }

 private:
  const Hardware& hardware() const { return made_->hardware_; }
  DeviceProgram::Place place_of(int64_t address) const {
    const int64_t window = dram_window_bytes(hardware());
    return {static_cast<size_t>(address / window), address % window};
  }
  int64_t aligned(int64_t bytes) const {
    const int64_t align = dram_alignment(hardware());
    return (bytes + align - 1) / align * align;
  }

  Result<void> read_op(const Op& op) {
    if (isa<Constant>(op) || op.is(ViewOp::name())) return {};
    if (op.is(dma::Load::name()) && op.attr<std::string>(names().from) == "host") return read_load(op);
    if (op.is(dma::Store::name()) && op.attr<std::string>(names().to) == "host") {
      host_.emplace(op.result(), op.operand(0));
      return use(*op.operand(0));
    }
    if (op.is(StreamOp::name())) return read_stream(StreamOp(const_cast<Op&>(op)));
    return error(Code::invalid_argument, "the passes of target '", hardware().name, "' leave no such operator");
  }

  // ---- DRAM ----

  // Reserves the bytes of an activation or constant in its window.
  Result<DeviceProgram::Place> take(int64_t address, int64_t bytes) {
    const DeviceProgram::Place place = place_of(address);
    const int64_t align = dram_alignment(hardware());
    if (address < 0 || address % align != 0 || place.offset + bytes > dram_window_bytes(hardware()) ||
        address + bytes > static_cast<int64_t>(hardware().dram_bytes))
      return error(Code::invalid_argument, bytes, " bytes at address ", address, " are no multiple of ", align,
                   " in one buffer of ", dram_window_bytes(hardware()), " bytes, in a DRAM of ", hardware().dram_bytes);
    auto& windows = made_->windows_;
    if (windows.size() <= place.window) windows.resize(place.window + 1);
    windows[place.window] = std::max(windows[place.window], place.offset + aligned(bytes));
    return place;
  }
  DeviceProgram::Place reserve(int64_t bytes) {
    auto& windows = made_->windows_;
    if (windows.size() <= activation_windows_ || windows.back() + aligned(bytes) > dram_window_bytes(hardware()))
      windows.push_back(0);
    const DeviceProgram::Place place{windows.size() - 1, windows.back()};
    windows.back() += aligned(bytes);
    return place;
  }

  struct Activation {
    int64_t address = 0, bytes = 0;
    size_t first = 0, last = 0;
  };
  Result<Image> add_activation(const Value& value, int64_t address, size_t first) {
    TENON_TRY(image, image_of(dims_of(value), hardware()));
    const int64_t bytes = image.elements() * hardware().element_bytes(Memory::inp);
    TENON_OK(take(address, bytes));
    activations_[&value] = {address, bytes, first, step_};
    return image;
  }
  Result<void> use(const Value& value) {
    const auto known = activations_.find(&value);
    if (known == activations_.end()) return error(Code::invalid_argument, "%", value.name(), " is not in DRAM");
    known->second.last = step_;
    return {};
  }

  Result<void> read_load(const Op& op) {
    const Value* source = source_of(op.operand(0));
    const int64_t address = integer_of(op.attributes(), names().at, -1);
    const Tensor* constant = constant_of(source);
    TENON_OK(add_activation(*op.result(), address, constant ? step_ : 0));
    if (!constant) {
      loads_.emplace(source, op.result());
      return {};
    }
    resident_.insert(op.result());
    TENON_TRY(shaped, constant->reshaped(dims_of(*op.result())));
    made_->constants_.push_back({place_of(address), std::move(shaped), true});
    return {};
  }

  // ---- Streams ----

  Result<void> read_stream(const StreamOp& op) {
    const auto machine = op.attr<std::string>(names().machine);
    if (machine != hardware().fingerprint())
      return error(Code::invalid_argument, "its instructions are for the machine ", machine, "; target '",
                   hardware().name, "' is ", hardware().fingerprint(), ": compile the model for it");
    const auto& dram = integers_of(op->attributes(), names().dram);
    const size_t inputs = op.segment_count() - 1;
    if (dram.size() != inputs + 1)
      return error(Code::invalid_argument, "it has no addresses for its ", inputs, " operands");
    DeviceProgram::Step step{.op = op.attr<std::string>(names().of), .label = op->label()};
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < inputs; ++i) TENON_OK(read_operand(*op.operand(i), dram[i], sizes));
    TENON_TRY(image, add_activation(*op.result(), dram.back(), step_));
    sizes.push_back(image.elements() * hardware().element_bytes(Memory::out));
    for (const int64_t address : dram) step.segments.push_back(place_of(address));
    TENON_OK(read_instructions(op, sizes, step));
    step.micro_ops = static_cast<size_t>(constant_of(op.micro_ops())->size());
    made_->steps_.push_back(std::move(step));
    return {};
  }

  Result<void> read_operand(const Value& value, int64_t address, std::vector<int64_t>& sizes) {
    const Tensor* constant = constant_of(&value);
    if (!constant) {
      TENON_OK(use(value));
      if (activations_[&value].address != address)
        return error(Code::invalid_argument, "%", value.name(), " lies at ", activations_[&value].address, ", not at ",
                     address);
      sizes.push_back(activations_[&value].bytes);
      return {};
    }
    TENON_TRY(place, take(address, static_cast<int64_t>(constant->bytes())));
    if (written_.insert(&value).second) made_->constants_.push_back({place, *constant, false});
    sizes.push_back(static_cast<int64_t>(constant->bytes()));
    return {};
  }

  Result<void> read_instructions(const StreamOp& op, const std::vector<int64_t>& sizes, DeviceProgram::Step& step) {
    const Tensor *instructions = constant_of(op.instructions()), *segments = constant_of(op.segments());
    if (!instructions || !segments || !constant_of(op.micro_ops()))
      return error(Code::invalid_argument, "its instructions or micro-ops are no constants");
    const auto words = instructions->as<uint64_t>();
    const auto numbers = segments->as<uint8_t>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      TENON_TRY(instruction, decode({words[2 * i], words[2 * i + 1]}, hardware()), "instruction ", i);
      const bool transfer = instruction.opcode == Opcode::load || instruction.opcode == Opcode::store;
      if (transfer && (numbers[i] >= sizes.size() || end_of(instruction.transfer, hardware()) > sizes[numbers[i]]))
        return error(Code::invalid_argument, "instruction ", i, ", ", print(instruction), ", leaves its segment ",
                     numbers[i]);
      step.entries.push_back({instruction, transfer ? Segment{numbers[i]} : 0});
    }
    return {};
  }

  // ---- Ports ----

  Result<void> add_ports() {
    const Region& body = graph_.body();
    for (size_t i = 0; i < body.input_count(); ++i) {
      const Value& input = *body.input(i);
      DeviceProgram::Port port{input.name(), dims_of(input), {}, {}};
      if (const auto load = loads_.find(&input); load != loads_.end()) TENON_OK(put(*load->second, port));
      made_->inputs_.push_back(std::move(port));
    }
    ++step_;
    for (size_t i = 0; i < body.output_count(); ++i) {
      const auto stored = host_.find(source_of(body.output(i)));
      if (stored == host_.end())
        return error(Code::invalid_argument, "output '", body.output_name(i), "' is not stored by the device");
      TENON_OK(use(*stored->second));
      DeviceProgram::Port port{body.output_name(i), dims_of(*body.output(i)), {}, {}};
      TENON_OK(put(*stored->second, port));
      made_->outputs_.push_back(std::move(port));
    }
    return {};
  }
  Result<void> put(const Value& value, DeviceProgram::Port& port) {
    TENON_TRY(image, image_of(port.dims, hardware()));
    port.place = place_of(activations_.at(&value).address), port.image = image;
    return {};
  }

  // Constants that are activations are stored with the constants.
  void measure_activations() {
    std::vector<int64_t> alive(step_ + 1);
    int64_t end = 0;
    for (const auto& [value, activation] : activations_) {
      if (resident_.contains(value)) continue;
      end = std::max(end, activation.address + aligned(activation.bytes));
      for (size_t step = activation.first; step <= activation.last; ++step) alive[step] += aligned(activation.bytes);
    }
    made_->activation_bytes_ = static_cast<size_t>(end);
    made_->activation_bound_ = static_cast<size_t>(*std::max_element(alive.begin(), alive.end()));
    activation_windows_ = end == 0 ? 0 : place_of(end - 1).window + 1;
  }

  const Graph& graph_;
  std::shared_ptr<DeviceProgram> made_;
  size_t step_ = 0, activation_windows_ = 0;
  std::unordered_map<const Value*, Activation> activations_;
  std::unordered_map<const Value*, const Value*> loads_;  // host value -> value in DRAM
  std::unordered_map<const Value*, const Value*> host_;   // stored value -> value in DRAM
  std::unordered_set<const Value*> resident_, written_;
};

Result<std::shared_ptr<const DeviceProgram>> DeviceProgram::of(const Graph& graph, const Hardware& hardware) {
  TENON_TRY(made, ProgramReader(graph, hardware).read(), "the streams of graph '", graph.name(), "' for '",
            hardware.name, "'");
  return made;
}

std::string DeviceProgram::listing() const {
  std::string text;
  for (const Step& step : steps_) {
    text += str("// ", step.op, " ", step.label, ": ", step.entries.size(), " instructions, ", step.micro_ops,
                " micro-ops\n");
    for (const StreamEntry& entry : step.entries) text += str(print(entry.instruction), "\n");
  }
  return text;
}

}  // namespace tenon::vta
