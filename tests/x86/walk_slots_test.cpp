// Values in blocked layouts on this target. Snippets process all slots, including padding, which never affects results.
#include <tenon/passes/walk_slots.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/irgen/from_graph.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/passes/assign_layouts.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>

#include "x86/backend.hpp"
#include "x86/compiler.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86 {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

size_t count(const Graph& graph, std::string_view name) {
  size_t n = 0;
  for (const Op& op : graph.body()) n += op.name().view() == name;
  return n;
}

class X86WalkSlots : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }

  static std::unique_ptr<Graph> parsed(std::string_view text) {
    auto graph = parse_graph(text);
    EXPECT_TRUE(graph.ok()) << graph.error().to_string();
    return *std::move(graph);
  }
  // Gives every value with the shape of the first input the layout `layout`.
  static std::unique_ptr<Graph> laid_out(const Graph& plain, std::string_view layout) {
    auto graph = plain.clone();
    const Shape& shape = graph->body().input(0)->type().shape();
    for (Op& op : graph->body()) {
      if (op.result()->type().shape() != shape) continue;
      EXPECT_TRUE(set_layout(*op.result(), layout).ok());
    }
    const auto assigned = assign_layouts(*graph, {});
    EXPECT_TRUE(assigned.ok()) << assigned.error().to_string();
    return graph;
  }
  static void select(Graph& graph) {
    auto backend = create_backend(testing::target_of(GetParam()));
    PassManager passes;
    ASSERT_TRUE((*backend)->add_tensor_sel(passes).ok());
    const auto ran = passes.run(graph);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    const auto verified = verify(graph);
    ASSERT_TRUE(verified.ok()) << verified.error().to_string() << "\n" << print(graph);
  }
  static std::vector<Datum> inputs_of(const Graph& graph) {
    std::mt19937 random(5);
    std::vector<Datum> inputs;
    for (size_t i = 0; i < graph.body().input_count(); ++i) {
      const Type& type = graph.body().input(i)->type();
      inputs.emplace_back(tenon::testing::random_tensor(random, type.element(), *type.shape().static_dims(), 0, 1));
    }
    return inputs;
  }
  static std::vector<Datum> run(const Graph& graph) {
    auto compiler = std::make_shared<Compiler>(testing::target_of(GetParam()), **jitter_table(),
                                               CompilerOptions{.contract = false});
    const irgen::SnippetKernels kernels("x86", compiler);
    const auto runner = irgen::GraphRunner::prepare(graph, kernels);
    EXPECT_TRUE(runner.ok()) << runner.error().to_string() << "\n" << print(graph);
    if (!runner.ok()) return {};
    auto made = (*runner)->run(inputs_of(graph));
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return made.ok() ? *std::move(made) : std::vector<Datum>();
  }
  // In `layout`, with arbitrary padding, the result has the same bits as without it. At least `walked` operators
  // iterate over slots.
  static void expect_same(std::string_view text, std::string_view layout, size_t walked) {
    SCOPED_TRACE(text);
    const auto plain = parsed(text);
    auto wanted_graph = plain->clone();
    select(*wanted_graph);
    const std::vector<Datum> wanted = run(*wanted_graph);
    for (const PoisonPadding poison : {PoisonPadding::none, PoisonPadding::ones, PoisonPadding::nan}) {
      auto graph = laid_out(*plain, layout);
      const auto report = walk_slots(*graph, {.poison = poison});
      ASSERT_TRUE(report.ok()) << report.error().to_string() << "\n" << print(*graph);
      EXPECT_GE(report->operators, walked) << print(*graph);
      select(*graph);
      const std::vector<Datum> got = run(*graph);
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i].tensor().identical(wanted[i].tensor()))
            << "output " << i << ", poison " << static_cast<int>(poison) << "\n"
            << print(*graph);
      }
    }
  }
};

TEST_P(X86WalkSlots, PlanarBroadcastsOfEveryKind) {
  for (const char* other : {"[1,42,1,1]", "[1,42,17,1]", "[1,42,1,31]", "[42,1,1]", "[42,17,31]", "[1,1,17,31]", "[31]",
                            "[1]", "[]", "[1,1,1,1]", "[1,42,17,31]"}) {
    expect_same(str("graph @g(%x: f32[1,42,17,31], %b: f32", other,
                    ") -> %z { %s = Mul %x, %b\n %y = Add %s, %b\n %z = Sigmoid %y }"),
                "NCHW{16c}", 3);
  }
}

