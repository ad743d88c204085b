#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include <support_lib/test_ops.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;

class VerifyTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::register_test_ops(); }

  static std::unique_ptr<Graph> parsed(std::string_view text) {
    auto graph = parse_graph(text);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
    return graph.ok() ? *std::move(graph) : nullptr;
  }
  static std::string verdict(const Graph& graph, const VerifyOptions& options = {}) {
    auto verified = verify(graph, options);
    return verified.ok() ? "good" : verified.error().to_string();
  }
  // The verdict on one line in a graph with inputs of several types.
  static std::string verdict_of(std::string_view line, const VerifyOptions& options = {}) {
    const auto graph =
        parsed(str("graph @g(%x: f32[2], %i: i64[2], %flag: bool[], %list: seq(f32[?])) -> () {\n", line, "\n}"));
    return graph ? verdict(*graph, options) : "unparsed";
  }
};

TEST_F(VerifyTest, GoodGraphsPass) {
  EXPECT_EQ(verdict_of("%y = test.Add %x, %x : f32[2]"), "good");
  EXPECT_EQ(verdict_of("%y = test.Add %x, %x : f32[?]"), "good");
  EXPECT_EQ(verdict_of("%y = test.Clip %x, _, %x : f32[*]"), "good");
  EXPECT_EQ(verdict_of("%a, %b = test.Split %x : f32[1], f32[1]"), "good");
  EXPECT_EQ(verdict_of("%y = test.Repeat %x {times = 2, mode = \"mirror\"} : f32[2]"), "good");
  EXPECT_EQ(verdict_of("%y, %l = test.If %flag (() -> (%x, %list) {}, () -> (%x, %list) {}) : f32[2], seq(f32[?])"),
            "good");
  EXPECT_EQ(verdict_of("test.Log %x"), "good");
}

// Everything after the verifier counts in 64 bits.
TEST_F(VerifyTest, SizesBeyond64Bits) {
  const auto verdict_of_input = [](std::string_view type) {
    const auto graph = parsed(str("graph @g(%x: ", type, ") -> %x {}"));
    return graph ? verdict(*graph) : "unparsed";
  };
  EXPECT_EQ(verdict_of_input("f32[2147483648,1073741823]"), "good");
  EXPECT_EQ(verdict_of_input("f32[N,2305843009213693951]"), "good") << "a run tells";
  EXPECT_THAT(verdict_of_input("f32[4294967296,4294967296]"), HasSubstr("more than 2^63 - 1 elements"));
  EXPECT_THAT(verdict_of_input("f32[0,4294967296,4294967296]"), HasSubstr("value 'x'"));
  EXPECT_THAT(verdict_of_input("f32[9223372036854775807]"), HasSubstr("more than 2^63 - 1 bytes"));
}

TEST_F(VerifyTest, UnknownOperators) {
  EXPECT_THAT(verdict_of("test.Lug %x"), HasSubstr("no operator 'test.Lug' is defined; did you mean 'test.Log'?"));
  EXPECT_EQ(verdict_of("test.Lug %x", {.allow_unknown_ops = true}), "good");
}

TEST_F(VerifyTest, CountsAndAbsence) {
  EXPECT_THAT(verdict_of("%y = test.Neg %x, %x \"n1\" : f32[2]"),
              HasSubstr("test.Neg 'n1' (%y): it has 2 operands, its definition wants 1\n  in graph \"g\""));
  EXPECT_THAT(verdict_of("%y = test.Clip %x, %x, %x, %x : f32[2]"),
              HasSubstr("4 operands, its definition wants 1 to 3"));
  EXPECT_THAT(verdict_of("%y = test.Sum : f32[2]"), HasSubstr("0 operands, its definition wants 1 or more"));
  EXPECT_THAT(verdict_of("%y = test.Add %x, _ : f32[2]"), HasSubstr("operand 1 ('b') is absent"));
  EXPECT_THAT(verdict_of("%y = test.Sum %x, _ : f32[2]"), HasSubstr("operand 1 ('terms') is absent"));
  EXPECT_THAT(verdict_of("%y, %z = test.Neg %x : f32[2], f32[2]"), HasSubstr("2 results, its definition wants 1"));
  EXPECT_THAT(verdict_of("%y = test.If %flag (() -> %x {}) : f32[2]"), HasSubstr("1 regions, its definition wants 2"));
  EXPECT_THAT(verdict_of("test.Log %x (() -> () {})"), HasSubstr("1 regions, its definition wants 0"));
}

