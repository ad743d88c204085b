// Extrema that need not pass NaN on: rows with a NaN in each place, against the reference. Where that has NaN so has
// the code, and nowhere else; that numbers are right the bounds of bodies say (guarded_graph.hpp).
#include "x86/body/spared.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <support_lib/on_reference.hpp>

#include "x86/body_of.hpp"
#include "x86/forms/forms.hpp"

namespace tenon::x86 {
namespace {

using testing::body_of;
using testing::graph_of;
using testing::GuardedGraph;

// On two tensors of rows, x and z, a number for each row, p, and one for each column, b.
struct Case {
  const char* operators;
  const char* outputs;
  int64_t spared;  // extrema
};

constexpr Case kCases[] = {
    {"%y = Softmax %x {axis = -1}", "%y", 1},
    {"%y = LogSoftmax %x {axis = -1}", "%y", 1},
    {"%y = ReduceLogSumExp %x, %axes", "%y", 1},
    {"%c = Less %x, %z\n%w = Where %c, %x, %k\n%y = Softmax %w {axis = -1}", "%y", 1},
    // The least comes by the greatest.
    {"%l = ReduceMin %x, %axes\n%h = ReduceMax %x, %axes\n%r = Sub %h, %l\n%d = Sub %x, %l\n%y = Div %d, %r", "%y", 1},
    {"%m = Max %p, %x\n%n = Min %p, %z\n%d = Sub %m, %n\n%s = Add %p, %x\n%t = Add %s, %z\n%y = Div %d, %t", "%y", 2},
    {"%m = Max %x, %b\n%n = Add %m, %x\n%s = ReduceSum %n, %axes\n%y = Mul %m, %s", "%y", 1},
    // Both show, and have their NaN from the magnitudes.
    {"%l = ReduceMin %x, %axes\n%h = ReduceMax %x, %axes", "%l, %h", 3},
    {"%h = ReduceMax %x, %axes\n%l = ReduceMin %x, %axes\n%y = Mul %x, %l", "%h, %y", 3},
    {"%h = ReduceMax %x, %axes\n%l = ReduceMin %z, %axes", "%l, %h", 0},
    {"%a = Abs %x\n%y = ReduceMax %a, %axes", "%y", 1},
    {"%a = Abs %x\n%m = ReduceMax %a, %axes\n%y = Div %x, %m", "%y", 1},
    // Powers that are no less than 1, to infinity, beside those that are no greater (body_numbers_test.cpp).
    {"%m = ReduceMax %x, %axes\n%d = Sub %m, %x\n%y = Exp %d", "%y", 0},
    {"%m = ReduceMin %x, %axes\n%d = Sub %x, %m\n%y = Exp %d", "%y", 0},
    {"%m = ReduceMax %x, %axes\n%s = Add %x, %z\n%d = Sub %s, %m\n%y = Exp %d", "%y", 0},
    {"%m = ReduceMax %x, %axes\n%d = Sub %x, %m\n%y = Exp %d", "%y", 0},
    // What shows: in an output of its own, in other elements of the row, through conditions, where only one of two
    // ways is NaN, where the sum is of something else.
    {"%m = ReduceMax %x, %axes\n%d = Sub %x, %m\n%e = Exp %d\n%s = ReduceSum %e, %axes", "%m, %s", 0},
    {"%m = ReduceMax %x, %axes\n%y = Mul %x, %m", "%y", 0},
    {"%m = ReduceMax %x, %axes\n%s = ReduceSum %z, %axes\n%y = Add %s, %m", "%y", 0},
    {"%m = ReduceMin %x, %axes\n%c = Less %m, %k\n%s = ReduceSum %x, %axes\n%y = Where %c, %s, %k", "%y", 0},
    {"%m = Max %x, %z\n%c = Greater %m, %k\n%y = Where %c, %z, %p", "%y", 0},
    {"%m = Max %x, %p\n%c = Greater %z, %k\n%s = Add %x, %z\n%y = Where %c, %m, %s", "%y", 0},
    {"%m = Max %x, %z\n%s = Add %p, %z\n%y = Add %m, %s", "%y", 0},
    {"%m = Max %p, %x\n%s = ReduceSum %x, %axes\n%y = Add %m, %s", "%y", 0},
    {"%m = Max %x, %z\n%s = ReduceSum %m, %axes\n%y = Add %s, %x", "%y", 0},
    {"%h = ReduceMax %x, %axes\n%s = ReduceSum %x, %axes", "%h, %s", 0},
    // The sum of no column is a number, so Max stays.
    {"%l = ReduceMin %x, %axes\n%m = Max %p, %l\n%n = Add %x, %p\n%s = ReduceSum %n, %axes\n%y = Add %m, %s", "%y", 1},
};

std::string text_of(const Case& one, int64_t rows, int64_t columns) {
  return str("graph @g(%x: f32[", rows, ",", columns, "], %z: f32[", rows, ",", columns, "], %p: f32[", rows,
             ",1], %b: f32[", columns, "]) -> (", one.outputs, ") {\n%k = Constant {value = dense<f32[]: -2>}\n",
             "%axes = Constant {value = dense<i64[1]: 1>}\n", one.operators, "\n}");
}

class Spared : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }

