#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include <snippet/random_typed_dag.hpp>
#include <support_lib/body_evaluator.hpp>
#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/statistics.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>
#include <tenon/tensor/compare.hpp>

namespace tenon::snippet {
namespace {

using testing::pick;
using testing::random_tensor;

std::vector<Op*> subgraphs_of(Graph& graph) {
  std::vector<Op*> all;
  for_each_op(graph.body(), [&](Op& op) {
    if (isa<Subgraph>(op)) all.push_back(&op);
  });
  return all;
}

// Observes a run: each snippet's body must compute what its region computes.
class BodyCheck : public Interpreter::Observer {
 public:
  explicit BodyCheck(double rtol) : rtol_(rtol) {}
  void before(const Op&) override {}
  void after(const Op& op, std::span<const Datum> results) override {
    for (size_t i = 0; i < results.size(); ++i) values_[op.result(i)] = results[i];
    if (!isa<Subgraph>(op)) return;
    const auto body = make_body(op);
    ASSERT_TRUE(body.ok()) << body.error().to_string() << "\n" << print(op);
    std::vector<Tensor> inputs;
    for (const size_t i : body_operands(op)) inputs.push_back(value(op.operand(i)));
    std::vector<Dims> dims;
    for (const Datum& result : results) dims.push_back(result.tensor().dims());
    auto made = testing::BodyEvaluator(*body, inputs, dims).run();
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    for (size_t i = 0; i < results.size(); ++i) {
      const auto same = compare((*made)[i], results[i].tensor(), {rtol_, rtol_ / 16});
      EXPECT_TRUE(same.equal) << "result " << i << ": " << same.difference << "\n" << print(op) << body->to_string();
    }
  }
  void set(const Value* input, Datum datum) { values_[input] = std::move(datum); }

