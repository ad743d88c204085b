// Memory of an OpenCL device, and who uses it: the order of work on several queues comes from here.
//
//   WaitList waits(cl);
//   buffer.before(Access::write, queue, waits);      // what the work must wait for
//   clEnqueueWriteBuffer(queue, ..., waits.count(), waits.data(), &event);
//   buffer.used(Access::write, queue, event);
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include <tenon/runtime/device.hpp>
#include <tenon/support/memory.hpp>

#include "opencl/api.hpp"

namespace tenon::opencl {

class ClDevice;

enum class Access : uint8_t { read, write };

// A second reference to the same event.
EventObject retained(const Api& cl, cl_event event);

// Events that work waits for, as OpenCL takes them; those that are done already are not kept.
class WaitList {
 public:
  explicit WaitList(const Api& cl) : cl_(&cl) {}
  void add(const EventObject& event);
  cl_uint count() const { return static_cast<cl_uint>(events_.size()); }
  const cl_event* data() const { return events_.empty() ? nullptr : events_.data(); }
  // Here and now. An error when work among it has failed.
  Result<void> wait() const;
  // The code of work that has failed; CL_SUCCESS where none has.
  cl_int failed() const { return failed_; }

 private:
  const Api* cl_;
  std::vector<EventObject> held_;
  std::vector<cl_event> events_;  // of held_
  cl_int failed_ = CL_SUCCESS;
};

// The work so far on one piece of memory. Queues are in order, so of each the last use stands for those before it.
class Uses {
 public:
  // A read waits for the last write, a write for the reads since, too; nothing waits for work of its own queue.
  void before(Access access, cl_command_queue queue, WaitList& waits) const;
  // `event` is of work that has waited for what before() said.
  void add(Access access, cl_command_queue queue, EventObject event);
  bool idle(const Api& cl) const;

 private:
  struct Use {
    cl_command_queue queue = nullptr;
    EventObject event;
  };
  Use last_write_;
  std::vector<Use> reads_;  // since then, one for each queue
};

// A piece of a device's memory.
struct Piece {
  AlignedBytes storage;  // of the host, behind `memory`, where it shares memory with the device
  Memory memory;
  std::byte* host = nullptr;  // of pinned memory: where it is mapped
  size_t bytes = 0;
};

// In memory "global" or "pinned" (cl_device.hpp). When it is let go of, its piece serves the next buffer of that size.
// Any thread.
class ClBuffer final : public Buffer {
 public:
  ClBuffer(std::shared_ptr<ClDevice> device, Piece piece, size_t bytes);
  ~ClBuffer() override;
  Device& device() const override;
  const std::string& memory() const override;
  size_t bytes() const override { return bytes_; }
  std::byte* host_data() const override { return piece_.host; }

  bool is_pinned() const { return piece_.host != nullptr; }
  cl_mem object() const { return piece_.memory.get(); }
  void before(Access access, cl_command_queue queue, WaitList& waits) const;
  void used(Access access, cl_command_queue queue, EventObject event) const;

 private:
  std::shared_ptr<ClDevice> device_;
  Piece piece_;
  size_t bytes_;
  mutable std::mutex mutex_;
  mutable Uses uses_;
};
// A buffer of a ClDevice.
inline const ClBuffer& cl_buffer(const Buffer& buffer) { return static_cast<const ClBuffer&>(buffer); }

}  // namespace tenon::opencl
