// The test graphs of docs/snippets.md as machine code, on both instruction sets, next to guard pages: the number of
// snippets of each, and results within the bounds that follow from the accuracies of the emitters.
#include <gtest/gtest.h>

#include <limits>

#include <support_lib/on_reference.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/tensor/compare.hpp>

#include "x86/guarded_graph.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::on_reference;
using testing::GuardedGraph;

// Such as "%a: f32[2,3], %b: f32[3]".
std::string inputs_of(const std::vector<std::string>& shapes) {
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i)
    text += str(i ? ", " : "", "%", static_cast<char>('a' + i), ": f32[", shapes[i], "]");
  return text;
}

class TestGraphs : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  // Elements with loose bounds or none are hardly tested, so there must be few.
  void TearDown() override { EXPECT_LE(untold_, elements_ / 50); }

  int lanes() const { return lanes_of(GetParam(), kF32); }
  // The widths that the design lists, and those with which every kernel is tested.
  std::vector<int64_t> widths(std::vector<int64_t> listed) const {
    for (const int64_t width : testing::widths(lanes())) listed.push_back(width);
    return listed;
  }

  // Runs the graph, and returns the number of its snippets.
  size_t snippets(const std::vector<std::string>& shapes, std::string_view body,
                  snippet::TokenizeOptions options = {}) {
    return snippets_of(str("(", inputs_of(shapes), ") -> ", body), std::move(options));
  }
  size_t snippets_of(const std::string& text, snippet::TokenizeOptions options = {}) {
    SCOPED_TRACE(text);
    auto graph = parse_graph("graph @g" + text);
    EXPECT_TRUE(graph.ok()) << graph.error().to_string();
    if (!graph.ok()) return SIZE_MAX;
    std::vector<Datum> inputs;
    for (size_t i = 0; i < (*graph)->body().input_count(); ++i)
      inputs.push_back(draw((*graph)->body().input(i)->type()));
    return run(**graph, inputs, std::move(options));
  }
  size_t run(Graph& graph, const std::vector<Datum>& inputs, snippet::TokenizeOptions options = {}) {
    GuardedGraph runner(GetParam(), {});
    const std::vector<Tensor> wanted = on_reference(graph, inputs);
    const size_t made = runner.tokenize(graph, std::move(options));
    expect_same(on_reference(graph, inputs), wanted);
    runner.run(graph, inputs, random_);
    elements_ += runner.elements;
    untold_ += runner.open + runner.loose;
    return made;
  }

 protected:
  std::mt19937 random_{20260914};

  // Integers are zero points. Floats may be scales, so none is 0.
  Datum draw(const Type& type) {
    Tensor tensor = tenon::testing::random_tensor(random_, type.element(), *type.shape().static_dims(), 1, 20);
    if (!type.element().is_float()) return Datum(std::move(tensor));
    for (float& x : tensor.mutable_as<float>()) x = tensor.rank() > 1 ? x + 0.01f : std::abs(x) / 8 + 0.05f;
    return Datum(std::move(tensor));
  }

 private:
  // On the reference, snippets must give the results of the graph.
  static void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted) {
    for (size_t i = 0; i < got.size(); ++i) {
      const Comparison same = compare(got[i], wanted[i], {.rtol = 0, .atol = 0});
      EXPECT_TRUE(same.equal) << "output " << i << ": " << same.difference;
    }
  }

  size_t elements_ = 0, untold_ = 0;
};

TEST_P(TestGraphs, AddOfEveryWidth) {
  for (const int64_t width : widths({1, 7, 8, 15, 16, 31}))
    for (const std::string& second : {str("1,16,29,", width), str("1,16,29,1"), str("1,16,1,1"), str("1,1,1,1")})
      EXPECT_EQ(snippets({str("1,16,29,", width), second}, "%y { %y = Add %a, %b }"), 1u);
}

// One kernel stores the value once for each output.
TEST_P(TestGraphs, OneValueAsSeveralOutputs) {
  snippet::TokenizeOptions options;
  options.stores_again = [](const Value&) { return true; };
  for (const int64_t width : widths({1, 7, 16, 31, 100})) {
    const std::vector<std::string> shapes = {str("3,", width), str(width)};
    for (const char* made : {"Add %a, %b", "Softmax %a {axis = -1}", "Softmax %a {axis = 0}"})
      EXPECT_EQ(snippets_of(str("(", inputs_of(shapes), ") -> (y: %y, z: %y, f: %f, n: %n, g: %f) {\n %y = ", made,
                                "\n %f = Flatten %y {axis = 0}\n %n = Neg %y }"),
                            options),
                1u);
  }
}

