// Values that vary over rows only, computed for many rows in advance, on both instruction sets. Results are compared
// with the bounds of bodies (guarded_graph.hpp), quotients by such values with those of the machine.
#include "x86/body/apart.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include <support_lib/on_reference.hpp>

#include "x86/body_of.hpp"
#include "x86/forms/forms.hpp"

namespace tenon::x86 {
namespace {

using testing::body_of;
using testing::graph_of;
using testing::GuardedGraph;

// Operators on rows %x, a number %v per row, and a number %b per matrix.
struct Case {
  const char* operators;
  const char* outputs;
  size_t apart;           // numbers of each row that are kept in memory
  size_t made_again = 0;  // of these, recomputed on avx2, where one quotient per row is as fast
};

constexpr Case kCases[] = {
    {"%g = Sigmoid %v\n%y = Mul %x, %g", "%y", 1},
    {"%g = Sigmoid %v\n%y = Mul %x, %g", "%g, %y", 0},  // an output of the rows' own loop
    {"%g = Sigmoid %v\n%h = Exp %v\n%y = Mul %x, %g\n%z = Add %x, %h", "%y, %z", 2},
    {"%g = Tanh %v\n%h = Exp %b\n%i = Mul %g, %h\n%y = Mul %x, %i", "%y", 1},
    // Quotients by roots, and by arbitrary numbers, some of which need the machine's division.
    {"%a = Abs %v\n%e = Add %a, %k\n%q = Sqrt %e\n%d = Sub %x, %b\n%n = Div %d, %q\n%y = Relu %n", "%y", 2},
    {"%y = Div %x, %v", "%y", 2, 1},
    {"%y = Div %x, %v\n%w = Add %x, %b\n%z = Div %w, %v", "%y, %z", 2, 1},
    // None: values that are as fast row by row, values that vary along rows, and bodies that reduce.
    {"%n = Neg %v\n%y = Mul %x, %n", "%y", 0},
    {"%s = Add %x, %v\n%y = Exp %s", "%y", 0},
    {"%s = ReduceSum %x, %axes\n%g = Exp %v\n%y = Mul %x, %g", "%s, %y", 0},
};

std::string text_of(const Case& one, int64_t rows, int64_t columns) {
  return str("graph @g(%x: f32[2,", rows, ",", columns, "], %v: f32[2,", rows, ",1], %b: f32[2,1,1]) -> (", one.outputs,
             ") {\n%k = Constant {value = dense<f32[]: 0.25>}\n%axes = Constant {value = dense<i64[1]: 2>}\n",
             one.operators, "\n}");
}

class Apart : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  int64_t lanes() const { return lanes_of(GetParam(), kF32); }

  snippet::LinearKernel kernel_of(const std::string& text, bool contract = true) const {
    const snippet::Body body = body_of(text);
    const FormMaker maker(testing::target_of(GetParam()), **jitter_table(), {.contract = contract});
    auto form = maker.make(body, maker.tiers_of(body).front());
    TENON_CHECK(form.ok(), text);
    return std::move(form->kernel);
  }
};

TEST_P(Apart, WhereRowsAreShortAndMany) {
  for (const Case& one : kCases) {
    const size_t again = GetParam() == Isa::avx2 ? one.made_again : 0;
    EXPECT_EQ(kernel_of(text_of(one, lanes(), 4 * lanes())).scratch.size(), one.apart - again) << one.operators;
    EXPECT_EQ(kernel_of(text_of(one, lanes() / 2 - 1, 4 * lanes())).scratch.size(), 0u)
        << "few rows: " << one.operators;
    EXPECT_EQ(kernel_of(text_of(one, lanes(), 65 * lanes())).scratch.size(), 0u) << "long rows: " << one.operators;
  }
  const std::string quotients = text_of({"%y = Div %x, %v", "%y", 0}, lanes(), 4 * lanes());
  EXPECT_NE(snippet::print(kernel_of(quotients)).find("DivStanding"), std::string::npos);
  EXPECT_EQ(kernel_of(quotients, false).scratch.size(), 0u) << "products have other bits";
}

// While one unit divides, another computes products. With more units, shorter rows gain, and a quotient may be combined
// with more operations.
TEST_P(Apart, QuotientsAreCountedForAllUnits) {
  const auto has_factors = [&](const char* operators, int64_t vectors, double units) {
    const snippet::Body body = body_of(text_of({operators, "%y", 0}, lanes(), vectors * lanes()));
    const snippet::Body made =
        with_factors_apart(body, static_cast<int>(lanes()), units, [](const auto&, const auto& n) {
          return n.op == Name("Div") ? 8.0 : n.op == Name("Exp") ? 10.0 : 1.0;
        });
    return std::ranges::any_of(made.nodes, [](const auto& node) { return node.op == Name("DivStanding"); });
  };
  EXPECT_FALSE(has_factors("%y = Div %x, %v", 2, 1));
  EXPECT_TRUE(has_factors("%y = Div %x, %v", 3, 1));
  EXPECT_FALSE(has_factors("%y = Div %x, %v", 1, 2));
  EXPECT_TRUE(has_factors("%y = Div %x, %v", 2, 2));
  EXPECT_FALSE(has_factors("%e = Exp %x\n%y = Div %e, %v", 4, 1));
  EXPECT_TRUE(has_factors("%e = Exp %x\n%y = Div %e, %v", 4, 2));
}

TEST_P(Apart, RowsOfAllWidthsAreRight) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> any(-4, 4);
  const auto drawn = [&](const Dims& dims) {
    Tensor made = *Tensor::zeros(kF32, dims);
    for (int64_t i = 0; i < made.size(); ++i) made.set_double(i, any(random));
    return Datum(made);
  };
  for (const Case& one : kCases) {
    for (const int64_t rows : {int64_t{0}, int64_t{1}, lanes() - 1, lanes(), lanes() + 1, 2 * lanes() + 3}) {
      for (const int64_t columns : {int64_t{0}, int64_t{1}, lanes() - 1, lanes(), lanes() + 1, 4 * lanes() + 3}) {
        auto graph = graph_of(text_of(one, rows, columns));
        GuardedGraph runner(GetParam(), {.small_caches = false});
        runner.tokenize(*graph);
        runner.run(*graph, {drawn({2, rows, columns}), drawn({2, rows, 1}), drawn({2, 1, 1})}, random);
        ASSERT_FALSE(HasFatalFailure()) << one.operators << ", " << rows << " rows of " << columns;
      }
    }
  }
}

