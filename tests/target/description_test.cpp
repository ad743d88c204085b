#include <tenon/target/description.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include <tenon/target/load.hpp>

#include "target_files.hpp"

namespace tenon {
namespace {

using ::testing::HasSubstr;

TargetDescription target(const std::string& lines) {
  auto result = parse_target(test::kHead + lines, "board.yaml");
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return *result;
}
std::string sentence(const Result<void>& result) {
  if (result.ok()) return "allowed";
  EXPECT_EQ(result.error().code(), Code::unsupported);
  return result.error().message();
}

TEST(Limits, RefusalsAreMadeOfTheData) {
  const auto nvdla = load_target(test::kSource + "/targets/nvdla-small.yaml");
  ASSERT_TRUE(nvdla.ok()) << nvdla.error().to_string();
  EXPECT_EQ(sentence(nvdla->check("Conv", "kernel", 33)), "kernel 33 exceeds 32 on target nvdla-small");
  EXPECT_EQ(sentence(nvdla->check("Conv", "kernel", 32)), "allowed");
  EXPECT_EQ(sentence(nvdla->check("MaxPool", "kernel", 9)), "kernel 9 exceeds 8 on target nvdla-small");
  EXPECT_EQ(sentence(nvdla->check("Conv", "batch", 4)), "batch 4 is not 1 on target nvdla-small");
  EXPECT_EQ(sentence(nvdla->check_type("Conv", "f32")), "type f32 of Conv is not i8 on target nvdla-small");
  EXPECT_EQ(sentence(nvdla->check_type("Conv", "i8")), "allowed");
}

TEST(Names, WhatNobodyReadsIsRefused) {
  const auto target = parse_target(
      "tenon_target: 1\nname: t\nplugin: p\nfeatures: [avx2, avx215]\nmemories:\n"
      "  l11: {size: 1 KiB}\n  dram: {size: 1 GiB}\n",
      "board.yaml");
  ASSERT_TRUE(target.ok()) << target.error().to_string();
  EXPECT_TRUE(target->allow_names("memories", {"dram", "l11", "l2"}).ok());
  EXPECT_TRUE(target->allow_names("engines", {}).ok());
  const auto memory = target->allow_names("memories", {"dram", "l1"});
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().message(), "board.yaml:6:3: unknown key \"l11\" in 'memories'; did you mean 'l1'?");
  const auto feature = target->allow_names("features", {"avx2", "avx512f"});
  ASSERT_FALSE(feature.ok());
  EXPECT_THAT(feature.error().message(), HasSubstr("board.yaml:4:18: unknown word \"avx215\" in 'features'"));
  EXPECT_EQ(target->place_of({"memories", "dram"}), "board.yaml:7:3: ");
  EXPECT_EQ(target->place_of({"memories", "none"}), "board.yaml:5:1: ");

