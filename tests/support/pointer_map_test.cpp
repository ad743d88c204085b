#include <tenon/support/pointer_map.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <unordered_map>

namespace tenon {
namespace {

TEST(PointerMap, IsEmptyAtFirst) {
  const PointerMap<int, std::string> map;
  const int key = 0;
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.find(&key), nullptr);
  EXPECT_FALSE(map.contains(nullptr));
}

TEST(PointerMap, ValuesAreMadeOnce) {
  PointerMap<int, std::string> map;
  const int keys[] = {0, 0};
  map[&keys[0]] = "zero";
  EXPECT_EQ(map[&keys[0]], "zero");
  EXPECT_EQ(map[&keys[1]], "");
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(map.at(&keys[0]), "zero");
}

TEST(PointerMap, ReservedReferencesStay) {
  PointerMap<int, int> map;
  map.reserve(1000);
  const std::vector<int> keys(1000);
  const int* first = &(map[&keys[0]] = 7);
  for (const int& key : keys) map[&key];
  EXPECT_EQ(map.find(&keys[0]), first);
  EXPECT_EQ(*first, 7);
}

// Compared with std::unordered_map, for addresses close together and far apart.
TEST(PointerMap, FindsWhatWasPut) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<char> near(500);
    std::vector<std::unique_ptr<char>> far;
    for (size_t i = 0; i < 500; ++i) far.push_back(std::make_unique<char>());
    const auto any = [&]() -> const char* {
      const size_t i = random() % 500;
      return random() % 2 == 0 ? &near[i] : far[i].get();
    };
    PointerMap<char, uint64_t> map;
    std::unordered_map<const char*, uint64_t> wanted;
    if (seed % 2 == 0) map.reserve(random() % 700);
    for (size_t i = 0; i < random() % 2000; ++i) {
      const char* key = any();
      map[key] = wanted[key] = random();
    }
    EXPECT_EQ(map.size(), wanted.size());
    for (size_t i = 0; i < 2000; ++i) {
      const char* key = any();
      const uint64_t* found = map.find(key);
      const auto expected = wanted.find(key);
      ASSERT_EQ(found != nullptr, expected != wanted.end());
      if (found) {
        ASSERT_EQ(*found, expected->second);
      }
    }
  }
}

}  // namespace
}  // namespace tenon
