// How the work of a stream ends: its events, and the error after which the stream takes no more.
#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include <tenon/runtime/device.hpp>

#include "opencl/cl_device.hpp"
#include "opencl/staging.hpp"

namespace tenon::opencl {

// Why a stream takes no more work: its events hear of errors, too, and outlive it. Any thread.
class StreamFate {
 public:
  explicit StreamFate(std::shared_ptr<ClDevice> device) : device_(std::move(device)) {}
  ClDevice& device() const { return *device_; }
  Result<void> usable() const;
  // The first error stays. Of the device's work: the device is not trusted any more, either.
  Result<void> ended(Error error, bool of_device);

 private:
  const std::shared_ptr<ClDevice> device_;
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

// Of a command. Waiting for one that has failed ends the stream.
EventPtr work_event(std::shared_ptr<StreamFate> fate, EventObject event);
// Of a copy to the host by way of pinned memory: the host's part of it is done by whoever waits or asks.
EventPtr download_event(std::shared_ptr<StreamFate> fate, std::shared_ptr<Downloads> all, DownloadPtr download);

}  // namespace tenon::opencl