  TargetDescription made;
  made.memories = {{.name = "l1"}};
  EXPECT_FALSE(made.allow_names("memories", {"dram"}).ok());
  EXPECT_EQ(made.place_of({"memories", "l1"}), "");
}

TEST(Limits, EveryKindOfConstraint) {
  const auto t = target(
      "operators:\n"
      "  Conv: {kernel: {min: 2, max: 15}, channels: {multiple_of: 16}, dilation: [1, 2, 4], groups: any, mode: [a, "
      "b],\n"
      "         both: {max: 10, one_of: [4, 20]}, types: [i8, u8], layouts: [\"NCHW{1n16c}\"]}\n"
      "  Relu: any\n"
      "  Softmax: none\n");
  EXPECT_EQ(sentence(t.check("Conv", "kernel", 1)), "kernel 1 is below 2 on target board");
  EXPECT_EQ(sentence(t.check("Conv", "kernel", 2)), "allowed");
  EXPECT_EQ(sentence(t.check("Conv", "kernel", 16)), "kernel 16 exceeds 15 on target board");
  EXPECT_EQ(sentence(t.check("Conv", "kernel", INT64_MIN)), "kernel -9223372036854775808 is below 2 on target board");
  EXPECT_EQ(sentence(t.check("Conv", "kernel", std::array<int64_t, 2>{3, 17})), "kernel 17 exceeds 15 on target board");
  EXPECT_EQ(sentence(t.check("Conv", "kernel", std::array<int64_t, 2>{3, 5})), "allowed");
  EXPECT_EQ(sentence(t.check("Conv", "channels", 24)), "channels 24 is not a multiple of 16 on target board");
  EXPECT_EQ(sentence(t.check("Conv", "channels", -32)), "allowed");
  EXPECT_EQ(sentence(t.check("Conv", "dilation", 3)), "dilation 3 is not one of [1, 2, 4] on target board");
  EXPECT_EQ(sentence(t.check("Conv", "dilation", 4)), "allowed");
  EXPECT_EQ(sentence(t.check("Conv", "groups", 1000)), "allowed");
  EXPECT_EQ(sentence(t.check("Conv", "mode", "c")), "mode c is not one of [a, b] on target board");
  EXPECT_EQ(sentence(t.check("Conv", "mode", "b")), "allowed");
  EXPECT_EQ(sentence(t.check("Conv", "both", 20)), "both 20 exceeds 10 on target board");
  EXPECT_EQ(sentence(t.check("Conv", "both", 5)), "both 5 is not one of [4, 20] on target board");
  EXPECT_EQ(sentence(t.check("Conv", "unmentioned", 5)), "allowed");
  EXPECT_EQ(sentence(t.check_type("Conv", "f32")), "type f32 of Conv is not one of [i8, u8] on target board");
  EXPECT_EQ(sentence(t.check_layout("Conv", "NCHW")), "layout NCHW of Conv is not NCHW{1n16c} on target board");
  EXPECT_EQ(sentence(t.check_layout("Conv", "NCHW{1n16c}")), "allowed");
  EXPECT_EQ(sentence(t.check("Relu", "anything", 1)), "allowed");
  EXPECT_EQ(sentence(t.check_type("Relu", "f64")), "allowed");
  EXPECT_EQ(sentence(t.check("Softmax")), "operator Softmax is not available on target board");
  EXPECT_EQ(sentence(t.check("Softmax", "axis", 1)), "operator Softmax is not available on target board");
  EXPECT_EQ(sentence(t.check("Unlisted", "kernel", 99)), "allowed");
}

TEST(Description, Lookups) {
  const auto t = target(
      "clock: 100 MHz\nfeatures: [avx2, fma]\nmemories: {acc: {size: 1 KiB}}\n"
      "engines: {slow: {lanes: 4}, fast: {lanes: 4, clock: 200 MHz}}\nregisters: {vector: {count: 8, width: 64 "
      "bits}}\n");
  EXPECT_EQ(t.memory("acc")->size_bytes, 1024u);
  EXPECT_EQ(t.memory("inp"), nullptr);
  EXPECT_EQ(t.clock_of(*t.engine("slow")), 100'000'000u);
  EXPECT_EQ(t.clock_of(*t.engine("fast")), 200'000'000u);
  EXPECT_EQ(t.register_class("vector")->width_bits, 64u);
  EXPECT_EQ(t.register_class("mask"), nullptr);
  EXPECT_TRUE(t.has_feature("fma"));
  EXPECT_FALSE(t.has_feature("avx512f"));
}

TEST(Description, EveryFieldRoundTrips) {
  TargetDescription t;
  t.name = "board";
  t.plugin = "vta";
  t.driver = "/opt/my drivers/libö.so";
  t.clock_hz = 33'333'333;
  t.features = {"avx2", "null", "123"};
  t.memories = {{"dram", 512 << 20, 64, 16, Bandwidth{0.125, Bandwidth::Per::cycle}, 64, 4},
                {"acc", 7, 1, 0, Bandwidth{12'800'000'001, Bandwidth::Per::second}, 0, 1}};
  t.engines = {{"gemm", 256, 0, 2, {"i8", "i8", "i32"}, 1'200'000'000}, {"alu", 0, 16, 1, {}, 0}};
  t.dma = {2, 16};
  t.registers = {{"vector", 32, 512}, {"mask", 8, 64}};
  OperatorLimits conv{"Conv"};
  conv.types = {"i8"};
  conv.layouts = {"NCHW{1n16c}"};
  conv.attributes = {{"kernel", 1, 15, 2, {Choice(int64_t{3}), Choice("any")}},
                     {"groups"},
                     {.name = "mode", .one_of = {Choice("edge"), Choice("7"), Choice(int64_t{7}), Choice("true")}},
                     {.name = "pad", .min = INT64_MIN, .max = INT64_MAX}};
  t.operators = {conv, {"Relu"}, {.name = "fused.ConvAct", .supported = false}};
  t.layouts = {{"activation", "NCHW{16c};align(H)=32B"}, {"weight", "[4h]NCHW"}};
  t.options.add("text", Setting::text("12")).add("list", Setting::list().add(Setting()).add(Setting::word("8 bits")));
  const auto text = to_yaml(t);
  const auto back = parse_target(text, "again.yaml");
  ASSERT_TRUE(back.ok()) << back.error().to_string() << "\n" << text;
  EXPECT_EQ(*back, t) << text;
  EXPECT_EQ(to_yaml(*back), text);
}

TEST(Description, ShippedFilesRoundTrip) {
  for (const auto& path : test::yaml_files("targets")) {
    const auto first = load_target(path.string());
    ASSERT_TRUE(first.ok()) << first.error().to_string();
    const auto again = parse_target(to_yaml(*first), "again.yaml");
    ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << to_yaml(*first);
    EXPECT_EQ(*again, *first) << to_yaml(*first);
  }
}

TEST(Description, WritesWhatDiffersFromTheDefaults) {
  EXPECT_EQ(
      to_yaml(target("memories: {dram: {size: 512 MiB, banks: 1}}\noperators: {Conv: {kernel: [3], groups: any}}\n")),
      "tenon_target: 1\nname: board\nplugin: vta\nmemories:\n  dram: {size: 512 MiB}\n"
      "operators:\n  Conv: {kernel: [3], groups: any}\n");
}

TEST(Description, EqualityCountsEveryFieldButTheSource) {
  const auto base = target("");
  auto other = base;
  other.source = "elsewhere.yaml";
  EXPECT_EQ(base, other);
  const auto differs = [&](auto change) {
    auto copy = base;
    change(copy);
    return copy != base;
  };
  EXPECT_TRUE(differs([](auto& t) { t.driver = "x"; }));
  EXPECT_TRUE(differs([](auto& t) { t.clock_hz = 1; }));
  EXPECT_TRUE(differs([](auto& t) { t.dma.channels = 1; }));
  EXPECT_TRUE(differs([](auto& t) { t.layouts["a"] = "N"; }));
  EXPECT_TRUE(differs([](auto& t) { t.operators.push_back({"Conv"}); }));
  EXPECT_TRUE(differs([](auto& t) { t.options.add("a", Setting::word("1")); }));
}

}  // namespace
}  // namespace tenon
