// Bodies whose code omits work that does not affect their results, on all kinds of floats: NaN, infinities, zeros of
// both signs, denormals and the limits of integers. Compared with the reference bit for bit, except for bits of NaN.
//
// TENON_FUZZ_SEEDS sets the number of graphs, TENON_FUZZ_FIRST the first.
#include "x86/body/numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bench/drawn_graph.hpp>
#include <bit>
#include <cmath>
#include <limits>
#include <support_lib/environment.hpp>
#include <support_lib/on_reference.hpp>

#include "x86/body_of.hpp"

namespace tenon::x86 {
namespace {

using testing::body_of;
using testing::graph_of;
using testing::GuardedGraph;
using testing::nodes;

const std::vector<float>& special_numbers() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  static const std::vector<float> numbers{0,
                                          -0.0f,
                                          NAN,
                                          -NAN,
                                          kInf,
                                          -kInf,
                                          1e-40f,
                                          -1e-40f,
                                          0.5f,
                                          -0.5f,
                                          1,
                                          -1,
                                          1.75f,
                                          -7.25f,
                                          3e38f,
                                          -3e38f,
                                          2147483520,
                                          2147483648,
                                          -2147483648.f,
                                          3e9f,
                                          -2147483904.f,
                                          -3e9f,
                                          4294967040,
                                          4294967296,
                                          255.5f,
                                          -128.5f,
                                          16777216,
                                          1e-20f};
  return numbers;
}

class BodyNumbers : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }

  void expect_alike(const std::string& text, const std::vector<Datum>& inputs) {
    auto graph = graph_of(text);
    const std::vector<Tensor> expected = tenon::testing::on_reference(*graph, inputs);
    GuardedGraph runner(GetParam(), {.contract = false, .bounds = false, .small_caches = false});
    runner.tokenize(*graph);
    std::mt19937 random(1);
    const std::vector<Tensor> got = runner.run(*graph, inputs, random);
    for (size_t o = 0; o < got.size(); ++o) {
      for (int64_t i = 0; i < got[o].size(); ++i) {
        const double x = got[o].double_at(i), y = expected[o].double_at(i);
        const bool alike = std::isnan(y) ? std::isnan(x) : x == y && std::signbit(x) == std::signbit(y);
        ASSERT_TRUE(alike) << "output " << o << " element " << i << ": " << x << ", expected " << y << "\n" << text;
      }
    }
    snippets_ += runner.snippets;
  }

  // All pairs of special numbers.
  static std::vector<Datum> pairs() {
    const std::vector<float>& numbers = special_numbers();
    const auto n = static_cast<int64_t>(numbers.size());
    Tensor x = *Tensor::zeros(kF32, {n * n}), z = *Tensor::zeros(kF32, {n * n});
    for (int64_t i = 0; i < n * n; ++i)
      x.set_double(i, numbers[static_cast<size_t>(i / n)]), z.set_double(i, numbers[static_cast<size_t>(i % n)]);
    return {Datum(x), Datum(z)};
  }
  static std::string text_of(const std::string& operators) {
    const size_t n = special_numbers().size();
    return str("graph @g(%x: f32[", n * n, "], %z: f32[", n * n,
               "]) -> %y {\n%k = Constant {value = dense<f32[]: 3>}\n", "%o = Constant {value = dense<f32[]: 0>}\n",
               operators, "\n}");
  }

  size_t snippets_ = 0;
};

