// From a graph to a kernel on emulated lanes: tokenisation, canonical form, lowering and allocation.
#include <gtest/gtest.h>

#include <snippet/bodies.hpp>
#include <snippet/random_typed_dag.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>

namespace tenon::snippet {
namespace {

// Known extents, and arbitrary values for the others.
Dims extents_of(const Body& body, std::mt19937& random) {
  const std::vector<int64_t> widths = test::widths_of(4);
  Dims extents;
  for (const BodyDim& dim : body.dims) {
    const auto drawn = testing::pick(random, 0, static_cast<int64_t>(widths.size()) - 1);
    extents.push_back(dim.sources.empty() ? dim.factor / dim.divisor : widths[static_cast<size_t>(drawn)]);
  }
  return extents;
}

// Checks the kernels of all snippets of the graph, without register allocation or with eight registers.
void check_graph(Graph& graph, std::mt19937& random) {
  const auto made = tokenize_snippets(graph);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  for_each_op(graph.body(), [&](Op& op) {
    if (!isa<Subgraph>(op) || ::testing::Test::HasFailure()) return;
    const auto body = make_body(op);
    ASSERT_TRUE(body.ok()) << body.error().to_string();
    test::HarnessOptions options{.tolerance = 1e-5};
    if (testing::pick(random, 0, 1)) options.machine = test::test_machine(8, testing::pick(random, 0, 1), true);
    options.parts = testing::pick(random, 1, 3);
    test::check_body(*body, extents_of(*body, random), random, options);
    if (::testing::Test::HasFailure()) ADD_FAILURE() << print(op) << body->to_string();
  });
}

TEST(Walk, RandomGraphsGiveWhatTheirBodiesSay) {
  const char* asked = std::getenv("TENON_SNIPPET_SEEDS");
  const auto seeds = static_cast<uint32_t>(asked ? std::atoi(asked) : 150);
  for (uint32_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    std::mt19937 random(seed);
    const auto graph = test::RandomTypedDag(seed).build(seed % 40 + 3);
    check_graph(*graph, random);
  }
}

TEST(Walk, SoftmaxesNormalisationsAndQuantisation) {
  std::mt19937 random(5);
  for (const char* text :
       {"(%x: f32[N,5,W]) -> %y { %y = Softmax %x }", "(%x: f32[N,5,W]) -> %y { %y = Softmax %x {axis = 1} }",
        "(%x: f32[N,5,W]) -> %y { %y = LogSoftmax %x {axis = 0} }",
        "(%x: f16[N,W], %s: f16[W], %b: f16[W]) -> %y { %y = LayerNormalization %x, %s, %b }",
        "(%x: f32[N,C,H,W], %s: f32[C,1,1]) -> %y { %y = RMSNormalization %x, %s {axis = 2} }",
        "(%x: f32[N,8,W], %s: f32[8], %b: f32[8]) -> (%y, %z) {\n %y = GroupNormalization %x, %s, %b {num_groups = 2}\n"
        " %z = Relu %y }",
        "(%x: f32[N,3,W], %s: f32[3], %b: f32[3]) -> %y { %y = InstanceNormalization %x, %s, %b }",
        "(%x: f32[N,3,W], %s: f32[3]) -> %y { %y = BatchNormalization %x, %s, %s, %s, %s }",
        "(%x: f32[N,3,W], %s: f32[3], %z: u8[3]) -> %y {\n %q = QuantizeLinear %x, %s, %z\n"
        " %y = DequantizeLinear %q, %s, %z }",
        "(%x: i8[N,W]) -> %y {\n %a = Constant {value = dense<i64[1]: 0>}\n %y = ReduceMean %x, %a }",
        "(%x: f32[N,W]) -> %y {\n %a = Constant {value = dense<i64[1]: 1>}\n %y = ReduceLogSumExp %x, %a {keepdims = "
        "0} }"}) {
    for (int again = 0; again < 6 && !::testing::Test::HasFailure(); ++again) {
      auto graph = parse_graph(str("graph @g", text));
      ASSERT_TRUE(graph.ok()) << graph.error().to_string();
      check_graph(**graph, random);
    }
  }
}

}  // namespace
}  // namespace tenon::snippet
