// A stream of an OpenCL device: three in-order queues, so that copies to the device, kernels and copies to the host
// overlap.
//
//   to device   in N+1      in N+2
//   kernels     run N       run N+1       run N+2
//   to host     out N-1     out N         out N+1
//
// What touches the same memory keeps the order of its enqueuing, by events: a copy waits for the last use of the
// buffers and the host memory that it touches, a run for the copies of its inputs, and neither for anything else.
// Buffers carry their uses, so that this holds between streams of one device, too.
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
  // Between buffers of the device in order with kernels; from and to pinned memory as a copy of the host's memory.
  Result<EventPtr> copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override;
  // Waits for the work before it, and works inside the enqueuing call.
  Result<EventPtr> call(std::function<Result<void>()> work) override;
  Result<void> synchronize() override;

  // Of kernels.
  cl_command_queue queue() const { return queues_.compute.get(); }
  ClDevice& cl_device() const { return *device_; }
  // The error that ended this stream.
  Result<void> usable() const { return fate_->usable(); }
  // Runs `enqueue`, which adds to a queue; its error ends the stream.
  template <class Enqueue>
  Result<void> add(const Enqueue& enqueue) {
    TENON_OK(usable());
    auto done = enqueue();
    return done.ok() ? Result<void>() : fate_->ended(done.error(), /*of_device=*/true);
  }
  // What was enqueued for kernels begins.
  Result<void> flush() { return flush(queue()); }
  // Waits for all kernels, after a failure, too.
  void drain();
  // Done when `waits` and all that was enqueued for kernels so far is.
  Result<EventObject> mark(const WaitList& waits);
  // The same as an event of the runtime.
  EventPtr event_of(EventObject event) const;

  // Pinned buffers of a device that shares memory with the host, where kernels read them in place: theirs from lend()
  // to take_back(). No buffer twice. Takes what `waits` has, if there is a buffer.
  Result<void> lend(std::span<const ClBuffer* const> pinned, WaitList& waits);
  // The event of the last, with which the host has them again; none of no buffers. Also when the stream has ended.
  Result<EventObject> take_back(std::span<const ClBuffer* const> pinned);

 private:
  Result<void> flush(cl_command_queue queue);
  // One command of a copy, behind `waits`; `command` takes a count, events and the place of its own event.
  template <class Command>
  Result<EventObject> enqueue(cl_command_queue queue, std::string_view what, const WaitList& waits,
                              const Command& command);
  // Of the buffers that host memory belongs to, where it does: pinned ones.
  Result<EventPtr> upload(const ClBuffer& to, size_t to_offset, std::span<const std::byte> from,
                          const ClBuffer* from_buffer);
  Result<EventPtr> download(std::span<std::byte> to, const ClBuffer* to_buffer, const ClBuffer& from,
                            size_t from_offset);
  // By way of pinned memory; `waits`: for the device's buffer.
  Result<EventPtr> upload_staged(const ClBuffer& to, size_t to_offset, std::span<const std::byte> from,
                                 const WaitList& waits);
  Result<EventPtr> download_staged(std::span<std::byte> to, const ClBuffer& from, size_t from_offset,
                                   const WaitList& waits);
  // Inside the call.
  Result<EventPtr> move_on_host(std::span<std::byte> to, const ClBuffer* to_buffer, std::span<const std::byte> from,
                                const ClBuffer* from_buffer);
  // Until the host may use its memory.
  Result<void> wait_for_host(Access access, std::span<const std::byte> range, WaitList waits);

  const std::shared_ptr<ClDevice> device_;
  const Api& cl_;
  const StreamQueues queues_;
  const std::shared_ptr<StreamFate> fate_;
  const std::shared_ptr<Downloads> downloads_;
  HostUses host_uses_;
};

}  // namespace tenon::opencl
