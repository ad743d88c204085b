#include <tenon/support/hash.hpp>

#include <bit>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace tenon {
namespace {

std::vector<std::byte> random_bytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (auto& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// Vectors published with the algorithm, http://www.isthe.com/chongo/src/fnv/test_fnv.c.
TEST(Fnv1a, AgreesWithThePublishedVectors) {
  static_assert(fnv1a("") == 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(Fnv1a, ContinuesFromAState) { EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar")); }

TEST(HashMix, DependsOnOrder) {
  EXPECT_NE(hash_mix(hash_mix(0, 1), 2), hash_mix(hash_mix(0, 2), 1));
  EXPECT_NE(hash_mix(1, 2), hash_mix(2, 1));
}

// One bit changed in the value must change about half of the 64 result bits.
TEST(HashMix, SpreadsEveryBit) {
  std::mt19937_64 random(1);
  for (int bit = 0; bit < 64; ++bit) {
    int changed = 0;
    constexpr int kTrials = 200;
    for (int i = 0; i < kTrials; ++i) {
      const uint64_t state = random(), value = random();
      changed += std::popcount(hash_mix(state, value) ^ hash_mix(state, value ^ (uint64_t{1} << bit)));
    }
    // Mean 32 with a standard error of 4/sqrt(200) = 0.28.
    EXPECT_NEAR(static_cast<double>(changed) / kTrials, 32.0, 2.0) << "bit " << bit;
  }
}

// Lengths on both sides of the 32-byte step; every bit counts, the last ones too.
TEST(HashBytes, EveryBitOfEveryPositionCounts) {
  for (const size_t size : {1u, 8u, 31u, 32u, 33u, 64u, 100u}) {
    auto bytes = random_bytes(size, size);
    const uint64_t before = hash_bytes(bytes);
    std::set<uint64_t> seen = {before};
    int64_t changed = 0;
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      const uint64_t after = hash_bytes(bytes);
      EXPECT_TRUE(seen.insert(after).second) << "size " << size << ", bit " << bit;
      EXPECT_GE(std::popcount(before ^ after), 8) << "size " << size << ", bit " << bit;
      changed += std::popcount(before ^ after);
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    EXPECT_NEAR(static_cast<double>(changed) / (8.0 * static_cast<double>(size)), 32.0, 6.0) << "size " << size;
  }
}

TEST(HashBytes, TellsLengthsOfZerosApart) {
  const std::vector<std::byte> zeros(300);
  std::set<uint64_t> seen;
  for (size_t size = 0; size <= zeros.size(); ++size) seen.insert(hash_bytes(std::span(zeros).first(size)));
  EXPECT_EQ(seen.size(), zeros.size() + 1);
}

TEST(HashBytes, TellsBlocksInOtherOrderApart) {
  auto bytes = random_bytes(128, 5);
  const uint64_t before = hash_bytes(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 32, bytes.begin() + 32);  // two steps of one lane
  EXPECT_NE(hash_bytes(bytes), before);
  std::swap_ranges(bytes.begin(), bytes.begin() + 32, bytes.begin() + 32);
  EXPECT_EQ(hash_bytes(bytes), before);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);  // two lanes of one step
  EXPECT_NE(hash_bytes(bytes), before);
}

TEST(HashBytes, DependsOnTheSeedAndNotOnTheAddress) {
  const auto bytes = random_bytes(70, 6);
  EXPECT_NE(hash_bytes(bytes, 1), hash_bytes(bytes, 2));
  EXPECT_NE(hash_bytes({}, 1), hash_bytes({}, 2));
  std::vector<std::byte> shifted(bytes.size() + 3);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 3);
  EXPECT_EQ(hash_bytes(std::span(shifted).subspan(3)), hash_bytes(bytes));
}

}  // namespace
}  // namespace tenon
