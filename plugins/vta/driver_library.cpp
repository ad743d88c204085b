// The simulator behind the C interface of VTA's drivers, as a library for any user of that interface. The machine is
// that of the target file named by TENON_VTA_TARGET, which must be set.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include <tenon/target/load.hpp>

#include "vta/driver.hpp"
#include "vta/driver_abi.h"

#define VTA_EXPORT __attribute__((visibility("default")))

namespace {

using tenon::vta::Driver;

void say(const tenon::Error& error) { std::fprintf(stderr, "vta simulator: %s\n", error.to_string().c_str()); }

tenon::Result<std::shared_ptr<Driver>> make() {
  const char* path = secure_getenv("TENON_VTA_TARGET");
  if (!path) return tenon::error(tenon::Code::not_found, "TENON_VTA_TARGET names no target file");
  TENON_TRY(target, tenon::load_target(path));
  TENON_TRY(hardware, tenon::vta::Hardware::of(target));
  return tenon::vta::make_embedded_driver(hardware);
}

// Null when there is none; the reason has been printed.
Driver* driver() {
  static const std::shared_ptr<Driver> made = [] {
    auto driver = make();
    if (!driver.ok()) say(driver.error());
    return driver.ok() ? *driver : nullptr;
  }();
  return made.get();
}

}  // namespace

extern "C" {

VTA_EXPORT void* VTADeviceAlloc(void) { return driver(); }
VTA_EXPORT void VTADeviceFree(void*) {}

VTA_EXPORT int VTADeviceRun(void* device, uint32_t address, uint32_t count, uint32_t wait_cycles) {
  auto& on = *static_cast<Driver*>(device);
  const std::lock_guard lock(on.lock());
  const auto done = on.run(address, count, wait_cycles);
  if (!done.ok()) say(done.error());
  return done.ok() ? 0 : 1;
}

VTA_EXPORT void* VTAMemAlloc(size_t size, int) {
  if (!driver()) return nullptr;
  const std::lock_guard lock(driver()->lock());
  const auto memory = driver()->allocate(size);
  if (!memory.ok()) say(memory.error());
  return memory.ok() ? *memory : nullptr;
}

VTA_EXPORT void VTAMemFree(void* buffer) {
  const std::lock_guard lock(driver()->lock());
  driver()->free(buffer);
}

VTA_EXPORT uint32_t VTAMemGetPhyAddr(void* buffer) {
  const std::lock_guard lock(driver()->lock());
  const auto address = driver()->physical_address(buffer);
  if (!address.ok()) say(address.error());
  return address.ok() ? *address : 0;
}

VTA_EXPORT void VTAMemCopyFromHost(void* to, const void* from, size_t size) { std::memcpy(to, from, size); }
VTA_EXPORT void VTAMemCopyToHost(void* to, const void* from, size_t size) { std::memcpy(to, from, size); }
VTA_EXPORT void VTAFlushCache(void*, uint32_t, int) {}
VTA_EXPORT void VTAInvalidateCache(void*, uint32_t, int) {}

}  // extern "C"
