#include <tenon/support/hash.hpp>

#include <cstring>

namespace tenon {

uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed) {
  // Four independent lanes hide the latency of the multiplications.
  uint64_t lanes[4] = {seed, seed ^ 0x9e3779b97f4a7c15u, seed ^ 0xbf58476d1ce4e5b9u, seed ^ 0x94d049bb133111ebu};
  const auto* p = bytes.data();
  size_t left = bytes.size();
  while (left >= 32) {
    for (auto& lane : lanes) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      lane = (lane ^ word) * 0x9fb21c651e98df25u;
      lane ^= lane >> 29;
      p += 8;
    }
    left -= 32;
  }
  uint64_t state = hash_mix(hash_mix(lanes[0], lanes[1]), hash_mix(lanes[2], lanes[3]));
  const std::string_view tail(reinterpret_cast<const char*>(p), left);
  return hash_mix(fnv1a(tail, state), bytes.size());
}

}  // namespace tenon
