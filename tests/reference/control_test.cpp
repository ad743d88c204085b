#include <tenon/ops/control.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/evaluated.hpp>
#include <tenon/ir/text.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::ints;

// Runs a graph given as text; a refusal gives one string output.
std::vector<Datum> run(std::string_view text, std::vector<Datum> inputs) {
  const auto refused = [](const Error& error) {
    return std::vector<Datum>{Tensor::scalar<std::string>(error.to_string())};
  };
  auto graph = parse_graph("graph @g" + std::string(text));
  if (!graph.ok()) return refused(graph.error());
  auto interpreter = Interpreter::prepare(**graph);
  if (!interpreter.ok()) return refused(interpreter.error());
  auto outputs = (*interpreter)->run(inputs);
  return outputs.ok() ? *std::move(outputs) : refused(outputs.error());
}
std::string refusal(const std::vector<Datum>& outputs) {
  const Tensor& first = outputs[0].tensor();
  return first.element().is_string() ? first.as<std::string>()[0] : "no refusal";
}
Tensor floats(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(ControlEvaluator, IfRunsOneBranch) {
  const std::string_view text =
      "(%c: bool[], %x: f32[?]) -> %y { %y = If %c (() -> %a { %a = Add %x, %x }, () -> %b { %b = Neg %x }) }";
  const Tensor x = floats({1, 2});
  EXPECT_TRUE(run(text, {Tensor::scalar(true), x})[0].tensor().identical(floats({2, 4})));
  EXPECT_TRUE(run(text, {Tensor::scalar(false), x})[0].tensor().identical(floats({-1, -2})));
  EXPECT_THAT(refusal(run("(%c: bool[?], %x: f32[]) -> %y { %y = If %c (() -> %x {}, () -> %x {}) }",
                          {Tensor::of<bool>({2}, {true, true}), Tensor::scalar(1.0f)})),
              HasSubstr("must be one boolean, it is bool[2]"));
}

// Sums 0 .. i into %a, and stacks the sums; stops when the sum reaches %limit.
constexpr std::string_view kLoop =
    "(%m: i64[], %c: bool[], %v: i64[1], %limit: i64[1]) -> (%w, %s) { %w, %s = Loop %m, %c, %v ((%i: i64[], %k: "
    "bool[], %a: i64[1]) "
    "-> (%go, %b, %b) { %b = Add %a, %i %less = Less %b, %limit %go = Squeeze %less }) }";

TEST(ControlEvaluator, LoopCountsCarriesAndStacks) {
  const auto looped = [](int64_t trips, bool condition, int64_t limit) {
    return run(kLoop, {Tensor::scalar(trips), Tensor::scalar(condition), ints({0}), ints({limit})});
  };
  auto y = looped(4, true, 100);
  EXPECT_TRUE(y[0].tensor().identical(ints({6})));
  EXPECT_TRUE(y[1].tensor().identical(Tensor::of<int64_t>({4, 1}, {0, 1, 3, 6})));
  y = looped(100, true, 3);  // the body's own condition ends it
  EXPECT_TRUE(y[0].tensor().identical(ints({3})));
  EXPECT_TRUE(y[1].tensor().identical(Tensor::of<int64_t>({3, 1}, {0, 1, 3})));
  for (const auto& none : {looped(0, true, 3), looped(5, false, 3)}) {
    EXPECT_TRUE(none[0].tensor().identical(ints({0})));
    EXPECT_TRUE(none[1].tensor().identical(Tensor::of<int64_t>({0, 1}, {})));
  }
}

TEST(ControlEvaluator, LoopMayGrowWhatItCarries) {
  const auto y =
      run("(%m: i64[], %v: f32[?]) -> %w { %w = Loop %m, _, %v ((%i: i64[], %k: bool[], %a: f32[?]) -> (%k, %b) "
          "{ %b = Concat %a, %a {axis = 0} }) }",
          {Tensor::scalar<int64_t>(3), floats({7})});
  EXPECT_TRUE(y[0].tensor().identical(floats({7, 7, 7, 7, 7, 7, 7, 7})));
}

TEST(ControlEvaluator, LoopCarriesSequences) {
  const auto y = run(
      "(%m: i64[], %v: seq(i64[])) -> %w { %w = Loop %m, _, %v ((%i: i64[], %k: bool[], %a: seq(i64[])) -> (%k, %b) "
      "{ %b = SequenceInsert %a, %i }) }",
      {Tensor::scalar<int64_t>(2), Datum::sequence({}, Type(kI64, Shape()))});
  ASSERT_TRUE(y[0].is_sequence());
  ASSERT_EQ(y[0].elements().size(), 2u);
  EXPECT_TRUE(y[0].elements()[1].tensor().identical(Tensor::scalar<int64_t>(1)));
}

TEST(ControlEvaluator, LoopsMayBeNested) {
  const auto y = run(
      "(%m: i64[], %v: i64[]) -> %w { %w = Loop %m, _, %v ((%i: i64[], %k: bool[], %a: i64[]) -> (%k, %b) "
      "{ %b = Loop %i, _, %a ((%j: i64[], %l: bool[], %c: i64[]) -> (%l, %d) { %e = Add %c, %i %d = Add %e, %j }) }) }",
      {Tensor::scalar<int64_t>(4), Tensor::scalar<int64_t>(0)});
  // Sum over i < 4 and j < i of i + j.
  EXPECT_TRUE(y[0].tensor().identical(Tensor::scalar<int64_t>(1 + 2 + 3 + 3 + 4 + 5)));
}

constexpr std::string_view kScan =
    "(%z: f32[2], %x: f32[?,?]) -> (%s, %y) { %s, %y = Scan %z, %x {num_scan_inputs = 1, scan_input_axes = [AXIS], "
    "scan_output_axes = [AXIS], "
    "scan_input_directions = [IN], scan_output_directions = [OUT]} ((%a: f32[2], %b: f32[2]) -> (%c, %c) { %c = Add "
    "%a, %b }) }";

std::vector<Datum> scanned(std::string axis, std::string in, std::string out, const Tensor& x) {
  std::string text(kScan);
  for (const auto& [word, by] : {std::pair<std::string, std::string>{"AXIS", axis}, {"IN", in}, {"OUT", out}}) {
    for (size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), by);
  }
  return run(text, {floats({0, 0}), x});
}

