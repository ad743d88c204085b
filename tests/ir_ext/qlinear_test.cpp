// The quantised operators of com.microsoft: their results, and their conversion to integer layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ir_ext/small_network.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon-ext/quant/passes.hpp>
#include <tenon-ext/quant/qlinear.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/onnx/export.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::quant {
namespace {

using ::testing::HasSubstr;
using testing::random_tensor;

std::unique_ptr<Graph> parsed(const std::string& text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *std::move(graph);
}
// saturate(round(real / scale) + zero_point) for u8.
int64_t as_u8(double real, float scale, int64_t zero_point) {
  return std::clamp<int64_t>(std::llrint(static_cast<float>(real) / scale) + zero_point, 0, 255);
}

constexpr const char* kScales = R"(
    %as = Constant {value = dense<f32[]: 0.02>}
    %az = Constant {value = dense<u8[]: 120>}
    %bs = Constant {value = dense<f32[]: 0.03>}
    %bz = Constant {value = dense<u8[]: 7>}
    %cs = Constant {value = dense<f32[]: 0.05>}
    %cz = Constant {value = dense<u8[]: 100>}
)";

TEST(QLinear, SumsAndProductsAreThoseOfTheReals) {
  std::mt19937 random(2);
  const std::vector<Datum> inputs{random_tensor(random, kU8, {4, 50}, 0, 255),
                                  random_tensor(random, kU8, {50}, 0, 255)};
  for (const bool product : {false, true}) {
    const auto graph = parsed(str("graph @g(%a: u8[4,50], %b: u8[50]) -> %c {", kScales, "%c = com.microsoft.QLinear",
                                  product ? "Mul" : "Add", " %a, %as, %az, %b, %bs, %bz, %cs, %cz }"));
    const Tensor c = output_of(*graph, inputs);
    ASSERT_EQ(c.element(), kU8);
    for (int64_t i = 0; i < c.size(); ++i) {
      const double a = 0.02f * static_cast<float>(inputs[0].tensor().int_at(i) - 120);
      const double b = 0.03f * static_cast<float>(inputs[1].tensor().int_at(i % 50) - 7);
      EXPECT_NEAR(c.int_at(i), as_u8(product ? a * b : a + b, 0.05f, 100), 1) << i;
    }
  }
}

TEST(QLinear, TypesFollowFromTheFloatOperators) {
  const auto graph = parsed(str("graph @g(%a: u8[1,4,6,6]) -> (%p, %q, %j, %f) {", kScales, R"(
    %p = com.microsoft.QLinearGlobalAveragePool %a, %as, %az, %cs, %cz
    %q = com.microsoft.QLinearAveragePool %a, %as, %az, %cs, %cz {kernel_shape = [2, 2], strides = [2, 2]}
    %j = com.microsoft.QLinearConcat %cs, %cz, %a, %as, %az, %a, %bs, %bz {axis = 1}
    %m = Flatten %a
    %w = Constant {value = splat<i8[144,3]: 2>}
    %wz = Constant {value = dense<i8[]: 0>}
    %f = com.microsoft.QGemm %m, %as, %az, %w, %bs, %wz
  })"));
  EXPECT_EQ(graph->body().output(0)->type().to_string(), "u8[1,4,1,1]");
  EXPECT_EQ(graph->body().output(1)->type().to_string(), "u8[1,4,3,3]");
  EXPECT_EQ(graph->body().output(2)->type().to_string(), "u8[1,8,6,6]");
  EXPECT_EQ(graph->body().output(3)->type().to_string(), "f32[1,3]");
  EXPECT_TRUE(verify(*graph).ok());
  for (const Op& op : graph->body()) {
    const bool expected = !op.is("Constant") && !op.is("Flatten");
    EXPECT_EQ(is_qlinear(op), expected) << op.describe();
  }
}

TEST(QLinear, ImagesWithChannelsLastAreRefused) {
  const auto graph = parse_graph(str("graph @g(%a: u8[1,6,6,4]) -> %p {", kScales, R"(
    %p = com.microsoft.QLinearGlobalAveragePool %a, %as, %az, %cs, %cz {channels_last = 1}
  })"));
  const std::string said = !graph.ok() ? graph.error().to_string() : verify(**graph).error().to_string();
  EXPECT_THAT(said, HasSubstr("channels_last"));
}

