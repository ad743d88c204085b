// A stream of an OpenCL device: three in-order queues, so that copies to the device, kernels and copies to the host
// overlap.
//
//   to device   in N+1      in N+2
//   kernels     run N       run N+1       run N+2
//   to host     out N-1     out N         out N+1
//
// Accesses to the same memory keep the order in which they were enqueued, by events: a copy waits for the last use of
// the buffers and the host memory that it accesses, a run for the copies of its inputs, and neither for anything else.
// Buffers carry their uses, so this also holds between streams of one device.
#pragma once
#include <memory>
#include <span>

#include "opencl/cl_device.hpp"
#include "opencl/host_uses.hpp"
#include "opencl/staging.hpp"
#include "opencl/stream_fate.hpp"

namespace tenon::opencl {

struct StreamQueues {
  Queue compute, to_device, to_host;
};

class ClStream final : public Stream {
 public:
  ClStream(std::shared_ptr<ClDevice> device, StreamQueues queues);
  ~ClStream() override;
  Device& device() const override { return *device_; }
  Result<EventPtr> copy_to_device(Buffer& to, size_t to_offset, std::span<const std::byte> from) override;
  Result<EventPtr> copy_to_host(std::span<std::byte> to, const Buffer& from, size_t from_offset) override;
  // Between buffers of the device: in order with kernels. From and to pinned memory: like a copy of host memory.
  Result<EventPtr> copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override;
  // Waits for all earlier work and calls `work` inside the enqueuing call.
  Result<EventPtr> call(std::function<Result<void>()> work) override;
  Result<void> synchronize() override;

  // The queue of kernels.
  cl_command_queue queue() const { return queues_.compute.get(); }
  ClDevice& cl_device() const { return *device_; }
  // The error that has ended this stream, if any.
  Result<void> usable() const { return fate_->usable(); }
  // Calls `enqueue`, which adds to a queue; an error of it ends the stream.
  template <class Enqueue>
  Result<void> add(const Enqueue& enqueue) {
    TENON_OK(usable());
    auto done = enqueue();
    return done.ok() ? Result<void>() : fate_->ended(done.error(), /*of_device=*/true);
  }
  // Submits the enqueued kernels.
  Result<void> flush() { return flush(queue()); }
  // Waits for all kernels, also after a failure.
  void drain();
  // An event that completes when `waits` and all kernels enqueued so far are complete.
  Result<EventObject> mark(const WaitList& waits);
  // Wraps it as an event of the runtime.
  EventPtr event_of(EventObject event) const;

  // For devices that share memory with the host: pinned buffers that kernels read in place belong to the device from
  // lend() to take_back(). `pinned` has no duplicates. Consumes `waits`, if there is a buffer.
  Result<void> lend(std::span<const ClBuffer* const> pinned, WaitList& waits);
  // Returns the last event, after which the host owns them again; none for no buffers. Also after the stream has ended.
  Result<EventObject> take_back(std::span<const ClBuffer* const> pinned);

 private:
  Result<void> flush(cl_command_queue queue);
  // One command of a copy, after `waits`; `command` takes a count, events and the place for its own event.
  template <class Command>
  Result<EventObject> enqueue(cl_command_queue queue, std::string_view what, const WaitList& waits,
                              const Command& command);
  // `from_buffer`, `to_buffer`: the pinned buffer that the host memory belongs to, if any.
  Result<EventPtr> upload(const ClBuffer& to, size_t to_offset, std::span<const std::byte> from,
                          const ClBuffer* from_buffer);
  Result<EventPtr> download(std::span<std::byte> to, const ClBuffer* to_buffer, const ClBuffer& from,
                            size_t from_offset);
  // Through pinned memory; `waits` are those of the device's buffer.
  Result<EventPtr> upload_staged(const ClBuffer& to, size_t to_offset, std::span<const std::byte> from,
                                 const WaitList& waits);
  Result<EventPtr> download_staged(std::span<std::byte> to, const ClBuffer& from, size_t from_offset,
                                   const WaitList& waits);
  // Copies inside the call.
  Result<EventPtr> move_on_host(std::span<std::byte> to, const ClBuffer* to_buffer, std::span<const std::byte> from,
                                const ClBuffer* from_buffer);
  // Waits until the host may access the range.
  Result<void> wait_for_host(Access access, std::span<const std::byte> range, WaitList waits);

  const std::shared_ptr<ClDevice> device_;
  const Api& cl_;
  const StreamQueues queues_;
  const std::shared_ptr<StreamFate> fate_;
  const std::shared_ptr<Downloads> downloads_;
  HostUses host_uses_;
};

}  // namespace tenon::opencl