TEST_P(TestGraphs, AddPair) {
  std::vector<std::vector<std::string>> pairs = {{"1,128,9,30", "1,128,1,30"},
                                                 {"1,128,9,1", "1,128,1,30"},
                                                 {"2,17,3,4", "1,3,4"},
                                                 {"2,17,3,4", "1,4"},
                                                 {"30", "10,30"}};
  for (const int64_t width : widths({1, 9, 16, 17, 29, 33})) {
    pairs.push_back({str("1,128,9,", width), str("1,128,1,", width)});
    pairs.push_back({str("3,", width), str(width)});
  }
  for (const auto& pair : pairs)
    EXPECT_EQ(snippets(pair, "%y { %s = Add %a, %b\n %t = Sub %s, %b\n %y = Add %t, %a }"), 1u);
}

TEST_P(TestGraphs, ATreeOfNineInputs) {
  std::vector<std::string> shapes = {"1,64,10,10", "1,1,17,37"};
  for (const int64_t width : widths({1, 7, 14, 16, 30, 128})) shapes.push_back(str("1,1,1,", width));
  for (const std::string& shape : shapes)
    EXPECT_EQ(snippets(std::vector<std::string>(9, shape),
                       "%y {\n %0 = Add %a, %b\n %1 = Mul %c, %d\n %2 = Sub %e, %f\n %3 = Max %g, %h\n"
                       " %4 = Add %0, %1\n %5 = Mul %2, %3\n %6 = Sub %4, %5\n %y = Add %6, %i }"),
              1u);
}

TEST_P(TestGraphs, TwoInputsAndTwoOutputs) {
  std::vector<std::vector<std::string>> shapes = {
      {"5,5,256,1", "5,5,256,35"}, {"5,5,16,35", "5,5,1,1"}, {"5,5,5,35", "5,5,1,35"}};
  for (const int64_t width : widths({16, 17, 18})) shapes.push_back(std::vector(2, str("5,5,35,", width)));
  for (const auto& pair : shapes)
    EXPECT_EQ(snippets(pair, "(%h, %y) {\n %h = HardSwish %a\n %s = Add %h, %b\n %r = Relu %s\n %y = Sin %r }"), 1u);
}

// Mul may be fused with either side of the operator that is not taken, but not with both. The result is a DAG of two
// snippets and one operator.
TEST_P(TestGraphs, AForkAroundAnOperatorThatIsNotTaken) {
  snippet::TokenizeOptions options;
  options.may_take = [](const Op& op) { return !op.is("Sigmoid"); };
  const char* body = "%y {\n %r = Relu %a\n %s = Sigmoid %r\n %m = Mul %r, %r\n %y = Add %s, %m }";
  for (const int64_t width : widths({5})) {
    EXPECT_EQ(snippets({str("2,3,4,", width)}, body, options), 2u);
    EXPECT_EQ(snippets({str("2,3,4,", width)}, body), 1u);
  }
}

TEST_P(TestGraphs, GeluAfterAnAdd) {
  for (const int64_t width : widths({130})) {
    const std::string full = str("1,38,", width);
    for (const auto& pair : {std::vector<std::string>{full, full}, {str("1,1,", width), full}, {"1,38,1", full}})
      EXPECT_EQ(snippets(pair,
                         "%y {\n %x = Add %a, %b\n %r = Constant {value = dense<f32[]: 1.4142135>}\n %d = Div %x, %r\n"
                         " %e = Erf %d\n %o = Constant {value = dense<f32[1]: 1>}\n %s = Add %e, %o\n %m = Mul %x, %s\n"
                         " %h = Constant {value = dense<f32[]: 0.5>}\n %y = Mul %m, %h }"),
                1u);
  }
}

TEST_P(TestGraphs, FakeQuantisation) {
  for (const char* first : {"Abs", "Swish"}) {
    for (const int64_t width : widths({16})) {
      EXPECT_EQ(snippets({str("1,3,16,", width)}, str("%y {\n %x = ", first,
                                                      " %a\n %s = Constant {value = dense<f32[]: 0.05>}\n"
                                                      " %z = Constant {value = dense<u8[]: 7>}\n"
                                                      " %q = QuantizeLinear %x, %s, %z\n"
                                                      " %y = DequantizeLinear %q, %s, %z }")),
                1u);
      EXPECT_EQ(snippets_of(str("(%a: f32[1,3,16,", width, "], %s: f32[3], %z: i8[3]) -> %y {\n %x = ", first,
                                " %a\n %q = QuantizeLinear %x, %s, %z\n %y = DequantizeLinear %q, %s, %z }")),
                1u);
    }
  }
}

