#include <tenon/plugin/guard_internal.hpp>

#include <algorithm>

#include <tenon/plugin/checks_values_internal.hpp>
#include <tenon/plugin/graph_values.hpp>
#include <tenon/runtime/host_run.hpp>
#include <tenon/runtime/memory_chart.hpp>
#include <tenon/runtime/value_check.hpp>
#include <tenon/support/log.hpp>

// In each class the origin is declared before the plugin's object, which is thus destroyed before its library can be
// unloaded.

namespace tenon::plugin_room {
namespace {

Error null_result(const Origin& origin, std::string_view what) {
  return error(Code::plugin, "plugin '", origin.plugin, "' gave nothing in ", what);
}

// Checks a pointer that a plugin returned in a Result; null is a broken contract.
template <class Pointer, class Body>
Result<Pointer> guarded_pointer(const Origin& origin, std::string_view what, const Body& body) {
  TENON_TRY(made, guarded(origin, what, body));
  if (!made) return null_result(origin, what);
  return Result<Pointer>(std::move(made));
}

class GuardedEvent final : public Event {
 public:
  GuardedEvent(OriginPtr origin, EventPtr made) : origin_(std::move(origin)), made_(std::move(made)) {}
  Result<void> wait() override {
    return guarded(*origin_, "Event::wait()", [&] { return made_->wait(); });
  }
  bool done() const override {
    const auto done = guarded(*origin_, "Event::done()", [&] { return Result<bool>(made_->done()); });
    return !done.ok() || *done;  // the error is then reported by wait()
  }

 private:
  OriginPtr origin_;
  EventPtr made_;
};

Result<EventPtr> guard_event(const OriginPtr& origin, std::string_view what,
                             const std::function<Result<EventPtr>()>& body) {
  TENON_TRY(made, guarded_pointer<EventPtr>(*origin, what, body));
  return EventPtr(std::make_shared<GuardedEvent>(origin, std::move(made)));
}

class GuardedBuffer final : public Buffer {
 public:
  GuardedBuffer(OriginPtr origin, std::shared_ptr<Device> device, std::shared_ptr<Buffer> made)
      : origin_(std::move(origin)),
        device_(std::move(device)),
        made_(std::move(made)),
        memory_(made_->memory()),
        bytes_(made_->bytes()),
        host_data_(made_->host_data()) {}
  Device& device() const override { return *device_; }
  const std::string& memory() const override { return memory_; }
  size_t bytes() const override { return bytes_; }
  std::byte* host_data() const override { return host_data_; }
  const std::shared_ptr<Buffer>& made() const { return made_; }

 private:
  OriginPtr origin_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Buffer> made_;
  std::string memory_;
  size_t bytes_;
  std::byte* host_data_;
};

Result<std::shared_ptr<Buffer>> guard_buffer(const OriginPtr& origin, std::shared_ptr<Device> device,
                                             std::shared_ptr<Buffer> made) {
  return guarded(*origin, "asking a buffer", [&]() -> Result<std::shared_ptr<Buffer>> {
    return std::shared_ptr<Buffer>(std::make_shared<GuardedBuffer>(origin, std::move(device), std::move(made)));
  });
}

// The plugin's own buffer inside a guard.
Result<std::shared_ptr<Buffer>> own_buffer(const Device& device, const Buffer& buffer) {
  const auto* guard = dynamic_cast<const GuardedBuffer*>(&buffer);
  if (!guard || &guard->device() != &device) {
    return error(Code::invalid_argument, "a buffer of device '", buffer.device().name(), "' is used on device '",
                 device.name(), "'; copy through host memory");
  }
  return guard->made();
}

class GuardedStream final : public Stream {
 public:
  GuardedStream(OriginPtr origin, std::shared_ptr<Device> device, std::unique_ptr<Stream> made)
      : origin_(std::move(origin)), device_(std::move(device)), made_(std::move(made)) {}
  Device& device() const override { return *device_; }
  Stream& made() const { return *made_; }

