// A call of code whose memory is settled: it reads nothing but words that stay. Whoever runs the same calls on the same
// memory again and again looks everything else up once.
#pragma once
#include <cstdint>

namespace tenon {

// `run` does not throw and cannot fail. It reads and writes what it was settled for.
struct SettledCall {
  void (*run)(const int64_t* words) = nullptr;
  const int64_t* words = nullptr;
};

}  // namespace tenon
