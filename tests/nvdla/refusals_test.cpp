// Every limit of the target files and everything that the machine lacks has its own error message with the numbers;
// just within the limit, the operator is accepted.
#include <gmock/gmock.h>

#include "layers.hpp"

namespace tenon::nvdla {
namespace {

using namespace testing;

// The reason why `target` refuses the last operator of `net`; "" if it accepts it.
std::string refusal_of(const std::string& target, const Net& net) {
  static std::map<std::string, std::unique_ptr<TargetBackend>> backends;
  if (!backends.contains(target)) {
    auto made = create_backend(target_of(target));
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    backends[target] = std::move(*made);
  }
  const auto refusal = backends[target]->refuses(*net.graph->body().last());
  return refusal ? refusal->reason : "";
}

struct ConvCase {
  Dims x{1, 16, 40, 40};
  int64_t kernels = 8, window = 1;
  Attributes attributes = {};
};

std::string conv(const ConvCase& c) {
  std::mt19937 r(1);
  Net net;
  Value* x = net.input(random_tensor(r, kF16, c.x));
  net.op("Conv", {x, net.constant(random_tensor(r, kF16, {c.kernels, c.x[1], c.window, c.window}))}, c.attributes);
  return refusal_of("nvdla-full", net);
}

std::string quantised_conv(const ConvCase& c) {
  std::mt19937 r(1);
  Net net;
  Value* x = net.input(random_tensor(r, kI8, c.x));
  Value* w = net.constant(random_tensor(r, kI8, {c.kernels, c.x[1], c.window, c.window}));
  net.op("fused.QConv", {x, w}, c.attributes);
  return refusal_of("nvdla-small", net);
}

Attributes pads(int64_t pad) { return {{"pads", Integers{pad, pad, pad, pad}}}; }
Attributes strides(int64_t stride) { return {{"strides", Integers{stride, 1}}}; }
Attributes dilations(int64_t dilation) { return {{"dilations", Integers{1, dilation}}}; }

TEST(Refusals, LimitsOfConvolutions) {
  EXPECT_EQ(conv({.window = 33}), "kernel 33 exceeds 32 on target nvdla-full");
  EXPECT_EQ(conv({.window = 32}), "");
  EXPECT_EQ(conv({.attributes = pads(32)}), "pad 32 exceeds 31 on target nvdla-full");
  EXPECT_EQ(conv({.attributes = pads(31)}), "");
  EXPECT_EQ(conv({.attributes = strides(9)}), "stride 9 exceeds 8 on target nvdla-full");
  EXPECT_EQ(conv({.attributes = strides(8)}), "");
  EXPECT_EQ(conv({.window = 2, .attributes = dilations(33)}), "dilation 33 exceeds 32 on target nvdla-full");
  EXPECT_EQ(conv({.window = 2, .attributes = dilations(32)}), "");
  EXPECT_EQ(conv({.x = {1, 16, 1, 8193}}), "dims 8193 exceeds 8192 on target nvdla-full");
  EXPECT_EQ(conv({.x = {1, 16, 1, 8192}}), "");
  EXPECT_EQ(conv({.x = {1, 1, 1, 1}, .kernels = 8193}), "dims 8193 exceeds 8192 on target nvdla-full");
  EXPECT_EQ(conv({.x = {4, 16, 8, 8}}), "batch 4 is not 1 on target nvdla-full");
}

// The limits for Conv apply, although the operator has another name.
TEST(Refusals, LimitsOfQuantisedConvolutions) {
  EXPECT_EQ(quantised_conv({.x = {1, 1, 40, 40}, .window = 33}), "kernel 33 exceeds 32 on target nvdla-small");
  EXPECT_EQ(quantised_conv({.x = {1, 1, 40, 40}, .window = 32}), "");
  EXPECT_EQ(quantised_conv({.attributes = pads(32)}), "pad 32 exceeds 31 on target nvdla-small");
  EXPECT_EQ(quantised_conv({.attributes = strides(9)}), "stride 9 exceeds 8 on target nvdla-small");
  EXPECT_EQ(quantised_conv({.window = 2, .attributes = dilations(33)}), "dilation 33 exceeds 32 on target nvdla-small");
  EXPECT_EQ(quantised_conv({.x = {2, 16, 8, 8}}), "batch 2 is not 1 on target nvdla-small");
  EXPECT_EQ(quantised_conv({}), "");
}

std::string pool(Name op, int64_t window, Attributes attributes = {}, ElementType element = kF16) {
  std::mt19937 r(1);
  Net net;
  attributes.set("kernel_shape", Integers{window, window});
  net.op(op, {net.input(random_tensor(r, element, {1, 3, 40, 40}))}, attributes);
  return refusal_of(element == kF16 ? "nvdla-full" : "nvdla-small", net);
}

TEST(Refusals, LimitsOfPools) {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    EXPECT_EQ(pool(op, 9), "kernel 9 exceeds 8 on target nvdla-full");
    EXPECT_EQ(pool(op, 8), "");
    EXPECT_EQ(pool(op, 8, pads(8)), "pad 8 exceeds 7 on target nvdla-full");
    EXPECT_EQ(pool(op, 8, pads(7)), "");
    EXPECT_EQ(pool(op, 2, strides(9)), "stride 9 exceeds 8 on target nvdla-full");
    EXPECT_EQ(pool(op, 2, strides(8)), "");
    EXPECT_EQ(pool(op, 2, dilations(2)), "dilation 2 of a pool is not 1 on target nvdla-full");
  }
  EXPECT_EQ(pool("fused.QMaxPool", 9, {}, kI8), "kernel 9 exceeds 8 on target nvdla-small");
  EXPECT_EQ(pool("fused.QAvgPool", 9, {}, kI8), "kernel 9 exceeds 8 on target nvdla-small");
  EXPECT_EQ(pool("fused.QAvgPool", 8, {}, kI8), "");
  EXPECT_EQ(pool("AveragePool", 2, {{"ceil_mode", 1}, {"count_include_pad", 1}}),
            "an average that counts padding with ceil_mode has windows of several sizes on target nvdla-full");
}

TEST(Refusals, AWholeImageIsAWindow) {
  std::mt19937 r(1);
  const auto global = [&](int64_t extent) {
    Net net;
    net.op("GlobalAveragePool", {net.input(random_tensor(r, kF16, {1, 3, extent, extent}))});
    return refusal_of("nvdla-full", net);
  };
  EXPECT_EQ(global(8), "");
  EXPECT_EQ(global(9), "kernel 9 exceeds 8 on target nvdla-full");
}

TEST(Refusals, ElementTypes) {
  std::mt19937 r(1);
  Net floats, halves;
  floats.op("Relu", {floats.input(random_tensor(r, kF32, {1, 3}))});
  halves.op("Relu", {halves.input(random_tensor(r, kF16, {1, 3}))});
  EXPECT_EQ(refusal_of("nvdla-full", floats), "type f32 of Relu is not f16 on target nvdla-full");
  EXPECT_EQ(refusal_of("nvdla-small", halves), "type f16 of Relu is not i8 on target nvdla-small");
  EXPECT_EQ(refusal_of("nvdla-full", halves), "");
}

// The message for an f32 operator is that for its f16 form, which preparation would have made.
TEST(Refusals, OfFloatOperatorsTheReasonThatIsNotTheType) {
  std::mt19937 r(1);
  Net wide, fine;
  Value* x = wide.input(random_tensor(r, kF32, {1, 9216}));
  wide.op("Gemm", {x, wide.constant(random_tensor(r, kF32, {9216, 4}))});
  EXPECT_EQ(refusal_of("nvdla-full", wide), "dims 9216 exceeds 8192 on target nvdla-full");
  x = fine.input(random_tensor(r, kF32, {1, 16}));
  fine.op("Gemm", {x, fine.constant(random_tensor(r, kF32, {16, 4}))});
  EXPECT_EQ(refusal_of("nvdla-full", fine), "type f32 of Gemm is not f16 on target nvdla-full");
}

std::string gemm(Attributes attributes, Dims x = {1, 8}, Dims w = {8, 4}, Dims c = {4}) {
  std::mt19937 r(1);
  Net net;
  Value* a = net.input(random_tensor(r, kF16, x));
  net.op("Gemm", {a, net.constant(random_tensor(r, kF16, w)), net.constant(random_tensor(r, kF16, c))}, attributes);
  return refusal_of("nvdla-full", net);
}

TEST(Refusals, Products) {
  EXPECT_EQ(gemm({}), "");
  EXPECT_EQ(gemm({{"alpha", 0.5f}}), "alpha 0.5 and beta 1 are not both 1 on target nvdla-full");
  EXPECT_EQ(gemm({{"transA", 1}}, {8, 1}), "batch 8 is not 1 on target nvdla-full");
  EXPECT_EQ(gemm({}, {1, 8}, {8, 4}, {1}), "C of 1 elements is no bias of 4 channels on target nvdla-full");
  EXPECT_EQ(gemm({}, {1, 8193}, {8193, 4}), "dims 8193 exceeds 8192 on target nvdla-full");
  EXPECT_EQ(gemm({}, {3, 8}), "batch 3 is not 1 on target nvdla-full");
  std::mt19937 r(1);
  Net net;
  net.op("MatMul", {net.input(random_tensor(r, kF16, {1, 8})), net.input(random_tensor(r, kF16, {8, 8}))});
  EXPECT_EQ(refusal_of("nvdla-full", net), "B of MatMul is no constant on target nvdla-full");
}

TEST(Refusals, WhatTheMachineLacks) {
  std::mt19937 r(1);
  Net softmax, broadcast, moved, batched;
  softmax.op("Softmax", {softmax.input(random_tensor(r, kF16, {1, 8}))});
  EXPECT_EQ(refusal_of("nvdla-full", softmax), "Softmax is nothing that CONV, SDP or PDP of target nvdla-full does");
  broadcast.op("Add", {broadcast.input(random_tensor(r, kF16, {1, 8, 2, 2})),
                       broadcast.input(random_tensor(r, kF16, {1, 8, 1, 1}))});
  EXPECT_EQ(refusal_of("nvdla-full", broadcast),
            "operands of the extents [1,8,2,2] and [1,8,1,1] are not of one shape on target nvdla-full");
  moved.op("Flatten", {moved.input(random_tensor(r, kF16, {1, 8, 2, 2}))});
  EXPECT_EQ(refusal_of("nvdla-full", moved),
            "Flatten from [1,8,2,2] to [1,32] moves values between surfaces on target nvdla-full");
  batched.op("Relu", {batched.input(random_tensor(r, kF16, {1, 8, 2}))});
  EXPECT_EQ(refusal_of("nvdla-full", batched), "rank 3 is neither 2 nor 4 on target nvdla-full");
}

TEST(Refusals, ShapesThatOnlyARunTells) {
  auto graph = parse_graph("graph @g(%x: f16[1,3,H,8]) -> %y { %y = Relu %x }");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  auto backend = create_backend(target_of("nvdla-full"));
  const auto refusal = (*backend)->refuses(*(*graph)->body().last());
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->reason, ::testing::HasSubstr("is known only to a run"));
}

}  // namespace
}  // namespace tenon::nvdla
