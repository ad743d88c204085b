// Passes that replace functions by tables.
#include <cmath>
#include <random>

#include "x86/passes_support.hpp"

namespace tenon::x86::testing {
namespace {

// %18 is the function of %17, which `argument` computes from %10, its square %14, %11 = 1, %12 = 0.5 and %13 = 16.
std::string function_of(const std::string& argument, const std::string& function, const std::string& rest) {
  return load("f32") + "    %11:f32 = Scalar {bits = 0x3f800000}\n    %12:f32 = Scalar {bits = 0x3f000000}\n" +
         "    %13:f32 = Scalar {bits = 0x41800000}\n    %14:f32 = Mul %10, %10\n" + argument +
         "    %18:f32 = " + function + " %17\n" + rest;
}

TEST_P(Passes, FunctionsThatAreSummedWithAsMuchAreTabulated) {
  const std::string half = "    %17:f32 = Mul %10, %12\n";
  const std::string cubic = "    %15:f32 = Mul %14, %10\n    %16:f32 = Div %15, %13\n    %17:f32 = Add %16, %10\n";
  const std::string sum = "    %20:f32 = Add %18, %11\n";
  struct Case {
    std::string argument, function, rest, tabulated;  // empty: the function is not tabulated
  };
  const std::vector<Case> cases = {
      {half, "Erf", sum, "TabulatedErf %10 {of = [0.5]}"},
      {cubic, "Tanh", sum, "TabulatedTanh %10 {of = [1.0, 0.0625]}"},
      {half, "Erf", "    %20:f32 = Sub %11, %18\n", "TabulatedErf %10 {of = [0.5]}"},
      {half, "Erf", "    %19:f32 = Mul %18, %12\n    %20:f32 = Add %19, %12\n", "TabulatedErf %10 {of = [0.5]}"},
      {half, "Erf", "    %19:f32 = Neg %18\n    %20:f32 = Add %11, %19\n", "TabulatedErf %10 {of = [0.5]}"},
      {"    %17:f32 = Neg %10\n", "Erf", sum, ""},       // decreasing
      {"    %17:f32 = Add %10, %11\n", "Erf", sum, ""},  // not odd
      {"    %17:f32 = Add %14, %10\n", "Erf", sum, ""},
      {half, "Tanh", sum, ""},                            // a table would be long
      {half, "Erf", "    %20:f32 = Add %18, %12\n", ""},  // the addend is smaller than the table's values
      {half, "Erf", "    %20:f32 = Add %18, %10\n", ""},
      {half, "Erf", "    %19:f32 = Mul %18, %13\n    %20:f32 = Add %19, %11\n", ""},
      {half, "Erf", "    %19:f32 = Add %18, %11\n    %20:f32 = Mul %19, %18\n", ""},  // %18 has another reader
      {"    %17:f32 = Mul %10, %12 {rounded = 1}\n", "Erf", sum, "TabulatedErf %17 {of = [1.0]}"},
  };
  for (const Case& one : cases) {
    const std::string text = row_kernel(GetParam().lanes, function_of(one.argument, one.function, one.rest));
    const std::string done = print(optimised(text, {.memory_operands = false}));
    EXPECT_EQ(count(done, "Tabulated"), one.tabulated.empty() ? 0 : 2) << done;
    const std::string told = one.tabulated.substr(0, one.tabulated.find(' '));
    EXPECT_EQ(count(done, told + " %"), told.empty() ? count(done, " %") : 2) << done;
    if (const size_t of = one.tabulated.find('{'); of != std::string::npos) {
      EXPECT_EQ(count(done, one.tabulated.substr(of)), 2) << done;
    }
    // Operators that only computed the argument are removed.
    if (!one.tabulated.empty() && one.argument == cubic) {
      EXPECT_EQ(count(done, "Div") + count(done, "Mul"), 0) << done;
    }
    EXPECT_EQ(count(print(optimised(text, {.contract = false, .memory_operands = false})), "Tabulated"), 0);
    const auto code = compiled(optimised(text));
    ASSERT_NE(code, nullptr);
  }
}

TEST_P(Passes, FunctionsThatAreSummedWithAsMuchAreGatesOfTheirOwnArgument) {
  const std::string half = "    %17:f32 = Mul %10, %12\n";
  const std::string sum = "    %19:f32 = Add %18, %11\n";
  const std::string halves = "{of = [0.5], scale = [0.5]}";
  struct Case {
    std::string rest, gate;  // `rest`: lines after the function; `gate` is empty if there is none
  };
  const std::vector<Case> cases = {
      {sum + "    %21:f32 = Mul %10, %19\n    %20:f32 = Mul %21, %12\n", halves},
      {sum + "    %21:f32 = Mul %12, %19\n    %20:f32 = Mul %21, %10\n", halves},
      {sum + "    %21:f32 = Mul %10, %12\n    %20:f32 = Mul %19, %21\n", halves},
      {"    %21:f32 = Mul %18, %12\n    %19:f32 = Add %12, %21\n    %20:f32 = Mul %19, %10\n", halves},
      {"    %21:f32 = Neg %18\n    %19:f32 = Sub %11, %21\n    %20:f32 = Mul %19, %10\n",
       "{of = [0.5], scale = [1.0]}"},
      {"    %19:f32 = Add %18, %13\n    %21:f32 = Mul %19, %10\n    %20:f32 = Div %21, %13\n", ""},  // never 0
      {sum + "    %21:f32 = Mul %10, %19\n    %22:f32 = Add %12, %11\n    %20:f32 = Mul %21, %22\n",
       "{of = [0.5], scale = [1.0]}"},
      // Instructions after the gate remain.
      {sum + "    %21:f32 = Mul %10, %19\n    %20:f32 = Mul %21, %21\n", "{of = [0.5], scale = [1.0]}"},
      {"    %19:f32 = Sub %11, %18\n    %20:f32 = Mul %19, %10\n", ""},        // decreasing
      {sum + "    %21:f32 = Neg %10\n    %20:f32 = Mul %19, %21\n", ""},       // negative
      {sum + "    %20:f32 = Mul %19, %14\n", ""},                              // the factor is x^2
      {sum + "    %21:f32 = Mul %10, %19\n    %20:f32 = Add %21, %19\n", ""},  // the sum has another reader
      {sum + "    %20:f32 = Mul %19, %10 {rounded = 1}\n", ""},
  };
  for (const Case& one : cases) {
    const std::string text = row_kernel(GetParam().lanes, function_of(half, "Erf", one.rest));
    const std::string done = print(optimised(text, {.memory_operands = false}));
    EXPECT_EQ(count(done, "Gate %"), one.gate.empty() ? 0 : 2) << one.rest << done;
    EXPECT_EQ(count(done, one.gate.empty() ? "TabulatedErf %" : one.gate), 2) << one.rest << done;
    EXPECT_EQ(count(print(optimised(text, {.contract = false, .memory_operands = false})), "Tabulated"), 0);
    ASSERT_NE(compiled(optimised(text)), nullptr);
  }
}

TEST_P(Passes, WhatIsTabulatedComesOutAsWhatWasWritten) {
  const std::string text =
      row_kernel(GetParam().lanes,
                 function_of("    %15:f32 = Mul %14, %10\n    %16:f32 = Div %15, %13\n    %17:f32 = Add %16, %10\n",
                             "Tanh", "    %19:f32 = Add %18, %11\n    %20:f32 = Mul %10, %19\n"));
  const LinearKernel kernel = optimised(text);
  ASSERT_EQ(count(print(kernel), "TabulatedTanhGate"), 2) << print(kernel);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  std::mt19937 random(5);
  for (const int64_t width : widths(GetParam().lanes)) {
    std::vector<float> x(static_cast<size_t>(width));
    for (float& value : x) value = static_cast<float>(static_cast<int>(random() % 20001) - 10000) / 1500.0f;
    const std::vector<float> y = run(*code, x, 0.0f);
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], wanted = v * (1 + std::tanh(v + v * v * v / 16));
      // The table's error is 2^-23 relative to 1; two roundings.
      ASSERT_NEAR(y[i], wanted, std::abs(v) * 0x1p-23 + std::abs(wanted) * 0x1p-23) << "x " << v << " of " << width;
    }
  }
}

TENON_ON_ALL_MACHINES(Passes);

}  // namespace
}  // namespace tenon::x86::testing
