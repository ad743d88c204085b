#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tensor/shape.hpp>

namespace tenon {
namespace {

using testing::HasSubstr;

const Expr kN = Expr::symbol("N"), kM = Expr::symbol("M");

TEST(Dims, ElementCount) {
  EXPECT_EQ(*element_count(Dims{}), 1);
  EXPECT_EQ(*element_count(Dims{2, 3, 4}), 24);
  EXPECT_EQ(*element_count(Dims{INT64_MAX}), INT64_MAX);
  EXPECT_EQ(*element_count(Dims{INT64_MAX, 0, INT64_MAX}), 0);
}

TEST(Dims, ElementCountRefuses) {
  const auto negative = element_count(Dims{2, -1, 0});
  ASSERT_FALSE(negative.ok());
  EXPECT_THAT(negative.error().message(), testing::AllOf(HasSubstr("[2, -1, 0]"), HasSubstr("negative dim -1")));
  const auto huge = element_count(Dims{int64_t{1} << 32, int64_t{1} << 31});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code(), Code::resource_exhausted);
}

TEST(Dims, RowMajorStrides) {
  EXPECT_EQ(row_major_strides(Dims{}), Dims{});
  EXPECT_EQ(row_major_strides(Dims{5}), Dims{1});
  EXPECT_EQ(row_major_strides(Dims{2, 3, 4}), (Dims{12, 4, 1}));
}

TEST(Dims, NormalizeAxis) {
  EXPECT_EQ(*normalize_axis(0, 3), 0);
  EXPECT_EQ(*normalize_axis(-1, 3), 2);
  EXPECT_EQ(*normalize_axis(-3, 3), 0);
  for (const int64_t axis : {int64_t{3}, int64_t{-4}, INT64_MIN, INT64_MAX}) {
    const auto refused = normalize_axis(axis, 3);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message(), HasSubstr("outside [-3, 2]"));
  }
  EXPECT_FALSE(normalize_axis(0, 0).ok());
}

TEST(Dims, Broadcast) {
  struct Row {
    Dims a, b, out;
  };
  const Row rows[] = {
      {{}, {}, {}},
      {{2, 3}, {}, {2, 3}},
      {{2, 3}, {3}, {2, 3}},
      {{2, 1}, {1, 3}, {2, 3}},
      {{4, 1, 3}, {2, 1}, {4, 2, 3}},
      {{0}, {1}, {0}},
      {{0}, {0}, {0}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(*broadcast(row.a, row.b), row.out);
    EXPECT_EQ(*broadcast(row.b, row.a), row.out);
  }
}

TEST(Dims, BroadcastRefuses) {
  const std::pair<Dims, Dims> rows[] = {{{2}, {3}}, {{0}, {2}}, {{2, 3}, {2}}};
  for (const auto& [a, b] : rows) {
    const auto refused = broadcast(a, b);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message(), testing::AllOf(HasSubstr(str(a)), HasSubstr(str(b))));
  }
}

TEST(Dim, Arithmetic) {
  EXPECT_EQ(Dim(2) + Dim(3), Dim(5));
  EXPECT_EQ(Dim(2) - Dim(3), Dim(-1));
  EXPECT_EQ(Dim(kN) * Dim(2), Dim(2 * kN));
  EXPECT_EQ(floordiv(Dim(7), Dim(2)), Dim(3));
  EXPECT_EQ(ceildiv(Dim(7), Dim(2)), Dim(4));
  EXPECT_FALSE((Dim() + Dim(1)).known());
  EXPECT_FALSE((Dim(1) * Dim()).known());
  EXPECT_TRUE((Dim(kN) - Dim(kN)).is_static());
}

TEST(Dim, EqualAsDescriptionIsNotSameExtent) {
  EXPECT_EQ(Dim(), Dim());
  EXPECT_FALSE(Dim().same_extent(Dim()));
  EXPECT_TRUE(Dim(kN).same_extent(Dim(kN)));
  EXPECT_FALSE(Dim(kN).same_extent(Dim(kM)));
  EXPECT_NE(Dim(0), Dim());
}

