#include "vta/driver.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>

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
  Result<void> copy_from_host(void* to, const void* from, size_t bytes) override { return copy(to, from, bytes); }
  Result<void> copy_to_host(void* to, const void* from, size_t bytes) override { return copy(to, from, bytes); }
  Result<void> run(uint32_t address, uint32_t count, uint32_t wait_cycles) override {
    last_.reset();
    TENON_TRY(result, simulator_.run(dram_, address, count, {.cycles = wait_cycles, .keep_spans = trace_}));
    const auto late = result.late;
    const int64_t cycles = result.counters.cycles;
    last_ = std::move(result);
    if (!late) return {};
    return error(Code::cancelled, "instruction ", *late, " is done after ", cycles, " cycles, more than ", wait_cycles);
  }
  std::optional<RunResult> last_run() const override { return last_; }

 private:
  static Result<void> copy(void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
    return {};
  }

  Dram dram_;
  Simulator simulator_;
  const bool trace_;
  std::optional<RunResult> last_;
};

// A relative path is relative to the target file's folder; a name without a folder is left to the system's search.
std::string beside_target(const TargetDescription& target) {
  const std::filesystem::path path(target.driver);
  if (path.is_absolute() || !path.has_parent_path()) return target.driver;
  return (std::filesystem::absolute(target.source).parent_path() / path).lexically_normal().string();
}

}  // namespace

std::shared_ptr<Driver> make_embedded_driver(const Hardware& hardware, bool trace) {
  return std::make_shared<EmbeddedDriver>(hardware, trace);
}

Result<std::shared_ptr<Driver>> open_driver(const TargetDescription& target, const Hardware& hardware, bool trace) {
  if (const char* path = secure_getenv("TENON_VTA_DRIVER"); path && *path) {
    TENON_TRY(driver, open_library_driver(path), "TENON_VTA_DRIVER");
    return driver;
  }
  if (target.driver.empty() || target.driver == "embedded") return make_embedded_driver(hardware, trace);
  TENON_TRY(driver, open_library_driver(beside_target(target)), "'driver' of target '", target.name, "'");
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
  if (from.empty()) return {};
  return driver_->copy_from_host(static_cast<std::byte*>(memory_) + offset, from.data(), from.size());
}

Result<void> DriverMemory::read(size_t offset, std::span<std::byte> to) const {
  TENON_OK(check(offset, to.size(), "read"));
  if (to.empty()) return {};
  return driver_->copy_to_host(to.data(), static_cast<const std::byte*>(memory_) + offset, to.size());
}

}  // namespace tenon::vta