TEST(QLinear, WhatIsMissingIsNamed) {
  const auto graph = parse_graph(
      str("graph @g(%a: u8[4]) -> %c {", kScales, "%c = com.microsoft.QLinearAdd %a, %as, %az, %a, %as, %az }"));
  const std::string said = !graph.ok() ? graph.error().to_string() : verify(**graph).error().to_string();
  EXPECT_THAT(said, HasSubstr("operand 6 of com.microsoft.QLinearAdd"));
}

// A residual network as quantisers write it with operators instead of QDQ: selecting and moving happens on integers.
constexpr const char* kNetwork = R"(
    %w = Constant {value = splat<i8[4,4,3,3]: 3>}
    %w2 = Constant {value = splat<i8[3,4]: -5>}
    %ws = Constant {value = dense<f32[]: 0.01>}
    %wz = Constant {value = dense<i8[]: 0>}
    %b = Constant {value = dense<i32[4]: 100, -200, 300, 0>}
    %q = QuantizeLinear %x, %as, %az
    %c = QLinearConv %q, %as, %az, %w, %ws, %wz, %bs, %az, %b {pads = [1, 1, 1, 1]}
    %s = com.microsoft.QLinearAdd %c, %bs, %az, %q, %as, %az, %cs, %cz
    %t = MaxPool %s {kernel_shape = [2, 2], strides = [2, 2]}
    %p = com.microsoft.QLinearGlobalAveragePool %t, %cs, %cz, %cs, %cz
    %m = Flatten %p
    %f = com.microsoft.QGemm %m, %cs, %cz, %w2, %ws, %wz {transB = 1}
)";

TEST(QLinear, ANetworkOfThemBecomesIntegerLayers) {
  const auto graph = parsed(str("graph @g(%x: f32[1,4,8,8]) -> %f {", kScales, kNetwork, "}"));
  std::mt19937 random(4);
  const std::vector<Datum> inputs{random_tensor(random, kF32, {1, 4, 8, 8}, -1, 2)};
  const Tensor before = output_of(*graph, inputs);
  ASSERT_TRUE(has_scales(*graph));
  const auto changed = legalise_quantised(*graph);
  ASSERT_TRUE(changed.ok()) << changed.error().to_string();
  auto counts = count_operators(*graph);
  EXPECT_EQ(counts["fused.QConv"], 1) << print(*graph, {.elide_beyond = 4});
  EXPECT_EQ(counts["fused.QAvgPool"], 1);
  EXPECT_EQ(counts["fused.QMaxPool"], 1);
  EXPECT_EQ(counts["fused.QDense"], 2);
  EXPECT_EQ(counts["fused.QAdd"] + counts["Conv"] + counts["Gemm"] + counts["DequantizeLinear"], 0);
  const Tensor after = output_of(*graph, inputs);
  double signal = 0, noise = 0;
  for (int64_t i = 0; i < before.size(); ++i) {
    signal += before.double_at(i) * before.double_at(i);
    noise += std::pow(after.double_at(i) - before.double_at(i), 2);
  }
  EXPECT_LT(noise, signal / 100) << "20 dB";
}

TEST(QLinear, ComesThroughOnnx) {
  const auto graph = parsed(str("graph @g(%x: f32[1,4,8,8]) -> %f {", kScales, kNetwork, "}"));
  const std::string path = ::testing::TempDir() + "tenon-qlinear.onnx";
  const auto written = export_model(*graph, path);
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  const auto again = import_model(path);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(count_operators(**again)["com.microsoft.QLinearAdd"], 1);
  std::mt19937 random(4);
  const std::vector<Datum> inputs{random_tensor(random, kF32, {1, 4, 8, 8}, -2, 2)};
  EXPECT_TRUE(output_of(**again, inputs).identical(output_of(*graph, inputs)));
}

}  // namespace
}  // namespace tenon::quant