TEST(Shape, Text) {
  EXPECT_EQ(Shape().to_string(), "[*]");
  EXPECT_EQ(Shape(Dims{}).to_string(), "[]");
  EXPECT_EQ((Shape{Dim(2), Dim(kN), Dim()}).to_string(), "[2,N,?]");
}

TEST(Shape, Static) {
  EXPECT_EQ(Shape(Dims{2, 3}).static_dims(), (Dims{2, 3}));
  EXPECT_EQ(Shape(Dims{}).static_dims(), Dims{});
  EXPECT_EQ((Shape{Dim(2), Dim(kN)}).static_dims(), std::nullopt);
  EXPECT_EQ((Shape{Dim(2), Dim()}).static_dims(), std::nullopt);
  EXPECT_EQ(Shape().static_dims(), std::nullopt);
}

struct PairRow {
  Shape a, b, out;
};

TEST(Shape, Broadcast) {
  const PairRow rows[] = {
      {Shape(), Shape(Dims{2}), Shape()},
      {Shape(Dims{2, 1}), Shape(Dims{3}), Shape(Dims{2, 3})},
      {Shape{Dim(kN)}, Shape(Dims{1}), Shape{Dim(kN)}},
      {Shape{Dim()}, Shape(Dims{1}), Shape{Dim()}},
      {Shape{Dim()}, Shape(Dims{4}), Shape(Dims{4})},
      {Shape{Dim(kN)}, Shape(Dims{4}), Shape(Dims{4})},
      {Shape{Dim(kN)}, Shape(Dims{0}), Shape(Dims{0})},
      {Shape{Dim(kN)}, Shape{Dim(kN)}, Shape{Dim(kN)}},
      {Shape{Dim(kN)}, Shape{Dim(kM)}, Shape{Dim()}},
      {Shape{Dim()}, Shape{Dim()}, Shape{Dim()}},
      {Shape{Dim(kN), Dim(3)}, Shape(Dims{}), Shape{Dim(kN), Dim(3)}},
      {Shape{Dim(kN), Dim(3)}, Shape(Dims{1}), Shape{Dim(kN), Dim(3)}},
  };
  for (const PairRow& row : rows) {
    EXPECT_EQ(broadcast(row.a, row.b)->to_string(), row.out.to_string());
    EXPECT_EQ(broadcast(row.b, row.a)->to_string(), row.out.to_string());
  }
  const auto refused = broadcast(Shape{Dim(kN), Dim(3)}, Shape(Dims{2}));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), testing::AllOf(HasSubstr("[N,3]"), HasSubstr("[2]")));
}

TEST(Shape, Merge) {
  const PairRow rows[] = {
      {Shape(), Shape(Dims{2}), Shape(Dims{2})},
      {Shape(), Shape(), Shape()},
      {Shape{Dim(), Dim(3)}, Shape{Dim(2), Dim()}, Shape(Dims{2, 3})},
      {Shape{Dim(kN)}, Shape{Dim(2)}, Shape(Dims{2})},
      {Shape{Dim(kN)}, Shape{Dim()}, Shape{Dim(kN)}},
      {Shape(Dims{}), Shape(Dims{}), Shape(Dims{})},
  };
  for (const PairRow& row : rows) {
    EXPECT_EQ(merge(row.a, row.b)->to_string(), row.out.to_string());
    EXPECT_EQ(merge(row.b, row.a)->to_string(), row.out.to_string());
  }
  EXPECT_EQ(merge(Shape{Dim(kN)}, Shape{Dim(kM)})->to_string(), "[N]");  // of two symbols the first stays
}

TEST(Shape, MergeRefuses) {
  const auto dims = merge(Shape(Dims{2, 3}), Shape{Dim(), Dim(4)});
  ASSERT_FALSE(dims.ok());
  EXPECT_THAT(dims.error().message(), HasSubstr("dim 1 is 3 and 4"));
  const auto ranks = merge(Shape(Dims{2, 3}), Shape(Dims{2}));
  ASSERT_FALSE(ranks.ok());
  EXPECT_THAT(ranks.error().message(), HasSubstr("ranks 2 and 1"));
}

}  // namespace
}  // namespace tenon
