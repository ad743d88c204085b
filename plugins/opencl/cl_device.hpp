// An OpenCL device as the runtime sees it (runtime/device.hpp): "opencl:N", with two memory spaces.
//
//   global   the device's own; inputs and outputs of executables live there
//   pinned   of the host, locked for the device and mapped for as long as it lives (Buffer::host_data): copies from and
//            to it are the device's work alone. Executables take inputs there, too: where host and device share memory
//            kernels read it in place, and until the run is done the host leaves it alone; elsewhere a run copies it
//
// Buffers that are let go of are kept for the next that wants as many bytes, up to a bound, so that runs of the same
// shapes ask the driver for nothing. One is handed out again when the work that used it is done.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include <tenon/runtime/device.hpp>

#include "opencl/cl_buffer.hpp"
#include "opencl/compute/search.hpp"
#include "opencl/device_info.hpp"
#include "opencl/program_cache.hpp"

namespace tenon::opencl {

class ClStream;

inline constexpr std::string_view kGlobalMemory = "global", kPinnedMemory = "pinned";

// Any thread. Nothing of the driver is in the process before a stream, memory or a program is asked for, so that who
// only looks at targets may fork.
class ClDevice final : public Device, public std::enable_shared_from_this<ClDevice> {
 public:
  // The one of this process for the device: it lives as long as somebody uses it. After work on it has failed, a new
  // one, with a driver context of its own.
  static std::shared_ptr<ClDevice> of(const DeviceInfo& info);
  explicit ClDevice(const DeviceInfo& info);
  ~ClDevice() override;

  const std::string& name() const override { return name_; }
  std::vector<std::string> memories() const override {
    return {std::string(kGlobalMemory), std::string(kPinnedMemory)};
  }
  Result<std::shared_ptr<Buffer>> allocate(std::string_view memory, size_t bytes) override;
  Result<std::unique_ptr<Stream>> create_stream(bool background) override;
  bool is_host() const override { return false; }

  const DeviceInfo& info() const { return info_; }
  // Once something of this device was made.
  const Api& cl() const { return *driver_->cl; }
  Result<ProgramCache*> programs();
  // What measured searches have found.
  Result<FormChoices*> form_choices();

  // Memory that is not kept when it is let go of: arenas, constants.
  Result<Memory> allocate_memory(size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE);
  Result<std::shared_ptr<ClBuffer>> allocate_buffer(size_t bytes);
  Result<std::shared_ptr<ClBuffer>> allocate_pinned(size_t bytes);
  // Does a copy from or to this host memory go through pinned memory first?
  bool stages(std::span<const std::byte> host) const;
  Result<std::unique_ptr<ClStream>> open_stream();

  // Work on the device has failed: nobody can say what else of the context has (OpenCL 1.2, 5.9).
  void distrust();

 private:
  friend class ClBuffer;
  struct Kept {
    Piece piece;
    Uses uses;
  };
  struct Driver {
    const Api* cl;
    cl_device_id id;
    Context context;
    ProgramCache programs;
    FormChoices forms;
    Queue maps;  // of pinned memory
  };
  static constexpr size_t kMostKeptBytes = size_t{256} << 20;
  // From here on drivers do not lock pages for a copy at once, and staging them would double the host's memory.
  static constexpr size_t kMostStagedBytes = size_t{64} << 20;

  Result<Driver*> driver();
  Result<Memory> create_buffer(size_t bytes, cl_mem_flags flags, void* storage);
  Result<Piece> make_pinned(size_t bytes);
  void keep(Piece piece, Uses uses);
  Piece take(size_t bytes, bool pinned);
  void release(std::list<Kept> gone);
  void unpin(Kept& kept);
  void release_idle();

  const DeviceInfo info_;
  const std::string name_;
  std::mutex open_mutex_;
  std::unique_ptr<Driver> driver_;  // null: nothing was asked for yet
  std::atomic<bool> distrusted_ = false;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // let go of last first
  size_t kept_bytes_ = 0;
  std::map<const std::byte*, size_t> pinned_;  // bytes, by where they begin
};

}  // namespace tenon::opencl
