// Shared by tests of reorders: guarded buffers, and a slow reorder for comparison.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <support_lib/shredding_parallel.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/str.hpp>
#include <tenon/tensor/reorder.hpp>

namespace tenon {

inline Layout layout(std::string_view text, std::string_view dims, const Dims& shape, int64_t bits) {
  return Layout::parse(text, dims, shape, bits).value();
}

inline ReorderPlan plan(const Layout& from, const Layout& to) { return plan_reorder(from, to).value(); }

// Bytes between two inaccessible pages; they begin after the first or end before the second.
class Fenced {
 public:
  Fenced(size_t bytes, bool at_front) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t open = (bytes + page) / page * page;
    mapped_ = open + 2 * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (mprotect(base_ + page, open, PROT_READ | PROT_WRITE) != 0) std::abort();
    bytes_ = {base_ + page + (at_front ? 0 : open - bytes), bytes};
  }
  ~Fenced() { munmap(base_, mapped_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  std::span<std::byte> bytes() { return bytes_; }

 private:
  std::byte* base_ = nullptr;
  size_t mapped_ = 0;
  std::span<std::byte> bytes_;
};

// One bit at a time: slow, and independent of the code under test.
inline bool bit_of(std::span<const std::byte> bytes, int64_t at) {
  return std::to_integer<int>(bytes[static_cast<size_t>(at / 8)]) >> (at % 8) & 1;
}
inline void set_bit(std::span<std::byte> bytes, int64_t at, bool value) {
  std::byte& byte = bytes[static_cast<size_t>(at / 8)];
  const auto mask = static_cast<std::byte>(1 << (at % 8));
  byte = value ? byte | mask : byte & ~mask;
}

inline int64_t bit_offset(const Layout& layout, std::span<const int64_t> index) {
  const LayoutPosition at = layout.apply(index);
  return at.bank * layout.bytes_per_bank() * 8 + at.bit;
}

// All indices, the last one first, so that of several in one slot the least one is written last.
template <class F>
void for_each_index_backwards(const Dims& shape, const F& f) {
  Dims index;
  for (const int64_t extent : shape) {
    if (extent == 0) return;
    index.push_back(extent - 1);
  }
  while (true) {
    f(index);
    size_t d = shape.size();
    while (d > 0 && index[d - 1] == 0) {
      index[d - 1] = shape[d - 1] - 1;
      --d;
    }
    if (d == 0) return;
    --index[d - 1];
  }
}

// The expected content of `destination` after the reorder.
inline void reorder_oracle(const Layout& from, const Layout& to, std::span<const std::byte> source,
                    std::span<std::byte> destination) {
  const int64_t w = to.element_bits();
  if (to.fill() && !to.is_view()) {
    std::ranges::fill(destination, std::byte{0});
    for (int64_t bank = 0; bank < to.banks(); ++bank) {
      for (int64_t slot = 0; slot < to.words_per_bank() * to.lanes(); ++slot) {
        const int64_t lane = slot % to.lanes(), in_word = to.lane_msb() ? to.word_bits() - w - lane * w : lane * w;
        const int64_t at = bank * to.bytes_per_bank() * 8 + slot / to.lanes() * to.word_bits() + in_word;
        for (int64_t b = 0; b < std::min<int64_t>(w, 64); ++b) set_bit(destination, at + b, *to.fill() >> b & 1);
      }
    }
  }
  for_each_index_backwards(to.shape(), [&](const Dims& index) {
    const int64_t a = bit_offset(from, index), b = bit_offset(to, index);
    for (int64_t i = 0; i < w; ++i) set_bit(destination, b + i, bit_of(source, a + i));
  });
}

inline void randomise(std::span<std::byte> bytes, std::mt19937_64& random) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
}

// Source and destination start as noise, so that padding of one would be visible in the other.
inline ::testing::AssertionResult moves_right(const Layout& from, const Layout& to, std::mt19937_64& random) {
  const ReorderPlan reorder = plan(from, to);
  const auto text = [&] {
    return str(from.to_string(), " -> ", to.to_string(), ", dims ", to.dims(), ", shape ", to.shape(), ", ",
               to.element_bits(), " bits: ", reorder.to_string());
  };
  const bool at_front = random() % 2;
  Fenced source(static_cast<size_t>(from.bytes()), at_front);
  randomise(source.bytes(), random);
  std::vector<std::byte> initial(static_cast<size_t>(to.bytes()));
  randomise(initial, random);
  std::vector<std::byte> expected = initial;
  reorder_oracle(from, to, source.bytes(), expected);
  static ThreadPool four(4);
  testing::ShreddingParallel shredded(1);
  const std::pair<ParallelFor*, int64_t> runs[] = {{&serial(), 64 << 10}, {&four, 16}, {&shredded, 1}};
  for (const auto& [parallel, task_bytes] : runs) {
    Fenced destination(initial.size(), at_front);
    std::ranges::copy(initial, destination.bytes().begin());
    const auto done = reorder.run(source.bytes(), destination.bytes(), *parallel, task_bytes);
    if (!done.ok()) return ::testing::AssertionFailure() << text() << ": " << done.error().to_string();
    const auto differ = std::ranges::mismatch(destination.bytes(), expected);
    if (differ.in2 == expected.end()) continue;
    return ::testing::AssertionFailure() << text() << "; byte " << differ.in2 - expected.begin() << " is "
                                         << std::to_integer<int>(*differ.in1) << ", not "
                                         << std::to_integer<int>(*differ.in2) << ", tasks of " << task_bytes
                                         << " bytes";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tenon
