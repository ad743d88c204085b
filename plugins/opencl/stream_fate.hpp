// The outcome of a stream's work: its events, and the error after which the stream accepts no more work.
#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include <tenon/runtime/device.hpp>

#include "opencl/cl_device.hpp"
#include "opencl/staging.hpp"

namespace tenon::opencl {

// The reason why a stream accepts no more work. Shared with its events, which also detect errors and outlive it. Any
// thread.
class StreamFate {
 public:
  explicit StreamFate(std::shared_ptr<ClDevice> device) : device_(std::move(device)) {}
  ClDevice& device() const { return *device_; }
  Result<void> usable() const;
  // Keeps the first error. `of_device`: the device's work has failed, so the device is distrusted as well.
  Result<void> ended(Error error, bool of_device);

 private:
  const std::shared_ptr<ClDevice> device_;
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

// The event of a command. Waiting for a failed command ends the stream.
EventPtr work_event(std::shared_ptr<StreamFate> fate, EventObject event);
// The event of a copy to the host through pinned memory. The host's part is done by the thread that waits or asks.
EventPtr download_event(std::shared_ptr<StreamFate> fate, std::shared_ptr<Downloads> all, DownloadPtr download);

}  // namespace tenon::opencl
