#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>

#include <tenon/plugin/graph_values.hpp>
#include <tenon/plugin/limits.hpp>
#include <tenon/plugin/plain_internal.hpp>
#include <tenon/support/log.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::plugin_room {
namespace {

// ---- Calls ----

constexpr std::array kCodes = {Code::internal,  // TENON_OK has none
                               Code::invalid_argument,   Code::not_found, Code::already_exists, Code::unsupported,
                               Code::resource_exhausted, Code::io,        Code::parse,          Code::plugin,
                               Code::internal,           Code::cancelled};
static_assert(kCodes.size() == TENON_CANCELLED + 1);

int32_t plain_code(Code code) {
  return static_cast<int32_t>(std::find(kCodes.begin() + 1, kCodes.end(), code) - kCodes.begin());
}
int32_t fail_with(tenon_call* call, const Error& error) {
  return call->fail(call, plain_code(error.code()), text_view(error.message()));
}

std::string_view view(tenon_text text) {
  return text.data ? std::string_view(text.data, text.size) : std::string_view();
}

void* host_allocate(size_t size, size_t align) {
  auto memory = allocate_aligned(size, align);
  return memory.ok() ? std::move(memory)->release() : nullptr;
}
void host_release(void* memory) { AlignedFree()(static_cast<std::byte*>(memory)); }
void host_log(int32_t level, tenon_text message) {
  const int32_t known = std::clamp<int32_t>(level, TENON_LOG_ERROR, TENON_LOG_DEBUG);
  log(static_cast<LogLevel>(known), view(message));
}

}  // namespace

const tenon_host& host_services() {
  static const tenon_host host = {sizeof(tenon_host), TENON_ABI_MAJOR, TENON_ABI_MINOR,
                                  host_allocate,      host_release,    host_log};
  return host;
}

int32_t Call::fail(tenon_call* call, int32_t code, tenon_text message) {
  // The call is the first member of what it is linked with.
  reinterpret_cast<Linked*>(call)->self->message_ = view(message);
  return code;
}

Result<void> Call::result(const Origin& origin, std::string_view slot, int32_t code) const {
  if (code == TENON_OK) return {};
  // A plugin's own reasons stand alone; its faults are told with its name.
  const bool reason = code > 0 && code < static_cast<int32_t>(kCodes.size()) && code != TENON_PLUGIN_FAULT;
  if (!reason || message_.empty()) {
    return error(Code::plugin, "plugin '", origin.plugin, "' failed in '", slot, "' with code ", code,
                 message_.empty() ? " and no reason" : str(": ", message_));
  }
  return Error(kCodes[static_cast<size_t>(code)], message_);
}

namespace {

// What all objects of one opened target share.
struct Library {
  OriginPtr origin;
  tenon_slots slots;

  template <class... Parameters, class... Arguments>
  Result<void> call(std::string_view slot, int32_t (*function)(tenon_call*, Parameters...),
                    Arguments... arguments) const {
    return call_slot(*origin, slot, function, arguments...);
  }
  // Handles are given back; nobody is left to hear of an exception.
  template <class Handle>
  void release(std::string_view slot, void (*function)(Handle*), Handle* handle) const {
    if (!handle) return;
    const auto done = guarded(*origin, slot, [&] { return function(handle), Result<void>(); });
    if (!done.ok()) log(LogLevel::error, done.error().message());
  }
  Error fault(std::string_view what) const { return error(Code::plugin, "plugin '", origin->plugin, "' ", what); }
};
using LibraryPtr = std::shared_ptr<const Library>;

// The plugin's device, closed when nobody uses it any more.
struct DeviceHandle {
  LibraryPtr library;
  tenon_device* handle = nullptr;
  ~DeviceHandle() { library->release("close_device", library->slots.close_device, handle); }
};
using DevicePtr = std::shared_ptr<DeviceHandle>;

// ---- The group `memory` ----

class PlainBuffer final : public Buffer {
 public:
  PlainBuffer(DevicePtr owner, std::shared_ptr<Device> device, std::string memory, tenon_buffer* handle, size_t bytes)
      : owner_(std::move(owner)),
        device_(std::move(device)),
        memory_(std::move(memory)),
        handle_(handle),
        bytes_(bytes) {}
  ~PlainBuffer() override { owner_->library->release("free_buffer", owner_->library->slots.free_buffer, handle_); }
  Device& device() const override { return *device_; }
  const std::string& memory() const override { return memory_; }
  size_t bytes() const override { return bytes_; }
  std::byte* host_data() const override { return nullptr; }
  tenon_buffer* handle() const { return handle_; }