TEST_P(BodyNumbers, GraphsOnAllPairs) {
  const char* const kGraphs[] = {
      "%a = Abs %x\n%y = Max %a, %x",
      "%a = Abs %x\n%y = Min %x, %a",
      "%a = Neg %x\n%y = Max %a, %x",
      "%a = Neg %x\n%y = Min %x, %a",
      "%a = Floor %x\n%b = Max %x, %z\n%y = Max %a, %b",
      "%a = Relu %x\n%b = Add %x, %z\n%y = Min %a, %b",
      "%a = Mul %x, %o\n%y = Max %a, %x",
      "%a = Add %x, %k\n%y = Max %x, %a",
      "%a = Sqrt %x\n%y = Max %a, %x",
      "%a = Sub %x, %z\n%b = Abs %a\n%y = Min %b, %z",
      "%c = Less %x, %z\n%a = Where %c, %x, %z\n%y = Max %a, %x",
      "%a = Div %x, %z\n%b = Max %a, %x\n%c = Min %b, %z\n%y = Max %c, %a",
      "%a = Cast %x {to = type<i32[*]>}\n%y = Add %a, %a",
      // Conversions of a value both with and without a bound.
      "%a = Relu %x\n%b = Cast %a {to = type<i32[*]>}\n%c = Cast %x {to = type<i32[*]>}\n%y = BitwiseXor %b, %c",
      "%s = Constant {value = dense<f32[]: -2.5>}\n%a = Max %x, %s\n%b = Cast %a {to = type<i32[*]>}\n%c = Cast %x {to "
      "= "
      "type<i32[*]>}\n%y = BitwiseXor %b, %c",
      "%a = Min %x, %k\n%b = Cast %x {to = type<i32[*]>}\n%c = Cast %a {to = type<i32[*]>}\n%y = BitwiseXor %b, %c",
      // Choices within choices, and operators on bits.
      "%c = Less %x, %z\n%d = Greater %x, %k\n%a = Where %d, %x, %k\n%y = Where %c, %x, %a",
      "%c = Less %x, %z\n%d = Greater %x, %k\n%a = Where %d, %z, %x\n%y = Where %c, %a, %x",
      "%c = Less %x, %k\n%d = Less %x, %o\n%e = Greater %z, %k\n%f = Or %c, %e\n%a = Where %d, %z, %k\n%y = Where %f, "
      "%x, %a",
      "%a = Cast %x {to = type<u8[*]>}\n%b = BitwiseNot %a\n%c = BitwiseAnd %a, %b\n%d = Cast %c {to = "
      "type<f32[*]>}\n%y "
      "= Add %d, %z",
      "%a = Cast %x {to = type<u8[*]>}\n%b = BitwiseNot %a\n%c = BitwiseOr %b, %a\n%d = BitwiseXor %a, %b\n%y = Sub "
      "%c, %d",
      "%a = Cast %x {to = type<u8[*]>}\n%b = BitwiseNot %a\n%c = BitwiseOr %b, %a\n%d = Cast %c {to = "
      "type<f32[*]>}\n%y = "
      "Add %d, %z",
      "%a = Cast %x {to = type<i8[*]>}\n%b = BitwiseNot %a\n%c = BitwiseXor %b, %a\n%d = Cast %c {to = "
      "type<f32[*]>}\n%y = "
      "Add %d, %z",
      "%a = Cast %x {to = type<u32[*]>}\n%b = BitwiseNot %a\n%c = BitwiseOr %b, %a\n%d = Cast %c {to = "
      "type<f32[*]>}\n%y = Add %d, %z",
      "%a = Cast %x {to = type<u32[*]>}\n%y = Add %a, %a",
      "%a = Max %x, %k\n%y = Cast %a {to = type<i32[*]>}",
      "%a = Clip %x, %o, %k\n%b = Cast %a {to = type<i32[*]>}\n%y = Mul %b, %b",
      "%a = Cast %x {to = type<i8[*]>}\n%b = Cast %a {to = type<f32[*]>}\n%c = Mul %b, %k\n%y = Cast %c {to = "
      "type<i32[*]>}",
      "%a = Cast %x {to = type<u8[*]>}\n%b = Cast %a {to = type<f32[*]>}\n%c = Abs %b\n%d = Relu %c\n%y = Max %d, %x",
      "%a = Cast %x {to = type<i8[*]>}\n%y = Cast %a {to = type<i32[*]>}",
      "%a = Abs %x\n%b = Add %a, %k\n%c = Div %x, %b\n%y = Cast %c {to = type<i8[*]>}",
      "%a = Abs %x\n%b = Add %a, %k\n%c = Relu %x\n%d = Div %c, %b\n%e = Relu %d\n%y = Max %e, %z",
      "%a = Abs %x\n%b = Add %a, %k\n%c = Neg %x\n%d = Div %c, %b\n%e = Cast %d {to = type<i32[*]>}\n%y = Abs %e",
      "%c = Div %x, %k\n%d = Max %c, %x\n%y = Min %d, %z",
      "%a = Abs %x\n%c = Less %a, %o\n%y = Where %c, %z, %k",
      "%a = Clip %x, %o, %k\n%b = Add %a, %k\n%c = Div %z, %b\n%d = Relu %c\n%y = Cast %d {to = type<u8[*]>}",
      "%a = Floor %x\n%b = Mul %a, %a\n%c = Sub %b, %k\n%y = Ceil %c",
      "%a = Cast %x {to = type<i32[*]>}\n%b = Cast %a {to = type<f32[*]>}\n%c = Round %z\n%d = Add %b, %c\n%y = Floor "
      "%d",
      // Bounds that are one more than the maximum of a narrow type, and one less than the minimum.
      "%w = Constant {value = dense<f32[]: 128>}\n%a = Clip %x, %o, %w\n%y = Cast %a {to = type<i32[*]>}",
      "%w = Constant {value = dense<f32[]: 32768>}\n%a = Clip %x, %o, %w\n%y = Cast %a {to = type<i32[*]>}",
      "%w = Constant {value = dense<f32[]: -129>}\n%a = Clip %x, %w, %k\n%y = Cast %a {to = type<i32[*]>}",
      "%w = Constant {value = dense<f32[]: -32769>}\n%a = Clip %x, %w, %k\n%y = Cast %a {to = type<i32[*]>}",
      "%a = Cast %x {to = type<i16[*]>}\n%y = Cast %a {to = type<i32[*]>}",
      "%a = Cast %x {to = type<i8[*]>}\n%b = Cast %z {to = type<i8[*]>}\n%y = Max %a, %b",
      "%c = Less %x, %z\n%d = Greater %x, %k\n%e = Or %c, %d\n%y = Where %e, %x, %z",
      "%c = LessOrEqual %x, %z\n%d = Greater %z, %k\n%e = And %c, %d\n%y = Where %e, %x, %z",
      "%c = Less %x, %z\n%d = Equal %x, %k\n%e = GreaterOrEqual %z, %o\n%f = Or %c, %d\n%g = Or %e, %f\n%y = Where %g, "
      "%x, %z",
      // Conditions on one value, one of which implies the others, and values chosen by a condition on themselves.
      "%c = Less %x, %k\n%d = LessOrEqual %x, %o\n%e = Or %c, %d\n%y = Where %e, %x, %z",
      "%c = Greater %x, %k\n%d = Less %o, %x\n%e = And %c, %d\n%y = Where %e, %x, %z",
      "%c = GreaterOrEqual %x, %o\n%d = LessOrEqual %x, %o\n%e = And %c, %d\n%y = Where %e, %x, %z",
      "%c = Less %x, %o\n%d = Greater %x, %k\n%e = And %c, %d\n%y = Where %e, %x, %z",
      "%c = GreaterOrEqual %x, %o\n%d = LessOrEqual %x, %k\n%e = Or %c, %d\n%y = Where %e, %x, %z",
      "%c = GreaterOrEqual %x, %o\n%a = Where %c, %x, %k\n%b = Abs %a\n%y = Max %b, %z",
      "%c = Less %x, %o\n%a = Where %c, %k, %x\n%b = Less %a, %o\n%d = Abs %a\n%y = Where %b, %z, %d",
      "%c = Greater %x, %o\n%a = Where %c, %o, %x\n%b = Greater %a, %k\n%y = Where %b, %z, %a",
      "%c = Equal %x, %o\n%a = Where %c, %x, %k\n%b = Max %a, %o\n%d = Abs %a\n%y = Where %c, %b, %d",
      "%c = Less %x, %z\n%d = Not %c\n%e = Greater %z, %o\n%f = And %d, %e\n%g = Or %f, %c\n%y = Where %g, %x, %z",
      // Unsigned integers that i32 can represent, and others.
      "%a = Cast %x {to = type<u32[*]>}\n%b = Cast %z {to = type<u32[*]>}\n%c = Less %a, %b\n%y = Where %c, %x, %z",
      "%a = Cast %x {to = type<u8[*]>}\n%b = Cast %z {to = type<u8[*]>}\n%c = Less %a, %b\n%y = Where %c, %x, %z",
      "%a = Cast %x {to = type<u16[*]>}\n%b = Cast %k {to = type<u16[*]>}\n%c = LessOrEqual %a, %b\n%d = Greater %b, "
      "%a\n%e = Xor %c, %d\n%y = Where %e, %x, %z",
      "%a = Cast %x {to = type<u8[*]>}\n%b = Cast %k {to = type<u8[*]>}\n%c = LessOrEqual %a, %b\n%d = Greater %a, "
      "%b\n%e = Or %c, %d\n%y = Where %e, %x, %z",
      // Bits of signed and unsigned integers, bounded by numbers in and out of their ranges.
      "%a = Cast %x {to = type<i8[*]>}\n%b = Cast %z {to = type<i8[*]>}\n%i = Cast %a {to = type<i32[*]>}\n%j = Cast "
      "%b "
      "{to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: -128>}\n%c = BitwiseAnd %i, %j\n%d = BitwiseOr %i, %j\n"
      "%e = BitwiseXor %i, %j\n%f = BitwiseNot %i\n%m = Max %c, %s\n%n = Max %d, %s\n%p = Max %e, %s\n%q = Max %f, %s\n"
      "%r = Sub %m, %n\n%t = Sub %p, %q\n%y = Mul %r, %t",
      "%a = Cast %x {to = type<u8[*]>}\n%i = Cast %a {to = type<i32[*]>}\n%b = Cast %z {to = type<i8[*]>}\n%j = Cast "
      "%b "
      "{to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: 127>}\n%c = BitwiseAnd %i, %j\n%d = BitwiseOr %i, %s\n"
      "%e = BitwiseXor %j, %s\n%f = BitwiseNot %i\n%m = Less %c, %s\n%n = Less %d, %s\n%o2 = Greater %d, %e\n%p = Or "
      "%m, "
      "%n\n%q = And %p, %o2\n%y = Where %q, %c, %f",
      // Numbers with only one possible value, and choices between equal values.
      "%a = Cast %x {to = type<u8[*]>}\n%i = Cast %a {to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: "
      "255>}\n%t = "
      "Constant {value = dense<i32[]: -7>}\n%c = LessOrEqual %i, %s\n%b = Where %c, %t, %i\n%d = Mul %b, %t\n%e = Add "
      "%d, "
      "%i\n%f = Sub %e, %b\n%g = Greater %d, %i\n%y = Where %g, %f, %d",
      // The greater and the less of the compared values, choices by the same condition, signs without effect, x - x.
      "%c = Greater %x, %z\n%y = Where %c, %x, %z",
      "%c = Greater %x, %z\n%y = Where %c, %z, %x",
      "%c = Less %x, %z\n%y = Where %c, %x, %z",
      "%c = Less %x, %z\n%y = Where %c, %z, %x",
      "%c = LessOrEqual %x, %z\n%y = Where %c, %x, %z",
      "%c = LessOrEqual %x, %k\n%y = Where %c, %x, %k",
      "%c = GreaterOrEqual %k, %x\n%y = Where %c, %k, %x",
      "%c = GreaterOrEqual %x, %o\n%y = Where %c, %x, %o",
      "%c = Less %x, %k\n%a = Where %c, %x, %z\n%b = Neg %z\n%y = Where %c, %a, %b",
      "%c = Less %x, %k\n%a = Where %c, %x, %z\n%b = Neg %x\n%y = Where %c, %b, %a",
      "%a = Neg %x\n%b = Mul %a, %k\n%c = Neg %b\n%d = Abs %c\n%y = Sub %z, %d",
      "%a = Mul %x, %k\n%b = Neg %a\n%y = Max %b, %z",
      "%a = Sub %x, %x\n%y = Add %a, %z",
      "%a = Sub %x, %x\n%b = Cast %a {to = type<i32[*]>}\n%c = Cast %z {to = type<i32[*]>}\n%y = Add %b, %c",
      "%a = Cast %x {to = type<u8[*]>}\n%f = Cast %a {to = type<f32[*]>}\n%b = Sub %f, %f\n%c = Sqrt %b\n%y = Max "
      "%c, "
      "%z",
      "%c = LessOrEqual %x, %x\n%d = Less %z, %z\n%e = Or %c, %d\n%y = Where %e, %x, %k",
      "%n = Abs %x\n%m = Neg %n\n%a = Sigmoid %m\n%b = Cast %a {to = type<i8[*]>}\n%c = Cast %z {to = "
      "type<i8[*]>}\n%y = "
      "Max %b, %c",
      "%a = Max %x, %z\n%c = Less %x, %a\n%y = Where %c, %a, %k",
      "%a = Min %z, %x\n%c = LessOrEqual %x, %a\n%y = Where %c, %a, %k",
      "%a = Max %x, %z\n%c = Greater %x, %a\n%y = Where %c, %a, %k",
      "%a = Min %x, %z\n%c = Less %a, %z\n%d = GreaterOrEqual %x, %a\n%e = And %c, %d\n%y = Where %e, %a, %k",
      "%i = Cast %x {to = type<i32[*]>}\n%j = Cast %z {to = type<i32[*]>}\n%a = Max %i, %j\n%b = Min %i, %j\n%c = "
      "LessOrEqual %i, %a\n%d = LessOrEqual %i, %b\n%e = And %c, %d\n%f = Equal %a, %j\n%y = Where %e, %a, %b",
      // The greater and the less where it is known which one it is, differences from a chosen value.
      "%i = Cast %x {to = type<i32[*]>}\n%j = Cast %z {to = type<i32[*]>}\n%a = Max %i, %j\n%b = Min %j, %i\n%c = "
      "LessOrEqual %i, %j\n%d = Where %c, %a, %b\n%e = Greater %j, %i\n%f = Where %e, %b, %a\n%g = BitwiseXor %d, "
      "%f\n%y = BitwiseAnd %g, %a",
      "%i = Cast %x {to = type<i32[*]>}\n%j = Cast %z {to = type<i32[*]>}\n%c = Less %x, %k\n%a = Where %c, %i, "
      "%j\n%b = Sub %a, %j\n%d = Where %c, %i, %j\n%e = Sub %j, %d\n%f = Where %c, %j, %i\n%g = Sub %f, %j\n%h = Max "
      "%b, %e\n%y = BitwiseXor %h, %g",
      // Choices between numbers, and operators applied to them.
      "%c = Less %x, %z\n%a = Where %c, %k, %o\n%b = Sub %a, %k\n%d = Mul %b, %k\n%y = Abs %d",
      "%c = Less %x, %z\n%a = Where %c, %k, %o\n%b = Mul %a, %k\n%d = Neg %b\n%e = Max %b, %d\n%y = Add %e, %x",
      "%i = Cast %x {to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: -7>}\n%t = Constant {value = dense<i32[]: "
      "100>}\n%c = Less %i, %t\n%a = Where %c, %s, %t\n%b = Mul %a, %t\n%d = BitwiseXor %b, %s\n%e = Cast %d {to = "
      "type<i8[*]>}\n%f = Cast %e {to = type<i32[*]>}\n%y = Sub %f, %b",
      // Nested choices by conditions on one value.
      "%c = Less %x, %k\n%d = Less %x, %o\n%a = Where %c, %z, %x\n%y = Where %d, %a, %o",
      "%c = Greater %x, %k\n%d = Less %x, %o\n%a = Where %c, %z, %x\n%y = Where %d, %a, %k",
      "%c = Less %x, %o\n%d = Less %x, %k\n%a = Where %c, %z, %x\n%y = Where %d, %k, %a",
      "%c = Less %x, %k\n%d = Less %x, %o\n%a = Where %c, %z, %x\n%y = Where %d, %k, %a",
      // Comparisons of choices, and comparisons of one integer with several numbers.
      "%c = Less %x, %z\n%a = Where %c, %k, %o\n%d = LessOrEqual %a, %o\n%b = Where %d, %a, %k\n%e = Greater %b, "
      "%a\n%f = Or %d, %e\n%g = Where %f, %o, %b\n%h = Sub %g, %a\n%y = Mul %h, %k",
      "%i = Cast %x {to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: 1>}\n%t = Constant {value = dense<i32[]: "
      "0>}\n%c = Greater %i, %s\n%d = LessOrEqual %i, %t\n%e = Or %c, %d\n%a = Where %e, %x, %z\n%f = GreaterOrEqual "
      "%s, %i\n%g = Less %t, %i\n%h = And %f, %g\n%y = Where %h, %k, %a",
      "%i = Cast %x {to = type<u32[*]>}\n%s = Constant {value = dense<u32[]: 4294967295>}\n%t = Constant {value = "
      "dense<u32[]: 0>}\n%c = Equal %i, %s\n%d = Equal %i, %t\n%e = Or %c, %d\n%f = Less %i, %s\n%g = Greater %i, "
      "%t\n%h = And %f, %g\n%a = Where %e, %x, %z\n%y = Where %h, %a, %k",
      "%i = Cast %x {to = type<i64[*]>}\n%s = Constant {value = dense<i64[]: 9223372036854775807>}\n%t = Constant "
      "{value = dense<i64[]: -9223372036854775808>}\n%c = GreaterOrEqual %i, %s\n%d = LessOrEqual %i, %t\n%e = Or %c, "
      "%d\n%f = Greater %i, %t\n%g = Less %i, %s\n%h = Or %f, %g\n%a = Where %e, %x, %z\n%y = Where %h, %a, %k",
      // Comparisons of sums of one integer, which wrap around.
      "%i = Cast %x {to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: 2147483647>}\n%t = Constant {value = "
      "dense<i32[]: -3>}\n%a = Neg %i\n%b = Sub %i, %s\n%e = Sub %t, %b\n%c = Less %a, %t\n%d = GreaterOrEqual %b, "
      "%t\n%f = And %c, %d\n%g = LessOrEqual %e, %s\n%h = Greater %i, %t\n%j = And %g, %h\n%l = Or %f, %j\n%m = Where "
      "%l, %x, %z\n%n = Or %c, %h\n%y = Where %n, %m, %k",
      // Sums with constants that simplify to other sums, and comparisons of these.
      "%i = Cast %x {to = type<i32[*]>}\n%j = Cast %z {to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: 3>}\n%p "
      "= "
      "Add %i, %s\n%d = Sub %i, %j\n%q = Sub %p, %j\n%e = Add %d, %s\n%c = Less %e, %s\n%a = Where %c, %p, %q\n%f = "
      "Add "
      "%i, %i\n%g = Sub %f, %s\n%h = Greater %g, %s\n%l = Where %h, %a, %e\n%m = Sub %l, %d\n%y = BitwiseXor %m, %p",
      // Bounds, choices, magnitudes and sums of one integer, compared with numbers and selected by the results.
      "%i = Cast %x {to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: 2147483647>}\n%t = Constant {value = "
      "dense<i32[]: -2147483648>}\n%u = Constant {value = dense<i32[]: 1>}\n%a = Abs %i\n%c = Less %a, %u\n%b = Sub "
      "%u, "
      "%i\n%d = Max %b, %u\n%e = Greater %d, %s\n%f = Where %e, %t, %d\n%g = Neg %f\n%h = LessOrEqual %g, %t\n%j = Or "
      "%c, %h\n%l = Where %j, %g, %a\n%m = Equal %l, %t\n%y = Where %m, %x, %z",
      "%i = Cast %x {to = type<i32[*]>}\n%s = Constant {value = dense<i32[]: 16777216>}\n%t = Constant {value = "
      "dense<i32[]: -7>}\n%c = Less %i, %s\n%a = Min %i, %t\n%b = Where %c, %a, %i\n%d = Greater %b, %t\n%e = Max %b, "
      "%s\n%f = Where %d, %e, %b\n%g = Abs %f\n%h = Greater %g, %s\n%j = Where %h, %f, %a\n%y = Sub %j, %b",
      "%i = Cast %x {to = type<u32[*]>}\n%s = Constant {value = dense<u32[]: 4294967295>}\n%t = Constant {value = "
      "dense<u32[]: 255>}\n%a = Min %i, %t\n%b = Add %a, %s\n%c = Greater %b, %t\n%d = Where %c, %i, %a\n%e = Max %d, "
      "%t\n%f = Less %e, %s\n%y = Where %f, %x, %z",
      // Repeated extrema of the same values, also of zeros.
      "%a = Relu %x\n%b = Sub %a, %x\n%c = Min %b, %x\n%d = Min %c, %b\n%y = Mul %d, %k",
      // Extrema of a value that is already the greater one.
      "%a = Max %x, %z\n%b = Max %a, %x\n%c = Min %z, %b\n%d = Min %c, %b\n%e = Max %d, %d\n%y = Min %e, %k",
      // Sums of integers.
      "%i = Cast %x {to = type<i32[*]>}\n%j = Cast %z {to = type<i32[*]>}\n%a = Add %i, %j\n%b = Sub %a, %i\n%c = "
      "Add "
      "%b, %j\n%d = BitwiseNot %c\n%e = Sub %d, %j\n%y = Sub %e, %i",
      "%i = Cast %x {to = type<u8[*]>}\n%j = Cast %z {to = type<u8[*]>}\n%a = Sub %i, %j\n%b = BitwiseXor %a, "
      "%j\n%c = "
      "Sub %b, %i\n%d = Add %c, %a\n%e = Add %d, %j\n%f = Add %e, %i\n%y = Min %f, %d",
      "%i = Cast %x {to = type<i32[*]>}\n%j = Cast %z {to = type<i32[*]>}\n%c = Less %i, %j\n%d = Greater %i, "
      "%j\n%e = "
      "Or %c, %d\n%a = Where %e, %j, %i\n%f = Equal %j, %i\n%g = Or %f, %d\n%b = Where %g, %i, %a\n%y = Sub %b, %i",
  };
  for (const char* operators : kGraphs) {
    expect_alike(text_of(operators), pairs());
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(snippets_, std::size(kGraphs));
}

// The maximum and minimum of functions monotonic in x. Without rows of two zeros, where either may be the result.
TEST_P(BodyNumbers, GreatestOfAllPairs) {
  const char* const kGraphs[] = {
      "%a = Add %x, %k\n%y = ReduceMax %a, %axes",
      "%a = Sub %x, %k\n%b = Mul %a, %k\n%y = ReduceMin %b, %axes",
      "%a = Sub %k, %x\n%y = ReduceMax %a, %axes",
      "%a = Neg %x\n%b = Add %k, %a\n%y = ReduceMin %b, %axes",
      "%s = Constant {value = dense<f32[]: -3e38>}\n%a = Mul %x, %s\n%b = Add %a, %k\n%y = ReduceMax %b, %axes",
      "%s = Constant {value = dense<f32[]: 0.5>}\n%a = Mul %x, %s\n%b = Neg %a\n%y = ReduceMax %b, %axes",
      "%a = Add %x, %o\n%y = ReduceMin %a, %axes",
      "%a = Mul %x, %o\n%b = Add %a, %o\n%y = ReduceMax %b, %axes",
      "%s = Constant {value = dense<f32[]: inf>}\n%a = Add %x, %s\n%y = ReduceMax %a, %axes",
  };
  const std::vector<float>& numbers = special_numbers();
  std::vector<float> rows;
  for (const float a : numbers)
    for (const float b : numbers)
      if (a != 0 || b != 0) rows.insert(rows.end(), {a, b});
  const auto n = static_cast<int64_t>(rows.size() / 2);
  Tensor x = *Tensor::zeros(kF32, {n, 2});
  for (int64_t i = 0; i < 2 * n; ++i) x.set_double(i, rows[static_cast<size_t>(i)]);
  for (const char* operators : kGraphs) {
    expect_alike(str("graph @g(%x: f32[", n,
                     ", 2]) -> %y {\n%axes = Constant {value = dense<i64[1]: 1>}\n%k = Constant "
                     "{value = dense<f32[]: 3>}\n%o = Constant {value = dense<f32[]: 0>}\n",
                     operators, "\n}"),
                 {Datum(x)});
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(snippets_, std::size(kGraphs));
}

// Random graphs of exact operators only.
TEST_P(BodyNumbers, DrawnGraphsOfSpecialNumbers) {
  const std::vector<float>& numbers = special_numbers();
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(300);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const bench::DrawnGraph drawn = bench::draw_graph(seed, 10);
    const auto is_inexact = [](const bench::DrawnValue& v) {
      return v.is_reduction() || v.op == "Exp" || v.op == "Tanh" || v.op == "Sigmoid" || v.op == "Erf" ||
             v.op == "HardSwish" || v.op == "Div";
    };
    if (std::ranges::any_of(drawn.values, is_inexact)) continue;
    auto graph = graph_of(drawn.text());
    std::mt19937 random(seed);
    std::vector<Datum> inputs;
    for (size_t i = 0; i < graph->body().input_count(); ++i) {
      const Type& type = graph->body().input(i)->type();
      Tensor input = *Tensor::zeros(type.element(), *type.shape().static_dims());
      for (int64_t e = 0; e < input.size(); ++e)
        type.element().is_float() ? input.set_double(e, numbers[random() % numbers.size()])
                                  : input.set_int(e, static_cast<int64_t>(random()));
      inputs.emplace_back(std::move(input));
    }
    expect_alike(drawn.text(), inputs);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(snippets_, seeds / 8);
}

// Floats around the squares of constants, whose roots are those constants or adjacent to them.
TEST_P(BodyNumbers, RootsThatAreCompared) {
  for (const float bound : {0.0f, 1e-30f, 1e-20f, 0.0625f, 0.7f, 1.5f, 3.0f, 1e10f, 0x1.fffffep59f, 3e38f, -1.0f}) {
    std::vector<float> numbers = special_numbers();
    for (const double step : {-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0})
      numbers.push_back(static_cast<float>(double{bound} * bound * (1 + step * 0x1p-23)));
    for (int32_t bits = 1; bits < 4; ++bits) numbers.push_back(std::bit_cast<float>(bits));
    const auto n = static_cast<int64_t>(numbers.size());
    Tensor x = *Tensor::zeros(kF32, {n});
    for (int64_t i = 0; i < n; ++i) x.set_double(i, numbers[static_cast<size_t>(i)]);
    for (const char* op : {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
      for (const char* operands : {"%r, %k", "%k, %r"}) {
        for (const char* of : {"%a", "%x"}) {
          expect_alike(
              str("graph @g(%x: f32[", n, "]) -> %y {\n%k = Constant {value = dense<f32[]: ", bound,
                  ">}\n%a = Abs %x\n%r = Sqrt ", of, "\n%c = ", op, " ", operands, "\n%y = Where %c, %x, %k\n}"),
              {Datum(x)});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, BodyNumbers, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

TEST(BodyNumbersOfGraphs, OneInstructionWhereNaNComesByItself) {
  const auto of = [](const std::string& operators) {
    return with_fewer_checks(body_of("graph @g(%x: f32[N], %z: f32[N], %b: u8[N]) -> %y {\n" + operators + "\n}"));
  };
  EXPECT_EQ(nodes(of("%a = Abs %x\n%y = Max %a, %x"), "ClampLow"), 1);
  EXPECT_EQ(nodes(of("%f = Cast %b {to = type<f32[*]>}\n%y = Min %f, %x"), "ClampHigh"), 1);
  EXPECT_EQ(nodes(of("%y = Max %x, %z"), "Max"), 1);
  // Of the byte's 0 and x = -0, the result is the second.
  EXPECT_EQ(nodes(of("%f = Cast %b {to = type<f32[*]>}\n%y = Min %x, %f"), "Min"), 1);
  EXPECT_EQ(nodes(of("%s = Sqrt %x\n%y = Max %s, %x"), "Max"), 1) << "the root of -1 is NaN";
}

TEST(BodyNumbersOfGraphs, ConditionsThatSayNoMore) {
  const auto of = [](const std::string& operators) {
    return with_fewer_checks(
        body_of("graph @g(%x: f32[N], %z: f32[N], %i: i32[N]) -> %y {\n"
                "%k = Constant {value = dense<f32[]: 3>}\n%o = Constant {value = dense<f32[]: 0>}\n"
                "%five = Constant {value = dense<i32[]: 5>}\n%six = Constant {value = dense<i32[]: "
                "6>}\n" +
                operators + "\n}"));
  };
  const std::string where = "\n%y = Where %e, %x, %z";
  EXPECT_EQ(nodes(of("%c = Less %x, %k\n%d = LessOrEqual %x, %o\n%e = Or %c, %d" + where), "LessOrEqual"), 0);
  EXPECT_EQ(nodes(of("%c = Less %x, %k\n%d = LessOrEqual %x, %o\n%e = And %c, %d" + where), "Less"), 0);
  EXPECT_EQ(nodes(of("%c = Less %x, %k\n%d = LessOrEqual %z, %o\n%e = And %c, %d" + where), "And"), 1);
  EXPECT_EQ(nodes(of("%c = Less %x, %o\n%d = Greater %x, %k\n%e = And %c, %d" + where), "Where"), 0) << "it is false";
  // True for all numbers, but not for NaN.
  EXPECT_EQ(nodes(of("%c = Greater %x, %o\n%d = Less %x, %k\n%e = Or %c, %d" + where), "Where"), 1);
  EXPECT_EQ(nodes(of("%c = Less %i, %five\n%d = Less %i, %six\n%e = And %c, %d" + where), "And"), 0);
  // Ranges that together hold all integers, where one ends next to the beginning of the other.
  EXPECT_EQ(nodes(of("%c = Less %i, %six\n%d = Greater %i, %five\n%e = Or %c, %d" + where), "Where"), 0);
  EXPECT_EQ(nodes(of("%c = Less %i, %six\n%d = GreaterOrEqual %i, %five\n%e = Or %c, %d" + where), "Where"), 0);
  EXPECT_EQ(nodes(of("%c = Less %i, %five\n%d = Greater %i, %five\n%e = Or %c, %d" + where), "Where"), 1);
  EXPECT_EQ(nodes(of("%c = Greater %i, %five\n%d = Less %i, %five\n%e = Or %c, %d" + where), "Where"), 1);
  const std::string chosen = "%c = Less %i, %five\n%a = Where %c, %six, %i\n%e = Less %a, %five";
  EXPECT_EQ(nodes(of(chosen + where), "Where"), 0) << "5 and more";
  const std::string alone = "%c = Less %i, %five\n%a = Where %c, %six, %i\n%e = Less %a, %six";
  EXPECT_EQ(nodes(of(alone + where), "Where"), 1);
  EXPECT_EQ(nodes(of(alone + where), "Equal"), 1) << "5 alone";
  // Integers with only the bits of a byte, and with at least the bits of a constant.
  const std::string byte = "%s = Constant {value = dense<i32[]: 255>}\n%t = BitwiseAnd %i, %s\n";
  EXPECT_EQ(nodes(of(byte + "%e = Greater %t, %s" + where), "Where"), 0);
  EXPECT_EQ(nodes(of(byte + "%e = GreaterOrEqual %t, %s" + where), "Where"), 1);
  EXPECT_EQ(nodes(of(byte + "%u = BitwiseOr %t, %six\n%e = Less %u, %six" + where), "Where"), 0);
  EXPECT_EQ(nodes(of(byte + "%u = BitwiseOr %i, %six\n%e = Less %u, %six" + where), "Where"), 1);
  EXPECT_EQ(nodes(of(byte + "%u = BitwiseXor %t, %six\n%e = Greater %u, %s" + where), "Where"), 0);
  EXPECT_EQ(nodes(of(byte + "%u = BitwiseNot %t\n%e = Less %u, %five" + where), "Where"), 0);
  EXPECT_EQ(nodes(of(byte + "%u = BitwiseNot %t\n%e = LessOrEqual %t, %u" + where), "Where"), 0) << "of two values";
  // Results that then have only one possible value.
  EXPECT_EQ(nodes(of(byte + "%c = LessOrEqual %t, %s\n%a = Where %c, %five, %i\n%y = Add %a, %i"), "Where"), 0);
  EXPECT_EQ(nodes(of(byte + "%c = LessOrEqual %t, %s\n%y = Where %c, %five, %i"), "Where"), 0);
  const std::string five = "%p = Min %t, %s\n%c = Greater %p, %s\n%a = Where %c, %t, %five\n%m = Mul %a, %six\n";
  EXPECT_EQ(nodes(of(byte + five + "%y = Sub %i, %m"), "Mul"), 0);
  EXPECT_EQ(nodes(of(byte + five + "%n = Mul %m, %i\n%y = Sub %n, %m"), "Mul"), 1);
  // A set bit is clear in the complement, also for bytes and next to sums.
  EXPECT_EQ(nodes(of("%n = BitwiseNot %i\n%u = BitwiseAnd %n, %i\n%e = Greater %u, %five" + where), "Where"), 0);
  EXPECT_EQ(nodes(of("%n = BitwiseNot %i\n%u = BitwiseAnd %n, %six\n%e = Greater %u, %five" + where), "Where"), 1);
  for (const char* op : {"BitwiseOr", "BitwiseXor"}) {
    EXPECT_EQ(nodes(of(str("%n = BitwiseNot %i\n%u = ", op, " %i, %n\n%e = Less %u, %five", where)), "Where"), 0);
    EXPECT_EQ(nodes(of(str("%n = BitwiseNot %i\n%u = ", op, " %n, %six\n%e = Less %u, %five", where)), "Where"), 1);
  }
  EXPECT_EQ(nodes(of("%b = Cast %i {to = type<u8[*]>}\n%n = BitwiseNot %b\n%u = BitwiseAnd %b, %n\n%f = Cast %u {to = "
                     "type<f32[*]>}\n%e = Greater %f, %k" +
                     where),
                  "Where"),
            0);
  // Choices by conditions that are combined by And and Or.
  const std::string joined = "%c = Less %x, %o\n%d = Less %x, %k\n%f = Greater %z, %k\n";
  EXPECT_EQ(nodes(of(joined + "%e = Or %d, %f\n%a = Where %c, %z, %k\n%y = Where %e, %x, %a"), "Where"), 1);
  EXPECT_EQ(nodes(of(joined + "%e = Or %c, %f\n%a = Where %d, %z, %k\n%y = Where %e, %x, %a"), "Where"), 2);
  EXPECT_EQ(nodes(of(joined + "%e = And %c, %f\n%a = Where %d, %z, %k\n%y = Where %e, %a, %x"), "Where"), 1);
  EXPECT_EQ(nodes(of(joined + "%e = And %d, %f\n%a = Where %c, %z, %k\n%y = Where %e, %a, %x"), "Where"), 2);
  const std::string positive = "%c = GreaterOrEqual %x, %o\n%a = Where %c, %x, %k\n";
  EXPECT_EQ(nodes(of(positive + "%y = Max %z, %a"), "ClampLow"), 0) << "%a may be -0";
  EXPECT_EQ(nodes(of(positive + "%y = Max %a, %k"), "ClampLow"), 1);
}

// Nested choices that share a value become one choice with both conditions.
TEST(BodyNumbersOfGraphs, ChoicesOfTheSame) {
  const auto of = [](const std::string& choices) {
    const snippet::Body body = with_fewer_checks(
        body_of("graph @g(%x: f32[N], %z: f32[N], %u: f32[1], %v: f32[1]) -> %y {\n%k = Constant {value = dense<f32[]: "
                "3>}\n%c = Less %x, %k\n%d = Greater %z, %k\n%e = Less %u, %k\n%f = Greater %v, %k\n"
                "%never = Less %x, %x\n%g = Where %never, %x, %v\n" +
                choices + "\n}"));
    std::string ops;
    for (const snippet::BodyNode& node : body.nodes)
      if (node.op.view() != "Scalar") ops += node.op.str() + " ";
    return ops;
  };
  EXPECT_EQ(of("%a = Where %d, %x, %z\n%y = Where %c, %x, %a"), "Less Greater Or Where ");
  EXPECT_EQ(of("%a = Where %d, %z, %x\n%y = Where %c, %a, %x"), "Less Greater And Where ");
  EXPECT_EQ(of("%a = Where %d, %z, %x\n%y = Where %c, %x, %a"), "Less Greater Where Where ") << "%c is to be negated";
  EXPECT_EQ(of("%a = Where %d, %z, %x\n%y = Where %e, %x, %a"), "Greater Less Not And Where ");
  EXPECT_EQ(of("%a = Where %f, %x, %z\n%y = Where %c, %a, %x"), "Less Greater Not And Where ");
  EXPECT_EQ(of("%a = Where %d, %x, %z\n%b = Where %c, %x, %a\n%y = Sub %b, %a"), "Less Greater Where Where Sub ")
      << "others read it";
  // %g is %v, so the inner choice is computed for fewer elements than before.
  EXPECT_EQ(of("%a = Where %e, %u, %g\n%y = Where %c, %a, %g"), "Less Less And Where ");
  EXPECT_EQ(of("%a = Where %e, %u, %g\n%b = Where %c, %a, %g\n%h = Mul %x, %a\n%y = Mul %h, %b"),
            "Less Less Where Where Mul Mul ")
      << "others read it";
}

// Uniform values, and values that vary over fewer dims than their operands, are computed for as few elements as
// possible.
TEST(BodyNumbersOfGraphs, MadeForFewerElements) {
  const auto of = [](const std::string& operators, const char* outputs = "%y") {
    return with_fewer_checks(
        body_of(str("graph @g(%x: f32[M,N], %r: f32[M,1], %i: i32[M,N], %b: i8[M,N]) -> ", outputs,
                    " {\n%k = Constant {value = dense<f32[]: 3>}\n%o = Constant {value = dense<f32[]: 0>}\n"
                    "%most = Constant {value = dense<i8[]: 127>}\n%never = Less %i, %i\n%a = Where %never, %x, %r\n",
                    operators, "\n}")));
  };
  const auto elements = [&](const snippet::Body& body, const char* op) {
    const auto made = std::ranges::find(body.nodes, Name(op), &snippet::BodyNode::op);
    return made == body.nodes.end() ? -1 : std::popcount(body.values[static_cast<size_t>(made->result)].varies);
  };
  EXPECT_EQ(of("%y = Max %b, %most").nodes.size(), 2u) << "a number, for each element";
  EXPECT_EQ(of("%j = Sub %i, %i\n%y = Neg %j").nodes.size(), 2u);
  EXPECT_EQ(of("%c = Abs %x\n%d = Less %c, %o\n%y = Where %d, %x, %k").nodes.size(), 2u);
  EXPECT_EQ(of("%y = Where %never, %x, %r").nodes.size(), 1u);
  // Operators applied to such values.
  EXPECT_EQ(elements(of("%e = Exp %a\n%y = Add %e, %x"), "Exp"), 1);
  EXPECT_EQ(elements(of("%e = Exp %a\n%y = Neg %e"), "Exp"), 1);
  EXPECT_EQ(elements(of("%e = Exp %a\n%y = Neg %e"), "Spread"), 2);
  EXPECT_EQ(elements(of("%e = Exp %a\n%f = Add %e, %x\n%y = Neg %e", "(%y, %f)"), "Neg"), 1);
  EXPECT_EQ(elements(of("%e = Exp %x\n%y = Add %e, %a"), "Exp"), 2);
  const std::string folded = "%axes = Constant {value = dense<i64[1]: 1>}\n%e = Exp %a\n%s = ReduceSum %e, %axes\n";
  EXPECT_EQ(elements(of(folded + "%y = Add %s, %x"), "Exp"), 1);
  EXPECT_EQ(elements(of(folded + "%y = Add %s, %x"), "ReduceSum"), 1);
}

TEST(BodyNumbersOfGraphs, IntegersThatAreConvertedToBeCompared) {
  const auto conversions = [](const std::string& operators) {
    return nodes(with_fewer_checks(body_of("graph @g(%x: f32[N], %z: f32[N], %i: i32[N], %b: i8[N], %e: i8[N], %u: "
                                           "u8[N]) -> %y {\n%k = Constant {value = dense<f32[]: 0.875>}\n%f = Cast %b "
                                           "{to = type<f32[*]>}\n%g = Cast %e {to = type<f32[*]>}\n" +
                                           operators + "\n}")),
                 "Convert");
  };
  const std::string where = "\n%y = Where %c, %x, %z";
  EXPECT_EQ(conversions("%c = Less %f, %k" + where), 0);
  EXPECT_EQ(conversions("%c = GreaterOrEqual %k, %f" + where), 0);
  EXPECT_EQ(conversions("%c = LessOrEqual %f, %g" + where), 0);
  EXPECT_EQ(conversions("%c = LessOrEqual %f, %x" + where), 1);
  EXPECT_EQ(conversions("%c = Equal %f, %k" + where), 1);
  EXPECT_EQ(conversions("%c = Less %f, %k\n%y = Where %c, %f, %z"), 1) << "it is read";
  EXPECT_EQ(conversions("%h = Cast %i {to = type<f32[*]>}\n%c = Less %h, %k" + where), 1) << "2^24 + 1 is no float";
  EXPECT_EQ(conversions("%h = Cast %u {to = type<f32[*]>}\n%c = Less %h, %g" + where), 2) << "of two types";
}

TEST(BodyNumbersOfGraphs, RootsThatAreOnlyCompared) {
  const auto roots = [](const std::string& operators) {
    return nodes(with_fewer_checks(body_of("graph @g(%x: f32[N], %z: f32[N]) -> %y {\n%a = Abs %x\n"
                                           "%k = Constant {value = dense<f32[]: 3>}\n" +
                                           operators + "\n}")),
                 "Sqrt");
  };
  EXPECT_EQ(roots("%r = Sqrt %a\n%c = Less %r, %k\n%y = Where %c, %x, %z"), 0);
  EXPECT_EQ(roots("%r = Sqrt %a\n%c = Less %r, %k\n%d = Less %k, %r\n%e = Xor %c, %d\n%y = Where %e, %x, %z"), 0);
  EXPECT_EQ(roots("%r = Sqrt %x\n%c = Less %r, %k\n%y = Where %c, %x, %z"), 1) << "the root of -1 is less than none";
  EXPECT_EQ(roots("%r = Sqrt %a\n%c = Less %r, %z\n%y = Where %c, %x, %z"), 1);
  EXPECT_EQ(roots("%r = Sqrt %a\n%c = Less %r, %k\n%y = Where %c, %r, %z"), 1);
  EXPECT_EQ(roots("%r = Sqrt %a\n%c = Equal %r, %k\n%y = Where %c, %x, %z"), 1);
}

TEST(BodyNumbersOfGraphs, RangesSpareChecks) {
  const auto of = [](const std::string& operators) {
    return with_fewer_checks(body_of(
        "graph @g(%x: f32[N], %b: u8[N]) -> %y {\n%k = Constant {value = dense<f32[]: -3>}\n" + operators + "\n}"));
  };
  const std::string f = "%f = Cast %b {to = type<f32[*]>}\n";
  EXPECT_EQ(nodes(of(f + "%a = Abs %f\n%r = Relu %a\n%y = Add %r, %x"), "Abs"), 0);
  EXPECT_EQ(nodes(of(f + "%a = Abs %f\n%r = Relu %a\n%y = Add %r, %x"), "ClampLow"), 0);
  EXPECT_EQ(nodes(of(f + "%m = Mul %f, %k\n%y = Cast %m {to = type<i32[*]>}"), "ConvertInRange"), 1);
  EXPECT_EQ(nodes(of(f + "%m = Mul %f, %x\n%y = Cast %m {to = type<i32[*]>}"), "ConvertInRange"), 0);
  EXPECT_EQ(nodes(of(f + "%m = Mul %f, %k\n%y = Cast %m {to = type<u32[*]>}"), "ConvertInRange"), 0);
  EXPECT_EQ(nodes(of("%y = Cast %x {to = type<i8[*]>}"), "ConvertInRange"), 1);
  const std::string byte =
      "%o = Constant {value = dense<f32[]: 0>}\n%e = Constant {value = dense<f32[]: 255>}\n"
      "%c = Clip %x, %o, %e\n";
  EXPECT_EQ(nodes(of(byte + "%y = Cast %c {to = type<u8[*]>}"), "ConvertInRange"), 1);
  EXPECT_EQ(nodes(of(byte + "%r = Round %c\n%y = Cast %r {to = type<u8[*]>}"), "RoundInRange"), 1);
  EXPECT_EQ(nodes(of(byte + "%y = Cast %c {to = type<u32[*]>}"), "Wrap"), 1) << "NaN is 0";
  EXPECT_EQ(nodes(of("%r = Round %x\n%y = Cast %r {to = type<i32[*]>}"), "RoundInRange"), 0);
  // Quotients: by a value bounded away from 0, and by a sum that includes x.
  const std::string sum = "%h = Constant {value = dense<f32[]: 0.5>}\n%a = Abs %x\n%s = Add %h, %a\n";
  const auto bounds = [&](const std::string& operators) {
    const snippet::Body body = of(sum + operators + "\n%y = Cast %q {to = type<i8[*]>}");
    return nodes(body, "ClampLow") + nodes(body, "ClampHigh");
  };
  EXPECT_EQ(nodes(of(f + "%q = Div %f, %k\n%y = Cast %q {to = type<i32[*]>}"), "ConvertInRange"), 1);
  EXPECT_EQ(nodes(of(f + "%q = Div %k, %f\n%y = Cast %q {to = type<i32[*]>}"), "ConvertInRange"), 0) << "-3 / 0";
  EXPECT_EQ(bounds("%q = Div %x, %s"), 0);
  EXPECT_EQ(bounds("%n = Neg %x\n%m = Mul %n, %h\n%q = Div %m, %s"), 0);
  EXPECT_EQ(bounds("%m = Mul %x, %k\n%q = Div %m, %s"), 2) << "3 times as large";
  EXPECT_EQ(bounds("%d = Sub %a, %h\n%q = Div %x, %d"), 2);
  EXPECT_EQ(bounds("%r = Relu %x\n%t = Add %r, %h\n%q = Div %r, %t"), 1) << "Relu's own";
  EXPECT_EQ(bounds("%r = Relu %x\n%t = Add %r, %h\n%q = Div %x, %t"), 3) << "of x below 0";
  const auto marked = [&](std::string_view attribute, const std::string& operators) {
    const snippet::Body body = of(operators);
    return std::ranges::count_if(body.nodes, [&](const auto& node) { return node.attributes.has(attribute); });
  };
  EXPECT_EQ(marked("fits_i32", "%d = BitwiseNot %b\n%c = Less %b, %d\n%y = Where %c, %x, %k"), 1);
  EXPECT_EQ(marked("fits_i32",
                   "%a = Cast %x {to = type<u32[*]>}\n%d = BitwiseNot %a\n%c = Less %a, %d\n%y = Where %c, %x, %k"),
            0);
  EXPECT_EQ(marked("number", f + "%m = Mul %f, %k\n%y = Cast %m {to = type<i32[*]>}"), 1);
  EXPECT_EQ(marked("number", byte + "%y = Cast %c {to = type<u8[*]>}"), 0);
}

TEST(BodyNumbersOfGraphs, PowersOfWhatIsLessTheGreatest) {
  const auto below_1 = [](const std::string& operators) {
    const snippet::Body body = with_fewer_checks(
        body_of("graph @g(%x: f32[N,40], %z: f32[N,40]) -> %y {\n%axes = Constant {value = dense<i64[1]: 1>}\n" +
                operators + "\n}"));
    return std::ranges::count_if(body.nodes,
                                 [](const snippet::BodyNode& node) { return node.attributes.has("below_1"); });
  };
  EXPECT_EQ(below_1("%y = Softmax %x {axis = -1}"), 1);
  EXPECT_EQ(below_1("%a = Abs %x\n%n = Neg %a\n%y = Exp %n"), 1);
  EXPECT_EQ(below_1("%m = ReduceMax %x, %axes\n%d = Sub %m, %x\n%y = Exp %d"), 0);
  EXPECT_EQ(below_1("%m = ReduceMax %x, %axes\n%s = Add %x, %z\n%d = Sub %s, %m\n%y = Exp %d"), 0);
  EXPECT_EQ(below_1("%m = ReduceMin %x, %axes\n%d = Sub %x, %m\n%y = Exp %d"), 0);
}

// Divisors for which a quotient by products needs no scaling.
TEST(BodyNumbersOfGraphs, ModerateDivisors) {
  const auto moderate = [](const std::string& operators) {
    const snippet::Body body = with_fewer_checks(
        body_of("graph @g(%x: f32[N,40], %z: f32[N,40]) -> %y {\n%axes = Constant {value = dense<i64[1]: 1>}\n"
                "%k = Constant {value = dense<f32[]: 0.00001>}\n" +
                operators + "\n%y = Div %x, %d\n}"));
    return std::ranges::count_if(body.nodes, [](const snippet::BodyNode& node) {
             return node.op == Name("Div") && node.attributes.has("moderate");
           }) > 0;
  };
  EXPECT_TRUE(moderate("%d = Sqrt %z")) << "roots of denormals are above 2^-75";
  EXPECT_TRUE(moderate("%s = Add %z, %k\n%q = Sqrt %s\n%d = Neg %q"));
  EXPECT_TRUE(moderate("%s = Mul %x, %x\n%t = ReduceMean %s, %axes\n%u = Add %t, %k\n%d = Sqrt %u"));
  EXPECT_TRUE(moderate("%s = Mul %x, %x\n%t = ReduceSum %s, %axes\n%q = Sqrt %t\n%d = Max %q, %k"));
  EXPECT_TRUE(moderate("%a = Abs %x\n%m = ReduceMax %a, %axes\n%e = Max %m, %k\n%d = Mul %e, %k"));
  EXPECT_TRUE(moderate("%m = ReduceMax %x, %axes\n%l = Sub %x, %m\n%e = Exp %l\n%d = ReduceSum %e, %axes"));
  EXPECT_FALSE(moderate("%m = ReduceMax %z, %axes\n%l = Sub %x, %m\n%e = Exp %l\n%d = ReduceSum %e, %axes"));
  EXPECT_FALSE(moderate("%d = Abs %z"));
  EXPECT_FALSE(moderate("%a = Abs %z\n%d = Max %a, %k")) << "above 2^122";
  EXPECT_FALSE(moderate("%a = Sqrt %z\n%b = Sub %a, %k\n%d = Abs %b")) << "small differences";
  EXPECT_FALSE(moderate("%a = Sqrt %z\n%b = Mul %a, %a\n%d = Abs %b"));
  EXPECT_FALSE(moderate("%a = Sqrt %z\n%d = ReduceProd %a, %axes"));
}

// Operands whose roots may be computed by products: they are never denormal.
TEST(BodyNumbersOfGraphs, ModerateRoots) {
  const auto moderate = [](const std::string& operators) {
    const snippet::Body body = with_fewer_checks(
        body_of("graph @g(%x: f32[N,40]) -> %y {\n%k = Constant {value = dense<f32[]: 1.0>}\n" + operators + "\n}"));
    return std::ranges::count_if(body.nodes, [](const snippet::BodyNode& node) {
      return node.op == Name("Sqrt") && node.attributes.has("moderate");
    });
  };
  EXPECT_EQ(moderate("%y = Sqrt %x"), 0);
  EXPECT_EQ(moderate("%r = Sqrt %x\n%y = Sqrt %r"), 1) << "roots of denormals are above 2^-75";
  EXPECT_EQ(moderate("%s = Mul %x, %x\n%y = Sqrt %s"), 0);
  EXPECT_EQ(moderate("%s = Mul %x, %x\n%t = Add %s, %k\n%y = Sqrt %t"), 1);
}

TEST(BodyNumbersOfGraphs, PowersByConstants) {
  const auto flags = [](const std::string& base, const std::string& exponent) {
    const snippet::Body body = with_fewer_checks(
        body_of("graph @g(%x: f32[N], %b: u8[N], %e: f32[]) -> %y {\n%k = Constant {value = dense<f32[]: " + exponent +
                ">}\n%one = Constant {value = dense<f32[]: 1>}\n" + base + "\n}"));
    const auto power = std::ranges::find(body.nodes, Name("PowBy"), &snippet::BodyNode::op);
    return power == body.nodes.end() ? -1 : power->attributes.has("no_sign") + 2 * power->attributes.has("normal");
  };
  EXPECT_EQ(flags("%y = Pow %x, %k", "2.4"), 0);
  EXPECT_EQ(flags("%y = Pow %x, %k", "7"), -1) << "odd powers have a sign";
  EXPECT_EQ(flags("%y = Pow %x, %e", "2.4"), -1);
  EXPECT_EQ(flags("%a = Abs %x\n%y = Pow %a, %k", "7"), 1);
  EXPECT_EQ(flags("%a = Max %x, %one\n%y = Pow %a, %k", "-0.3"), 3);
  EXPECT_EQ(flags("%f = Cast %b {to = type<f32[*]>}\n%y = Pow %f, %k", "0.4"), 3);
  EXPECT_EQ(flags("%n = Neg %x\n%r = Sqrt %x\n%y = Pow %r, %k", "7"), -1) << "the root of -0";
}

}  // namespace
}  // namespace tenon::x86