TEST_P(X86WalkSlots, EveryKindOfElementwiseSnippet) {
  constexpr std::string_view kTexts[] = {
      // Arithmetic whose results in padding are infinite or NaN.
      "graph @g(%x: f32[2,42,5,7], %b: f32[42,1,1]) -> %z { %d = Div %x, %b\n %y = Sqrt %d\n %z = Exp %y }",
      // Several results, and a value that is read twice.
      "graph @g(%x: f32[2,42,5,7], %b: f32[42,1,1]) -> (%z, %w) { %y = Add %x, %b\n %z = Tanh %y\n %w = Mul %y, %z }",
      // Comparison, selection, booleans.
      "graph @g(%x: f32[2,42,5,7], %b: f32[42,1,1]) -> %z { %c = Greater %x, %b\n %n = Not %c\n %y = Where %n, %x, %b\n"
      " %z = Relu %y }",
      // Integers, where padding divides by 0.
      "graph @g(%x: i32[2,42,5,7], %b: i32[42,1,1]) -> %z { %a = Add %b, %b\n %y = Div %x, %a\n %z = Mod %y, %a }",
      // Casts: the result has the blocks of its operand, with other elements.
      "graph @g(%x: f32[2,42,5,7], %b: f32[42,1,1]) -> %z { %y = Mul %x, %b\n %i = Cast %y {to = type<i8[]>}\n"
      " %z = Cast %i {to = type<f32[]>} }",
      // Half floats.
      "graph @g(%x: f16[2,42,5,7], %b: f16[42,1,1]) -> %z { %y = Mul %x, %b\n %z = Gelu %y }",
  };
  constexpr size_t kWalked[] = {3, 3, 4, 2, 3, 2};
  for (size_t i = 0; i < std::size(kTexts); ++i) expect_same(kTexts[i], "NCHW{16c}", kWalked[i]);
}

TEST_P(X86WalkSlots, OtherBlocks) {
  constexpr std::string_view kText =
      "graph @g(%x: f32[3,42,5,7], %b: f32[42,1,1]) -> %z { %y = Mul %x, %b\n %z = Tanh %y }";
  for (const char* layout : {"NHWC", "NCHW{8c}", "NCHW{4h16c}", "NCHW{2n4c}", "CHWN{5w}"})
    expect_same(kText, layout, 2);
}

// One kernel; the only reorder converts the output to its layout.
TEST_P(X86WalkSlots, OneSnippet) {
  const auto plain = parsed(
      "graph @g(%x: f32[1,42,17,31], %b: f32[42,1,1]) -> %z { %s = Mul %x, %b\n %y = Add %s, %b\n %z = Sigmoid %y }");
  auto graph = laid_out(*plain, "NCHW{16c}");
  select(*graph);
  EXPECT_EQ(count(*graph, snippet::Subgraph::kName), 1u) << print(*graph);
  EXPECT_EQ(count(*graph, "layout.Reorder"), 1u) << print(*graph);
  EXPECT_THAT(print(*graph), HasSubstr("f32[1,3,17,31,16]"));
}

// A sum over channels must not include padding, so it uses logical indices.
TEST_P(X86WalkSlots, ReductionsAreRefusedWithAReason) {
  expect_same("graph @g(%x: f32[1,42,17,31]) -> %r { %y = Exp %x\n %z = Tanh %y\n %r = ReduceSum %z {keepdims = 1} }",
              "NCHW{16c}", 2);
  // Also if the graph states the layout of the operand.
  auto graph = parsed(
      "graph @g(%x: f32[1,42,17,31]) -> %r { %y = Exp %x : f32[1,42,17,31] in \"NCHW{16c}\" pad dirty\n"
      " %r = ReduceSum %y {keepdims = 1} }");
  auto plain = graph->clone();
  for (Op& op : plain->body()) op.result()->set_layout(nullptr);
  const auto report = walk_slots(*graph, {.poison = PoisonPadding::nan});
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_EQ(report->operators, 1u);
  EXPECT_THAT(report->refused, Contains(HasSubstr("ReduceSum")));
  EXPECT_THAT(report->refused, Contains(HasSubstr("not element by element")));
  select(*plain);
  select(*graph);
  // A snippet of both operators adds the terms in another order than the reference. NaN would fail the comparison.
  const double wanted = run(*plain)[0].tensor().double_at(0);
  EXPECT_NEAR(run(*graph)[0].tensor().double_at(0), wanted, 1e-5 * wanted) << print(*graph);
}

INSTANTIATE_TEST_SUITE_P(Isa, X86WalkSlots, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