 private:
  DevicePtr owner_;
  std::shared_ptr<Device> device_;
  std::string memory_;
  tenon_buffer* handle_;
  size_t bytes_;
};

// The result of a host function that the plugin runs in the order of a stream.
struct HostWork {
  std::function<Result<void>()> work;
  std::mutex mutex;
  Result<void> result;
};

class PlainEvent final : public Event {
 public:
  PlainEvent(DevicePtr owner, tenon_event* handle, std::shared_ptr<HostWork> work)
      : owner_(std::move(owner)), handle_(handle), work_(std::move(work)) {}
  ~PlainEvent() override { owner_->library->release("destroy_event", owner_->library->slots.destroy_event, handle_); }
  Result<void> wait() override {
    TENON_OK(owner_->library->call("wait_event", owner_->library->slots.wait_event, handle_));
    if (!work_) return {};
    std::lock_guard lock(work_->mutex);
    return work_->result;
  }
  bool done() const override {
    const auto& library = *owner_->library;
    const auto done =
        guarded(*library.origin, "event_done", [&] { return Result<bool>(library.slots.event_done(handle_) != 0); });
    return !done.ok() || *done;
  }

 private:
  DevicePtr owner_;
  tenon_event* handle_;
  std::shared_ptr<HostWork> work_;
};

tenon_buffer* handle_of(const Buffer& buffer) { return static_cast<const PlainBuffer&>(buffer).handle(); }

class PlainStream final : public Stream {
 public:
  PlainStream(DevicePtr owner, std::shared_ptr<Device> device, tenon_stream* handle)
      : owner_(std::move(owner)), device_(std::move(device)), handle_(handle) {}
  ~PlainStream() override { library().release("destroy_stream", library().slots.destroy_stream, handle_); }
  Device& device() const override { return *device_; }
  tenon_stream* handle() const { return handle_; }

  Result<EventPtr> copy_to_device(Buffer& to, size_t to_offset, std::span<const std::byte> from) override {
    TENON_OK(check_range(*device_, to, to_offset, from.size(), "written"));
    return enqueue("copy_to_device", library().slots.copy_to_device, handle_of(to), to_offset,
                   static_cast<const void*>(from.data()), from.size());
  }
  Result<EventPtr> copy_to_host(std::span<std::byte> to, const Buffer& from, size_t from_offset) override {
    TENON_OK(check_range(*device_, from, from_offset, to.size(), "read"));
    return enqueue("copy_to_host", library().slots.copy_to_host, static_cast<void*>(to.data()), handle_of(from),
                   from_offset, to.size());
  }
  Result<EventPtr> copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override {
    TENON_OK(check_range(*device_, to, to_offset, bytes, "written"));
    TENON_OK(check_range(*device_, from, from_offset, bytes, "read"));
    return enqueue("copy", library().slots.copy, handle_of(to), to_offset, handle_of(from), from_offset, bytes);
  }
  Result<EventPtr> call(std::function<Result<void>()> work) override {
    auto shared = std::make_shared<HostWork>();
    shared->work = std::move(work);
    // Given away: the plugin calls it once.
    auto* context = new std::shared_ptr<HostWork>(shared);
    tenon_event* event = nullptr;
    auto done = library().call("call_host", library().slots.call_host, handle_, &PlainStream::run_work,
                               static_cast<void*>(context), &event);
    if (!done.ok()) {
      delete context;
      return std::move(done).error();
    }
    return make_event("call_host", event, std::move(shared));
  }
  Result<void> synchronize() override { return library().call("synchronize", library().slots.synchronize, handle_); }

