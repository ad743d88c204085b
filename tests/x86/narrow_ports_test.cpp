// 64-bit integer inputs in 32-bit lanes: all possible values in every lane, whole vectors, tails and single ones,
// compared with the reference bit for bit.
#include "x86/body/narrow_ports.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <support_lib/on_reference.hpp>

#include "x86/body_of.hpp"

namespace tenon::x86 {
namespace {

using testing::body_of;
using testing::graph_of;
using testing::GuardedGraph;

struct Case {
  const char* operators;
  std::optional<ElementType> lane;  // of the integers; none: they remain 64-bit integers
};

// Operators on integers i per element, j per row and k shared by all rows, and on floats x.
const Case kCases[] = {
    {"%y = Cast %i {to = type<f32[*]>}", kF32},
    {"%f = Cast %i {to = type<f32[*]>}\n%y = Mul %f, %x", kF32},
    {"%e = Equal %i, %zero\n%y = Where %e, %x, %f3", kI32},
    {"%c = Less %i, %five\n%d = Greater %i, %minus\n%e = And %c, %d\n%y = Where %e, %x, %f3", kI32},
    {"%c = Less %five, %i\n%y = Where %c, %x, %f3", kI32},
    {"%c = GreaterOrEqual %i, %most\n%y = Where %c, %x, %f3", kI32},
    {"%b = Cast %i {to = type<bool[*]>}\n%y = Where %b, %x, %f3", kI32},
    {"%f = Cast %i {to = type<f32[*]>}\n%e = LessOrEqual %i, %five\n%y = Where %e, %x, %f", kF32},
    {"%n = Cast %i {to = type<i32[*]>}\n%m = Add %n, %n\n%y = Cast %m {to = type<f32[*]>}", kU32},
    {"%n = Cast %i {to = type<u8[*]>}\n%y = Cast %n {to = type<f32[*]>}", kU32},
    {"%f = Cast %j {to = type<f32[*]>}\n%y = Mul %f, %x", kF32},
    {"%e = Equal %j, %five\n%y = Where %e, %x, %f3", kI32},
    {"%f = Cast %k {to = type<f32[*]>}\n%y = Mul %f, %x", kF32},
    {"%e = Greater %k, %five\n%y = Where %e, %x, %f3", kI32},
    {"%f = Cast %i {to = type<f32[*]>}\n%y = ReduceMax %f, %axes", kF32},
    // Bodies that need values beyond 32 bits.
    {"%c = GreaterOrEqual %i, %two31\n%y = Where %c, %x, %f3", std::nullopt},
    {"%c = GreaterOrEqual %i, %max32\n%y = Where %c, %x, %f3", std::nullopt},
    {"%f = Cast %i {to = type<f32[*]>}\n%c = Less %i, %two24\n%y = Where %c, %x, %f", std::nullopt},
    {"%f = Cast %i {to = type<f32[*]>}\n%n = Cast %i {to = type<i32[*]>}\n%g = Cast %n {to = type<f32[*]>}\n%y = Add "
     "%f, %g",
     std::nullopt},
    {"%c = LessOrEqual %i, %j\n%y = Where %c, %x, %f3", std::nullopt},
    {"%s = Add %i, %five\n%y = Cast %s {to = type<f32[*]>}", std::nullopt},
};

std::string text_of(const Case& one, int64_t rows, int64_t columns) {
  const auto number = [](const char* name, int64_t value) {
    return str("%", name, " = Constant {value = dense<i64[]: ", value, ">}\n");
  };
  return str("graph @g(%i: i64[", rows, ",", columns, "], %j: i64[", rows, ",1], %k: i64[", columns, "], %x: f32[",
             rows, ",", columns, "]) -> %y {\n%f3 = Constant {value = dense<f32[]: 3>}\n", number("zero", 0),
             number("five", 5), number("minus", -3), number("two24", 1 << 24), number("most", (int64_t{1} << 31) - 2),
             number("max32", (int64_t{1} << 31) - 1), number("two31", int64_t{1} << 31),
             "%axes = Constant {value = dense<i64[1]: 1>}\n", one.operators, "\n}");
}

int64_t any_integer(std::mt19937& random) {
  static const int64_t kNear[] = {0,
                                  int64_t{1} << 24,
                                  int64_t{1} << 31,
                                  int64_t{1} << 32,
                                  int64_t{1} << 40,
                                  int64_t{1} << 53,
                                  std::numeric_limits<int64_t>::max() - 40};
  const auto near = static_cast<int64_t>(random() % std::size(kNear));
  const int64_t made = kNear[near] + static_cast<int64_t>(random() % 9) - 4;
  return random() % 2 ? made : -made;
}

class NarrowPorts : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }

  void expect_alike(const std::string& text, const std::vector<Datum>& inputs, std::mt19937& random) const {
    auto graph = graph_of(text);
    const Tensor expected = tenon::testing::on_reference(*graph, inputs)[0];
    GuardedGraph runner(GetParam(), {.contract = false});
    runner.tokenize(*graph);
    const Tensor got = runner.run(*graph, inputs, random)[0];
    for (int64_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got.double_at(i), expected.double_at(i)) << "element " << i << "\n" << text;
  }
};

// With large numbers, and with small ones only, for which vectors use different code.
TEST_P(NarrowPorts, AreAsTheReference) {
  const int64_t lanes = lanes_of(GetParam(), kF32);
  std::mt19937 random(11);
  for (const Case& one : kCases)
    for (const int64_t columns : {int64_t{0}, int64_t{1}, int64_t{3}, lanes - 1, lanes, lanes + 1, 2 * lanes + 3, 70L})
      for (const bool small : {true, false}) {
        const auto drawn = [&](const Dims& dims) {
          Tensor made = *Tensor::zeros(kI64, dims);
          for (int64_t i = 0; i < made.size(); ++i)
            made.set_int(i, small ? static_cast<int64_t>(random() % 16) - 8 : any_integer(random));
          return Datum(made);
        };
        constexpr int64_t kRows = 5;
        Tensor x = *Tensor::zeros(kF32, {kRows, columns});
        for (int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(random() % 100) - 50);
        const std::vector<Datum> inputs{drawn({kRows, columns}), drawn({kRows, 1}), drawn({columns}), Datum(x)};
        expect_alike(text_of(one, kRows, columns), inputs, random);
        if (HasFatalFailure()) return;
      }
}

INSTANTIATE_TEST_SUITE_P(Both, NarrowPorts, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

TEST(NarrowPortsOfBodies, AreOfTheLanesThatAreEnough) {
  for (const Case& one : kCases) {
    const snippet::Body body = body_of(text_of(one, 5, 40));
    const snippet::Body narrow = with_narrow_ports(body);
    EXPECT_TRUE(snippet::verify(narrow).ok()) << one.operators;
    for (const snippet::BodyPort& port : narrow.inputs) {
      if (port.element != kI64) continue;
      EXPECT_EQ(narrow.values[static_cast<size_t>(port.value)].element, one.lane.value_or(kI64)) << one.operators;
    }
    EXPECT_EQ(lanes_of(Isa::avx2, narrow), one.lane ? 8 : 4) << one.operators;
  }
}

}  // namespace
}  // namespace tenon::x86