TEST_F(VerifyTest, Attributes) {
  EXPECT_THAT(verdict_of("%y = test.Repeat %x : f32[2]"), HasSubstr("attribute 'times' is missing"));
  EXPECT_THAT(verdict_of("%y = test.Repeat %x {tines = 1} : f32[2]"),
              HasSubstr("no attribute 'tines'; did you mean 'times'?"));
  EXPECT_THAT(verdict_of("%y = test.Repeat %x {times = 1.0} : f32[2]"), HasSubstr("'times' is of kind"));
  EXPECT_THAT(verdict_of("%y = test.Repeat %x {times = 1, mode = \"fold\"} : f32[2]"),
              HasSubstr("'mode' is \"fold\", allowed are [wrap, mirror]"));
  EXPECT_THAT(verdict_of("%y = test.Repeat %x {times = 9} : f32[2]"), HasSubstr("nine times"));
}

TEST_F(VerifyTest, TypeVariables) {
  EXPECT_THAT(verdict_of("%y = test.Add %x, %i : f32[2]"),
              HasSubstr("'b' has type i64[2] and 'a' has type f32[2]; both must be the same T"));
  EXPECT_THAT(verdict_of("%y = test.Neg %flag : bool[]"),
              HasSubstr("'x' has type bool[], allowed are float and integer"));
  EXPECT_THAT(verdict_of("%y = test.Neg %list : seq(f32[?])"), HasSubstr("'x' has type seq(f32[?])"));
  EXPECT_THAT(verdict_of("%y = test.Neg %x : i64[2]"), HasSubstr("'y' has type i64[2] and 'x' has type f32[2]"));
  EXPECT_THAT(verdict_of("%y = test.If %x (() -> %x {}, () -> %x {}) : f32[2]"),
              HasSubstr("'condition' has type f32[2], its definition wants bool"));
}

TEST_F(VerifyTest, TypesMustBeKnownAndAgreeWithTheRule) {
  EXPECT_THAT(verdict_of("%y = test.Neg %x : ?"), HasSubstr("the type of result 0 is not known"));
  EXPECT_THAT(verdict_of("%y = test.Neg %x : ?[2]"), HasSubstr("the type of result 0 is not known"));
  EXPECT_EQ(verdict_of("%y = test.Neg %x : ?", {.require_types = false}), "good");
  EXPECT_THAT(verdict_of("%y = test.Neg %x : f32[3]"),
              HasSubstr("result 0 is declared f32[3], its shape rule gives f32[2]"));
  EXPECT_THAT(verdict(*parsed("graph(%x: ?) -> () {}")), HasSubstr("the type of input 0 ('x') is not known"));
  EXPECT_THAT(verdict(*parsed("graph(%x: seq(?)) -> () {}")), HasSubstr("not known"));
}

TEST_F(VerifyTest, FaultsInsideRegionsNameThem) {
  const std::string message =
      verdict_of("%y = test.If %flag \"if1\" (() -> %x {}, () -> %t { %t = test.Neg %x : f32[7] }) : f32[2]");
  EXPECT_THAT(message, HasSubstr("test.Neg (%t): result 0 is declared f32[7]"));
  EXPECT_THAT(message, HasSubstr("in region 1 of test.If 'if1' (%y)"));
}

TEST_F(VerifyTest, ProducersStandBeforeUsers) {
  const auto graph = parsed("graph(%x: f32[2]) -> %z { %y = test.Neg %x \"early\" %z = test.Neg %y }");
  Op& early = *graph->body().first();
  Op& late = *graph->body().last();
  late.move_before(early);
  EXPECT_THAT(verdict(*graph),
              HasSubstr("test.Neg (%z): operand 0 is made by test.Neg 'early' (%y), which stands behind it"));
  ASSERT_TRUE(graph->body().sort_topologically().ok());
  EXPECT_EQ(verdict(*graph), "good");
  early.set_operand(0, early.result());
  EXPECT_THAT(verdict(*graph), HasSubstr("which stands behind it"));
}

