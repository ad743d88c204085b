// Operators that expand_all() decomposes into others, compared with their evaluators.
#include <tenon/snippet/tokenize/expand.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/snippet/canonical/decompose.hpp>
#include <tenon/tensor/compare.hpp>

namespace tenon::snippet {
namespace {

std::unique_ptr<Graph> graph_of(std::string_view op, ElementType element, std::string_view attributes) {
  auto graph =
      parse_graph(str("graph @g(%x: ", element, "[N,7,3]) -> %y { %y = ", op, " %x \"place\" {", attributes, "} }"));
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return *std::move(graph);
}

std::vector<Datum> run(const Graph& graph, const Datum& x) {
  const auto interpreter = Interpreter::prepare(graph);
  EXPECT_TRUE(interpreter.ok()) << interpreter.error().to_string();
  const auto made = (*interpreter)->run(std::vector<Datum>{x});
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *made;
}

TEST(Expand, FindsTheFirstOrLastOfEqualOnesAndNaN) {
  std::mt19937 random(21);
  for (const std::string_view op : {"ArgMax", "ArgMin", "Hardmax"}) {
    for (const ElementType element : {kF32, kF16, kI32, kU8, kI64}) {
      if (op == "Hardmax" && !element.is_float()) continue;
      for (const std::string_view more : {"", ", keepdims = 0", ", select_last_index = 1"}) {
        if (op == "Hardmax" && !more.empty()) continue;
        for (const int axis : {1, 2, -1}) {
          const auto graph = graph_of(op, element, str("axis = ", axis, more));
          auto expanded = graph->clone();
          const auto count = expand_all(*expanded, [](const Op&) { return true; });
          ASSERT_TRUE(count.ok()) << count.error().to_string();
          EXPECT_EQ(*count, 1u);
          for (const Op& inner : expanded->body())
            EXPECT_TRUE(inner.is("Constant") || find_decomposition(inner.name())) << inner.describe();
          Tensor x = tenon::testing::random_tensor(random, element, {4, 7, 3}, 0, 3);
          for (int64_t i = 0; i < x.size(); ++i) {
            if (!element.is_float()) continue;
            x.set_double(i, std::round(x.double_at(i)));
            if (tenon::testing::pick(random, 0, 20) == 0) x.set_double(i, NAN);
          }
          const auto wanted = run(*graph, Datum(x)), got = run(*expanded, Datum(x));
          const Comparison same = compare(got[0], wanted[0], {.rtol = 0, .atol = 0});
          EXPECT_TRUE(same.equal) << str(op, " of ", element, " axis ", axis, more, ": ") << same.difference;
        }
      }
    }
  }
}

TEST(Expand, NormalisesOverWindowsOfChannels) {
  std::mt19937 random(5);
  for (const ElementType element : {kF32, kF16, kBF16, kF64}) {
    for (const int size : {1, 2, 3, 5, 6, 30}) {
      for (const std::string_view more : {"", ", alpha = 0.5, beta = 1.25, bias = 2.0"}) {
        const auto graph = graph_of("LRN", element, str("size = ", size, more));
        auto expanded = graph->clone();
        const auto count = expand_all(*expanded, [](const Op&) { return true; });
        ASSERT_TRUE(count.ok()) << count.error().to_string();
        EXPECT_EQ(*count, 1u);
        for (const Op& inner : expanded->body()) EXPECT_FALSE(inner.is("LRN"));
        const Tensor x = tenon::testing::random_tensor(random, element, {4, 7, 3}, -9, 9);
        const auto wanted = run(*graph, Datum(x)), got = run(*expanded, Datum(x));
        // Rounded once where the type is narrow; otherwise by each of a dozen operators: squares, sum, product, sum,
        // power and quotient, where the power raises the preceding value to beta.
        const double units = element.bits() == 16 ? 1 : 40;
        const double unit = element == kF64 ? 0x1p-52 : element == kF32 ? 0x1p-23 : element == kF16 ? 0x1p-10 : 0x1p-7;
        const Comparison same = compare(got[0], wanted[0], {.rtol = units * unit, .atol = 0});
        EXPECT_TRUE(same.equal) << str("LRN of ", element, " size ", size, more, ": ") << same.difference;
      }
    }
  }
}

TEST(Expand, RefusesWindowsOfManyChannels) {
  auto graph = parse_graph("graph @g(%x: f32[1,100,3]) -> %y { %y = LRN %x {size = 150} }");
  ASSERT_TRUE(graph.ok());
  const auto made = expanded_alone(*(*graph)->body().begin());
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message(), ::testing::HasSubstr("sums 150 channels"));
}

TEST(Expand, RefusesAnAxisOfUnknownExtent) {
  const auto graph = graph_of("ArgMax", kF32, "axis = 0");
  const auto made = expanded_alone(*graph->body().begin());
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message(), ::testing::HasSubstr("axis of extent N"));
}

}  // namespace
}  // namespace tenon::snippet
