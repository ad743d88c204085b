#include <tenon/ops/recurrent.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string lstm(std::string_view x, std::string_view w, std::string_view r, std::string_view attributes) {
  return inferred(
      str("(%x: ", x, ", %w: ", w, ", %r: ", r, ") -> (%y, %h, %c) { %y, %h, %c = LSTM %x, %w, %r ", attributes, " }"));
}

TEST(RecurrentShape, LayoutsAndDirections) {
  EXPECT_EQ(lstm("f32[T,B,3]", "f32[1,20,3]", "f32[1,20,5]", "{hidden_size = 5}"),
            "f32[T,1,B,5] f32[1,B,5] f32[1,B,5]");
  EXPECT_EQ(lstm("f32[B,T,3]", "f32[2,20,3]", "f32[2,20,5]", R"({layout = 1, direction = "bidirectional"})"),
            "f32[B,T,2,5] f32[B,2,5] f32[B,2,5]");
  EXPECT_EQ(lstm("f32[*]", "f32[1,20,3]", "f32[*]", "{hidden_size = 5}"), "f32[?,1,?,5] f32[1,?,5] f32[1,?,5]");
}

TEST(RecurrentShape, Refusals) {
  EXPECT_THAT(lstm("f32[T,B,3]", "f32[1,20,4]", "f32[1,20,5]", ""), HasSubstr("W of LSTM"));
  EXPECT_THAT(lstm("f32[T,B,3]", "f32[1,15,3]", "f32[1,20,5]", ""), HasSubstr("axis 1 must be 20"));
  EXPECT_THAT(lstm("f32[T,B,3]", "f32[1,20,3]", "f32[1,20,5]", R"({direction = "bidirectional"})"),
              HasSubstr("axis 0 must be 2"));
  EXPECT_THAT(lstm("f32[T,B,3]", "f32[1,20,3]", "f32[1,20,5]", "{hidden_size = 6}"), HasSubstr("axis 1 must be 24"));
  EXPECT_THAT(lstm("f32[T,3]", "f32[1,20,3]", "f32[1,20,5]", ""), HasSubstr("rank"));
}

}  // namespace
}  // namespace tenon
