// A call for which everything has been looked up in advance: it depends only on words that do not change. For callers
// that repeat the same calls on the same memory.
#pragma once
#include <cstdint>

namespace tenon {

// `run` does not throw and cannot fail. It reads and writes the memory that it was prepared for.
struct SettledCall {
  void (*run)(const int64_t* words) = nullptr;
  const int64_t* words = nullptr;
};

}  // namespace tenon
