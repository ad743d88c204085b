#include <mutex>

#include <tenon/plugin/plain_device_internal.hpp>

namespace tenon::plugin_room {
namespace {

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
    // Ownership passes to the plugin, which calls it once.
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

}  // namespace

std::shared_ptr<Device> make_plain_device(DevicePtr owner, const TargetDescription& description) {
  return std::make_shared<PlainDevice>(std::move(owner), description);
}

tenon_buffer* handle_of(const Buffer& buffer) { return static_cast<const PlainBuffer&>(buffer).handle(); }
tenon_stream* handle_of(const Stream& stream) { return static_cast<const PlainStream&>(stream).handle(); }

Result<EventPtr> make_plain_event(const Stream& stream, std::string_view slot, tenon_event* event) {
  return static_cast<const PlainStream&>(stream).make_event(slot, event);
}

}  // namespace tenon::plugin_room