  Result<EventPtr> make_event(std::string_view slot, tenon_event* event,
                              std::shared_ptr<HostWork> work = nullptr) const {
    if (!event) return library().fault(str("gave no event in '", slot, "'"));
    return EventPtr(std::make_shared<PlainEvent>(owner_, event, std::move(work)));
  }

 private:
  const Library& library() const { return *owner_->library; }
  static void run_work(void* context) {
    const std::unique_ptr<std::shared_ptr<HostWork>> own(static_cast<std::shared_ptr<HostWork>*>(context));
    HostWork& work = **own;
    static const Origin host{"(a function of the host)", nullptr};
    auto result = guarded(host, "call_host", work.work);
    std::lock_guard lock(work.mutex);
    work.result = std::move(result);
    work.work = nullptr;
  }
  template <class Function, class... Arguments>
  Result<EventPtr> enqueue(std::string_view slot, Function function, Arguments... arguments) {
    tenon_event* event = nullptr;
    TENON_OK(library().call(slot, function, handle_, arguments..., &event));
    return make_event(slot, event);
  }

  DevicePtr owner_;
  std::shared_ptr<Device> device_;
  tenon_stream* handle_;
};

class PlainDevice final : public Device, public std::enable_shared_from_this<PlainDevice> {
 public:
  PlainDevice(DevicePtr owner, const TargetDescription& description)
      : owner_(std::move(owner)),
        name_(description.name),
        memory_(description.memories.empty() ? "device" : description.memories.front().name) {}
  const std::string& name() const override { return name_; }
  std::vector<std::string> memories() const override { return {memory_}; }
  bool is_host() const override { return false; }
  Result<std::shared_ptr<Buffer>> allocate(std::string_view memory, size_t bytes) override {
    if (memory != memory_) {
      return error(Code::not_found, "device '", name_, "' has no memory '", memory, "'; it has '", memory_, "'");
    }
    const Library& library = *owner_->library;
    tenon_buffer* handle = nullptr;
    TENON_OK(library.call("allocate_buffer", library.slots.allocate_buffer, owner_->handle, bytes, &handle));
    if (!handle) return library.fault("gave no buffer in 'allocate_buffer'");
    return std::shared_ptr<Buffer>(std::make_shared<PlainBuffer>(owner_, shared_from_this(), memory_, handle, bytes));
  }
  Result<std::unique_ptr<Stream>> create_stream(bool background) override {
    const Library& library = *owner_->library;
    tenon_stream* handle = nullptr;
    TENON_OK(library.call("create_stream", library.slots.create_stream, owner_->handle, int32_t{background}, &handle));
    if (!handle) return library.fault("gave no stream in 'create_stream'");
    return std::unique_ptr<Stream>(std::make_unique<PlainStream>(owner_, shared_from_this(), handle));
  }

 private:
  DevicePtr owner_;
  std::string name_, memory_;
};

// ---- Executables ----

// Results of one run, made as the plugin asks for them.
struct Outputs {
  const Library& library;
  Device& device;
  const std::vector<ValueInfo>& declared;
  std::span<RunValue> values;

  static int32_t make(void* context, tenon_call* call, size_t index, const tenon_type* type, tenon_tensor* tensor) {
    const auto made = static_cast<Outputs*>(context)->make(index, *type, *tensor);
    return made.ok() ? int32_t{TENON_OK} : fail_with(call, made.error());
  }