  Result<EventPtr> copy_to_device(Buffer& to, size_t to_offset, std::span<const std::byte> from) override {
    TENON_OK(check_range(*device_, to, to_offset, from.size(), "written"));
    TENON_TRY(target, own_buffer(*device_, to));
    return guard_event(origin_, "copy_to_device()", [&] { return made_->copy_to_device(*target, to_offset, from); });
  }
  Result<EventPtr> copy_to_host(std::span<std::byte> to, const Buffer& from, size_t from_offset) override {
    TENON_OK(check_range(*device_, from, from_offset, to.size(), "read"));
    TENON_TRY(source, own_buffer(*device_, from));
    return guard_event(origin_, "copy_to_host()", [&] { return made_->copy_to_host(to, *source, from_offset); });
  }
  Result<EventPtr> copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override {
    TENON_OK(check_range(*device_, to, to_offset, bytes, "written"));
    TENON_OK(check_range(*device_, from, from_offset, bytes, "read"));
    TENON_TRY(target, own_buffer(*device_, to));
    TENON_TRY(source, own_buffer(*device_, from));
    return guard_event(origin_, "copy()", [&] { return made_->copy(*target, to_offset, *source, from_offset, bytes); });
  }
  Result<EventPtr> call(std::function<Result<void>()> work) override {
    return guard_event(origin_, "Stream::call()", [&] { return made_->call(std::move(work)); });
  }
  Result<void> synchronize() override {
    return guarded(*origin_, "synchronize()", [&] { return made_->synchronize(); });
  }

 private:
  OriginPtr origin_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> made_;
};

class GuardedDevice final : public Device, public std::enable_shared_from_this<GuardedDevice> {
 public:
  GuardedDevice(OriginPtr origin, std::shared_ptr<Device> made)
      : origin_(std::move(origin)),
        made_(std::move(made)),
        name_(made_->name()),
        memories_(made_->memories()),
        is_host_(made_->is_host()) {}
  const std::string& name() const override { return name_; }
  std::vector<std::string> memories() const override { return memories_; }
  bool is_host() const override { return is_host_; }
  Result<std::shared_ptr<Buffer>> allocate(std::string_view memory, size_t bytes) override {
    TENON_TRY(made, guarded_pointer<std::shared_ptr<Buffer>>(*origin_, "allocate()",
                                                             [&] { return made_->allocate(memory, bytes); }));
    TENON_TRY(buffer, guard_buffer(origin_, shared_from_this(), std::move(made)));
    if (buffer->bytes() < bytes) {
      return error(Code::plugin, "plugin '", origin_->plugin, "' gave a buffer of ", buffer->bytes(), " bytes for ",
                   bytes);
    }
    return buffer;
  }
  Result<std::unique_ptr<Stream>> create_stream(bool background) override {
    TENON_TRY(made, guarded_pointer<std::unique_ptr<Stream>>(*origin_, "create_stream()",
                                                             [&] { return made_->create_stream(background); }));
    return std::unique_ptr<Stream>(std::make_unique<GuardedStream>(origin_, shared_from_this(), std::move(made)));
  }
  const Device* made() const { return made_.get(); }

 private:
  OriginPtr origin_;
  std::shared_ptr<Device> made_;
  std::string name_;
  std::vector<std::string> memories_;
  bool is_host_;
};

class GuardedExecutable : public Executable {
 public:
  // `guard`: null when the executable works on the core's own host device.
  GuardedExecutable(OriginPtr origin, std::shared_ptr<Device> device, std::shared_ptr<GuardedDevice> guard,
                    std::unique_ptr<Executable> made)
      : origin_(std::move(origin)),
        device_(std::move(device)),
        guard_(std::move(guard)),
        made_(std::move(made)),
        inputs_(made_->inputs()),
        outputs_(made_->outputs()),
        input_check_(inputs_) {}

