// A driver in an external library. It uses only what all known drivers provide: physical addresses of whole buffers,
// requested once each; copies within one buffer, with the cache flush before or after; exceptions are caught.
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <map>

#include <tenon/support/log.hpp>

#include "vta/driver.hpp"
#include "vta/driver_abi.h"

namespace tenon::vta {
namespace {

// Some drivers use signed counters; at 100 MHz this is 21 seconds for one operator.
constexpr uint32_t kMostWaitCycles = INT32_MAX;

// Refuses libraries that anybody could replace. In a folder with the sticky bit (/tmp), only its owner can replace a
// file.
Result<void> check_not_writable(const std::string& path, std::string_view what, mode_t harmless) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return error(Code::not_found, what, " ", quote(path), ": ", strerror(errno));
  if (!(status.st_mode & S_IWOTH) || (status.st_mode & harmless)) return {};
  return error(Code::invalid_argument, what, " ", quote(path), " can be written by everybody; chmod o-w it");
}

// Names without a folder are left to the system's search.
Result<void> check_file(const std::string& path) {
  if (path.find('/') == std::string::npos) return {};
  TENON_OK(check_not_writable(path, "the library", 0));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return check_not_writable(folder.empty() ? "/" : folder, "the folder", S_ISVTX);
}

class LoadedDriver final : public Driver {
 public:
  static Result<std::shared_ptr<Driver>> open(const std::string& path) {
    TENON_OK(check_file(path), "driver library ", quote(path));
    auto driver = std::make_shared<LoadedDriver>();
    driver->path_ = path;
    // RTLD_LOCAL, because two drivers have the same names.
    driver->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!driver->library_) return error(Code::not_found, "driver library ", quote(path), ": ", dlerror());
    TENON_OK(driver->find_all(), "driver library ", quote(path));
    TENON_TRY(device, driver->call("VTADeviceAlloc", [&] { return driver->device_alloc_(); }));
    if (!device) return error(Code::resource_exhausted, "driver library ", quote(path), " gives no device");
    driver->device_ = device;
    return std::shared_ptr<Driver>(std::move(driver));
  }
  // The library stays loaded, because some drivers leave threads behind.
  ~LoadedDriver() override {
    if (device_) drop("VTADeviceFree", [&] { device_free_(device_); });
  }

  std::string name() const override { return path_; }

  Result<void*> allocate(size_t bytes) override {
    if (bytes == 0 || bytes > Dram::kMaxBufferBytes)
      return error(Code::invalid_argument, "a buffer of ", bytes, " bytes; one has 1 to ", Dram::kMaxBufferBytes);
    TENON_TRY(memory, call("VTAMemAlloc", [&] { return mem_alloc_(bytes, 0); }));
    if (!memory)
      return error(Code::resource_exhausted, "driver ", quote(path_), " has no memory for a buffer of ", bytes,
                   " bytes");
    const auto known = add_buffer(static_cast<const std::byte*>(memory), bytes);
    if (known.ok()) return memory;
    drop("VTAMemFree", [&] { mem_free_(memory); });
    return known.error();
  }

  void free(void* memory) override {
    buffers_.erase(static_cast<const std::byte*>(memory));
    drop("VTAMemFree", [&] { mem_free_(memory); });
  }

  Result<uint32_t> physical_address(void* memory) override { return place_of(memory, 1); }

  Result<void> copy_from_host(void* to, const void* from, size_t bytes) override {
    TENON_TRY(address, place_of(to, bytes));
    TENON_OK(call("VTAMemCopyFromHost", [&] { copy_from_host_(to, from, bytes); }));
    return call("VTAFlushCache", [&] { flush_(to, address, static_cast<int>(bytes)); });
  }

  Result<void> copy_to_host(void* to, const void* from, size_t bytes) override {
    TENON_TRY(address, place_of(from, bytes));
    TENON_OK(
        call("VTAInvalidateCache", [&] { invalidate_(const_cast<void*>(from), address, static_cast<int>(bytes)); }));
    return call("VTAMemCopyToHost", [&] { copy_to_host_(to, from, bytes); });
  }

  Result<void> run(uint32_t address, uint32_t count, uint32_t wait_cycles) override {
    wait_cycles = std::min(wait_cycles, kMostWaitCycles);
    TENON_TRY(code, call("VTADeviceRun", [&] { return run_(device_, address, count, wait_cycles); }));
    if (code == 0) return {};
    return error(Code::cancelled, "driver ", quote(path_), " did not finish ", count, " instructions in ", wait_cycles,
                 " cycles (code ", code, ")");
  }

