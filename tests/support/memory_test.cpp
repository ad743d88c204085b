#include <tenon/support/memory.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

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

// Lines at the same position of two tensors, both read by a kernel, in L1 of AMD processors.
TEST(AllocateAligned, BlocksOfAPowerOfTwoDoNotPushEachOtherOutOfTheFirstLevel) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "blocks have no bytes behind them, so that what is written there is seen";
#endif
  const auto hash = [](uintptr_t address) {
    constexpr std::pair<int, int> kPairs[] = {{12, 27}, {13, 26}, {14, 25}, {15, 20},
                                              {16, 21}, {17, 22}, {18, 23}, {19, 24}};
    int made = 0;
    for (const auto& [low, high] : kPairs) made = 2 * made + static_cast<int>((address >> low ^ address >> high) & 1);
    return made;
  };
  for (size_t size = size_t{1} << 24; size <= size_t{1} << 28; size *= 2) {
    const auto a = allocate_aligned(size), b = allocate_aligned(size);
    ASSERT_TRUE(a.ok() && b.ok());
    const uintptr_t apart = reinterpret_cast<uintptr_t>(a->get()) - reinterpret_cast<uintptr_t>(b->get());
    // Where a process has its memory is chance, and so is what its bits add to that: over many places.
    constexpr int kPlaces = 10'000;
    std::mt19937_64 random(1);
    int alike = 0;
    for (int i = 0; i < kPlaces; ++i) {
      const uintptr_t page = random() >> 28 << 12;
      alike += hash(page) == hash(page + apart);
    }
    EXPECT_LT(alike, kPlaces / 10) << size << " bytes, " << apart << " apart";
  }
}

// Whether the mapping with `address` requests large pages: "hg" among its flags from the kernel.
bool asks_for_large_pages(const void* address) {
  std::ifstream mappings("/proc/self/smaps");
  bool holds = false;
  for (std::string line; std::getline(mappings, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      holds = begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end;
    else if (holds && line.starts_with("VmFlags:"))
      return line.find(" hg") != std::string::npos;
  }
  return false;
}

TEST(AllocateAligned, LargeBlocksAskForLargePages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "this kernel has none";
  const size_t size = size_t{8} << 20;
  const auto block = allocate_aligned(size);
  ASSERT_TRUE(block.ok());
  EXPECT_TRUE(asks_for_large_pages(block->get() + size / 2));
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

// The variable is read once, possibly while the library is loaded, so each case starts a process with it.
struct LimitRun {
  std::string limit, messages;
};
LimitRun limit_in_a_process(const std::optional<std::string>& variable) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string with = variable ? "TENON_TENSOR_LIMIT=" + quote(*variable) : "-u TENON_TENSOR_LIMIT";
  const std::string command =
      "env " + with + " '" + self + "' --gtest_also_run_disabled_tests --gtest_filter='*DISABLED_PrintsTheLimit' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  LimitRun out;
  char line[512];
  while (pipe && std::fgets(line, sizeof line, pipe)) {
    const std::string_view text = trim(line);
    if (text.starts_with("limit ")) out.limit = text.substr(6);
    out.messages += line;
  }
  if (pipe) pclose(pipe);
  return out;
}

// Not a test case itself: limit_in_a_process runs it.
TEST(TensorBytesLimit, DISABLED_PrintsTheLimit) {
  std::printf("limit %zu\n", tensor_bytes_limit());
  setenv("TENON_TENSOR_LIMIT", "1", 1);
  EXPECT_NE(tensor_bytes_limit(), 1u);
}

TEST(TensorBytesLimit, ComesFromTheEnvironment) {
  EXPECT_EQ(limit_in_a_process(std::nullopt).limit, "17179869184");
  EXPECT_EQ(limit_in_a_process("4096").limit, "4096");
}

TEST(TensorBytesLimit, SaysWhenTheVariableIsNoNumber) {
  for (const char* bad : {"", "4G", "-1", " 5", "0", "4095", "99999999999999999999999"}) {
    const LimitRun run = limit_in_a_process(bad);
    EXPECT_EQ(run.limit, "17179869184") << bad;
    EXPECT_THAT(run.messages, HasSubstr("is not a number of bytes")) << bad;
  }
}

}  // namespace
}  // namespace tenon
