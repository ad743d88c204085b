#include <tenon/ops/detection.hpp>

#include <gtest/gtest.h>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using testing::evaluated;

Tensor rows(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size()) / 3, 3}, values);
}

// Two boxes that overlap by one third, and one apart from both.
const Tensor kBoxes = Tensor::of<float>({1, 3, 4}, {0, 0, 2, 2, 0, 1, 2, 3, 9, 9, 8, 8});
const Tensor kScores = Tensor::of<float>({1, 2, 3}, {0.5, 0.75, 0.25, 0.9f, 0.1f, 0.9f});

Tensor chosen(int64_t most, float overlap, std::vector<Datum> least = {}) {
  std::vector<Datum> operands{kBoxes, kScores, Tensor::scalar(most), Tensor::scalar(overlap)};
  operands.insert(operands.end(), least.begin(), least.end());
  return evaluated("NonMaxSuppression", operands);
}

TEST(DetectionEvaluator, NonMaxSuppression) {
  EXPECT_TRUE(chosen(3, 0.3f).identical(rows({0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 2})));
  EXPECT_TRUE(chosen(3, 0.34f).identical(rows({0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 1, 2, 0, 1, 1})));
  EXPECT_TRUE(chosen(1, 0.3f).identical(rows({0, 0, 1, 0, 1, 0})));
  EXPECT_TRUE(chosen(3, 0.34f, {Tensor::scalar(0.5f)}).identical(rows({0, 0, 1, 0, 1, 0, 0, 1, 2})));
  EXPECT_EQ(evaluated("NonMaxSuppression", {kBoxes, kScores}).dims(), (Dims{0, 3}));
}

TEST(DetectionEvaluator, CentresAndSizes) {
  const Tensor boxes = Tensor::of<float>({1, 2, 4}, {1, 1, 2, 2, 2, 1, 2, 2});
  const Tensor scores = Tensor::of<float>({1, 1, 2}, {0.5, 0.75});
  const auto by_centre = [&](float overlap) {
    return evaluated("NonMaxSuppression", {boxes, scores, Tensor::scalar<int64_t>(2), Tensor::scalar(overlap)},
                     {{"center_point_box", 1}});
  };
  EXPECT_TRUE(by_centre(0.3f).identical(rows({0, 0, 1})));
  EXPECT_TRUE(by_centre(0.34f).identical(rows({0, 0, 1, 0, 0, 0})));
}

}  // namespace
}  // namespace tenon