// Zeros, infinities and NaN equal those of the machine. Other quotients are correctly rounded or adjacent to that, very
// small ones up to two steps off.
class HardQuotients : public Apart {
 protected:
  static std::vector<float> hard() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    std::vector<float> made{0.0f, -0.0f, kInfinity, -kInfinity, NAN};
    for (const int exponent : {-149, -127, -126, -100, -60, 0, 1, 60, 121, 122, 126, 127})
      for (const float m : {1.0f, -1.0f, 1.5f, 0x1.fffffep0f}) made.push_back(std::ldexp(m, exponent));
    return made;
  }
  // Quotients of each hard number, or of as many of them as there are columns, by the divisors, which are equal across
  // rows or columns. `beside`: further operators and outputs.
  void expect_quotients(std::span<const float> divisors, int64_t rows, int64_t columns, bool of_rows,
                        std::pair<std::string_view, std::string_view> beside = {}) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const std::vector<float> numbers = hard();
    const Dims dims = of_rows ? Dims{2, rows, 1} : Dims{1, 1, columns};
    auto graph = graph_of(str("graph @g(%x: f32[2,", rows, ",", columns, "], %v: f32[", dims[0], ",", dims[1], ",",
                              dims[2], "]) -> (%y", beside.second, ") {\n%y = Div %x, %v\n", beside.first, "}"));
    const auto divisor = [&](int64_t i) { return divisors[static_cast<size_t>(i) % divisors.size()]; };
    Tensor x = *Tensor::zeros(kF32, {2, rows, columns}), v = *Tensor::zeros(kF32, dims);
    for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, numbers[static_cast<size_t>(i) % numbers.size()]);
    for (int64_t i = 0; i < v.size(); ++i) v.set_double(i, divisor(i));
    GuardedGraph runner(GetParam(), {.bounds = false, .small_caches = false});
    runner.tokenize(*graph);
    std::mt19937 random(1);
    const Tensor y = runner.run(*graph, {Datum(x), Datum(v)}, random)[0];
    for (int64_t i = 0; i < y.size(); ++i) {
      const float above = static_cast<float>(x.double_at(i)), below = divisor(of_rows ? i / columns : i % columns);
      const float wanted = above / below, got = static_cast<float>(y.double_at(i));
      if (std::isnan(wanted) && std::isnan(got)) continue;
      const float next = std::nextafter(wanted, kInfinity), last = std::nextafter(wanted, -kInfinity);
      const bool is_exact = above == 0 || !std::isfinite(wanted), is_small = std::abs(wanted) < 0x1p-100f;
      if (is_exact)
        ASSERT_TRUE(got == wanted && std::signbit(got) == std::signbit(wanted))
            << above << " / " << below << ": " << got;
      else
        ASSERT_TRUE((is_small ? std::nextafter(last, -kInfinity) : last) <= got &&
                    got <= (is_small ? std::nextafter(next, kInfinity) : next))
            << above << " / " << below << ": " << got;
    }
  }
};

TEST_P(HardQuotients, Apart) {
  const auto count = static_cast<int64_t>(hard().size());
  ASSERT_EQ(kernel_of(text_of({"%y = Div %x, %v", "%y", 2}, count, count)).scratch.size(),
            GetParam() == Isa::avx2 ? 1u : 2u);
  expect_quotients(hard(), count, count, true);
}

// Long rows, or few. If a divisor is not moderate, the machine divides all vectors that are processed together.
TEST_P(HardQuotients, OfVectorsSideBySide) {
  const int64_t longer = 66 * lanes();
  const std::string text = snippet::print(kernel_of(text_of({"%y = Div %x, %v", "%y", 0}, 3, longer)));
  EXPECT_NE(text.find("DivStandingInTurn4 "), std::string::npos) << text;
  for (const int64_t columns : {longer, longer + 1, longer + 2 * lanes() + 3, 3 * lanes() - 1})
    for (const bool of_rows : {true, false}) expect_quotients(hard(), 40, columns, of_rows);
  for (const int64_t columns : {int64_t{0}, int64_t{1}, lanes() - 1, lanes(), lanes() + 1})
    for (const bool of_rows : {true, false}) expect_quotients(hard(), 100, columns, of_rows);
  // With 64-bit lanes as well: half as many at once, and masks of the same width.
  expect_quotients(hard(), 40, longer + 3, true, {"%w = Cast %y {to = type<f64[*]>}\n", ", %w"});
}

INSTANTIATE_TEST_SUITE_P(Both, Apart, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

INSTANTIATE_TEST_SUITE_P(Both, HardQuotients, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
