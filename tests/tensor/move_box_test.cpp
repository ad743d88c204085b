// Moving a box equals moving its elements one by one, and writes nothing outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include <tenon/tensor/move_box.hpp>

namespace tenon {
namespace {

constexpr unsigned kSeed = 20261123;

// The box from `source`, whose first element is `source_first` bytes in, element by element.
void expect_moved(const std::vector<std::byte>& source, int64_t source_first, size_t to_bytes, std::span<BoxDim> box,
                  size_t bytes, int round) {
  std::vector<std::byte> to(to_bytes, std::byte{0xa5});
  std::vector<std::byte> expected = to;
  int64_t count = 1;
  for (const BoxDim& dim : box) count *= dim.extent;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, target = 0, origin = source_first;
    for (const BoxDim& dim : box) {
      const int64_t at = rest % dim.extent;
      rest /= dim.extent;
      target += at * dim.to_stride, origin += at * dim.from_stride;
    }
    std::memcpy(&expected[static_cast<size_t>(target)], &source[static_cast<size_t>(origin)], bytes);
  }
  move_box(to.data(), source.data() + source_first, box, bytes);
  ASSERT_EQ(to, expected) << "round " << round << ", seed " << kSeed;
}

TEST(MoveBox, AsElementByElement) {
  std::mt19937 random(kSeed);
  const auto draw = [&](int64_t least, int64_t most) { return std::uniform_int_distribution(least, most)(random); };
  for (int round = 0; round < 3000; ++round) {
    const auto rank = static_cast<size_t>(draw(0, 4));
    const auto bytes = size_t{1} << draw(0, 4);
    // Strides of the destination keep elements apart; those of the source may repeat and go backwards.
    std::array<BoxDim, 4> box;
    int64_t step = static_cast<int64_t>(bytes), from_least = 0, from_most = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t extent = draw(0, 5) == 0 ? draw(0, 1) : draw(2, 5);
      const int64_t from = draw(0, 2) == 0 ? step : draw(-3, 3) * static_cast<int64_t>(bytes);
      box[d] = {extent, step, from};
      step = step * std::max<int64_t>(extent, 1) + (draw(0, 1) == 0 ? 0 : static_cast<int64_t>(bytes) * draw(1, 2));
      (from < 0 ? from_least : from_most) += from * std::max<int64_t>(extent - 1, 0);
    }
    std::vector<std::byte> source(static_cast<size_t>(from_most - from_least) + bytes);
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    expect_moved(source, -from_least, static_cast<size_t>(step), std::span(box).first(rank), bytes, round);
    if (HasFatalFailure()) return;
  }
}

// Dims in another order, given in any order, with widths around those of vectors, with gaps on both sides, some
// backwards.
TEST(MoveBox, Transposed) {
  std::mt19937 random(kSeed);
  const auto draw = [&](int64_t least, int64_t most) { return std::uniform_int_distribution(least, most)(random); };
  for (int round = 0; round < 2000; ++round) {
    const auto rank = static_cast<size_t>(draw(2, 5));
    const auto bytes = size_t{1} << draw(0, 4);
    std::array<BoxDim, 5> box;
    std::array<size_t, 5> order{0, 1, 2, 3, 4};
    std::shuffle(order.begin(), order.begin() + rank, random);
    int64_t to_bytes = static_cast<int64_t>(bytes), from_bytes = to_bytes, first = 0;
    const size_t wide = draw(0, 1) ? draw(0, static_cast<int64_t>(rank) - 1) : rank, wide2 = draw(0, 1) ? 0 : rank;
    for (size_t d = 0; d < rank; ++d) box[d].extent = d == wide || d == wide2 ? draw(1, 70) : draw(1, 4);
    const auto gap = [&] { return draw(0, 2) ? 0 : static_cast<int64_t>(bytes) * draw(1, 3); };
    for (size_t d = 0; d < rank; ++d) {
      box[d].to_stride = to_bytes;
      to_bytes = to_bytes * box[d].extent + gap();
    }
    for (size_t d = 0; d < rank; ++d) {
      BoxDim& dim = box[order[d]];
      dim.from_stride = draw(0, 7) ? from_bytes : -from_bytes;
      if (dim.from_stride < 0) first += from_bytes * (dim.extent - 1);
      from_bytes = from_bytes * dim.extent + gap();
    }
    if (draw(0, 1)) std::shuffle(box.begin(), box.begin() + rank, random);
    std::vector<std::byte> source(static_cast<size_t>(from_bytes));
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    expect_moved(source, first, static_cast<size_t>(to_bytes), std::span(box).first(rank), bytes, round);
    if (HasFatalFailure()) return;
  }
}

TEST(MoveBox, ARowThatOverlapsIsMovedElementByElement) {
  std::vector<uint32_t> row{1, 2, 3, 4, 5, 6};
  auto* bytes = reinterpret_cast<std::byte*>(row.data());
  move_row(bytes + 4, 4, bytes, 4, 5, 4);
  EXPECT_EQ(row, (std::vector<uint32_t>{1, 1, 1, 1, 1, 1}));
  row = {1, 2, 3, 4, 5, 6};
  move_row(bytes, 4, bytes + 4, 4, 5, 4);
  EXPECT_EQ(row, (std::vector<uint32_t>{2, 3, 4, 5, 6, 6}));
}

}  // namespace
}  // namespace tenon
