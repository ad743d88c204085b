// Seeded numbers that are the same on every machine: element i of a stream depends only on (seed, stream name, i), so
// tensors may be filled in any order and do not change when others are added. Only integer arithmetic and exact
// floating-point operations are used.
#pragma once
#include <cstdint>
#include <string_view>

#include <tenon/support/hash.hpp>

namespace tenon::zoo {

class Random {
 public:
  Random(uint64_t seed, std::string_view stream) : key_(hash_mix(fnv1a(stream), seed)) {}

  uint64_t bits(uint64_t i) const { return hash_mix(key_, i); }
  // In [-1, 1), a multiple of 2^-31: exact in f64. Its standard deviation is kUniformDeviation.
  double uniform(uint64_t i) const { return static_cast<double>(bits(i) >> 32) * 0x1p-31 - 1; }
  // In [0, limit); the bias is below limit / 2^32.
  int64_t below(uint64_t i, int64_t limit) const {
    return static_cast<int64_t>((bits(i) >> 32) * static_cast<uint64_t>(limit) >> 32);
  }

 private:
  uint64_t key_;
};

inline constexpr double kUniformDeviation = 0.57735026918962576;  // sqrt(1 / 3)

}  // namespace tenon::zoo
