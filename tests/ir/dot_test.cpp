#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/test_ops.hpp>
#include <tenon/ir/text.hpp>

namespace tenon {
namespace {

class DotTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::register_test_ops(); }
};

TEST_F(DotTest, NodesEdgesAndClusters) {
  auto graph = parse_graph(
      "graph @\"a \\\"graph\\\"\"(%c: bool[], %x: f32[2]) -> (out: %r) {\n"
      "  %r = test.If %c \"pick\" (() -> %x {}, () -> %t { %t = test.Clip %x, _, %x })\n"
      "}");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  EXPECT_EQ(to_dot(**graph),
            "digraph \"a \\\"graph\\\"\" {\n"
            "  node [shape=box];\n"
            "  n0 [label=\"c\", shape=ellipse];\n"
            "  n1 [label=\"x\", shape=ellipse];\n"
            "  n2 [label=\"test.If\\npick\", shape=box];\n"
            "  subgraph cluster_2_0 {\n"
            "    label=\"test.If\\npick\\nregion 0\";\n"
            "    n3 [label=\"x\", shape=ellipse];\n"
            "  }\n"
            "  subgraph cluster_2_1 {\n"
            "    label=\"test.If\\npick\\nregion 1\";\n"
            "    n4 [label=\"test.Clip\", shape=box];\n"
            "    n5 [label=\"t\", shape=ellipse];\n"
            "  }\n"
            "  n6 [label=\"out\", shape=ellipse];\n"
            "  n0 -> n2 [label=\"bool[]\"];\n"
            "  n1 -> n3 [label=\"f32[2]\"];\n"
            "  n1 -> n4 [label=\"f32[2]\"];\n"
            "  n1 -> n4 [label=\"f32[2]\"];\n"
            "  n4 -> n5 [label=\"f32[2]\"];\n"
            "  n2 -> n6 [label=\"f32[2]\"];\n"
            "}\n");
}

TEST_F(DotTest, LabelsOfAnyBytesStayInsideTheirQuotes) {
  Graph graph("g");
  graph.body().create("A", {}, {}).set_label("back\\slash \"quote\"\nline\x01");
  EXPECT_THAT(to_dot(graph), ::testing::HasSubstr(R"(label="A\nback\\slash \"quote\"\nline ", shape)"));
}

}  // namespace
}  // namespace tenon
