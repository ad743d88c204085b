// An OpenCL device as the runtime sees it (runtime/device.hpp): "opencl:N", with two memory spaces.
//
//   global   memory of the device; inputs and outputs of executables are there
//   pinned   host memory that is locked for the device and mapped for its whole lifetime (Buffer::host_data), so that
//            the device alone does the copies from and to it. Executables take inputs there, too. Where host and device
//            share memory, kernels read it in place, and the host must not write it until the run is done; elsewhere a
//            run copies it
//
// Freed buffers are kept, up to a bound, for the next request of as many bytes, so that runs of the same shapes
// allocate nothing from the driver. A buffer is reused when the work that used it is complete.
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

// Any thread. The driver is not loaded before a stream, memory or a program is requested, so a process that only lists
// targets may fork.
class ClDevice final : public Device, public std::enable_shared_from_this<ClDevice> {
 public:
  // The process's instance for the device, shared by its users. After work on it has failed, a new instance with a
  // driver context of its own.
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
  // Requires that something of this device has been created.
  const Api& cl() const { return *driver_->cl; }
  Result<ProgramCache*> programs();
  // The results of measured searches.
  Result<FormChoices*> form_choices();

  // Memory that is not kept when it is freed: arenas, constants.
  Result<Memory> allocate_memory(size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE);
  Result<std::shared_ptr<ClBuffer>> allocate_buffer(size_t bytes);
  Result<std::shared_ptr<ClBuffer>> allocate_pinned(size_t bytes);
  // Whether a copy from or to this host memory goes through pinned memory first.
  bool stages(std::span<const std::byte> host) const;
  Result<std::unique_ptr<ClStream>> open_stream();

  // Call when work on the device has failed: then the state of everything in the context is unknown (OpenCL 1.2, 5.9).
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
    Queue maps;  // for mapping pinned memory
  };
  static constexpr size_t kMostKeptBytes = size_t{256} << 20;
  // For larger copies, drivers no longer lock all pages at once, and staging would double the host memory in use.
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
  std::unique_ptr<Driver> driver_;  // null: not loaded yet
  std::atomic<bool> distrusted_ = false;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;  // most recently freed first
  size_t kept_bytes_ = 0;
  std::map<const std::byte*, size_t> pinned_;  // sizes in bytes, by begin
};

}  // namespace tenon::opencl
