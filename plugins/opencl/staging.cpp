#include "opencl/staging.hpp"

#include <cstring>

#include "opencl/host_uses.hpp"

namespace tenon::opencl {

void Downloads::add(DownloadPtr download) {
  const std::lock_guard lock(mutex_);
  pending_.push_back(std::move(download));
}

// In order, so that a later copy into the same memory prevails.
Result<void> Downloads::finish_first(size_t count) {
  for (; count > 0; --count) {
    const DownloadPtr download = std::move(pending_.front());
    pending_.pop_front();
    WaitList waits(cl_);
    waits.add(download->event);
    TENON_OK(waits.wait());
    std::memcpy(download->to.data(), download->staging->host_data(), download->to.size());
    download->finished = true;
    download->staging.reset();
  }
  return {};
}

Result<void> Downloads::finish(const Download& last) {
  WaitList waits(cl_);
  waits.add(last.event);
  TENON_OK(waits.wait());  // without the lock: other threads may ask whether their download is complete
  const std::lock_guard lock(mutex_);
  if (last.finished) return {};
  for (size_t i = 0; i < pending_.size(); ++i)
    if (pending_[i].get() == &last) return finish_first(i + 1);
  return check(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "a copy to the host");
}

Result<void> Downloads::finish_all() {
  const std::lock_guard lock(mutex_);
  return finish_first(pending_.size());
}

Result<void> Downloads::finish_into(std::span<const std::byte> range) {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (size_t i = 0; i < pending_.size(); ++i)
    if (overlap(pending_[i]->to, range)) count = i + 1;
  return finish_first(count);
}

}  // namespace tenon::opencl
