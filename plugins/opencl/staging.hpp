// Copies to host memory that is not pinned, on a device with memory of its own. The device copies to pinned memory, and
// whichever thread waits for the copy, or asks whether it is complete, copies the bytes from there.
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
  bool finished = false;  // the bytes are at `to`; guarded by the lock of Downloads
};
using DownloadPtr = std::shared_ptr<Download>;

// The downloads of one stream, in the order of its work. Any thread.
class Downloads {
 public:
  explicit Downloads(const Api& cl) : cl_(cl) {}
  void add(DownloadPtr download);
  // Waits for the download and those before it.
  Result<void> finish(const Download& last);
  Result<void> finish_all();
  // Waits for downloads into the range, and for those before them.
  Result<void> finish_into(std::span<const std::byte> range);

 private:
  Result<void> finish_first(size_t count);  // with the lock held
  const Api& cl_;
  std::mutex mutex_;
  std::deque<DownloadPtr> pending_;
};

}  // namespace tenon::opencl