  Result<void> make(size_t index, const tenon_type& type, tenon_tensor& tensor) {
    if (!TENON_HAS(&type, dims) || !TENON_HAS(&tensor, offset)) {
      return library.fault(str("asks for output ", index, " with structures of ", type.struct_size, " and ",
                               tensor.struct_size, " bytes; was struct_size set?"));
    }
    if (index >= values.size()) return library.fault(str("makes output ", index, " of ", values.size()));
    const auto element = ElementType::parse(view(type.element));
    if (!element || type.rank < 0 || (type.rank > 0 && !type.dims)) {
      return library.fault(str("makes output '", declared[index].name, "' without an element type or a shape"));
    }
    Dims dims(type.dims, type.dims + type.rank);
    const Type wanted = declared[index].type;
    if (auto agreed = merge(wanted, Type(*element, Shape(dims))); !agreed.ok()) {
      return library.fault(str("makes output '", declared[index].name, "': ", agreed.error().message()));
    }
    if (device.is_host()) {
      TENON_TRY(made, Tensor::allocate(*element, std::move(dims)));
      tensor.data = made.mutable_data();
      tensor.bytes = made.bytes();
      values[index] = {std::move(made), {}};
      return {};
    }
    TENON_TRY(count, element_count(dims));
    TENON_TRY(bytes, storage_bytes(*element, count));
    TENON_TRY(buffer, device.allocate(device.memories().front(), bytes));
    tensor.buffer = handle_of(*buffer);
    tensor.bytes = bytes;
    values[index] = {{}, {*element, std::move(dims), std::move(buffer), 0}};
    return {};
  }
};

class PlainExecutable final : public Executable {
 public:
  PlainExecutable(DevicePtr owner, std::shared_ptr<Device> device, tenon_executable* handle,
                  std::vector<ValueInfo> inputs, std::vector<ValueInfo> outputs, std::vector<Tensor> constants,
                  std::shared_ptr<void> bytes)
      : owner_(std::move(owner)),
        device_(std::move(device)),
        handle_(handle),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        constants_(std::move(constants)),
        bytes_(std::move(bytes)) {}
  ~PlainExecutable() override { library().release("destroy_executable", library().slots.destroy_executable, handle_); }
  Device& device() const override { return *device_; }
  const std::vector<ValueInfo>& inputs() const override { return inputs_; }
  const std::vector<ValueInfo>& outputs() const override { return outputs_; }

  // RunOptions::parallel stays unused: the C profile has no way to hand threads to a plugin, which works with its own.
  Result<EventPtr> enqueue(Stream& stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                           const RunOptions& options) const override {
    if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size() || &stream.device() != device_.get()) {
      return error(Code::invalid_argument, "an executable with ", inputs_.size(), " inputs and ", outputs_.size(),
                   " outputs on device '", device_->name(), "' is given ", inputs.size(), " and ", outputs.size(),
                   " on device '", stream.device().name(), "'");
    }
    for (size_t i = 0; i < inputs.size(); ++i) TENON_OK(check_input(i, inputs[i]));
    if (device_->is_host()) {
      return stream.call([this, own = std::vector<RunValue>(inputs.begin(), inputs.end()), outputs,
                          profile = options.profile]() -> Result<void> {
        const auto begin = std::chrono::steady_clock::now();
        TENON_OK(run(nullptr, own, outputs, nullptr));
        const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
        if (profile) profile->push_back({library().origin->plugin, "", taken.count()});
        return {};
      });
    }
    const auto& own = static_cast<PlainStream&>(stream);
    tenon_event* event = nullptr;
    TENON_OK(run(own.handle(), inputs, outputs, &event));
    return own.make_event("run", event);
  }

  Result<std::string> serialize() const override;

 private:
  const Library& library() const { return *owner_->library; }

  Result<void> check_input(size_t i, const RunValue& value) const {
    const bool here = device_->is_host() ? value.host.is_tensor() && !value.on_device()
                                         : value.on_device() && &value.device.buffer->device() == device_.get();
    if (!here) {
      return error(Code::unsupported, "input '", inputs_[i].name, "' of plugin '", library().origin->plugin,
                   "' must be a dense tensor on device '", device_->name(), "'");
    }
    const Type given = value.on_device() ? Type(value.device.element, Shape(value.device.dims)) : value.host.type();
    if (given.element().is_string()) return error(Code::unsupported, "input '", inputs_[i].name, "' holds strings");
    TENON_OK(merge(inputs_[i].type, given), "input '", inputs_[i].name, "'");
    return {};
  }

