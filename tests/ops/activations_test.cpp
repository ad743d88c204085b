#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string alone(std::string_view op, std::string_view x, std::string_view attributes = "") {
  return inferred(str("(%x: ", x, ") -> %y { %y = ", op, " %x ", attributes, " }"));
}
std::string pair(std::string_view op, std::string_view a, std::string_view b) {
  return inferred(str("(%a: ", a, ", %b: ", b, ") -> %y { %y = ", op, " %a, %b }"));
}

TEST(ActivationRule, KeepsTheType) {
  for (const char* op : {"Relu",    "LeakyRelu",   "Elu",       "Selu",     "Celu",    "ThresholdedRelu",
                         "Sigmoid", "HardSigmoid", "HardSwish", "Swish",    "Mish",    "Gelu",
                         "Erf",     "Sin",         "Cos",       "Tan",      "Asin",    "Acos",
                         "Atan",    "Sinh",        "Cosh",      "Tanh",     "Clip",    "Shrink",
                         "Asinh",   "Acosh",       "Atanh",     "Softplus", "Softsign"}) {
    EXPECT_EQ(alone(op, "bf16[N,?,0]"), "bf16[N,?,0]") << op;
    EXPECT_EQ(alone(op, "f64[*]"), "f64[*]") << op;
    EXPECT_THAT(alone(op, "bool[2]"), HasSubstr("error: ")) << op;
  }
  EXPECT_EQ(alone("Relu", "i8[2]"), "i8[2]");
  EXPECT_THAT(alone("Sigmoid", "i8[2]"), HasSubstr("float tensors"));
  EXPECT_THAT(alone("Gelu", "f32[2]", R"({approximate = "erf"})"), HasSubstr("erf"));
  EXPECT_EQ(alone("Gelu", "f32[2]", R"({approximate = "tanh"})"), "f32[2]");
}

TEST(ActivationRule, PReluBroadcastsOneWay) {
  EXPECT_EQ(pair("PRelu", "f32[2,3,4]", "f32[3,1]"), "f32[2,3,4]");
  EXPECT_EQ(pair("PRelu", "f32[N,3]", "f32[]"), "f32[N,3]");
  EXPECT_EQ(pair("PRelu", "f32[*]", "f32[3]"), "f32[*]");
  EXPECT_THAT(pair("PRelu", "f32[1,3]", "f32[2,3]"), HasSubstr("would stretch X of shape [1,3]"));
  EXPECT_THAT(pair("PRelu", "f32[3]", "f32[1,3]"), HasSubstr("would stretch X"));
}

TEST(ActivationRule, ClipTakesScalarBounds) {
  const auto clip = [](std::string_view bounds, std::string_view operands) {
    return inferred(str("(%x: f32[N], ", bounds, ") -> %y { %y = Clip %x, ", operands, " }"));
  };
  EXPECT_EQ(clip("%l: f32[], %h: f32[]", "%l, %h"), "f32[N]");
  EXPECT_EQ(clip("%h: f32[]", "_, %h"), "f32[N]");
  EXPECT_EQ(clip("%l: f32[*]", "%l"), "f32[N]");
  EXPECT_THAT(clip("%l: f32[2]", "%l"), HasSubstr("the bound 'min' must be a scalar, it has shape [2]"));
  EXPECT_THAT(clip("%h: f32[2]", "_, %h"), HasSubstr("the bound 'max'"));
  EXPECT_THAT(clip("%l: f64[]", "%l"), HasSubstr("error: "));
}

TEST(ActivationRule, SwiGluDoesNotBroadcast) {
  EXPECT_EQ(pair("SwiGLU", "f16[2,?]", "f16[?,4]"), "f16[2,4]");
  EXPECT_THAT(pair("SwiGLU", "f16[2,4]", "f16[1,4]"), HasSubstr("do not broadcast"));
}

}  // namespace
}  // namespace tenon
