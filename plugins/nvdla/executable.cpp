#include "nvdla/executable.hpp"

#include <cstring>
#include <mutex>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/serialize.hpp>
#include <tenon/plugin/host_executable.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/log.hpp>

#include "nvdla/emit.hpp"
#include "nvdla/operators.hpp"
#include "nvdla/pack.hpp"
#include "nvdla/place.hpp"
#include "nvdla/simulator.hpp"

namespace tenon::nvdla {
namespace {

struct Step {
  std::string op, label;  // of the generic operator: "Conv"
  std::vector<Words> commands;
};

struct Port {
  std::string name;
  Dims dims;
  int64_t place = 0, bytes = 0;
};

Result<Port> port_of(const Value& value, const std::string& name, int64_t place, const Hardware& hardware) {
  const auto dims = value.type().shape().static_dims();
  if (!dims) return error(Code::invalid_argument, "value '", name, "' has no static shape");
  TENON_TRY(image, Image::of(*dims, hardware), "value '", name, "'");
  return Port{name, *dims, place, image.bytes};
}

// The bytes of constant operand `i` as stored in DRAM.
Result<std::vector<std::byte>> constant_bytes(const Op& op, size_t i, const Tensor& tensor, const Hardware& hardware) {
  if (isa<Conv>(op) && i == 1) {
    TENON_TRY(layer, ConvLayer::of(op, hardware));
    return pack_weights(tensor, layer, hardware);
  }
  if (isa<Conv>(op) && i == 2) return std::vector<std::byte>(tensor.data(), tensor.data() + tensor.bytes());
  TENON_TRY(image, Image::of(tensor.dims(), hardware));
  std::vector<std::byte> packed(static_cast<size_t>(image.bytes));
  TENON_OK(pack_activation(tensor, hardware, packed));
  return packed;
}

std::vector<std::pair<std::string, int64_t>> list_of(const Counters& c) {
  return {{"commands", c.commands},         {"cycles", c.cycles},
          {"mac_cycles", c.mac_cycles},     {"macs", c.macs},
          {"dram_bytes", c.dram_bytes()},   {"data_bytes", c.data_bytes},
          {"weight_bytes", c.weight_bytes}, {"operand_bytes", c.operand_bytes},
          {"stored_bytes", c.stored_bytes}, {"buffer_bytes", c.buffer_bytes}};
}

class NvdlaExecutable final : public HostExecutable {
 public:
  static Result<std::unique_ptr<Executable>> make(std::unique_ptr<Graph> graph, const Hardware& hardware) {
    TENON_OK(check_outputs(*graph));
    std::unique_ptr<NvdlaExecutable> made(new NvdlaExecutable(std::move(graph), hardware));
    TENON_OK(made->read_places());
    for (const Op& op : made->graph_->body())
      if (!original_name(op).empty()) TENON_OK(made->add_step(op), op.describe());
    made->say();
    return std::unique_ptr<Executable>(std::move(made));
  }

  size_t arena_bytes() const override { return static_cast<size_t>(places_.activation_bytes); }
  size_t arena_lower_bound_bytes() const override { return static_cast<size_t>(places_.activation_bound_bytes); }
  Result<std::string> serialize() const override { return tenon::serialize(*graph_); }

  Result<std::string> listing() const override {
    std::string text;
    for (const Step& step : steps_) {
      text += str("// ", step.op, " ", step.label, ": ", step.commands.size(), " commands\n");
      for (const Words& words : step.commands) {
        TENON_TRY(command, decode(words));
        text += str(print(command), "\n");
      }
    }
    return text;
  }

  Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                   const RunOptions& options) const override {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < inputs.size(); ++i) TENON_OK(write_input(inputs_[i], *inputs[i]));
    ParallelFor& parallel = options.parallel ? *options.parallel : default_pool();
    for (const Step& step : steps_) {
      TENON_TRY(counters, simulator_.run(step.commands, dram_, parallel), step.op, " ", quote(step.label));
      if (options.profile) add_profile(step, counters, *options.profile);
    }
    for (size_t i = 0; i < outputs.size(); ++i) TENON_OK(read_output(outputs_[i], *outputs[i]));
    return {};
  }

 private:
  NvdlaExecutable(std::unique_ptr<Graph> graph, const Hardware& hardware)
      : HostExecutable(*graph), graph_(std::move(graph)), hardware_(hardware), simulator_(hardware) {}

