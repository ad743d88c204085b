// Copies to host memory that is not pinned, on a device with memory of its own: the device copies to pinned memory, and
// who waits for the copy, or asks whether it is done, takes the bytes from there.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "opencl/cl_buffer.hpp"

namespace tenon::opencl {

struct Download {
  std::shared_ptr<ClBuffer> staging;
  EventObject event;
  std::span<std::byte> to;
  bool finished = false;  // the bytes are at `to`; under the lock of Downloads
};
using DownloadPtr = std::shared_ptr<Download>;

// Of one stream, in the order of its work. Any thread.
class Downloads {
 public:
  explicit Downloads(const Api& cl) : cl_(cl) {}
  void add(DownloadPtr download);
  // Waits for the download and those before it.
  Result<void> finish(const Download& last);
  Result<void> finish_all();
  // Waits for those that write into the range, and those before them.
  Result<void> finish_into(std::span<const std::byte> range);

 private:
  Result<void> finish_first(size_t count);  // under the lock
  const Api& cl_;
  std::mutex mutex_;
  std::deque<DownloadPtr> pending_;
};

}  // namespace tenon::opencl