TEST(ControlEvaluator, ScanOfRunningSums) {
  const Tensor x = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  auto y = scanned("0", "0", "0", x);
  EXPECT_TRUE(y[0].tensor().identical(floats({9, 12})));
  EXPECT_TRUE(y[1].tensor().identical(Tensor::of<float>({3, 2}, {1, 2, 4, 6, 9, 12})));
  y = scanned("0", "1", "0", x);
  EXPECT_TRUE(y[1].tensor().identical(Tensor::of<float>({3, 2}, {5, 6, 8, 10, 9, 12})));
  y = scanned("0", "0", "1", x);
  EXPECT_TRUE(y[1].tensor().identical(Tensor::of<float>({3, 2}, {9, 12, 4, 6, 1, 2})));
  y = scanned("-1", "0", "0", Tensor::of<float>({2, 3}, {1, 3, 5, 2, 4, 6}));
  EXPECT_TRUE(y[1].tensor().identical(Tensor::of<float>({2, 3}, {1, 4, 9, 2, 6, 12})));
  y = scanned("0", "0", "0", Tensor::of<float>({0, 2}, {}));
  EXPECT_TRUE(y[0].tensor().identical(floats({0, 0})));
  EXPECT_EQ(y[1].tensor().dims(), (Dims{0, 2}));
}

// The shape rule is evaluated with the extents of the run.
TEST(ControlEvaluator, ScanInputsHaveAsManySlices) {
  const auto sums = [](const Tensor& x, const Tensor& y) {
    return run(
        "(%x: f32[N], %w: f32[M]) -> %y { %y = Scan %x, %w {num_scan_inputs = 2} "
        "((%a: f32[], %b: f32[]) -> %c { %c = Add %a, %b }) }",
        {x, y});
  };
  EXPECT_TRUE(sums(floats({1, 2}), floats({3, 4}))[0].tensor().identical(floats({4, 6})));
  EXPECT_THAT(refusal(sums(floats({1, 2}), floats({3, 4, 5}))),
              HasSubstr("scan input 1 of Scan (%y) has 3 slices, those before it 2"));
  EXPECT_THAT(refusal(sums(floats({1, 2, 3}), floats({3, 4}))),
              HasSubstr("scan input 1 of Scan (%y) has 2 slices, those before it 3"));
}

}  // namespace
}  // namespace tenon
