// Crops that move into the snippets that read them: graphs in text form before and after, and the resulting bodies.
#include <tenon/snippet/tokenize/take_crops.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/ir/infer.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/snippet/body/body_elements.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/statistics.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>

namespace tenon::snippet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A graph after tokenisation and take_crops().
struct Taken {
  explicit Taken(std::string_view text, bool accept = true) {
    auto parsed = parse_graph(str("graph @g", text));
    EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
    graph = *std::move(parsed);
    EXPECT_TRUE(tokenize_snippets(*graph).ok());
    crops = take_crops(*graph, [&](const Op& op) { return accept && make_body(op).ok(); });
    const auto verified = verify(*graph);
    EXPECT_TRUE(verified.ok()) << verified.error().to_string();
    for (const Op& op : graph->body()) {
      outside += op.is("Constant") ? "" : op.name().str() + " ";
      if (isa<Subgraph>(op)) snippet = &op;
    }
  }
  Body body() const { return *make_body(*snippet); }

  std::unique_ptr<Graph> graph;
  size_t crops = 0;
  std::string outside;  // operators of the graph
  const Op* snippet = nullptr;
};

std::string numbers(std::string_view name, std::string_view list, size_t count) {
  return str(" %", name, " = Constant {value = dense<i64[", count, "]: ", list, ">}\n");
}

std::string slice_of(std::string_view shape, std::string_view begin, std::string_view end, std::string_view axes,
                     size_t count) {
  return str("(%x: f32[", shape, "]) -> %y {\n", numbers("b", begin, count), numbers("e", end, count),
             numbers("a", axes, count), " %s = Slice %x, %b, %e, %a\n %y = Relu %s }");
}

TEST(TakeCrops, BothHalvesOfRows) {
  const Taken glu(
      "(%x: f32[N,80]) -> %y {\n %h, %g = Split %x {axis = -1, num_outputs = 2}\n %s = Sigmoid %g\n %y = Mul %h, %s }");
  EXPECT_EQ(glu.crops, 2u);
  EXPECT_EQ(glu.outside, "snippet.Subgraph ");
  EXPECT_EQ(glu.snippet->operand_count(), 1u) << "the tensor is one operand";
  const Body body = glu.body();
  EXPECT_THAT(body.to_string(), HasSubstr("(d0 = N, d1 = 40)"));
  ASSERT_EQ(body.inputs.size(), 2u);
  EXPECT_THAT(body.inputs[0].cuts, ElementsAre(PortCut{1, 40, 40, 80}));
  EXPECT_THAT(body.inputs[1].cuts, ElementsAre(PortCut{1, 0, 40, 80}));
  EXPECT_THAT(body_operands(*glu.snippet), ElementsAre(0, 0));
  const PortLayout right = layout_of(body.inputs[0], 3, {7, 40});
  EXPECT_THAT(right.strides, ElementsAre(320, 4));
  EXPECT_EQ(right.begin_bytes, 160);
  EXPECT_EQ(right.bytes, 7 * 40 * 4);
}

// Channels 3 to 7 of 12, and rows 1 to 4 of each image: dims on either side of a gap are not merged.
TEST(TakeCrops, SeveralDims) {
  const Taken taken(slice_of("N,12,6,31", "3, 1", "8, 5", "1, 2", 2));
  EXPECT_EQ(taken.crops, 1u);
  const Body body = taken.body();
  EXPECT_THAT(body.to_string(), HasSubstr("(d0 = N, d1 = 5, d2 = 124)"));
  EXPECT_THAT(body.inputs[0].cuts, ElementsAre(PortCut{2, 1, 4, 6}, PortCut{1, 3, 5, 12}));
  const PortLayout layout = layout_of(body.inputs[0], 7, {2, 5, 124});
  EXPECT_THAT(layout.strides, ElementsAre(12 * 6 * 31 * 4, 6 * 31 * 4, 4));
  EXPECT_EQ(layout.begin_bytes, (3 * 6 * 31 + 1 * 31) * 4);
}

TEST(TakeCrops, OneIndexOfADim) {
  const Taken taken(slice_of("N,5,20", "2", "3", "1", 1));
  EXPECT_EQ(taken.crops, 1u);
  EXPECT_THAT(taken.body().inputs[0].cuts, ElementsAre(PortCut{1, 2, 1, 5}));
}