  Result<void> run(tenon_stream* stream, std::span<const RunValue> inputs, std::span<RunValue> outputs,
                   tenon_event** event) const {
    std::vector<std::string> elements;
    elements.reserve(inputs.size());
    std::vector<tenon_tensor> plain;
    for (const RunValue& value : inputs) {
      const ElementType element = value.on_device() ? value.device.element : value.host.tensor().element();
      const Dims& dims = value.on_device() ? value.device.dims : value.host.tensor().dims();
      tenon_tensor tensor{sizeof(tenon_tensor),
                          text_view(elements.emplace_back(element.to_string())),
                          static_cast<int64_t>(dims.size()),
                          dims.data(),
                          nullptr,
                          0,
                          nullptr,
                          0};
      if (value.on_device()) {
        tensor.buffer = handle_of(*value.device.buffer);
        tensor.offset = value.device.offset;
        tensor.bytes = value.device.buffer->bytes() - std::min(value.device.offset, value.device.buffer->bytes());
      } else {
        tensor.data = const_cast<std::byte*>(value.host.tensor().data());
        tensor.bytes = value.host.tensor().bytes();
      }
      plain.push_back(tensor);
    }
    for (RunValue& output : outputs) output = {};
    Outputs made{library(), *device_, outputs_, outputs};
    const tenon_outputs maker = {sizeof(tenon_outputs), &made, Outputs::make};
    TENON_OK(library().call("run", library().slots.run, handle_, stream, static_cast<const tenon_tensor*>(plain.data()),
                            plain.size(), &maker, event));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].on_device() && outputs[i].host.absent()) {
        return library().fault(str("ran without making output '", outputs_[i].name, "'"));
      }
    }
    return {};
  }

  DevicePtr owner_;
  std::shared_ptr<Device> device_;
  tenon_executable* handle_;
  std::vector<ValueInfo> inputs_, outputs_;
  std::vector<Tensor> constants_;  // the plugin may point into them
  std::shared_ptr<void> bytes_;
};

// ---- Stored executables: inputs and outputs as text, padded to 64 bytes, then the plugin's own bytes ----

constexpr std::string_view kStored = "tenon plain 1\n";
constexpr size_t kAlign = 64;

int32_t append_bytes(void* context, tenon_call*, const void* data, size_t size) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
  return TENON_OK;
}

Result<std::string> PlainExecutable::serialize() const {
  if (!library().slots.store_executable || !library().slots.load_executable) {
    return error(Code::unsupported, "plugin '", library().origin->plugin, "' does not store compiled code");
  }
  std::string out(kStored);
  for (const auto* values : {&inputs_, &outputs_}) {
    out += str(values->size(), "\n");
    for (const ValueInfo& value : *values) out += str(quote(value.name), " ", value.type, "\n");
  }
  out += '\0';
  out.resize((out.size() + kAlign - 1) / kAlign * kAlign);
  const tenon_sink sink = {sizeof(tenon_sink), &out, append_bytes};
  TENON_OK(library().call("store_executable", library().slots.store_executable, handle_, &sink));
  return out;
}

struct Stored {
  std::vector<ValueInfo> inputs, outputs;
  std::span<const std::byte> bytes;
};

Result<Stored> read_stored(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t end = text.find('\0');
  const auto damaged = [] { return error(Code::parse, "the stored form of an executable is damaged"); };
  if (!text.starts_with(kStored) || end == text.npos) return damaged();
  const size_t body = (end + kAlign) / kAlign * kAlign;
  if (body > bytes.size()) return damaged();
  text = text.substr(kStored.size(), end - kStored.size());
  const auto line = [&] {
    const std::string_view out = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), out.size() + 1));
    return out;
  };
  Stored stored;
  stored.bytes = bytes.subspan(body);
  for (auto* values : {&stored.inputs, &stored.outputs}) {
    size_t count = 0;
    const std::string_view number = line();
    if (std::from_chars(number.data(), number.data() + number.size(), count).ec != std::errc()) return damaged();
    for (; count > 0; --count) {
      std::string_view entry = line();
      const auto name = unquote(entry);
      if (!name) return damaged();
      TENON_TRY(type, parse_type(trim(entry)), "the stored form of an executable");
      values->push_back({*name, std::move(type)});
    }
  }
  return stored;
}

