// Memory of an OpenCL device with its pending accesses, from which the order of work on several queues follows.
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

// Events to wait for, in the form that OpenCL takes; completed events are dropped.
class WaitList {
 public:
  explicit WaitList(const Api& cl) : cl_(&cl) {}
  void add(const EventObject& event);
  cl_uint count() const { return static_cast<cl_uint>(events_.size()); }
  const cl_event* data() const { return events_.empty() ? nullptr : events_.data(); }
  // Blocks until all are complete. An error when any of the work has failed.
  Result<void> wait() const;
  // The error code of work that has failed; CL_SUCCESS where none has.
  cl_int failed() const { return failed_; }

 private:
  const Api* cl_;
  std::vector<EventObject> held_;
  std::vector<cl_event> events_;  // of held_
  cl_int failed_ = CL_SUCCESS;
};

// The accesses to one piece of memory so far. Queues are in order, so only the last use by each queue is kept.
class Uses {
 public:
  // A read waits for the last write; a write also waits for the reads since then. Nothing waits for its own queue.
  void before(Access access, cl_command_queue queue, WaitList& waits) const;
  // `event` belongs to work that has waited for the events of before().
  void add(Access access, cl_command_queue queue, EventObject event);
  bool idle(const Api& cl) const;

 private:
  struct Use {
    cl_command_queue queue = nullptr;
    EventObject event;
  };
  Use last_write_;
  std::vector<Use> reads_;  // since the last write, one for each queue
};

// A block of device memory.
struct Piece {
  AlignedBytes storage;  // host memory behind `memory`, where host and device share memory
  Memory memory;
  std::byte* host = nullptr;  // where pinned memory is mapped
  size_t bytes = 0;
};

// A buffer in memory "global" or "pinned" (cl_device.hpp). When it is destroyed, its piece is reused for the next
// buffer of that size. Any thread.
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