TEST_P(TestGraphs, SoftmaxOverEveryAxis) {
  std::vector<std::pair<std::string, int>> shapes;
  for (const int64_t width : widths({1, 9, 16, 17, 19, 32, 49, 50})) {
    shapes.emplace_back(str("1,", width), 2);
    shapes.emplace_back(str("5,", width), 2);
  }
  for (const int64_t width : {1, 9, 16, 17, 20, 128, 129, 130}) shapes.emplace_back(str("1,3,128,", width), 4);
  for (const auto& [shape, rank] : shapes)
    for (int axis = 0; axis < rank; ++axis)
      EXPECT_EQ(snippets({shape}, str("%y { %y = Softmax %a {axis = ", axis, "} }")), 1u);
}

TEST_P(TestGraphs, SoftmaxAfterAnAdd) {
  std::vector<std::string> full = {"1,5,16,35", "1,5,16,1", "1,5,1,35"};
  const std::vector<std::string> other = {"1,5,16,35", "1,5,1,1", "1,5,1,35", "1,5,16,1"};
  for (const std::string& a : full) {
    for (const std::string& b : other) {
      for (int axis = 0; axis < 4; ++axis)
        EXPECT_EQ(snippets({a, b}, str("%y {\n %s = Add %a, %b\n %y = Softmax %s {axis = ", axis, "} }")), 1u);
    }
  }
}

TEST_P(TestGraphs, SoftmaxAfterAnAddOfEveryWidth) {
  for (const int64_t width : widths({}))
    for (const std::string& b : {str("1,5,16,", width), std::string("1,5,1,1"), str("1,5,1,", width)})
      EXPECT_EQ(snippets({str("1,5,16,", width), b}, "%y {\n %s = Add %a, %b\n %y = Softmax %s }"), 1u);
}

// Results equal those of the reference for all mixtures, although maxima may ignore NaN: the sum of the exponentials is
// NaN anyway.
TEST_P(TestGraphs, SoftmaxOfNaNAndInfinities) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> kinds = {
      {kNaN}, {kInfinity}, {-kInfinity}, {kNaN, kInfinity}, {kNaN, -kInfinity}, {kInfinity, -kInfinity}};
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const int axis : {0, 1}) {
      for (const int64_t width : widths({17, 33, 130})) {
        auto graph =
            parse_graph(str("graph @g(%x: f32[7,", width, "]) -> %y { %y = ", op, " %x {axis = ", axis, "} }"));
        ASSERT_TRUE(graph.ok()) << graph.error().to_string();
        Tensor x = draw((*graph)->body().input(0)->type()).tensor();
        // Row r, or column r, has values of kind r in some positions; 2 and 6 have -infinity in all.
        for (int64_t i = 0; i < x.size(); ++i) {
          const int64_t line = axis == 1 ? i / width : i % width;
          const auto& kind = kinds[static_cast<size_t>(line) % kinds.size()];
          const bool all = line == 6 || line == 2;
          if (all || tenon::testing::pick(random_, 0, 3) == 0)
            x.mutable_as<float>()[i] = all ? -kInfinity : kind[static_cast<size_t>(i) % kind.size()];
        }
        EXPECT_EQ(run(**graph, {Datum(x)}), 1u);
      }
    }
  }
}

TEST_P(TestGraphs, GroupNormalisation) {
  std::vector<std::string> shapes = {"3,8", "3,8,21", "1,4,8,8", "1,8,1,22", "1,4,1,1,34", "1,8,1,8,2,2"};
  for (const int64_t width : widths({})) shapes.push_back(str("3,8,", width));
  for (const std::string& shape : shapes) {
    const std::string channels(1, shape[2]);
    for (const int groups : {2, 4})
      EXPECT_EQ(snippets({shape, channels, channels},
                         str("%y { %y = GroupNormalization %a, %b, %c {num_groups = ", groups, "} }")),
                1u);
  }
}

TEST_P(TestGraphs, PowersOfFloatsByWideIntegers) {
  for (const char* element : {"i32", "u32", "i64", "u64"})
    for (const int64_t width : widths({}))
      EXPECT_EQ(
          snippets_of(str("(%a: f32[3,", width, "], %n: ", element, "[3,", width, "]) -> %y { %y = Pow %a, %n }")), 1u);
}

TEST_P(TestGraphs, OutputsThatBroadcastToOneAndOthers) {
  for (const int64_t width : widths({31})) {
    const std::vector<std::string> shapes = {str("1,42,17,", width), "1,42,17,1", str("1,42,1,", width)};
    EXPECT_EQ(snippets(shapes, "(%x, %y, %z) {\n %y = Relu %b\n %z = Neg %c\n %s = Add %a, %y\n %x = Mul %s, %z }"),
              1u);
  }
  EXPECT_EQ(snippets({"4,5", "4,6", "4,1"}, "(%x, %y) {\n %x = Add %a, %c\n %y = Add %b, %c }"), 2u);
}

INSTANTIATE_TEST_SUITE_P(Both, TestGraphs, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