  Device& device() const override { return *device_; }
  const std::vector<ValueInfo>& inputs() const override { return inputs_; }
  const std::vector<ValueInfo>& outputs() const override { return outputs_; }
  // Queried each time: where it depends on extents, the first run makes the plan.
  size_t arena_bytes() const override {
    return bytes_or_0("arena_bytes()", [&] { return made_->arena_bytes(); });
  }
  size_t arena_lower_bound_bytes() const override {
    return bytes_or_0("arena_lower_bound_bytes()", [&] { return made_->arena_lower_bound_bytes(); });
  }
  Result<std::string> serialize() const override {
    return guarded(*origin_, "serialize()", [&] { return made_->serialize(); });
  }
  Result<std::string> listing() const override {
    return guarded(*origin_, "listing()", [&] { return made_->listing(); });
  }
  std::vector<KernelInfo> kernels() const override {
    auto infos = guarded(*origin_, "kernels()", [&] { return Result<std::vector<KernelInfo>>(made_->kernels()); });
    return infos.ok() ? *std::move(infos) : std::vector<KernelInfo>();
  }

  Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                           const RunOptions& options) const override {
    TENON_OK(check_given(inputs, outputs.size()));
    if (!guard_) {
      return guard_event(origin_, "enqueue()", [&] { return made_->enqueue(stream, inputs, outputs, options); });
    }
    const auto* own_stream = dynamic_cast<const GuardedStream*>(&stream);
    if (!own_stream || &stream.device() != device_.get()) {
      return error(Code::invalid_argument, "an executable of device '", device_->name(),
                   "' is enqueued on a stream of device '", stream.device().name(), "'");
    }
    std::vector<RunValue> own_inputs(inputs.begin(), inputs.end());
    for (RunValue& input : own_inputs) {
      if (!input.on_device()) continue;
      TENON_TRY(buffer, own_buffer(*device_, *input.device.buffer));
      input.device.buffer = std::move(buffer);
    }
    TENON_TRY(event, guard_event(origin_, "enqueue()",
                                 [&] { return made_->enqueue(own_stream->made(), own_inputs, outputs, options); }));
    for (RunValue& output : outputs) {
      if (!output.on_device()) continue;
      TENON_TRY(buffer, guard_buffer(origin_, device_, std::move(output.device.buffer)));
      output.device.buffer = std::move(buffer);
    }
    return event;
  }

 protected:
  const OriginPtr& origin() const { return origin_; }
  // Checks that the values of a run match the plugin's declarations, so that no plugin has to check them.
  template <class Values>
  Result<void> check_given(const Values& inputs, size_t outputs) const {
    if (inputs.size() == inputs_.size() && outputs == outputs_.size()) return input_check_.inputs(inputs);
    return error(Code::invalid_argument, "an executable of plugin '", origin_->plugin, "' has ", inputs_.size(),
                 " inputs and ", outputs_.size(), " outputs, ", inputs.size(), " and ", outputs, " are given");
  }
  template <class Body>
  size_t bytes_or_0(std::string_view what, const Body& body) const {
    const auto bytes = guarded(*origin_, what, [&] { return Result<size_t>(body()); });
    return bytes.ok() ? *bytes : 0;
  }

 private:
  OriginPtr origin_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<GuardedDevice> guard_;
  std::unique_ptr<Executable> made_;
  std::vector<ValueInfo> inputs_, outputs_;
  ValueCheck input_check_;
};

// Outputs are as declared.
Result<void> check_made(const ValueCheck& check, std::span<Datum* const> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) TENON_OK(check.output(i, *outputs[i]));
  return {};
}

class GuardedBoundRun final : public BoundRun {
 public:
  // `outputs`: those that nobody else looks at, by `check`, which outlives it.
  GuardedBoundRun(OriginPtr origin, std::unique_ptr<BoundRun> made, const ValueCheck& check,
                  std::span<Datum* const> outputs)
      : origin_(std::move(origin)), made_(std::move(made)), check_(check), outputs_(outputs.begin(), outputs.end()) {}
  Result<void> run() override {
    TENON_OK(guarded(*origin_, "run()", [&] { return made_->run(); }));
    return check_made(check_, outputs_);
  }
  // Calls know addresses alone: they cannot put another tensor in an output's place.
  std::span<const SettledCall> settled() const override {
    const auto calls =
        guarded(*origin_, "settled()", [&] { return Result<std::span<const SettledCall>>(made_->settled()); });
    return calls.ok() ? *calls : std::span<const SettledCall>();
  }

 private:
  OriginPtr origin_;
  std::unique_ptr<BoundRun> made_;
  const ValueCheck& check_;
  std::vector<Datum*> outputs_;
};

