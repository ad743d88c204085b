#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

TEST(TrainingRule, ResultsAreTensorsAndStates) {
  EXPECT_EQ(
      inferred("(%r: f32[], %t: i64[], %x: f32[2], %w: f64[N], %gx: f32[2], %gw: f64[?], %hx: f32[2], %hw: f64[*]) "
               "-> (%a, %b, %c, %d) "
               "{ %a, %b, %c, %d = ai.onnx.preview.training.Adagrad %r, %t, %x, %w, %gx, %gw, %hx, %hw }"),
      "f32[2] f64[N] f32[2] f64[N]");
  EXPECT_EQ(inferred("(%r: f32[], %t: i64[], %x: f32[2], %g: f32[2], %v: f32[2], %h: f32[2]) -> (%a, %b, %c) "
                     "{ %a, %b, %c = ai.onnx.preview.training.Adam %r, %t, %x, %g, %v, %h }"),
            "f32[2] f32[2] f32[2]");
}

TEST(TrainingRule, Refuses) {
  const auto momentum = [](std::string_view gradient, std::string_view operands, std::string_view attributes) {
    return inferred(str("(%r: f32[], %t: i64[], %x: f32[2], %g: ", gradient, ", %v: f32[2]) -> (%a, %b) ",
                        "{ %a, %b = ai.onnx.preview.training.Momentum %r, %t, ", operands, " ", attributes, " }"));
  };
  const char* good = R"({alpha = 0.5, beta = 0.5, mode = "standard"})";
  EXPECT_EQ(momentum("f32[2]", "%x, %g, %v", good), "f32[2] f32[2]");
  EXPECT_THAT(momentum("f32[3]", "%x, %g, %v", good), HasSubstr("tensor 1 of "));
  EXPECT_THAT(inferred("(%r: f32[0], %t: i64[], %x: f32[2], %g: f32[2], %v: f32[2]) -> (%a, %b) "
                       "{ %a, %b = ai.onnx.preview.training.Adagrad %r, %t, %x, %g, %v }"),
              HasSubstr("'R' must be one number, it has shape [0]"));
  EXPECT_THAT(momentum("f32[2]", "%x, %g, %v, %v", good),
              HasSubstr("takes R, T and 3 n operands and makes 2 n results"));
  EXPECT_THAT(momentum("f32[2]", "%x, %g, %v", R"({alpha = 0.5, beta = 0.5, mode = "fast"})"), HasSubstr("fast"));
}

}  // namespace
}  // namespace tenon