TEST(TakeCrops, AllThatReadItAreSnippets) {
  const std::string begin = "(%x: f32[N,80]) -> (%y, %z) {\n" + numbers("b", "0", 1) + numbers("e", "40", 1) +
                            numbers("a", "1", 1) + " %s = Slice %x, %b, %e, %a\n";
  const Taken two(begin + " %y = Relu %s\n %t = Exp %s\n %z = ReduceSum %t {keepdims = 0} }");
  EXPECT_EQ(two.outside.find("Slice"), std::string::npos) << two.outside;
  const Taken other(begin + " %y = Relu %s\n %z = CumSum %s, %a }");
  EXPECT_EQ(other.crops, 0u);
  EXPECT_THAT(other.outside, HasSubstr("Slice "));
  const Taken output(begin + " %y = Relu %s\n %z = Transpose %s }");
  EXPECT_EQ(output.crops, 0u);
}

TEST(TakeCrops, WhatIsLeftAsItIs) {
  EXPECT_EQ(Taken(slice_of("1,12,50", "3", "8", "1", 1)).crops, 0u) << "a place in the tensor's memory";
  EXPECT_EQ(Taken(slice_of("N,50", "0", "15", "1", 1)).crops, 0u) << "60 bytes";
  EXPECT_EQ(Taken(slice_of("N,50", "0", "16", "1", 1)).crops, 1u) << "64 bytes";
  EXPECT_EQ(Taken(slice_of("N,C", "0", "16", "1", 1)).crops, 0u) << "how far apart rows are is not known";
  EXPECT_EQ(Taken(slice_of("N,50", "0", "50", "1", 1)).crops, 0u) << "all of it";
  EXPECT_EQ(Taken(slice_of("N,50", "0", "16", "1", 1), /*accept=*/false).crops, 0u);
  const std::string steps = "(%x: f32[N,50]) -> %y {\n" + numbers("b", "0", 1) + numbers("e", "50", 1) +
                            numbers("a", "1", 1) + numbers("s", "2", 1) +
                            " %s_ = Slice %x, %b, %e, %a, %s\n %y = Relu %s_ }";
  EXPECT_EQ(Taken(steps).crops, 0u) << "elements do not lie side by side";
}

// If one of two users refuses, both are unchanged.
TEST(TakeCrops, AllUsersOrNone) {
  auto graph = *parse_graph(
      "graph @g(%x: f32[N,80], %w: f32[80]) -> (%y, %z) {\n %h, %g = Split %x {axis = -1, "
      "num_outputs = 2}\n %y = Relu %h\n %t = Tanh %h\n %z = Transpose %t }");
  TokenizeOptions options;
  options.max_operators = 1;
  ASSERT_TRUE(tokenize_snippets(*graph, options).ok());
  const std::string before = print(*graph);
  int asked = 0;
  EXPECT_EQ(take_crops(*graph, [&](const Op&) { return ++asked == 1; }), 0u);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(print(*graph), before);
}

double milliseconds_to_take(int parts) {
  std::string text = str("graph @g(%x: f32[", parts, ",16]) -> %y {\n ");
  for (int i = 0; i < parts; ++i) text += str(i == 0 ? "" : ", ", "%p", i);
  text += str(" = Split %x {axis = 0, num_outputs = ", parts, "}\n");
  for (int i = 0; i < parts; ++i) text += str(" %e", i, " = Exp %p", i, "\n");
  text += " %y = Concat ";
  for (int i = 0; i < parts; ++i) text += str(i == 0 ? "" : ", ", "%e", i);
  auto graph = *parse_graph(text + " {axis = 0} }");
  EXPECT_TRUE(tokenize_snippets(*graph).ok());
  const std::clock_t begin = std::clock();  // processor time, since other processes may use the machine
  take_crops(*graph, [](const Op&) { return false; });
  return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(TakeCrops, TimeGrowsAboutAsTheSplitDoes) {
  const double small = milliseconds_to_take(20), large = milliseconds_to_take(400);
  std::printf("20 parts: %.2f ms, 400 parts: %.2f ms\n", small, large);
  EXPECT_LT(large, 1500 * std::max(small, 0.1));  // 20 times as many parts; cubic growth would be 8,000
}

TEST(TakeCrops, BytesAreThoseOfTheParts) {
  const Taken glu("(%x: f32[N,80]) -> %y {\n" + numbers("l", "30, 50", 2) +
                  " %h, %g = Split %x, %l {axis = -1}\n %y = Relu %h }");
  const SubgraphStatistics statistics = statistics_of(*glu.snippet);
  const Expr row = 30 * 4 * Expr::symbol("N");
  EXPECT_EQ(statistics.bytes_fused, 2 * row);
  EXPECT_EQ(statistics.bytes_unfused, 4 * row) << "the copy and the operator, each reads and writes";
}

}  // namespace
}  // namespace tenon::snippet