// One that runs synchronously, on the core's own host device.
class GuardedHostExecutable final : public GuardedExecutable, public HostRun, public MemoryMap {
 public:
  // `run` is the other base of `made`.
  GuardedHostExecutable(OriginPtr origin, std::shared_ptr<Device> device, std::unique_ptr<Executable> made,
                        const HostRun& run)
      : GuardedExecutable(std::move(origin), std::move(device), nullptr, std::move(made)),
        run_(run),
        map_(dynamic_cast<const MemoryMap*>(&run)),
        checks_values_(dynamic_cast<const ChecksValues*>(&run) != nullptr),
        output_check_(this->outputs()) {}

  Result<void> run(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                   const RunOptions& options) const override {
    const auto run = [&] { return run_.run(inputs, outputs, options); };
    if (checks_values_) return guarded(*origin(), "run()", run);
    TENON_OK(check_given(inputs, outputs.size()));
    TENON_OK(guarded(*origin(), "run()", run));
    return check_made(output_check_, outputs);
  }
  Result<std::unique_ptr<BoundRun>> bind(std::span<const Datum* const> inputs, std::span<Datum* const> outputs,
                                         const RunOptions& options) const override {
    TENON_OK(check_given(inputs, outputs.size()));
    TENON_TRY(bound, guarded(*origin(), "bind()", [&] { return run_.bind(inputs, outputs, options); }));
    const auto looked_at = checks_values_ ? std::span<Datum* const>() : outputs;
    TENON_OK(check_made(output_check_, looked_at));
    if (!bound) return bound;
    return std::unique_ptr<BoundRun>(
        std::make_unique<GuardedBoundRun>(origin(), std::move(bound), output_check_, looked_at));
  }
  size_t lendable_bytes() const override {
    return bytes_or_0("lendable_bytes()", [&] { return run_.lendable_bytes(); });
  }
  std::vector<MemoryChart> memory_charts() const override {
    if (map_ == nullptr) return {};
    auto charts =
        guarded(*origin(), "memory_charts()", [&] { return Result<std::vector<MemoryChart>>(map_->memory_charts()); });
    return charts.ok() ? *std::move(charts) : std::vector<MemoryChart>();
  }

 private:
  const HostRun& run_;
  const MemoryMap* map_;  // null: it does not report where its values are
  const bool checks_values_;
  const ValueCheck output_check_;
};

class GuardedBackend final : public TargetBackend {
 public:
  GuardedBackend(OriginPtr origin, TargetDescription description, std::shared_ptr<Device> made_device,
                 std::unique_ptr<TargetBackend> made)
      : origin_(std::move(origin)),
        description_(std::move(description)),
        device_(std::move(made_device)),
        made_(std::move(made)) {
    if (device_ == host_device()) return;
    guard_ = std::make_shared<GuardedDevice>(origin_, std::move(device_));
    device_ = guard_;
  }