TEST_F(VerifyTest, ValuesOfInnerRegionsStayInside) {
  const auto graph = parsed(
      "graph(%c: bool[], %x: f32[2]) -> %r {\n"
      "  %r = test.If %c (() -> %t { %t = test.Neg %x }, () -> %u { %u = test.Neg %x })\n"
      "  %s = test.Neg %r\n"
      "}");
  Op& choice = *graph->body().first();
  Value* inner = choice.region(0).first()->result();
  graph->body().last()->set_operand(0, inner);
  EXPECT_THAT(verdict(*graph), HasSubstr("inside a region that does not hold it"));
  graph->body().last()->set_operand(0, choice.result());
  choice.region(1).first()->set_operand(0, inner);
  EXPECT_THAT(verdict(*graph), HasSubstr("inside a region that does not hold it"));
  choice.region(1).first()->set_operand(0, choice.result());  // its own result, from inside
  EXPECT_THAT(verdict(*graph), HasSubstr("which stands behind it"));
  choice.region(1).first()->set_operand(0, graph->body().input(1));
  graph->body().set_output(0, inner);
  EXPECT_THAT(verdict(*graph), HasSubstr("output 0 ('r') is made by test.Neg (%t) inside a region"));
}

TEST_F(VerifyTest, ValuesOfOtherGraphs) {
  const auto other = parsed("graph(%x: f32[2]) -> () { %y = test.Neg %x }");
  const auto graph = parsed("graph(%x: f32[2]) -> () { %y = test.Neg %x }");
  graph->body().first()->set_operand(0, other->body().first()->result());
  EXPECT_THAT(verdict(*graph), HasSubstr("of another graph"));
  graph->body().first()->set_operand(0, graph->body().input(0));
}

TEST_F(VerifyTest, OutputNames) {
  EXPECT_THAT(verdict(*parsed("graph(%x: f32[2]) -> (a: %x, a: %x) {}")), HasSubstr("two outputs are named 'a'"));
  EXPECT_THAT(verdict(*parsed("graph(%0: f32[2]) -> %0 {}")), HasSubstr("output 0 has no name"));
  EXPECT_THAT(verdict(*parsed("graph() -> (a: _) {}")), HasSubstr("output 0 ('a') has no value"));
  EXPECT_EQ(verdict(*parsed("graph(%x: f32[2]) -> (a: %x, b: %x) {}")), "good");
}

TEST_F(VerifyTest, OneOperatorWithWhatIsInside) {
  const auto graph =
      parsed("graph(%c: bool[], %x: f32[2]) -> () { %r = test.If %c (() -> %x {}, () -> %t { %t = test.Neg %x }) }");
  const Op& choice = *graph->body().first();
  EXPECT_TRUE(verify(choice).ok());
  choice.region(1).first()->result()->set_type(Type(kI64, Shape()));
  EXPECT_THAT(verify(choice).error().to_string(), HasSubstr("in region 1 of test.If (%r)"));
}

TEST_F(VerifyTest, LinearInTheSizeOfTheGraph) {
  const auto seconds_for = [](int ops) {
    Graph graph("long");
    const Type type(kF32, Shape(Dims{64, 64}));
    Value* x = graph.body().add_input("x", type);
    Value* last = x;
    for (int i = 0; i < ops; ++i) last = graph.body().create("test.Add", std::vector<Value*>{last, x}, {type}).result();
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(verdict(graph), "good");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds_for(1000);
  const double small = seconds_for(10000), large = seconds_for(100000);
  RecordProperty("seconds_100000", str(large));
  EXPECT_LT(large, 30 * small + 0.5);  // room for a busy machine; quadratic would be 100 times
}

}  // namespace
}  // namespace tenon