  // Places may come from a stored executable, so they are not trusted.
  Result<std::span<std::byte>> range(int64_t place, size_t bytes) const {
    if (place < 0 || static_cast<size_t>(place) > dram_.size() || bytes > dram_.size() - static_cast<size_t>(place))
      return error(Code::invalid_argument, "[", place, ", ", static_cast<size_t>(place) + bytes, ") leaves DRAM of ",
                   dram_.size(), " bytes");
    return std::span(dram_).subspan(static_cast<size_t>(place), bytes);
  }

  Result<void> read_places() {
    TENON_TRY(places, places_of(*graph_));
    places_ = places;
    if (places.dram_bytes > hardware_.dram_bytes || places.activation_bytes > places.dram_bytes)
      return error(Code::invalid_argument, "graph '", graph_->name(), "' wants ", places.dram_bytes, " bytes of DRAM, ",
                   hardware_.dram_bytes, " are there");
    dram_.resize(static_cast<size_t>(places.dram_bytes));
    const Region& body = graph_->body();
    for (size_t i = 0; i < body.input_count(); ++i) {
      TENON_TRY(port, port_of(*body.input(i), body.input(i)->name(), places.inputs[i], hardware_));
      inputs_.push_back(port);
    }
    for (size_t i = 0; i < body.output_count(); ++i) {
      TENON_TRY(port, port_of(*body.output(i), body.output_name(i), places.outputs[i], hardware_));
      outputs_.push_back(port);
    }
    return {};
  }

  Result<void> add_step(const Op& op) {
    TENON_TRY(commands, words_of(op));
    const auto places = op.attr<Attribute::Integers>("dram");
    if (places.size() != op.operand_count() + 1)
      return error(Code::invalid_argument, "dram holds ", places.size(), " places, ", op.operand_count() + 1,
                   " are wanted");
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const Tensor* constant = constant_of(op.operand(i));
      if (!constant) continue;
      TENON_TRY(bytes, constant_bytes(op, i, *constant, hardware_));
      TENON_TRY(to, range(places[i], bytes.size()));
      std::memcpy(to.data(), bytes.data(), bytes.size());
    }
    steps_.push_back({original_name(op), op.label(), std::move(commands)});
    return {};
  }

  void say() const {
    size_t commands = 0;
    for (const Step& step : steps_) commands += step.commands.size();
    log(LogLevel::info, "graph '", graph_->name(), "' on ", hardware_.name, ": ", steps_.size(), " operators, ",
        commands, " commands, ", places_.activation_bytes, " bytes of activations and ",
        places_.dram_bytes - places_.activation_bytes, " of constants in DRAM");
  }

  Result<void> write_input(const Port& port, const Datum& input) const {
    TENON_TRY(to, range(port.place, static_cast<size_t>(port.bytes)));
    return pack_activation(input.tensor(), hardware_, to);
  }

  // Writes to the given tensor, if it fits.
  Result<void> read_output(const Port& port, Datum& output) const {
    if (!output.is_tensor() || output.tensor().element() != hardware_.element || output.tensor().dims() != port.dims) {
      TENON_TRY(tensor, Tensor::allocate(hardware_.element, port.dims));
      output = Datum(std::move(tensor));
    }
    TENON_TRY(from, range(port.place, static_cast<size_t>(port.bytes)));
    return unpack_activation(from, hardware_, output.tensor());
  }

  // Microseconds by the target's clock; 0 where it states none.
  void add_profile(const Step& step, const Counters& counters, std::vector<OpProfile>& profile) const {
    OpProfile entry{.op = step.op, .label = step.label};
    if (hardware_.clock_hz != 0)
      entry.microseconds = 1e6 * static_cast<double>(counters.cycles) / static_cast<double>(hardware_.clock_hz);
    entry.counters = list_of(counters);
    profile.push_back(std::move(entry));
  }

  std::unique_ptr<Graph> graph_;
  Hardware hardware_;
  Places places_;
  std::vector<Step> steps_;
  std::vector<Port> inputs_, outputs_;
  mutable std::mutex mutex_;
  mutable Simulator simulator_;
  mutable std::vector<std::byte> dram_;
};

}  // namespace

Result<std::unique_ptr<Executable>> make_executable(std::unique_ptr<Graph> graph, const Hardware& hardware) {
  return NvdlaExecutable::make(std::move(graph), hardware);
}

}  // namespace tenon::nvdla
