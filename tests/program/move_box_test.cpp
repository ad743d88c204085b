// Boxes are moved as element by element, and nothing beside them is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include <tenon/program/move_box.hpp>

namespace tenon::program {
namespace {

constexpr unsigned kSeed = 20261123;

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
    std::vector<std::byte> source(static_cast<size_t>(from_most - from_least) + bytes),
        to(static_cast<size_t>(step), std::byte{0xa5});
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    std::vector<std::byte> expected = to;
    int64_t count = 1;
    for (size_t d = 0; d < rank; ++d) count *= box[d].extent;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, target = 0, origin = -from_least;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = rest % box[d].extent;
        rest /= box[d].extent;
        target += at * box[d].to_stride, origin += at * box[d].from_stride;
      }
      std::memcpy(&expected[static_cast<size_t>(target)], &source[static_cast<size_t>(origin)], bytes);
    }
    move_box(to.data(), source.data() - from_least, std::span(box).first(rank), bytes);
    ASSERT_EQ(to, expected) << "round " << round << ", seed " << kSeed;
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
}  // namespace tenon::program
