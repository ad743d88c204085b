// The families of compute kernels other than products, windows and moves, compared with the reference.
//
// Tolerances: integers and moved elements, bit for bit; sums in double, as in the reference, differ in the last unit of
// f32; functions of f32 by some units; a recurrence propagates these from step to step.
#include <cmath>

#include <gmock/gmock.h>

#include "compute_support.hpp"

namespace tenon::opencl::testing {
namespace {

TEST_P(OpenclCompute, IsTheReference) { expect_reference(GetParam()); }

constexpr double kUnits = 2e-6, kSums = 2e-5, kHalf = 2e-3;

const ComputeCase kSampled[] = {
    {"GridLinear", "graph @g(%x: f32[2,3,5,6], %p: f32[2,4,7,2]) -> %y { %y = GridSample %x, %p }", kUnits},
    {"GridLinearAligned",
     "graph @g(%x: f32[1,2,5,1], %p: f32[1,4,17,2]) -> %y { %y = GridSample %x, %p {align_corners = 1, padding_mode = "
     "\"border\"} }",
     kUnits},
    {"GridCubicReflected",
     "graph @g(%x: f32[2,2,5,6], %p: f32[2,3,5,2]) -> %y { %y = GridSample %x, %p {mode = \"cubic\", padding_mode = "
     "\"reflection\"} }",
     kUnits},
    {"GridNearestCube",
     "graph @g(%x: f16[1,2,3,4,5], %p: f32[1,2,3,4,3]) -> %y { %y = GridSample %x, %p {mode = \"nearest\", "
     "padding_mode = \"reflection\", align_corners = 1} }"},
    {"AffineGrid",
     "graph @g(%t: f32[2,2,3]) -> %y {\n %s = Constant {value = dense<i64[4]: 2, 3, 4, 5>} : i64[4]\n %y = AffineGrid "
     "%t, %s\n}",
     kUnits},
    {"AffineGridOfACube",
     "graph @g(%t: f64[1,3,4]) -> %y {\n %s = Constant {value = dense<i64[5]: 1, 1, 1, 4, 3>} : i64[5]\n %y = "
     "AffineGrid %t, %s {align_corners = 1}\n}",
     1e-12},
    {"Col2Im",
     "graph @g(%x: f32[2,12,9]) -> %y {\n %s = Constant {value = dense<i64[2]: 5, 6>} : i64[2]\n %b = Constant {value "
     "= dense<i64[2]: 2, 3>} : i64[2]\n %y = Col2Im %x, %s, %b {pads = [1, 0, 0, 1], strides = [2, 1], dilations = [1, "
     "2]}\n}",
     kUnits},
    {"RoiAlign",
     "graph @g(%x: f32[2,3,9,10], %r: f32[4,4]) -> %y {\n %b = Constant {value = dense<i64[4]: 0, 1, 1, 0>} : i64[4]\n "
     "%y = RoiAlign %x, %r, %b {output_height = 3, output_width = 2, sampling_ratio = 2, spatial_scale = 4.0}\n}",
     kUnits},
    {"RoiAlignLargest",
     "graph @g(%x: f32[2,3,9,10], %r: f32[2,4]) -> %y {\n %b = Constant {value = dense<i64[2]: 1, 0>} : i64[2]\n %y = "
     "RoiAlign %x, %r, %b {output_height = 2, output_width = 2, spatial_scale = 7.0, mode = \"max\", "
     "coordinate_transformation_mode = \"output_half_pixel\"}\n}",
     kUnits},
    {"DeformConv",
     "graph @g(%x: f32[2,4,7,8], %w: f32[18,2,3,2], %o: f32[2,24,7,9], %b: f32[18], %m: f32[2,12,7,9]) -> %y { %y = "
     "DeformConv %x, %w, %o, %b, %m {group = 2, offset_group = 2, pads = [1, 1, 1, 1]} }",
     kSums},
};
INSTANTIATE_TEST_SUITE_P(Sampled, OpenclCompute, ::testing::ValuesIn(kSampled), name_of);

const ComputeCase kRecurrent[] = {
    {"Rnn",
     "graph @g(%x: f32[5,3,17], %w: f32[1,7,17], %r: f32[1,7,7]) -> (%y, %h) { %y, %h = RNN %x, %w, %r "
     "{hidden_size = 7} }",
     kSums},
    {"RnnBothWays",
     "graph @g(%x: f32[5,3,4], %w: f32[2,7,4], %r: f32[2,7,7], %b: f32[2,14], %i: f32[2,3,7]) -> (%y, %h) { %y, %h = "
     "RNN %x, %w, %r, %b, _, %i {hidden_size = 7, direction = \"bidirectional\", activations = [\"Relu\", "
     "\"LeakyRelu\"], activation_alpha = [0.25], clip = 0.9} }",
     kSums},
    {"Gru",
     "graph @g(%x: f32[6,2,33], %w: f32[1,51,33], %r: f32[1,51,17], %b: f32[1,102]) -> (%y, %h) { %y, %h = GRU "
     "%x, %w, %r, %b {hidden_size = 17, direction = \"reverse\"} }",
     kSums},
    {"GruLinear",
     "graph @g(%x: f64[3,6,4], %w: f64[1,15,4], %r: f64[1,15,5], %b: f64[1,30]) -> (%y, %h) { %y, %h = GRU %x, %w, %r, "
     "%b {hidden_size = 5, linear_before_reset = 1, layout = 1} }",
     1e-12},
    {"Lstm",
     "graph @g(%x: f32[7,2,16], %w: f32[1,64,16], %r: f32[1,64,16]) -> (%y, %h, %c) { %y, %h, %c = LSTM %x, "
     "%w, %r {hidden_size = 16} }",
     kSums},
    {"LstmPeepholes",
     "graph @g(%x: f16[3,2,5], %w: f16[2,24,5], %r: f16[2,24,6], %b: f16[2,48], %i: f16[2,2,6], %j: f16[2,2,6], %p: "
     "f16[2,18]) -> (%y, %h, %c) {\n %n = Constant {value = dense<i32[2]: 3, 1>} : i32[2]\n %y, %h, %c = LSTM %x, %w, "
     "%r, %b, %n, %i, %j, %p {hidden_size = 6, direction = \"bidirectional\", input_forget = 1}\n}",
     kHalf},
};
INSTANTIATE_TEST_SUITE_P(Recurrent, OpenclCompute, ::testing::ValuesIn(kRecurrent), name_of);

const ComputeCase kStreaming[] = {
    {"LinearAttention",
     "graph @g(%q: f32[2,5,12], %k: f32[2,5,6], %v: f32[2,5,10]) -> (%y, %s) { %y, %s = LinearAttention %q, %k, %v "
     "{q_num_heads = 4, kv_num_heads = 2, update_rule = \"linear\"} }",
     kUnits},
    {"LinearAttentionGatedDelta",
     "graph @g(%q: f32[2,5,6], %k: f32[2,5,6], %v: f32[2,5,10], %p: f32[2,2,3,5], %d: f32[2,5,6], %b: f32[2,5,2]) -> "
     "(%y, %s) { %y, %s = LinearAttention %q, %k, %v, %p, %d, %b {q_num_heads = 2, kv_num_heads = 2, scale = 0.5} }",
     kUnits},
    {"LinearAttentionOneDecay",
     "graph @g(%q: f16[1,4,6], %k: f16[1,4,6], %v: f16[1,4,8], %d: f16[1,4,2], %b: f16[1,4,1]) -> %y { %y = "
     "LinearAttention %q, %k, %v, _, %d, %b {q_num_heads = 2, kv_num_heads = 2} }",
     kHalf},
    {"CausalConv",
     "graph @g(%x: f32[2,3,7], %w: f32[3,1,4], %b: f32[3], %p: f32[2,3,3]) -> (%y, %s) { %y, %s = CausalConvWithState "
     "%x, %w, %b, %p }"},
    {"CausalConvSilu",
     "graph @g(%x: f16[2,3,2], %w: f16[3,1,4]) -> (%y, %s) { %y, %s = CausalConvWithState %x, %w {activation = "
     "\"silu\"} }",
     kHalf},
    {"TensorScatter",
     "graph @g(%x: i8[2,3,5,4], %u: i8[2,3,2,4]) -> %y {\n %i = Constant {value = dense<i64[2]: 3, 0>} : i64[2]\n %y "
     "= TensorScatter %x, %u, %i\n}"},
    {"TensorScatterCircular",
     "graph @g(%x: f32[2,5,4], %u: f32[2,3,4]) -> %y {\n %i = Constant {value = dense<i64[2]: 4, 1>} : i64[2]\n %y = "
     "TensorScatter %x, %u, %i {mode = \"circular\"}\n}"},
    {"Rotary",
     "graph @g(%x: f32[2,3,4,10], %c: f32[9,4], %s: f32[9,4]) -> %y {\n %i = Constant {value = dense<i64[2,4]: 0, 8, "
     "3, "
     "3, 1, 2, 7, 5>} : i64[2,4]\n %y = RotaryEmbedding %x, %c, %s, %i {rotary_embedding_dim = 8}\n}"},
    {"RotaryInterleaved",
     "graph @g(%x: bf16[2,4,12], %c: bf16[2,4,3], %s: bf16[2,4,3]) -> %y { %y = RotaryEmbedding %x, %c, %s {num_heads "
     "= 2, interleaved = 1} }"},
};
INSTANTIATE_TEST_SUITE_P(Streaming, OpenclCompute, ::testing::ValuesIn(kStreaming), name_of);

const ComputeCase kQuantised[] = {
    {"ConvInteger",
     "graph @g(%x: u8[2,4,7,8], %w: i8[6,2,3,2], %z: u8[], %v: i8[6]) -> %y { %y = ConvInteger %x, %w, %z, %v {group = "
     "2, strides = [2, 1], pads = [1, 0, 1, 1], dilations = [1, 2]} }"},
    {"ConvIntegerOneZero",
     "graph @g(%x: u8[2,4,7,8], %w: i8[6,2,3,2], %z: u8[], %v: i8[]) -> %y { %y = ConvInteger %x, %w, %z, %v {group = "
     "2} }"},
    {"ConvIntegerPlain", "graph @g(%x: i8[1,3,9], %w: i8[4,3,3]) -> %y { %y = ConvInteger %x, %w }"},
    {"QLinearConv",
     "graph @g(%x: u8[2,3,5,6], %w: i8[4,3,3,3], %b: i32[4]) -> %y {\n %s = Constant {value = dense<f32[]: 0.02>} : "
     "f32[]\n %z = Constant {value = dense<u8[]: 120>} : u8[]\n %v = Constant {value = dense<f32[4]: 0.01, 0.03, 0.02, "
     "0.5>} : f32[4]\n %n = Constant {value = dense<i8[4]: 0, 3, -2, 1>} : i8[4]\n %r = Constant {value = dense<f32[]: "
     "0.3>} : f32[]\n %t = Constant {value = dense<u8[]: 7>} : u8[]\n %y = QLinearConv %x, %s, %z, %w, %v, %n, %r, %t, "
     "%b {pads = [1, 1, 1, 1]}\n}"},
    {"QLinearMatMul",
     "graph @g(%a: u8[2,1,5,17], %b: i8[3,17,4]) -> %y {\n %s = Constant {value = dense<f32[]: 0.02>} : f32[]\n %z = "
     "Constant {value = dense<u8[]: 120>} : u8[]\n %v = Constant {value = dense<f32[]: 0.01>} : f32[]\n %n = Constant "
     "{value = dense<i8[]: 3>} : i8[]\n %r = Constant {value = dense<f32[]: 0.05>} : f32[]\n %t = Constant {value = "
     "dense<i8[]: -7>} : i8[]\n %y = QLinearMatMul %a, %s, %z, %b, %v, %n, %r, %t\n}"},
};
INSTANTIATE_TEST_SUITE_P(Quantised, OpenclCompute, ::testing::ValuesIn(kQuantised), name_of);

const ComputeCase kOthers[] = {
    {"EinsumProduct",
     "graph @g(%a: f32[3,4,5], %b: f32[5,6]) -> %y { %y = Einsum %a, %b {equation = \"...ij,jk->ki...\"} }", kUnits},
    {"EinsumDiagonal", "graph @g(%a: i32[4,3,4]) -> %y { %y = Einsum %a {equation = \"iji->j\"} }"},
    {"EinsumOfThree",
     "graph @g(%a: f64[3,4], %b: f64[4,1], %c: f64[2]) -> %y { %y = Einsum %a, %b, %c {equation = \"ij,jk,k->i\"} }",
     1e-12},
    {"Det", "graph @g(%x: f32[2,3,5,5]) -> %y { %y = Det %x }", kUnits},
    {"Filled",
     "graph @g(%x: i64[2]) -> %y {\n %s = Constant {value = dense<i64[2]: 3, 2>} : i64[2]\n %c = ConstantOfShape %s "
     "{value = dense<i64[1]: -7>}\n %y = Add %c, %x\n}"},
    {"Eye", "graph @g(%x: f32[3,5]) -> %y { %y = EyeLike %x {k = 1} }"},
    {"EyeHalf", "graph @g(%x: f16[3,5]) -> %y { %y = EyeLike %x {k = 1} }"},
    {"Extents", "graph @g(%x: f32[3,5,2]) -> (%y, %n) {\n %y = Shape %x {start = -2}\n %n = Size %x\n}"},
    {"Hamming",
     "graph @g(%x: f32[9]) -> %y {\n %s = Constant {value = dense<i64[]: 9>} : i64[]\n %w = HammingWindow %s\n %b = "
     "BlackmanWindow %s {periodic = 0}\n %h = HannWindow %s\n %u = Mul %w, %b\n %v = Add %u, %h\n %y = Mul %v, %x\n}",
     kUnits},
    {"BitsOfFloats", "graph @g(%x: f32[19]) -> %y { %y = BitCast %x {to = type<i32[]>} }"},
};
INSTANTIATE_TEST_SUITE_P(Others, OpenclCompute, ::testing::ValuesIn(kOthers), name_of);

// Casts every 8-bit number to and from f32, f16 and bf16, and every f16 to each 8-bit type, which covers all ties.
class OpenclSmallFloats : public OpenclTest, public ::testing::WithParamInterface<ElementType> {
 protected:
  void expect_cast(ElementType from, ElementType to, const Tensor& input, std::string_view attributes) {
    const std::string text = str("graph @g(%x: ", from, "[", input.size(), "]) -> %y { %y = Cast %x {to = type<", to,
                                 "[]>", attributes, "} }");
    auto backend = *create_backend(cpu_target());
    auto graph = parse_graph(text);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    EXPECT_FALSE(backend->refuses(*(*graph)->body().begin())) << text;
    auto executable = *compiled(*backend, (*graph)->clone());
    const auto got = run_on(*stream, *executable, {Datum(input)});
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    const Tensor expected = on_reference(**graph, {Datum(input)})[0];
    ASSERT_EQ((*got)[0].bytes(), expected.bytes());
    for (int64_t i = 0; i < expected.size(); ++i) {
      const double a = (*got)[0].double_at(i), b = expected.double_at(i);
      ASSERT_TRUE(std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b))
          << text << ": element " << i << " (" << input.double_at(i) << ") is " << a << ", not " << b;
    }
  }
  static Tensor all_of(ElementType element) {
    Tensor tensor = *Tensor::allocate(element, {int64_t{1} << element.bits()});
    for (int64_t i = 0; i < tensor.size(); ++i) {
      std::byte* to = tensor.mutable_data() + i * (element.bits() / 8);
      to[0] = static_cast<std::byte>(i & 255);
      if (element.bits() == 16) to[1] = static_cast<std::byte>(i >> 8);
    }
    return tensor;
  }
};

TEST_P(OpenclSmallFloats, AreCastAsTheReferenceCasts) {
  for (const ElementType to : {kF32, kF16, kBF16}) expect_cast(GetParam(), to, all_of(GetParam()), "");
  for (const ElementType from : {kF16, kBF16}) expect_cast(from, GetParam(), all_of(from), "");
  if (GetParam() != kF8E8M0) expect_cast(kF16, GetParam(), all_of(kF16), ", saturate = 0");
}

INSTANTIATE_TEST_SUITE_P(Types, OpenclSmallFloats,
                         ::testing::Values(kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF8E8M0),
                         [](const auto& info) { return info.param.to_string(); });

class OpenclFaults : public OpenclTest {};

// Lengths and positions out of range are errors of the run, and the stream remains usable.
TEST_F(OpenclFaults, WhatLiesOutsideIsAnErrorOfTheRun) {
  constexpr std::string_view kText =
      "graph @g(%x: f32[1,1,2,4], %c: f32[3,2], %s: f32[3,2], %i: i64[1,2]) -> %y { %y = RotaryEmbedding %x, %c, %s, "
      "%i \"turn\" }";
  auto backend = *create_backend(cpu_target());
  auto executable = *compiled(*backend, *parse_graph(kText));
  const auto run_with = [&](int64_t position) {
    std::mt19937 random(5);
    Tensor at = *Tensor::allocate(kI64, {1, 2});
    at.mutable_as<int64_t>()[0] = 0, at.mutable_as<int64_t>()[1] = position;
    std::vector<Datum> inputs;
    for (const Dims& dims : {Dims{1, 1, 2, 4}, Dims{3, 2}, Dims{3, 2}})
      inputs.emplace_back(tenon::testing::random_tensor(random, kF32, dims));
    inputs.emplace_back(at);
    return run_on(*stream, *executable, inputs);
  };
  EXPECT_TRUE(run_with(2).ok());
  for (const int64_t wrong : {int64_t{3}, int64_t{-1}}) {
    const auto failed = run_with(wrong);
    ASSERT_FALSE(failed.ok());
    EXPECT_THAT(failed.error().to_string(),
                ::testing::HasSubstr("RotaryEmbedding turn has an index that is out of range"));
  }
  EXPECT_TRUE(run_with(1).ok());
}

}  // namespace
}  // namespace tenon::opencl::testing
