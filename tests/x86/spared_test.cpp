// Extrema that need not propagate NaN: rows with a NaN in each position, compared with the reference. The code gives
// NaN exactly where the reference does; the bounds of bodies check the numbers (guarded_graph.hpp).
#include "x86/body/spared.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <support_lib/on_reference.hpp>

#include "x86/body/numbers.hpp"
#include "x86/body_of.hpp"
#include "x86/forms/forms.hpp"

namespace tenon::x86 {
namespace {

using testing::body_of;
using testing::graph_of;
using testing::GuardedGraph;

// Operators on two tensors x and z, a number p per row, and a number b per column.
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
    // NaN of the minimum also comes from the maximum.
    {"%l = ReduceMin %x, %axes\n%h = ReduceMax %x, %axes\n%r = Sub %h, %l\n%d = Sub %x, %l\n%y = Div %d, %r", "%y", 1},
    {"%m = Max %p, %x\n%n = Min %p, %z\n%d = Sub %m, %n\n%s = Add %p, %x\n%t = Add %s, %z\n%y = Div %d, %t", "%y", 2},
    {"%m = Max %x, %b\n%n = Add %m, %x\n%s = ReduceSum %n, %axes\n%y = Mul %m, %s", "%y", 1},
    // Both are visible, and have their NaN from the magnitudes.
    {"%l = ReduceMin %x, %axes\n%h = ReduceMax %x, %axes", "%l, %h", 3},
    {"%h = ReduceMax %x, %axes\n%l = ReduceMin %x, %axes\n%y = Mul %x, %l", "%h, %y", 3},
    {"%h = ReduceMax %x, %axes\n%l = ReduceMin %z, %axes", "%l, %h", 0},
    {"%a = Abs %x\n%y = ReduceMax %a, %axes", "%y", 1},
    {"%a = Abs %x\n%m = ReduceMax %a, %axes\n%y = Div %x, %m", "%y", 1},
    // Powers that are at least 1, up to infinity, and those that are at most 1 (body_numbers_test.cpp).
    {"%m = ReduceMax %x, %axes\n%d = Sub %m, %x\n%y = Exp %d", "%y", 0},
    {"%m = ReduceMin %x, %axes\n%d = Sub %x, %m\n%y = Exp %d", "%y", 0},
    {"%m = ReduceMax %x, %axes\n%s = Add %x, %z\n%d = Sub %s, %m\n%y = Exp %d", "%y", 0},
    {"%m = ReduceMax %x, %axes\n%d = Sub %x, %m\n%y = Exp %d", "%y", 0},
    // Values that are visible: in an output of their own, in other elements of the row, through conditions, where only
    // one of two paths is NaN, where the sum is over something else.
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
    // The sum over no columns is a number, so Max remains.
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

// For several vectors, one check for NaN serves two of them.
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

// Whether each output that depends on the node is NaN in another way wherever `cause` is. Considers all nodes, in two
// traversals.
bool misses_nothing(const snippet::Body& body, size_t without, snippet::ValueId cause) {
  const auto at = [](snippet::ValueId id) { return static_cast<size_t>(id); };
  const snippet::DimSet reduced = body.reduced_dims(), varies = body.values[at(cause)].varies;
  std::vector<char> here(body.values.size(), 0), row(here), fine(body.values.size(), 1), fine_in_row(fine);
  here[at(cause)] = 1, row[at(cause)] = (varies & reduced) == 0;
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    const snippet::BodyNode& node = body.nodes[i];
    const size_t made = at(node.result), first = at(node.operands.empty() ? 0 : node.operands[0]);
    if (i == without || node.result == cause || node.operands.empty()) continue;
    if (snippet::is_reduction(node.op)) {
      here[made] = row[made] = (varies & reduced) == reduced && here[first] && !node.attributes.has("numbers");
    } else if (node.op == "ClampLow" || node.op == "ClampHigh") {
      here[made] = here[first], row[made] = row[first];
    } else {
      for (const snippet::ValueId in : node.operands) here[made] |= here[at(in)], row[made] |= row[at(in)];
    }
  }
  for (const snippet::BodyPort& output : body.outputs) fine[at(output.value)] = fine_in_row[at(output.value)] = 0;
  for (size_t i = body.nodes.size(); i-- > without + 1;) {
    const size_t made = at(body.nodes[i].result);
    const char in_row = fine_in_row[made] | row[made],
               all = snippet::is_reduction(body.nodes[i].op) ? in_row : fine[made] | here[made];
    for (const snippet::ValueId in : body.nodes[i].operands) fine[at(in)] &= all, fine_in_row[at(in)] &= in_row;
  }
  return (snippet::is_reduction(body.nodes[without].op) ? fine_in_row : fine)[at(body.nodes[without].result)];
}

// A random graph of floats, in which unused values are outputs.
std::string drawn_text(std::mt19937& random, int operators) {
  std::string text, outputs;
  std::vector<std::string> values{"%x", "%z", "%p", "%b"};
  std::vector<char> read(values.size(), 1);
  const auto any = [&]() -> const std::string& {
    const size_t near = std::min<size_t>(values.size(), 6);
    const size_t at = random() % 4 == 0 ? random() % values.size() : values.size() - 1 - random() % near;
    read[at] = 1;
    return values[at];
  };
  for (int i = 0; i < operators; ++i) {
    static constexpr const char* kNames[] = {"Max", "Min", "Add", "Mul", "Sub", "Max"};
    const std::string name = str("%v", i);
    if (random() % 5 == 0) {
      static constexpr const char* kFolds[] = {"ReduceMax", "ReduceMin", "ReduceSum"};
      text += str(name, " = ", kFolds[random() % 3], " ", any(), ", %axes\n");
    } else if (random() % 4 == 0) {
      text += str(name, " = ", random() % 2 ? "Abs" : "Neg", " ", any(), "\n");
    } else {
      const std::string a = any(), b = any();
      text += str(name, " = ", kNames[random() % 6], " ", a, ", ", b, "\n");
    }
    values.push_back(name), read.push_back(0);
  }
  for (size_t i = 4; i < values.size(); ++i)
    if (!read[i]) outputs += str(outputs.empty() ? "" : ", ", values[i]);
  return str("graph @g(%x: f32[4,5], %z: f32[4,5], %p: f32[4,1], %b: f32[1,5]) -> (", outputs,
             ") {\n%axes = Constant {value = dense<i64[1]: 1>}\n", text, "}");
}

// Extrema are decided one after another, each near its cause; the decisions equal those of a traversal of the whole
// body. A spared extremum propagates NaN of one operand only.
TEST(SparedOfGraphs, AsWalksOverTheWholeBodySay) {
  int64_t spared = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const std::string text = drawn_text(random, 4 + static_cast<int>(random() % 30));
    snippet::Body body = body_of(text);
    const snippet::Body made = with_spared_nan(body, true);
    const std::vector<Numbers> numbers = numbers_of(body);
    if (made.nodes.size() != body.nodes.size()) continue;  // reductions that have their NaN from magnitudes
    for (size_t i = 0; i < body.nodes.size(); ++i) {
      snippet::BodyNode& node = body.nodes[i];
      const bool fold = node.op == "ReduceMax" || node.op == "ReduceMin";
      if (!fold && node.op != "Max" && node.op != "Min") continue;
      const auto of = [&](size_t operand) -> const Numbers& {
        return numbers[static_cast<size_t>(node.operands[operand])];
      };
      const auto spares = [&](snippet::ValueId cause) { return misses_nothing(body, i, cause); };
      bool expected = spares(node.operands[0]) || std::ranges::all_of(of(0).only, spares);
      if (!fold)
        expected &= !std::ranges::includes(of(1).where, of(0).only) && !std::ranges::includes(of(0).where, of(1).only);
      const bool is = fold ? made.nodes[i].attributes.has("numbers") : made.nodes[i].op != node.op;
      ASSERT_EQ(is, expected) << "seed " << seed << ", node " << i << " of\n" << text;
      spared += is;
      node = made.nodes[i];
    }
  }
  EXPECT_GT(spared, 100) << "or they are no examples";
}

// Every extremum of a network is examined; whether NaN is visible is decided near it.
TEST(SparedOfGraphs, TimeGrowsWithTheNumberOfOperators) {
  const auto seconds_for = [](int blocks) {
    std::string text, last = "%x";
    for (int i = 0; i < blocks; ++i) {
      text += str("%a", i, " = Add ", last, ", %b\n%t", i, " = Tanh %a", i, "\n%s", i, " = Sub %t", i, ", %b\n%m", i,
                  " = Max %s", i, ", %t", i, "\n");
      last = str("%m", i);
    }
    const snippet::Body body = body_of(str("graph @g(%x: f32[4,5], %b: f32[5]) -> (", last, ") {\n", text, "}"));
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(with_spared_nan(body, true).nodes.size(), body.nodes.size());
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  };
  const double small = seconds_for(50), large = seconds_for(1000);
  EXPECT_LT(large, small * 20 * 5) << "near linear; a quadratic step would be 20 times more";
}

}  // namespace
}  // namespace tenon::x86
