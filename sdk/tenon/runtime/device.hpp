// Devices as the runtime sees them: memory, queues of work, and events. Implemented by the core for host memory and by
// plugins for everything else. The interface is asynchronous: work is enqueued on a Stream and an Event tells when it
// is done; a synchronous device returns completed events.
//
// Ownership: a Buffer keeps its device's library loaded; a Device outlives its streams and buffers through shared_ptr.
// Threads: Device and Buffer are thread-safe; a Stream is used by one thread at a time.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

class Device;

// Bytes in one memory space of one device.
class TENON_API Buffer {
 public:
  virtual ~Buffer() = default;
  virtual Device& device() const = 0;
  virtual const std::string& memory() const = 0;  // name of the memory space, as in the target's YAML
  virtual size_t bytes() const = 0;
  // The address at which the host reads and writes it directly; null when it cannot.
  virtual std::byte* host_data() const = 0;
};

class TENON_API Event {
 public:
  virtual ~Event() = default;
  // Blocks until the work, and what it depends on, is done. Returns the first error among them.
  virtual Result<void> wait() = 0;
  virtual bool done() const = 0;
};
using EventPtr = std::shared_ptr<Event>;
// An event of work that is already done.
TENON_API EventPtr completed_event();

// Work on the same memory runs in the order in which it was enqueued; other work may overlap. After an error, further
// work is refused.
class TENON_API Stream {
 public:
  virtual ~Stream() = default;
  virtual Device& device() const = 0;
  // Ranges must lie inside the buffers (checked). Host memory must stay valid until the event is done.
  virtual Result<EventPtr> copy_to_device(Buffer& to, size_t to_offset, std::span<const std::byte> from) = 0;
  virtual Result<EventPtr> copy_to_host(std::span<std::byte> to, const Buffer& from, size_t from_offset) = 0;
  virtual Result<EventPtr> copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) = 0;
  // Runs a host function in the order of the stream.
  virtual Result<EventPtr> call(std::function<Result<void>()> work) = 0;
  virtual Result<void> synchronize() = 0;
};

class TENON_API Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;  // "host", "opencl:0", ...
  // Memory spaces; the first is the one for inputs and outputs of executables.
  virtual std::vector<std::string> memories() const = 0;
  virtual Result<std::shared_ptr<Buffer>> allocate(std::string_view memory, size_t bytes) = 0;
  // `background`: work runs on a thread or queue of its own; otherwise it may run inside the enqueuing call.
  virtual Result<std::unique_ptr<Stream>> create_stream(bool background) = 0;
  // True when host tensors can be used in place, without copies.
  virtual bool is_host() const = 0;
};

// The device of this process' own memory. Memory space "host".
TENON_API std::shared_ptr<Device> host_device();

// A dense tensor in a device's memory.
struct DeviceTensor {
  ElementType element;
  Dims dims;
  std::shared_ptr<Buffer> buffer;
  size_t offset = 0;  // bytes
};

// For implementers of streams: checks that `buffer` belongs to `device`, and that [offset, offset + bytes) lies inside
// it. `verb` is used in the message: "read", "written".
TENON_API Result<void> check_range(const Device& device, const Buffer& buffer, size_t offset, size_t bytes,
                                   std::string_view verb);

// Inputs and outputs of executables: host data, or a tensor on their device.
struct RunValue {
  Datum host;           // absent when `device` is set
  DeviceTensor device;  // buffer null when `host` is set
  bool on_device() const { return device.buffer != nullptr; }
};
TENON_API Result<RunValue> to_device(Stream& stream, const Tensor& tensor);
// Waits for the stream.
TENON_API Result<Datum> to_host(Stream& stream, const RunValue& value);

}  // namespace tenon
