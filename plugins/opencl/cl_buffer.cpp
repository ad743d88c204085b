#include "opencl/cl_buffer.hpp"

#include <algorithm>

#include "opencl/cl_device.hpp"

namespace tenon::opencl {

EventObject retained(const Api& cl, cl_event event) {
  if (!event || cl.clRetainEvent(event) != CL_SUCCESS) return {};
  return EventObject(event);
}

// ---- Waits ----

void WaitList::add(const EventObject& event) {
  const cl_int status = status_of(*cl_, event.get());
  if (status < 0) failed_ = status;
  if (status <= CL_COMPLETE) return;
  if (EventObject held = retained(*cl_, event.get())) {
    events_.push_back(held.get());
    held_.push_back(std::move(held));
  }
}

Result<void> WaitList::wait() const {
  TENON_OK(check(failed_, "work before this"));
  if (events_.empty()) return {};
  return check(cl_->clWaitForEvents(count(), data()), "clWaitForEvents");
}

// ---- Uses ----

void Uses::before(Access access, cl_command_queue queue, WaitList& waits) const {
  if (last_write_.queue != queue) waits.add(last_write_.event);
  if (access == Access::read) return;
  for (const Use& read : reads_)
    if (read.queue != queue) waits.add(read.event);
}

void Uses::add(Access access, cl_command_queue queue, EventObject event) {
  if (access == Access::write) {
    reads_.clear();
    last_write_ = {queue, std::move(event)};
    return;
  }
  const auto known = std::ranges::find_if(reads_, [&](const Use& read) { return read.queue == queue; });
  if (known == reads_.end())
    reads_.push_back({queue, std::move(event)});
  else
    known->event = std::move(event);
}

bool Uses::idle(const Api& cl) const {
  const auto done = [&](const Use& use) { return status_of(cl, use.event.get()) <= CL_COMPLETE; };
  return done(last_write_) && std::ranges::all_of(reads_, done);
}

// ---- Buffers ----

ClBuffer::ClBuffer(std::shared_ptr<ClDevice> device, Piece piece, size_t bytes)
    : device_(std::move(device)), piece_(std::move(piece)), bytes_(bytes) {}

ClBuffer::~ClBuffer() { device_->keep(std::move(piece_), std::move(uses_)); }

Device& ClBuffer::device() const { return *device_; }

const std::string& ClBuffer::memory() const {
  static const std::string kGlobal(kGlobalMemory), kPinned(kPinnedMemory);
  return is_pinned() ? kPinned : kGlobal;
}

void ClBuffer::before(Access access, cl_command_queue queue, WaitList& waits) const {
  const std::lock_guard lock(mutex_);
  uses_.before(access, queue, waits);
}

void ClBuffer::used(Access access, cl_command_queue queue, EventObject event) const {
  const std::lock_guard lock(mutex_);
  uses_.add(access, queue, std::move(event));
}

}  // namespace tenon::opencl