 private:
  struct Buffer {
    size_t bytes = 0;
    uint32_t address = 0;
  };

  // Drivers written in C++ may throw.
  template <class Function>
  auto call(const char* name, const Function& function) const -> Result<decltype(function())> {
    try {
      if constexpr (std::is_void_v<decltype(function())>) {
        function();
        return {};
      } else {
        return function();
      }
    } catch (const std::exception& thrown) {
      return error(Code::internal, name, " of driver ", quote(path_), " threw: ", thrown.what());
    } catch (...) {
      return error(Code::internal, name, " of driver ", quote(path_), " threw");
    }
  }
  // Errors of functions that release something cannot be reported.
  template <class Function>
  void drop(const char* name, const Function& function) const {
    const auto done = call(name, function);
    if (!done.ok()) log(LogLevel::warning, done.error().message());
  }

  // Simulators know the physical addresses of buffers only, not of locations inside.
  Result<void> add_buffer(const std::byte* memory, size_t bytes) {
    TENON_TRY(address, call("VTAMemGetPhyAddr", [&] { return mem_address_(const_cast<std::byte*>(memory)); }));
    if (address + uint64_t{bytes} > uint64_t{1} << 32)
      return error(Code::internal, "driver ", quote(path_), " puts a buffer of ", bytes, " bytes at address ", address,
                   ", which leaves 32 bits");
    buffers_[memory] = {bytes, address};
    return {};
  }

  // The physical address of bytes within one buffer.
  Result<uint32_t> place_of(const void* memory, size_t bytes) const {
    const auto* const at = static_cast<const std::byte*>(memory);
    const auto next = buffers_.upper_bound(at);
    if (next != buffers_.begin()) {
      const auto& [begin, buffer] = *std::prev(next);
      const auto offset = static_cast<size_t>(at - begin);
      if (offset <= buffer.bytes && bytes <= buffer.bytes - offset)
        return static_cast<uint32_t>(buffer.address + offset);
    }
    return error(Code::invalid_argument, bytes, " bytes lie in no buffer of driver ", quote(path_));
  }

  template <class Function>
  Result<void> find(const char* name, Function*& function) {
    void* symbol = dlsym(library_, name);
    if (!symbol) return error(Code::not_found, "it has no ", name);
    function = reinterpret_cast<Function*>(symbol);
    return {};
  }
  Result<void> find_all() {
    TENON_OK(find("VTADeviceAlloc", device_alloc_));
    TENON_OK(find("VTADeviceFree", device_free_));
    TENON_OK(find("VTADeviceRun", run_));
    TENON_OK(find("VTAMemAlloc", mem_alloc_));
    TENON_OK(find("VTAMemFree", mem_free_));
    TENON_OK(find("VTAMemGetPhyAddr", mem_address_));
    TENON_OK(find("VTAMemCopyFromHost", copy_from_host_));
    TENON_OK(find("VTAMemCopyToHost", copy_to_host_));
    TENON_OK(find("VTAFlushCache", flush_));
    return find("VTAInvalidateCache", invalidate_);
  }

  std::string path_;
  void* library_ = nullptr;
  void* device_ = nullptr;
  std::map<const std::byte*, Buffer> buffers_;  // by first byte
  decltype(VTADeviceAlloc)* device_alloc_ = nullptr;
  decltype(VTADeviceFree)* device_free_ = nullptr;
  decltype(VTADeviceRun)* run_ = nullptr;
  decltype(VTAMemAlloc)* mem_alloc_ = nullptr;
  decltype(VTAMemFree)* mem_free_ = nullptr;
  decltype(VTAMemGetPhyAddr)* mem_address_ = nullptr;
  decltype(VTAMemCopyFromHost)* copy_from_host_ = nullptr;
  decltype(VTAMemCopyToHost)* copy_to_host_ = nullptr;
  decltype(VTAFlushCache)* flush_ = nullptr;
  decltype(VTAInvalidateCache)* invalidate_ = nullptr;
};

}  // namespace

Result<std::shared_ptr<Driver>> open_library_driver(const std::string& path) { return LoadedDriver::open(path); }

}  // namespace tenon::vta