  void expect_nan_alike(const std::string& text, const std::vector<Datum>& inputs, bool small_caches) const {
    auto graph = graph_of(text);
    const std::vector<Tensor> expected = tenon::testing::on_reference(*graph, inputs);
    GuardedGraph runner(GetParam(), {.small_caches = small_caches});
    runner.tokenize(*graph);
    std::mt19937 random(1);
    const std::vector<Tensor> got = runner.run(*graph, inputs, random);
    for (size_t o = 0; o < got.size(); ++o)
      for (int64_t i = 0; i < got[o].size(); ++i)
        ASSERT_EQ(std::isnan(got[o].double_at(i)), std::isnan(expected[o].double_at(i)))
            << "output " << o << " element " << i << ": " << got[o].double_at(i) << ", expected "
            << expected[o].double_at(i) << "\n"
            << text;
  }
};

// Row i of x, or of z, has NaN in column i, and p in every third row; the last row of x and z has none. Powers are far
// apart.
TEST_P(Spared, NaNShowsWhereItDoes) {
  const int64_t lanes = lanes_of(GetParam(), kF32);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(-150, 150);
  for (const Case& one : kCases)
    for (const int64_t columns :
         {int64_t{0}, int64_t{1}, int64_t{3}, lanes - 1, lanes, lanes + 1, 4 * lanes + 3, 20 * lanes + 1}) {
      const int64_t rows = std::min<int64_t>(columns, 2 * lanes) + 1;
      const std::string text = text_of(one, rows, columns);
      const auto drawn = [&](const Dims& dims) {
        Tensor made = *Tensor::zeros(kF32, dims);
        for (int64_t i = 0; i < made.size(); ++i) made.set_double(i, any(random));
        return made;
      };
      for (const bool in_x : {true, false}) {
        Tensor x = drawn({rows, columns}), z = drawn({rows, columns}), p = drawn({rows, 1});
        for (int64_t i = 0; i + 1 < rows; ++i) (in_x ? x : z).set_double(i * columns + i, i % 2 ? NAN : -NAN);
        for (int64_t i = 0; i < rows; i += 3) p.set_double(i, NAN);
        const std::vector<Datum> inputs{Datum(x), Datum(z), Datum(p), Datum(drawn({columns}))};
        for (const bool small_caches : {true, false}) {
          expect_nan_alike(text, inputs, small_caches);
          if (HasFatalFailure()) return;
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Both, Spared, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

// Those of several vectors, once for two.
TEST(SparedOfGraphs, ChecksOfRowsAreShared) {
  const auto checks = [](Isa isa, const char* operators, int64_t columns) {
    const FormMaker maker(testing::target_of(isa), **jitter_table(), {});
    const snippet::Body body = body_of(text_of({operators, "%y", 0}, 5, columns));
    const auto form = maker.make(body, maker.tiers_of(body).front());
    TENON_CHECK(form.ok(), operators);
    const auto marks = [](const snippet::Instruction& one) { return one.op == "MarkNaN"; };
    return std::ranges::count_if(form->kernel.body, marks);
  };
  EXPECT_EQ(checks(Isa::avx2, "%y = ReduceMax %x, %axes", 24 * 8), 2) << "a loop of four vectors";
  EXPECT_EQ(checks(Isa::avx2, "%y = ReduceMin %x, %axes", 24 * 8 + 1), 3) << "and a tail";
  EXPECT_EQ(checks(Isa::avx2, "%y = ReduceMax %x, %axes", 2 * 8), 0) << "two vectors";
  EXPECT_EQ(checks(Isa::avx2, "%y = Softmax %x {axis = -1}", 24 * 8), 0) << "none shows";
  EXPECT_EQ(checks(Isa::avx512, "%y = ReduceMax %x, %axes", 24 * 16), 2);
}

TEST(SparedOfGraphs, WhereOutputsAreNaNByOtherWays) {
  for (const Case& one : kCases) {
    const snippet::Body body = body_of(text_of(one, 5, 40));
    const auto spared = [&](const snippet::BodyNode& node) {
      return node.attributes.has("numbers") || node.attributes.has("magnitudes") || node.op == "ClampLow" ||
             node.op == "ClampHigh";
    };
    EXPECT_EQ(std::ranges::count_if(with_spared_nan(body, true).nodes, spared), one.spared) << one.operators;
    const auto says = [&](const snippet::BodyNode& node) { return snippet::is_reduction(node.op) && spared(node); };
    EXPECT_EQ(std::ranges::count_if(with_spared_nan(body, false).nodes, says), 0) << one.operators;
  }
}

}  // namespace
}  // namespace tenon::x86
