// Content hashes. Not cryptographic; stable across runs and machines of the same byte order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tenon/support/export.hpp>

namespace tenon {

// FNV-1a, 64 bits (Fowler, Noll, Vo): http://www.isthe.com/chongo/tech/comp/fnv/.
constexpr uint64_t fnv1a(std::string_view bytes, uint64_t state = 0xcbf29ce484222325u) {
  for (unsigned char c : bytes) state = (state ^ c) * 0x100000001b3u;
  return state;
}
// Mixes `value` into `state` (the finaliser of SplitMix64).
constexpr uint64_t hash_mix(uint64_t state, uint64_t value) {
  uint64_t z = state ^ (value + 0x9e3779b97f4a7c15u + (state << 6) + (state >> 2));
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
// Eight bytes per step: for weights, for which FNV's single byte per step is too slow.
TENON_API uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace tenon
