#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/runtime/value_check.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;

std::vector<ValueInfo> infos(const std::vector<std::string>& types) {
  std::vector<ValueInfo> out;
  for (const std::string& type : types) out.push_back({str("v", out.size()), *parse_type(type)});
  return out;
}

Datum zeros(const std::string& element, Dims dims) {
  return *Tensor::zeros(parse_type(element + "[]")->element(), std::move(dims));
}

std::string said(const Result<void>& result) { return result.ok() ? "" : result.error().to_string(); }

std::string inputs(const std::vector<std::string>& types, const std::vector<Datum>& values) {
  const ValueCheck check(infos(types));
  std::vector<const Datum*> given;
  std::vector<RunValue> run_values;
  for (const Datum& value : values) {
    given.push_back(&value);
    run_values.push_back({value, {}});
  }
  const std::string first = said(check.inputs(std::span<const Datum* const>(given)));
  EXPECT_EQ(said(check.inputs(std::span<const Datum>(values))), first);
  EXPECT_EQ(said(check.inputs(std::span<const RunValue>(run_values))), first);
  return first;
}

TEST(ValueCheck, InputsAreOfTheirTypes) {
  EXPECT_EQ(inputs({"f32[2,3]", "f32[]", "i8[4]"}, {zeros("f32", {2, 3}), zeros("f32", {}), zeros("i8", {4})}), "");
  EXPECT_EQ(inputs({"f32[2,3]"}, {zeros("f32", {2, 4})}),
            "input 'v0' is declared f32[2,3] and given f32[2,4]: dim 1 differs");
  EXPECT_EQ(inputs({"f32[2,3]"}, {zeros("f64", {2, 3})}), "input 'v0' is declared f32[2,3] and given f64[2,3]");
  EXPECT_EQ(inputs({"f32[]"}, {zeros("f32", {1})}), "input 'v0' is declared f32[] and given f32[1]: another rank");
  EXPECT_EQ(inputs({"f32[2]"}, {Datum()}), "input 'v0' is declared f32[2] and given nothing");
  EXPECT_EQ(inputs({"f32[0]"}, {zeros("f32", {0})}), "");
}

TEST(ValueCheck, SymbolsAreTheSameInAllInputs) {
  const std::vector<std::string> types = {"f32[N,3]", "f32[?,N]", "i8[N+1]", "i8[N+1,M]"};
  EXPECT_EQ(inputs(types, {zeros("f32", {2, 3}), zeros("f32", {9, 2}), zeros("i8", {7}), zeros("i8", {7, 2})}), "");
  EXPECT_EQ(inputs(types, {zeros("f32", {2, 3}), zeros("f32", {9, 4}), zeros("i8", {7}), zeros("i8", {7, 2})}),
            "input 'v1' is declared f32[?,N] and given f32[9,4]: N is 2 elsewhere and 4 here");
  EXPECT_THAT(inputs(types, {zeros("f32", {2, 3}), zeros("f32", {9, 2}), zeros("i8", {7}), zeros("i8", {8, 2})}),
              HasSubstr("is 7 elsewhere and 8 here"));
  // More of them than are looked at fast.
  std::vector<std::string> many;
  std::vector<Datum> values;
  for (int i = 0; i < 40; ++i) {
    many.push_back(str("f32[S", i % 20, "]"));
    values.push_back(zeros("f32", {i % 20}));
  }
  EXPECT_EQ(inputs(many, values), "");
  values.back() = zeros("f32", {3});
  EXPECT_THAT(inputs(many, values), HasSubstr("S19 is 19 elsewhere and 3 here"));
}

TEST(ValueCheck, WhatIsNotDeclaredIsNotAsked) {
  EXPECT_EQ(inputs({"?", "f32[*]", "optional(f32[2])"}, {zeros("i8", {3}), zeros("f32", {1, 2}), Datum()}), "");
  EXPECT_THAT(inputs({"f32[*]"}, {zeros("i8", {3})}), HasSubstr("declared f32[*] and given i8[3]"));
  EXPECT_THAT(inputs({"optional(f32[2])"}, {zeros("f32", {3})}), HasSubstr("dim 0 differs"));
  EXPECT_THAT(inputs({"seq(f32[*])"}, {zeros("f32", {3})}), HasSubstr("declared seq(f32[*]) and given f32[3]"));
}

TEST(ValueCheck, OutputsAreOfTheirTypes) {
  const ValueCheck check(infos({"f32[2,N]", "f32[3]"}));
  EXPECT_EQ(said(check.output(0, zeros("f32", {2, 5}))), "");
  EXPECT_EQ(said(check.output(0, RunValue{zeros("f32", {2, 5}), {}})), "");
  EXPECT_EQ(said(check.output(1, zeros("f32", {4}))),
            "output 'v1' is declared f32[3] and made as f32[4]: dim 0 differs");
  EXPECT_EQ(said(check.output(0, zeros("f32", {3, 5}))),
            "output 'v0' is declared f32[2,N] and made as f32[3,5]: dim 0 differs");
  EXPECT_EQ(said(check.output(1, Datum())), "output 'v1' is declared f32[3] and made as nothing");
  const auto nothing = check.output(1, Datum());
  EXPECT_TRUE(!nothing.ok() && nothing.error().code() == Code::plugin);
}

TEST(ValueCheck, TensorsOnADeviceLieInTheirBuffers) {
  const ValueCheck check(infos({"f32[2,N]"}));
  const auto device = host_device();
  const auto buffer = *device->allocate(device->memories().front(), 40);
  const auto given = [&](ElementType element, Dims dims, size_t offset) {
    const RunValue value{{}, {element, std::move(dims), buffer, offset}};
    return said(check.inputs(std::span(&value, 1)));
  };
  EXPECT_EQ(given(kF32, {2, 5}, 0), "");
  EXPECT_THAT(given(kF32, {2, 5}, 4), HasSubstr("in input 'v0'"));
  EXPECT_THAT(given(kF32, {2, 6}, 0), HasSubstr("in input 'v0'"));
  EXPECT_THAT(given(kF32, {2, -1}, 0), HasSubstr("in input 'v0'"));
  EXPECT_THAT(given(kF32, {3, 1}, 0), HasSubstr("declared f32[2,N] and given f32[3,1]: dim 0 differs"));
  const RunValue value{{}, {kF32, {2, 5}, buffer, 0}}, other{{}, {kF32, {1, 5}, buffer, 0}};
  EXPECT_EQ(said(check.output(0, value)), "");
  EXPECT_EQ(said(check.output(0, other)), "output 'v0' is declared f32[2,N] and made as f32[1,5]: dim 0 differs");
}

}  // namespace
}  // namespace tenon
