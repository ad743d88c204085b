// An OpenCL device as the runtime sees it (runtime/device.hpp): "opencl:N", with the one memory space "global".
//
// Buffers that are let go of are kept for the next that wants as many bytes, up to a bound, so that runs of the same
// shapes ask the driver for nothing. One is handed out again when the work that used it is done.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include <tenon/runtime/device.hpp>

#include "opencl/compute/search.hpp"
#include "opencl/device_info.hpp"
#include "opencl/program_cache.hpp"

namespace tenon::opencl {

class ClDevice;
class ClStream;

inline constexpr std::string_view kGlobalMemory = "global";

class ClBuffer final : public Buffer {
 public:
  ClBuffer(std::shared_ptr<ClDevice> device, Memory memory, size_t bytes);
  ~ClBuffer() override;
  Device& device() const override;
  const std::string& memory() const override;
  size_t bytes() const override { return bytes_; }
  std::byte* host_data() const override { return nullptr; }

  cl_mem object() const { return memory_.get(); }
  // `event` is of the last work so far that reads or writes it.
  void used_until(EventObject event);

 private:
  std::shared_ptr<ClDevice> device_;
  Memory memory_;
  size_t bytes_;
  std::mutex mutex_;
  EventObject last_use_;
};
// A buffer of a ClDevice.
inline const ClBuffer& cl_buffer(const Buffer& buffer) { return static_cast<const ClBuffer&>(buffer); }
inline ClBuffer& cl_buffer(Buffer& buffer) { return static_cast<ClBuffer&>(buffer); }

// Any thread. Nothing of the driver is in the process before a stream, memory or a program is asked for, so that who
// only looks at targets may fork.
class ClDevice final : public Device, public std::enable_shared_from_this<ClDevice> {
 public:
  // The one of this process for the device: it lives as long as somebody uses it.
  static std::shared_ptr<ClDevice> of(const DeviceInfo& info);
  explicit ClDevice(const DeviceInfo& info);

  const std::string& name() const override { return name_; }
  std::vector<std::string> memories() const override { return {std::string(kGlobalMemory)}; }
  Result<std::shared_ptr<Buffer>> allocate(std::string_view memory, size_t bytes) override;
  Result<std::unique_ptr<Stream>> create_stream(bool background) override;
  bool is_host() const override { return false; }

  const DeviceInfo& info() const { return info_; }
  // Once something of this device was made.
  const Api& cl() const { return *driver_->cl; }
  Result<ProgramCache*> programs();
  // What measured searches have found.
  Result<FormChoices*> form_choices();

  // Memory that is not kept when it is let go of: arenas, constants.
  Result<Memory> allocate_memory(size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE);
  Result<std::shared_ptr<ClBuffer>> allocate_buffer(size_t bytes);
  Result<std::unique_ptr<ClStream>> open_stream();

 private:
  friend class ClBuffer;
  struct Kept {
    Memory memory;
    size_t bytes = 0;
    EventObject last_use;
  };
  struct Driver {
    const Api* cl;
    cl_device_id id;
    Context context;
    ProgramCache programs;
    FormChoices forms;
  };
  static constexpr size_t kMostKeptBytes = size_t{256} << 20;
  void keep(Kept kept);
  Memory take(size_t bytes);
  bool is_idle(const EventObject& event) const;

  Result<Driver*> driver();

  const DeviceInfo info_;
  const std::string name_;
  std::mutex open_mutex_;
  std::unique_ptr<Driver> driver_;  // null: nothing was asked for yet
  std::mutex mutex_;
  std::list<Kept> kept_;  // let go of last first
  size_t kept_bytes_ = 0;
};

// An in-order queue.
class ClStream final : public Stream {
 public:
  ClStream(std::shared_ptr<ClDevice> device, Queue queue) : device_(std::move(device)), queue_(std::move(queue)) {}
  ~ClStream() override;
  Device& device() const override { return *device_; }
  Result<EventPtr> copy_to_device(Buffer& to, size_t to_offset, std::span<const std::byte> from) override;
  Result<EventPtr> copy_to_host(std::span<std::byte> to, const Buffer& from, size_t from_offset) override;
  Result<EventPtr> copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override;
  // Waits for the work before it, and works inside the enqueuing call.
  Result<EventPtr> call(std::function<Result<void>()> work) override;
  Result<void> synchronize() override;

  cl_command_queue queue() const { return queue_.get(); }
  ClDevice& cl_device() const { return *device_; }
  // The error that ended this stream.
  Result<void> usable() const;
  // Runs `enqueue`, which adds to the queue; its error ends the stream.
  template <class Enqueue>
  Result<void> add(const Enqueue& enqueue) {
    TENON_OK(usable());
    auto done = enqueue();
    if (!done.ok()) error_ = done.error();
    return done;
  }
  // What was enqueued begins.
  Result<void> flush();
  // Done when all that was enqueued so far is.
  Result<EventObject> mark();
  // The same as an event of the runtime.
  Result<EventPtr> event_of(EventObject event);

 private:
  Result<EventPtr> finish(cl_int code, std::string_view what, cl_event event, const Buffer* first,
                          const Buffer* second);
  std::shared_ptr<ClDevice> device_;
  Queue queue_;
  std::optional<Error> error_;
};

// A second reference to the same event.
EventObject retained(const Api& cl, const EventObject& event);

}  // namespace tenon::opencl
