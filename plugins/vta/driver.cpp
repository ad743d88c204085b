#include "vta/driver.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "vta/driver_abi.h"

namespace tenon::vta {
namespace {

class EmbeddedDriver final : public Driver {
 public:
  EmbeddedDriver(const Hardware& hardware, bool trace)
      : dram_(hardware.dram_bytes), simulator_(hardware), trace_(trace) {}

  std::string name() const override { return "embedded simulator"; }
  Result<void*> allocate(size_t bytes) override {
    TENON_TRY(memory, dram_.allocate(bytes));
    return static_cast<void*>(memory);
  }
  void free(void* memory) override {
    const auto freed = dram_.free(static_cast<const std::byte*>(memory));
    TENON_CHECK(freed.ok(), freed.error().to_string());
  }
  Result<uint32_t> physical_address(void* memory) override {
    return dram_.physical_address(static_cast<const std::byte*>(memory));
  }
  void copy_from_host(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_to_host(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  Result<void> run(uint32_t address, uint32_t count, uint32_t wait_cycles) override {
    last_.reset();
    TENON_TRY(result, simulator_.run(dram_, address, count, {.cycles = wait_cycles, .keep_spans = trace_}));
    const bool late = result.timed_out;
    const int64_t cycles = result.counters.cycles;
    last_ = std::move(result);
    if (late) return error(Code::cancelled, "the stream takes ", cycles, " cycles, more than ", wait_cycles);
    return {};
  }
  std::optional<RunResult> last_run() const override { return last_; }

 private:
  Dram dram_;
  Simulator simulator_;
  const bool trace_;
  std::optional<RunResult> last_;
};

class LibraryDriver final : public Driver {
 public:
  static Result<std::shared_ptr<Driver>> open(const std::string& path) {
    auto driver = std::make_shared<LibraryDriver>();
    driver->path_ = path;
    // Local: two drivers have the same names.
    driver->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!driver->library_) return error(Code::not_found, "driver library ", quote(path), ": ", dlerror());
    TENON_OK(driver->find_all(), "driver library ", quote(path));
    driver->device_ = driver->device_alloc_();
    if (!driver->device_) return error(Code::resource_exhausted, "driver library ", quote(path), " gives no device");
    return std::shared_ptr<Driver>(std::move(driver));
  }
  // The library stays loaded: drivers are known to leave threads behind.
  ~LibraryDriver() override {
    if (device_) device_free_(device_);
  }

  std::string name() const override { return path_; }
  Result<void*> allocate(size_t bytes) override {
    if (bytes == 0 || bytes > Dram::kMaxBufferBytes)
      return error(Code::invalid_argument, "a buffer of ", bytes, " bytes; one has 1 to ", Dram::kMaxBufferBytes);
    if (void* memory = mem_alloc_(bytes, 0)) return memory;
    return error(Code::resource_exhausted, "driver ", quote(path_), " has no memory for a buffer of ", bytes, " bytes");
  }
  void free(void* memory) override { mem_free_(memory); }
  Result<uint32_t> physical_address(void* memory) override { return mem_address_(memory); }
  void copy_from_host(void* to, const void* from, size_t bytes) override {
    copy_from_host_(to, from, bytes);
    flush_(to, mem_address_(to), static_cast<int>(bytes));
  }
  void copy_to_host(void* to, const void* from, size_t bytes) override {
    auto* memory = const_cast<void*>(from);
    invalidate_(memory, mem_address_(memory), static_cast<int>(bytes));
    copy_to_host_(to, from, bytes);
  }
  Result<void> run(uint32_t address, uint32_t count, uint32_t wait_cycles) override {
    const int code = run_(device_, address, count, wait_cycles);
    if (code == 0) return {};
    return error(Code::cancelled, "driver ", quote(path_), " did not finish ", count, " instructions in ", wait_cycles,
                 " cycles (code ", code, ")");
  }

 private:
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

std::shared_ptr<Driver> make_embedded_driver(const Hardware& hardware, bool trace) {
  return std::make_shared<EmbeddedDriver>(hardware, trace);
}

Result<std::shared_ptr<Driver>> open_library_driver(const std::string& path) { return LibraryDriver::open(path); }

Result<std::shared_ptr<Driver>> open_driver(const TargetDescription& target, const Hardware& hardware,
                                            bool trace) {
  if (const char* path = secure_getenv("TENON_VTA_DRIVER"); path && *path) {
    TENON_TRY(driver, open_library_driver(path), "TENON_VTA_DRIVER");
    return driver;
  }
  if (target.driver.empty() || target.driver == "embedded") return make_embedded_driver(hardware, trace);
  TENON_TRY(driver, open_library_driver(target.driver), "'driver' of target '", target.name, "'");
  return driver;
}

// ---- DriverMemory ----

Result<DriverMemory> DriverMemory::allocate(std::shared_ptr<Driver> driver, size_t bytes) {
  TENON_TRY(memory, driver->allocate(bytes));
  const auto address = driver->physical_address(memory);
  if (!address.ok()) {
    driver->free(memory);
    return address.error();
  }
  return DriverMemory(std::move(driver), memory, bytes, *address);
}

DriverMemory::~DriverMemory() {
  if (memory_) driver_->free(memory_);
}

Result<void> DriverMemory::check(size_t offset, size_t bytes, std::string_view verb) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return {};
  return error(Code::invalid_argument, bytes, " bytes at ", offset, " are ", verb, "; the buffer has ", bytes_);
}

Result<void> DriverMemory::write(size_t offset, std::span<const std::byte> from) {
  TENON_OK(check(offset, from.size(), "written"));
  driver_->copy_from_host(static_cast<std::byte*>(memory_) + offset, from.data(), from.size());
  return {};
}

Result<void> DriverMemory::read(size_t offset, std::span<std::byte> to) const {
  TENON_OK(check(offset, to.size(), "read"));
  driver_->copy_to_host(to.data(), static_cast<const std::byte*>(memory_) + offset, to.size());
  return {};
}

}  // namespace tenon::vta