// ---- The target ----

class PlainBackend final : public TargetBackend {
 public:
  PlainBackend(DevicePtr owner, TargetDescription description)
      : owner_(std::move(owner)), description_(std::move(description)) {
    if (owner_->library->slots.allocate_buffer) {
      device_ = std::make_shared<PlainDevice>(owner_, description_);
    } else {
      device_ = host_device();
    }
  }
  const TargetDescription& description() const override { return description_; }
  std::shared_ptr<Device> device() const override { return device_; }

  std::optional<Refusal> refuses(const Op& op) const override {
    if (auto refusal = limits_refuse(description_, op)) return refusal;
    const PlainView view(op);
    const auto accepted = library().call("accepts", library().slots.accepts, owner_->handle, &view.op());
    if (accepted.ok()) return std::nullopt;
    return Refusal{accepted.error().message()};
  }
  Result<std::unique_ptr<Executable>> build(std::unique_ptr<Graph> graph) override {
    const PlainView view(*graph);
    tenon_executable* handle = nullptr;
    TENON_OK(library().call("compile", library().slots.compile, owner_->handle, &view.graph(), &handle));
    if (!handle) return library().fault("gave no executable in 'compile'");
    return std::unique_ptr<Executable>(std::make_unique<PlainExecutable>(
        owner_, device_, handle, inputs_of(graph->body()), outputs_of(graph->body()), view.constants(), nullptr));
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> bytes, std::shared_ptr<void> owner) override {
    if (!library().slots.load_executable) return TargetBackend::load(bytes, std::move(owner));
    TENON_TRY(stored, read_stored(bytes));
    tenon_executable* handle = nullptr;
    TENON_OK(library().call("load_executable", library().slots.load_executable, owner_->handle,
                            static_cast<const void*>(stored.bytes.data()), stored.bytes.size(), &handle));
    if (!handle) return library().fault("gave no executable in 'load_executable'");
    return std::unique_ptr<Executable>(
        std::make_unique<PlainExecutable>(owner_, device_, handle, std::move(stored.inputs), std::move(stored.outputs),
                                          std::vector<Tensor>(), std::move(owner)));
  }

 private:
  const Library& library() const { return *owner_->library; }
  DevicePtr owner_;
  TargetDescription description_;
  std::shared_ptr<Device> device_;
};

// `use` gets the description as the structure of abi.h.
template <class Use>
Result<void> with_target(const TargetDescription& description, const Use& use) {
  const std::string yaml = to_yaml(description);
  const tenon_target target = {sizeof(tenon_target), text_view(description.name), text_view(description.driver),
                               text_view(yaml), text_view(description.source)};
  return use(&target);
}

}  // namespace

Result<void> plain_available(const Origin& origin, const tenon_slots& slots, const TargetDescription& description) {
  if (!slots.available) return {};
  return with_target(
      description, [&](const tenon_target* target) { return call_slot(origin, "available", slots.available, target); });
}

Result<std::unique_ptr<TargetBackend>> create_plain_backend(OriginPtr origin, const tenon_slots& slots,
                                                            const TargetDescription& description) {
  auto library = std::make_shared<const Library>(Library{std::move(origin), slots});
  auto device = std::make_shared<DeviceHandle>();
  device->library = library;
  TENON_OK(with_target(description, [&](const tenon_target* target) {
    return library->call("open_device", slots.open_device, target, &device->handle);
  }));
  if (!device->handle) return library->fault("gave no device in 'open_device'");
  return std::unique_ptr<TargetBackend>(std::make_unique<PlainBackend>(std::move(device), description));
}

}  // namespace tenon::plugin_room