  const TargetDescription& description() const override { return description_; }
  std::shared_ptr<Device> device() const override { return device_; }
  std::optional<Refusal> refuses(const Op& op) const override {
    auto answer = guarded(*origin_, "refuses()", [&] { return Result<std::optional<Refusal>>(made_->refuses(op)); });
    if (!answer.ok()) return Refusal{answer.error().message()};
    return *std::move(answer);
  }
  // These functions only choose layouts and who copies outputs: if the plugin throws in them, its operators are
  // row-major, outputs are copied, and a warning reports it.
  std::vector<LayoutKernel> layout_kernels(const Op& op) const override {
    return or_nothing<std::vector<LayoutKernel>>("layout_kernels()", [&] { return made_->layout_kernels(op); });
  }
  BandwidthTable layout_costs() const override {
    return or_nothing<BandwidthTable>("layout_costs()", [&] { return made_->layout_costs(); });
  }
  bool stores_again(const Op& op) const override {
    return or_nothing<bool>("stores_again()", [&] { return made_->stores_again(op); });
  }
  Result<void> add_prepare(PassManager& passes) override {
    return guarded(*origin_, "add_prepare()", [&] { return made_->add_prepare(passes); });
  }
  Result<void> add_tensor_sel(PassManager& passes) override {
    return guarded(*origin_, "add_tensor_sel()", [&] { return made_->add_tensor_sel(passes); });
  }
  Result<void> add_tensor_sched(PassManager& passes) override {
    return guarded(*origin_, "add_tensor_sched()", [&] { return made_->add_tensor_sched(passes); });
  }
  Result<void> add_mem_alloc(PassManager& passes) override {
    return guarded(*origin_, "add_mem_alloc()", [&] { return made_->add_mem_alloc(passes); });
  }
  Result<void> add_code_emit(PassManager& passes) override {
    return guarded(*origin_, "add_code_emit()", [&] { return made_->add_code_emit(passes); });
  }
  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    const auto inputs = inputs_of(graph->body()), outputs = outputs_of(graph->body());
    TENON_TRY(made, guarded_pointer<std::unique_ptr<Executable>>(*origin_, "build()",
                                                                 [&] { return made_->build(std::move(graph)); }));
    TENON_TRY(guard, wrap(std::move(made)));
    TENON_OK(check_signature(*origin_, *guard, inputs, outputs));
    return guard;
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    TENON_TRY(made, guarded_pointer<std::unique_ptr<Executable>>(*origin_, "load()",
                                                                 [&] { return made_->load(bytes, std::move(owner)); }));
    return wrap(std::move(made));
  }

 private:
  template <class T, class Body>
  T or_nothing(std::string_view what, const Body& body) const {
    auto answer = guarded(*origin_, what, [&] { return Result<T>(body()); });
    if (answer.ok()) return *std::move(answer);
    log(LogLevel::warning, answer.error().message());
    return {};
  }
  Result<std::unique_ptr<Executable>> wrap(std::unique_ptr<Executable> made) {
    return guarded(*origin_, "asking an executable", [&]() -> Result<std::unique_ptr<Executable>> {
      const Device* expected = guard_ ? guard_->made() : device_.get();
      if (&made->device() != expected) {
        return error(Code::plugin, "plugin '", origin_->plugin, "' made an executable of device '",
                     made->device().name(), "' for a target on device '", device_->name(), "'");
      }
      const auto* at_once = guard_ ? nullptr : dynamic_cast<const HostRun*>(made.get());
      if (at_once)
        return std::unique_ptr<Executable>(
            std::make_unique<GuardedHostExecutable>(origin_, device_, std::move(made), *at_once));
      return std::unique_ptr<Executable>(
          std::make_unique<GuardedExecutable>(origin_, device_, guard_, std::move(made)));
    });
  }

  OriginPtr origin_;
  TargetDescription description_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<GuardedDevice> guard_;
  std::unique_ptr<TargetBackend> made_;
};

}  // namespace

Result<std::unique_ptr<TargetBackend>> guard_backend(OriginPtr origin, std::unique_ptr<TargetBackend> made) {
  if (!made) return null_result(*origin, "create_backend()");
  TENON_TRY(device, guarded_pointer<std::shared_ptr<Device>>(
                        *origin, "device()", [&] { return Result<std::shared_ptr<Device>>(made->device()); }));
  return guarded(*origin, "asking a backend", [&]() -> Result<std::unique_ptr<TargetBackend>> {
    TargetDescription description = made->description();
    return std::unique_ptr<TargetBackend>(
        std::make_unique<GuardedBackend>(origin, std::move(description), std::move(device), std::move(made)));
  });
}

Result<void> check_signature(const Origin& origin, const Executable& made, const std::vector<ValueInfo>& inputs,
                             const std::vector<ValueInfo>& outputs) {
  const auto check = [&](std::string_view what, const std::vector<ValueInfo>& has,
                         const std::vector<ValueInfo>& wants) -> Result<void> {
    if (has.size() != wants.size()) {
      return error(Code::plugin, "plugin '", origin.plugin, "' made an executable of ", has.size(), " ", what,
                   "s from a graph of ", wants.size());
    }
    for (size_t i = 0; i < has.size(); ++i) {
      if (has[i] == wants[i]) continue;
      return error(Code::plugin, "plugin '", origin.plugin, "' made an executable whose ", what, " ", i, " is '",
                   has[i].name, "' ", has[i].type, ", where the graph has '", wants[i].name, "' ", wants[i].type);
    }
    return {};
  };
  TENON_OK(check("input", made.inputs(), inputs));
  return check("output", made.outputs(), outputs);
}

}  // namespace tenon::plugin_room
