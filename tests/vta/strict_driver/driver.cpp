// A driver of VTA that shares no code with the plugin, and applies the documentation literally: a stream that runs here
// can be expected to run on any driver. Faults are printed on standard error and kept in strict_vta_fault(); every
// later run fails as well, so that nothing wrong goes unnoticed.
#include <cstdio>
#include <memory>

#include "device.hpp"
#include "memory.hpp"
#include "options.hpp"

#define STRICT_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace strict;

std::string& fault() {
  static std::string first;
  return first;
}
void blame(const Fault& what) {
  std::fprintf(stderr, "strict vta: %s\n", what.what());
  if (fault().empty()) fault() = what.what();
}

uint32_t allocations = 0;
Memory& memory() {
  static Memory made(Options::from_environment()["seed"]);
  return made;
}

// Returns `otherwise` if a Fault is thrown.
template <class Function, class Value>
auto guarded(const Function& function, Value otherwise) {
  try {
    return function();
  } catch (const Fault& what) {
    blame(what);
    return otherwise;
  }
}
template <class Function>
void guarded(const Function& function) {
  guarded([&] { return function(), 0; }, 0);
}

}  // namespace

// Empty: there was no fault. Clears it.
STRICT_EXPORT const char* strict_vta_fault() {
  static std::string said;
  said = fault();
  fault().clear();
  return said.c_str();
}

STRICT_EXPORT void* VTADeviceAlloc() {
  return guarded(
      []() -> void* {
        const Options options = Options::from_environment();
        allocations = 0;
        return options["no_device"] ? nullptr : new Device(options, memory());
      },
      static_cast<void*>(nullptr));
}
STRICT_EXPORT void VTADeviceFree(void* device) { delete static_cast<Device*>(device); }

STRICT_EXPORT int VTADeviceRun(void* device, uint32_t address, uint32_t count, uint32_t wait_cycles) {
  if (!fault().empty()) return 1;
  return guarded([&] { return static_cast<Device*>(device)->run(address, count, wait_cycles) ? 0 : 1; }, 1);
}

STRICT_EXPORT void* VTAMemAlloc(size_t size, int cached) {
  return guarded(
      [&]() -> void* {
        if (++allocations == Options::from_environment()["no_memory_at"]) return nullptr;
        return memory().allocate(size, cached != 0 || Options::from_environment()["always_cached"]);
      },
      static_cast<void*>(nullptr));
}
STRICT_EXPORT void VTAMemFree(void* buffer) {
  guarded([&] { memory().free(buffer); });
}
STRICT_EXPORT uint32_t VTAMemGetPhyAddr(void* buffer) {
  return guarded([&] { return memory().physical(buffer); }, uint32_t{0});
}
STRICT_EXPORT void VTAMemCopyFromHost(void* to, const void* from, size_t size) {
  guarded([&] { memory().from_host(to, from, size); });
}
STRICT_EXPORT void VTAMemCopyToHost(void* to, const void* from, size_t size) {
  guarded([&] { memory().to_host(to, from, size); });
}
STRICT_EXPORT void VTAFlushCache(void* at, uint32_t physical, int size) {
  guarded([&] { memory().flush(at, physical, size); });
}
STRICT_EXPORT void VTAInvalidateCache(void* at, uint32_t physical, int size) {
  guarded([&] { memory().invalidate(at, physical, size); });
}
