#include <tenon/support/memory.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

TEST(AllocateAligned, GivesWholeUsableBlocks) {
  for (const size_t align : {size_t{1}, size_t{8}, kAlignBytes, size_t{4096}}) {
    for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{100'000}}) {
      auto block = allocate_aligned(size, align);
      ASSERT_TRUE(block.ok()) << size << " at " << align;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block->get()) % align, 0u);
      std::memset(block->get(), 0xab, size);  // AddressSanitizer watches the ends
    }
  }
}

TEST(AllocateAligned, GivesDistinctBlocksOfNoBytes) {
  const auto a = allocate_aligned(0), b = allocate_aligned(0);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->get(), nullptr);
  EXPECT_NE(a->get(), b->get());
}

TEST(AllocateAligned, RefusesAbsurdSizesWithASentence) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  for (const size_t size : {kMax, kMax - 62, kMax - 63, kMax / 2 + 1, kMax / 2, size_t{1} << 60}) {
    const auto block = allocate_aligned(size);
    ASSERT_FALSE(block.ok()) << size;
    EXPECT_EQ(block.error().code(), Code::resource_exhausted);
    EXPECT_THAT(block.error().message(), HasSubstr(std::to_string(size)));
  }
}

TEST(AllocateAlignedDeathTest, TakesPowersOfTwoOnly) {
  EXPECT_DEATH((void)allocate_aligned(8, 0), "alignment 0 is not a power of two");
  EXPECT_DEATH((void)allocate_aligned(8, 48), "alignment 48 is not a power of two");
}

// The variable is read once in a process, so each case has a process of its own.
[[noreturn]] void exit_with_limit_is(const char* variable, size_t expected) {
  if (variable)
    setenv("TENON_TENSOR_LIMIT", variable, 1);
  else
    unsetenv("TENON_TENSOR_LIMIT");
  const bool good = tensor_bytes_limit() == expected;
  setenv("TENON_TENSOR_LIMIT", "1", 1);
  std::exit(good && tensor_bytes_limit() == expected ? 0 : 1);
}

TEST(TensorBytesLimitDeathTest, ComesFromTheEnvironment) {
  EXPECT_EXIT(exit_with_limit_is(nullptr, size_t{16} << 30), ExitedWithCode(0), "");
  EXPECT_EXIT(exit_with_limit_is("4096", 4096), ExitedWithCode(0), "");
}

TEST(TensorBytesLimitDeathTest, SaysWhenTheVariableIsNoNumber) {
  for (const char* bad : {"", "4G", "-1", " 5", "99999999999999999999999"})
    EXPECT_EXIT(exit_with_limit_is(bad, size_t{16} << 30), ExitedWithCode(0), "is not a number of bytes") << bad;
}

}  // namespace
}  // namespace tenon