 private:
  const Tensor& value(const Value* value) {
    if (const Tensor* constant = constant_of(value)) return *constant;
    return values_.at(value).tensor();
  }
  double rtol_;
  std::map<const Value*, Datum> values_;
};

std::vector<Datum> random_inputs(const Graph& graph, std::mt19937& random) {
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.body().input_count(); ++i) {
    const Type& type = graph.body().input(i)->type();
    Dims dims;
    for (const Dim& dim : type.shape().dims()) dims.push_back(dim.is_static() ? dim.value() : 3);
    const bool small = type.element().is_bool();
    inputs.emplace_back(random_tensor(random, type.element(), dims, type.element().is_unsigned_int() || small ? 0 : -20,
                                      small ? 1 : 20));
  }
  return inputs;
}

// Whether the graph runs with symbolic extents of 3. Where these are combined with numbers, only a run shows that.
bool runs(const Graph& graph, std::mt19937 random) {
  auto interpreter = Interpreter::prepare(graph);
  return interpreter.ok() && (*interpreter)->run(random_inputs(graph, random)).ok();
}

// Expects the same bits in all outputs, and that bodies compute what their regions compute.
void expect_same_results(const Graph& before, Graph& after, std::mt19937& random, double rtol) {
  const auto verified = verify(after);
  ASSERT_TRUE(verified.ok()) << verified.error().to_string() << print(after);
  const std::vector<Datum> inputs = random_inputs(before, random);
  auto plain = Interpreter::prepare(before), tokenized = Interpreter::prepare(after);
  ASSERT_TRUE(plain.ok() && tokenized.ok());
  const auto expected = (*plain)->run(inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  BodyCheck check(rtol);
  for (size_t i = 0; i < inputs.size(); ++i) check.set(after.body().input(i), inputs[i]);
  const auto got = (*tokenized)->run(inputs, serial(), &check);
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  for (size_t i = 0; i < expected->size(); ++i) {
    const auto same = compare((*got)[i], (*expected)[i], {0, 0});
    EXPECT_TRUE(same.equal) << "output " << i << ": " << same.difference;
  }
}

// The number of snippets that the graph is tokenised into. Also checks their results.
size_t tokenized(std::string_view text, const TokenizeOptions& options = {}) {
  auto graph = parse_graph("graph @g" + std::string(text));
  EXPECT_TRUE(graph.ok()) << graph.error().to_string() << text;
  if (!graph.ok()) return SIZE_MAX;
  const auto before = (*graph)->clone();
  const auto made = tokenize_snippets(**graph, options);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(*made, subgraphs_of(**graph).size());
  std::mt19937 random(11);
  expect_same_results(*before, **graph, random, 1e-5);
  return *made;
}

std::string inputs_text(const std::vector<std::string>& shapes) {
  std::string text = "(";
  for (size_t i = 0; i < shapes.size(); ++i)
    text += str(i ? ", " : "", "%", static_cast<char>('a' + i), ": f32[", shapes[i], "]");
  return text + ")";
}

// ---- The graphs of the design ----

TEST(Tokenize, AddAndAddPairAreOneSnippet) {
  for (const char* width : {"1", "7", "8", "15", "16", "31", "N", "0"}) {
    for (const std::string& second :
         {str("1,16,29,", width), std::string("1,16,29,1"), std::string("1,16,1,1"), std::string("1,1,1,1")}) {
      EXPECT_EQ(tokenized(inputs_text({str("1,16,29,", width), second}) + " -> %y { %y = Add %a, %b }"), 1u) << second;
    }
  }
  const std::vector<std::string> pairs[] = {{"1,128,9,30", "1,128,1,30"},
                                            {"1,128,9,1", "1,128,1,30"},
                                            {"2,17,3,4", "1,3,4"},
                                            {"2,17,3,4", "1,4"},
                                            {"30", "10,30"},
                                            {"10,N", "N"}};
  for (const auto& pair : pairs) {
    EXPECT_EQ(
        tokenized(inputs_text({pair[0], pair[1]}) + " -> %y { %s = Add %a, %b\n %t = Sub %s, %b\n %y = Add %t, %a }"),
        1u);
  }
}

TEST(Tokenize, ATreeOfNineInputsIsOneSnippet) {
  for (const char* shape : {"1,64,10,10", "1,1,17,37", "1,1,1,1", "1,1,1,7", "1,1,1,30"}) {
    const std::vector<std::string> shapes(9, shape);
    EXPECT_EQ(tokenized(inputs_text(shapes) +
                        " -> %y {\n %0 = Add %a, %b\n %1 = Mul %c, %d\n %2 = Sub %e, %f\n %3 = Max %g, %h\n"
                        " %4 = Add %0, %1\n %5 = Mul %2, %3\n %6 = Sub %4, %5\n %y = Add %6, %i }"),
              1u);
  }
}

TEST(Tokenize, TwoInputsAndTwoOutputsAreOneSnippet) {
  const std::vector<std::string> shapes[] = {
      {"5,5,256,1", "5,5,256,35"}, {"5,5,16,35", "5,5,1,1"}, {"5,5,5,35", "5,5,1,35"}, {"5,5,35,17", "5,5,35,17"}};
  for (const auto& pair : shapes) {
    EXPECT_EQ(tokenized(inputs_text(pair) +
                        " -> (%h, %y) {\n %h = HardSwish %a\n %s = Add %h, %b\n %r = Relu %s\n %y = Sin %r }"),
              1u);
  }
}

TEST(Tokenize, AnOperatorThatIsNotTakenCutsAForkInTwo) {
  TokenizeOptions options;
  options.may_take = [](const Op& op) { return !op.is("Sigmoid"); };
  //   a -> Relu -> r -> Sigmoid -> Add
  //                r ------------> Mul -> Add: Mul may be fused with either side, but not with both
  EXPECT_EQ(
      tokenized("(%a: f32[2,3,4,5]) -> %y {\n %r = Relu %a\n %s = Sigmoid %r\n %m = Mul %r, %r\n %y = Add %s, %m }",
                options),
      2u);
  EXPECT_EQ(
      tokenized("(%a: f32[2,3,4,5]) -> %y {\n %r = Relu %a\n %s = Sigmoid %r\n %m = Mul %r, %r\n %y = Add %s, %m }"),
      1u);
}

TEST(Tokenize, GeluAfterAnAddIsOneSnippet) {
  const std::vector<std::string> shapes[] = {{"1,38,130", "1,38,130"}, {"1,1,130", "1,38,130"}, {"1,38,1", "1,38,130"}};
  for (const auto& pair : shapes) {
    EXPECT_EQ(
        tokenized(inputs_text(pair) +
                  " -> %y {\n %x = Add %a, %b\n %r = Constant {value = dense<f32[]: 1.4142135>}\n %d = Div %x, %r\n"
                  " %e = Erf %d\n %o = Constant {value = dense<f32[1]: 1>}\n %s = Add %e, %o\n %m = Mul %x, %s\n"
                  " %h = Constant {value = dense<f32[]: 0.5>}\n %y = Mul %m, %h }"),
        1u);
  }
}

TEST(Tokenize, FakeQuantisationIsOneSnippet) {
  for (const char* first : {"Abs", "Swish"}) {
    EXPECT_EQ(tokenized(str("(%a: f32[1,3,16,16]) -> %y {\n %x = ", first,
                            " %a\n %s = Constant {value = dense<f32[]: 0.05>}\n"
                            " %z = Constant {value = dense<u8[]: 7>}\n %q = QuantizeLinear %x, %s, %z\n"
                            " %y = DequantizeLinear %q, %s, %z }")),
              1u);
    EXPECT_EQ(tokenized(str("(%a: f32[1,3,16,16], %s: f32[3], %z: i8[3]) -> %y {\n %x = ", first,
                            " %a\n %q = QuantizeLinear %x, %s, %z\n %y = DequantizeLinear %q, %s, %z }")),
              1u);
  }
}

TEST(Tokenize, SoftmaxOverEveryAxisAlsoAfterAnAdd) {
  for (const char* shape : {"1,9", "5,17", "1,3,12,20", "1,3,N,7"}) {
    for (const int axis : {0, 1, -1, -2})
      EXPECT_EQ(tokenized(inputs_text({shape}) + str(" -> %y { %y = Softmax %a {axis = ", axis, "} }")), 1u);
  }
  const std::vector<std::string> shapes[] = {
      {"1,5,16,35", "1,5,16,35"}, {"1,5,16,35", "1,5,1,1"}, {"1,5,16,1", "1,5,16,35"}, {"1,5,1,35", "1,5,16,1"}};
  for (const auto& pair : shapes) {
    for (const int axis : {0, 1, 2, 3})
      EXPECT_EQ(
          tokenized(inputs_text(pair) + str(" -> %y {\n %s = Add %a, %b\n %y = Softmax %s {axis = ", axis, "} }")), 1u);
  }
}

TEST(Tokenize, GroupNormalisationWithWhatIsAround) {
  for (const char* shape : {"3,8", "3,8,21", "1,4,8,8", "1,8,1,22", "1,4,1,1,34", "1,8,1,8,2,2"}) {
    const std::string channels = shape[2] == '8' ? "8" : "4";
    for (const int groups : {2, 4}) {
      EXPECT_EQ(tokenized(inputs_text({shape, channels, channels}) +
                          str(" -> %y {\n %n = GroupNormalization %a, %b, %c {num_groups = ", groups,
                              "}\n %s = Sigmoid %n\n %y = Mul %n, %s }")),
                1u)
          << shape;
    }
  }
}

TEST(Tokenize, ConvolutionsAreLeftWhatFollowsIsOneSnippet) {
  EXPECT_EQ(tokenized("(%a: f32[1,10,16,16], %w: f32[10,10,1,1], %b: f32[1,10,1,1]) -> %y {\n %c = Conv %a, %w\n"
                      " %s = Add %c, %b\n %y = Mul %s, %a }"),
            1u);
}

TEST(Tokenize, OutputsThatBroadcastToOneAreOneSnippetOthersAreNot) {
  EXPECT_EQ(tokenized("(%a: f32[1,42,17,31], %b: f32[1,42,17,1], %c: f32[1,42,1,31]) -> (%x, %y, %z) {\n %y = Relu %b\n"
                      " %z = Neg %c\n %s = Add %a, %y\n %x = Mul %s, %z }"),
            1u);
  // A shared operand does not make the two nests one.
  EXPECT_EQ(tokenized("(%a: f32[4,5], %b: f32[4,6], %s: f32[4,1]) -> (%x, %y) {\n %x = Add %a, %s\n %y = Add %b, %s }"),
            2u);
}

TEST(Tokenize, ReductionsOverOneSetOfAxesShareANest) {
  EXPECT_EQ(tokenized("(%a: f32[4,6,N]) -> %y {\n %axes = Constant {value = dense<i64[2]: 0, 2>}\n"
                      " %m = ReduceMean %a, %axes {keepdims = 0}\n %k = ReduceMax %a, %axes\n"
                      " %u = Constant {value = dense<i64[2]: 0, 2>}\n %w = Unsqueeze %m, %u\n %d = Sub %a, %w\n"
                      " %y = Div %d, %k }"),
            1u);
  EXPECT_EQ(
      tokenized("(%a: f32[4,6]) -> (%x, %y) {\n %zero = Constant {value = dense<i64[1]: 0>}\n"
                " %one = Constant {value = dense<i64[1]: 1>}\n %x = ReduceSum %a, %zero\n %y = ReduceSum %a, %one }"),
      2u);
}

// ---- Bytes ----

std::vector<SubgraphStatistics> statistics_after(std::string_view text) {
  auto graph = parse_graph("graph @g" + std::string(text));
  EXPECT_TRUE(tokenize_snippets(**graph).ok());
  return snippet_statistics(**graph);
}

TEST(Tokenize, SavesTheBytesThatTheDesignStates) {
  const Expr n = 4 * Expr::symbol("N");
  const auto gelu = statistics_after(
      "(%x: f32[N]) -> %y {\n %r = Constant {value = dense<f32[]: 1.4142135>}\n %d = Div %x, %r\n %e = Erf %d\n"
      " %o = Constant {value = dense<f32[]: 1>}\n %s = Add %e, %o\n %m = Mul %x, %s\n"
      " %h = Constant {value = dense<f32[]: 0.5>}\n %y = Mul %m, %h }");
  ASSERT_EQ(gelu.size(), 1u);
  EXPECT_EQ(gelu[0].bytes_unfused, 11 * n);
  EXPECT_EQ(gelu[0].bytes_fused, 2 * n);
  EXPECT_EQ(gelu[0].constants, 3u);
  const auto diamond = statistics_after(
      "(%a: f32[N], %b: f32[N], %c: f32[N]) -> %y {\n %s = Add %a, %b\n %t = Add %s, %c\n"
      " %z = Constant {value = dense<f32[]: 0>}\n %k = Clip %s, %z\n %y = Mul %t, %k }");
  ASSERT_EQ(diamond.size(), 1u);
  EXPECT_EQ(diamond[0].bytes_unfused, 11 * n);
  EXPECT_EQ(diamond[0].bytes_fused, 4 * n);
}

// Of two merges that exclude each other, the one that saves more bytes is made.
TEST(Tokenize, LetsBytesDecide) {
  auto graph = parse_graph(
      "graph @g(%a: f32[4,512], %b: f32[4,8], %s: f32[4,1]) -> (%x, %y) {\n %t = Exp %s\n %y = Mul %b, %t\n %l = Add "
      "%a, %s\n"
      " %x = Mul %l, %t }");
  ASSERT_TRUE(tokenize_snippets(**graph).ok());
  const auto statistics = snippet_statistics(**graph);
  ASSERT_EQ(statistics.size(), 2u);
  std::vector<size_t> operators{statistics[0].operators, statistics[1].operators};
  EXPECT_THAT(operators, ::testing::UnorderedElementsAre(3u, 1u));
}

// A function of a row is computed once for each of its elements, not for each of the rows that it is added to.
TEST(Tokenize, RepeatsNoCostlyOperators) {
  EXPECT_EQ(tokenized("(%a: f32[64,8], %b: f32[8]) -> %y {\n %e = Exp %b\n %y = Add %a, %e }"), 2u);
  EXPECT_EQ(tokenized("(%a: f32[64,8], %b: f32[8]) -> %y {\n %e = Neg %b\n %y = Add %a, %e }"), 1u);
  // A function of a column is computed in the outer loop.
  EXPECT_EQ(tokenized("(%a: f32[64,8], %b: f32[64,1]) -> %y {\n %e = Exp %b\n %y = Add %a, %e }"), 1u);
}

// ---- What is not taken ----

TEST(Tokenize, TakesOnlyWhatTheTargetCanEmit) {
  TokenizeOptions options;
  std::set<std::string> asked;
  options.can_emit = [&](const codegen::Signature& s) {
    asked.insert(s.op.str());
    return s.op != Name("Erf") && (s.in.empty() || s.in[0] != kF64);
  };
  EXPECT_EQ(tokenized("(%a: f32[4]) -> %y {\n %r = Relu %a\n %e = Erf %r\n %y = Neg %e }", options), 2u);
  EXPECT_TRUE(asked.contains("ClampLow"));
  EXPECT_EQ(tokenized("(%a: f64[4]) -> %y { %y = Relu %a }", options), 0u);
  options.can_access = [](ElementType element) { return element != kF16; };
  EXPECT_EQ(tokenized("(%a: f16[4]) -> %y { %y = Relu %a }", options), 0u);
}

TEST(Tokenize, KeepsToLimits) {
  const std::string tree = inputs_text(std::vector<std::string>(4, "8")) +
                           " -> %y {\n %0 = Add %a, %b\n %1 = Mul %c, %d\n %y = Sub %0, %1 }";
  EXPECT_EQ(tokenized(tree), 1u);
  TokenizeOptions options;
  options.max_ports = 4;
  EXPECT_EQ(tokenized(tree, options), 2u);
  options.max_ports = 0;
  options.max_operators = 1;
  EXPECT_EQ(tokenized(tree, options), 3u);
  // max_folding limits only operators that reduce; others may be added.
  const std::string folds =
      "(%a: f32[4,8]) -> %y {\n %0 = Softmax %a\n %1 = Softmax %0\n %2 = Neg %1\n"
      " %3 = Softmax %2\n %y = Softmax %3 }";
  EXPECT_EQ(tokenized(folds), 1u);
  options.max_operators = 0;
  options.max_folding = 2;
  EXPECT_EQ(tokenized(folds, options), 2u);
}

TEST(Tokenize, LeavesViewsAndShapeArithmeticAlone) {
  EXPECT_EQ(tokenized("(%a: f32[4,6]) -> %y { %y = Flatten %a }"), 0u);
  EXPECT_EQ(tokenized("(%a: f32[N,6]) -> %y {\n %s = Shape %a\n %two = Constant {value = dense<i64[1]: 2>}\n"
                      " %d = Mul %s, %two\n %e = Div %d, %two\n %y = Reshape %a, %e }"),
            0u);
  // The operand is a result as well, because the view costs nothing outside the snippet.
  auto graph = parse_graph("graph @g(%a: f32[4,6]) -> (%r, %y) {\n %r = Relu %a\n %y = Flatten %r }");
  ASSERT_TRUE(tokenize_snippets(**graph).ok());
  EXPECT_EQ(subgraphs_of(**graph).at(0)->result_count(), 1u);
}

// A value that is several outputs, directly or through views, becomes a result for each of them. Other readers use the
// first.
TEST(Tokenize, StoresAgainWhatIsSeveralOutputs) {
  const std::string_view text =
      "graph @g(%a: f32[4,6], %w: f32[6,6]) -> (first: %r, flat: %f, again: %r, row: %s, product: %p, other: %n) {\n"
      " %r = Relu %a\n %f = Flatten %r\n %i = Identity %f\n %k = Constant {value = dense<i64[1]: 24>}\n"
      " %s = Reshape %i, %k\n %p = MatMul %r, %w\n %n = Neg %r }";
  TokenizeOptions options;
  options.stores_again = [](const Value&) { return true; };
  EXPECT_EQ(tokenized(text.substr(text.find('(')), options), 1u);
  auto graph = *parse_graph(text);
  ASSERT_TRUE(tokenize_snippets(*graph, options).ok());
  const Op& snippet = *subgraphs_of(*graph).at(0);
  const Region& body = graph->body();
  ASSERT_EQ(snippet.result_count(), 5u) << print(*graph);
  for (const size_t again : {2, 3, 4}) EXPECT_EQ(snippet.region(0).output(again), snippet.region(0).output(0));
  EXPECT_EQ(body.output(0)->producer(), &snippet);
  EXPECT_EQ(body.output(1)->producer()->operand(0)->producer(), &snippet);
  EXPECT_EQ(body.output(2)->producer(), &snippet);
  for (size_t i = 0; i < body.output_count(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(body.output(i), body.output(j));
  EXPECT_EQ(body.output(4)->producer()->operand(0), body.output(0));
  EXPECT_EQ(body.output_name(1), "flat");
}

// Not where `stores_again` refuses, nor for a value that is only one output.
TEST(Tokenize, StoresAgainWhereItPays) {
  const std::string_view text =
      "graph @g(%a: f32[4,6], %b: f32[2], %c: f32[5]) -> (r: %r, r2: %r, s: %s, s2: %t, u: %u) {\n"
      " %r = Relu %a\n %s = Neg %b\n %t = Identity %s\n %u = Abs %c }";
  TokenizeOptions options;
  const auto results = [&] {
    auto graph = *parse_graph(text);
    EXPECT_TRUE(tokenize_snippets(*graph, options).ok());
    EXPECT_TRUE(verify(*graph).ok());
    std::vector<size_t> counts;
    for (const Op* op : subgraphs_of(*graph)) counts.push_back(op->result_count());
    return counts;
  };
  EXPECT_THAT(results(), ::testing::ElementsAre(1, 1, 1));
  options.stores_again = [](const Value& value) { return value.type().shape().rank() == 2; };
  EXPECT_THAT(results(), ::testing::ElementsAre(2, 1, 1));
  options.stores_again = [](const Value& value) { return value.type().shape().rank() == 1; };
  EXPECT_THAT(results(), ::testing::ElementsAre(1, 2, 1));
}

TEST(Tokenize, KeepsNamesAndGoesIntoRegions) {
  auto graph = parse_graph(
      "graph @g(%c: bool[], %a: f32[4]) -> (out: %y) {\n %r = Relu %a\n"
      " %y = If %c (() -> %t {\n %s = Exp %r\n %t = Neg %s }, () -> %r {}) }");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto made = tokenize_snippets(**graph);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made, 2u);
  ASSERT_TRUE(verify(**graph).ok()) << verify(**graph).error().to_string();
  EXPECT_EQ((*graph)->body().output_name(0), "out");
  EXPECT_EQ((*graph)->body().first()->result()->name(), "r");
}

// ---- Random graphs ----

TEST(Tokenize, RandomGraphsKeepTheirBitsAndBodiesGiveThem) {
  const char* asked = std::getenv("TENON_SNIPPET_SEEDS");
  const auto seeds = static_cast<uint32_t>(asked ? std::atoi(asked) : 400);
  size_t snippets = 0, operators = 0, refused = 0;
  for (uint32_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const auto before = test::RandomTypedDag(seed).build(seed % 60 + 3);
    const auto after = before->clone();
    const auto made = tokenize_snippets(*after);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    std::mt19937 random(seed);
    if (!runs(*before, random)) {
      ++refused;
      continue;
    }
    expect_same_results(*before, *after, random, 0);
    for (const SubgraphStatistics& s : snippet_statistics(*after)) operators += s.operators;
    snippets += *made;
  }
  EXPECT_LE(refused, seeds / 50);
  // Snippets have more than three operators on average.
  EXPECT_GT(operators, 3 * snippets);
}

// ---- Size ----

// Chains that fork and join, some of them across the whole graph.
std::unique_ptr<Graph> large_graph(size_t operators) {
  auto graph = std::make_unique<Graph>("large");
  std::mt19937 random(1);
  const Type type(kF32, Shape(Dims{8, 64}));
  Value* x = graph->body().add_input("x", type);
  std::vector<Value*> values{x};
  static const Name kAdd("Add"), kRelu("Relu"), kMatMul("MatMul");
  for (size_t i = 0; i < operators; ++i) {
    Value* last = values.back();
    Value* other = values[values.size() - 1 - static_cast<size_t>(pick(random, 0, 20)) % values.size()];
    if (pick(random, 0, 2000) == 0) other = values[static_cast<size_t>(random()) % values.size()];
    const Name op = i % 40 == 39 ? Name("CumSum") : i % 3 ? kAdd : kRelu;
    std::vector<Value*> operands{last};
    if (op == kAdd) operands.push_back(other);
    if (op == Name("CumSum")) operands.push_back(Builder(graph->body()).constant_int(0));
    values.push_back(graph->body().create(op, operands, {type}).result());
  }
  graph->body().add_output(values.back(), "y");
  return graph;
}

// One value that all additions read, with operators in between that are never taken, so that most merges are refused.
std::unique_ptr<Graph> hub_graph(size_t operators) {
  auto graph = std::make_unique<Graph>("hub");
  const Type type(kF32, Shape(Dims{8, 64}));
  Region& body = graph->body();
  Value* axis = Builder(body).constant_int(0);
  Value* hub = body.create("Exp", std::vector<Value*>{body.add_input("x", type)}, {type}).result();
  Value* last = hub;
  for (size_t i = 0; i < operators / 2; ++i) {
    last = body.create("CumSum", std::vector<Value*>{last, axis}, {type}).result();
    last = body.create("Add", std::vector<Value*>{last, hub}, {type}).result();
  }
  body.add_output(last, "y");
  return graph;
}

double milliseconds(size_t operators, std::unique_ptr<Graph> (*make)(size_t)) {
  const auto graph = make(operators);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(tokenize_snippets(*graph).ok());
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_TRUE(operators > 5000 || verify(*graph).ok());
  return ms;
}

TEST(Tokenize, TimeGrowsAboutAsTheGraphDoes) {
  for (const auto make : {large_graph, hub_graph}) {
    const double small = milliseconds(1000, make), large = milliseconds(100000, make);
    std::printf("1,000 operators: %.1f ms, 100,000 operators: %.1f ms\n", small, large);
    // 100 times as many operators; quadratic growth would be 10,000, far above the limit even on a loaded machine.
    EXPECT_LT(large, 3000 * std::max(small, 1.0));
  }
}

}  // namespace
}  // namespace tenon::snippet
