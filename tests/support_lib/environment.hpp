// Settings of tests from the environment: the number of seeds, and the first one.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace tenon::testing {

// The variable as a decimal number; `fallback` if it is not set.
inline int64_t number_from_environment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::strtoll(text, nullptr, 10) : fallback;
}
// TENON_FUZZ_FIRST and TENON_FUZZ_SEEDS.
inline uint32_t first_seed() { return static_cast<uint32_t>(number_from_environment("TENON_FUZZ_FIRST", 1)); }
inline uint32_t seeds(uint32_t fallback) {
  return static_cast<uint32_t>(number_from_environment("TENON_FUZZ_SEEDS", fallback));
}

}  // namespace tenon::testing
