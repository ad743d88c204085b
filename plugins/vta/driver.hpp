// Driver: runs streams. Either a library with the C interface of VTA's own drivers (revision d4a15f6), or the simulator
// in this plugin.
//
//   TENON_TRY(driver, open_driver(target, hardware));  // TENON_VTA_DRIVER, else `driver:` of the target, else embedded
//   TENON_TRY(memory, DriverMemory::allocate(driver, bytes));
//
// Calls into one driver must not be concurrent: callers hold its lock.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

#include "vta/simulator.hpp"

namespace tenon::vta {

class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string name() const = 0;  // "embedded simulator", or the library's path
  // Memory that the accelerator can access. Not cached by the processor; contents undefined.
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  virtual Result<uint32_t> physical_address(void* memory) = 0;
  // All bytes must be in one buffer. These copies keep memory coherent between host and accelerator.
  virtual Result<void> copy_from_host(void* to, const void* from, size_t bytes) = 0;
  virtual Result<void> copy_to_host(void* to, const void* from, size_t bytes) = 0;
  // Runs `count` instructions at a physical address. An error when they fail or take more than `wait_cycles`; the
  // driver stays usable, but the contents of buffers are undefined.
  virtual Result<void> run(uint32_t address, uint32_t count, uint32_t wait_cycles) = 0;
  // The result of the last run; none where the driver does not provide it.
  virtual std::optional<RunResult> last_run() const { return std::nullopt; }

  std::mutex& lock() { return lock_; }

 private:
  std::mutex lock_;
};

// With `trace`, results of runs include their spans.
std::shared_ptr<Driver> make_embedded_driver(const Hardware& hardware, bool trace = false);
// An error names the library, and what it lacks. Libraries that anybody may write to are refused.
Result<std::shared_ptr<Driver>> open_library_driver(const std::string& path);
// `driver:` of the target: "embedded", empty, a library name for the system's search, or a path, relative to the target
// file. `trace` is for the simulator.
Result<std::shared_ptr<Driver>> open_driver(const TargetDescription& target, const Hardware& hardware,
                                            bool trace = false);

// Owns a buffer of a driver.
class DriverMemory {
 public:
  static Result<DriverMemory> allocate(std::shared_ptr<Driver> driver, size_t bytes);
  DriverMemory(DriverMemory&& other) noexcept
      : driver_(std::move(other.driver_)),
        memory_(std::exchange(other.memory_, nullptr)),
        bytes_(other.bytes_),
        address_(other.address_) {}
  DriverMemory& operator=(DriverMemory&&) = delete;
  ~DriverMemory();

  uint32_t address() const { return address_; }
  size_t bytes() const { return bytes_; }
  // Bounds are checked.
  Result<void> write(size_t offset, std::span<const std::byte> from);
  Result<void> read(size_t offset, std::span<std::byte> to) const;

 private:
  DriverMemory(std::shared_ptr<Driver> driver, void* memory, size_t bytes, uint32_t address)
      : driver_(std::move(driver)), memory_(memory), bytes_(bytes), address_(address) {}
  Result<void> check(size_t offset, size_t bytes, std::string_view verb) const;
  std::shared_ptr<Driver> driver_;
  void* memory_;
  size_t bytes_;
  uint32_t address_;
};

}  // namespace tenon::vta
