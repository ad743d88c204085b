// Passes on linear kernels in text form: the resulting kernels, and their results on the machine. This file tests sums
// and operands; others are in passes_*_test.cpp.
#include <array>
#include <cmath>
#include <limits>

#include "x86/passes_support.hpp"

namespace tenon::x86::testing {
namespace {

TEST_P(Passes, ProductsThatAreAddedAreContracted) {
  struct Case {
    std::string sum, op;
    float (*expected)(float x, float w);
  };
  const std::vector<Case> cases = {
      {"Add %12, %10", "Fma", [](float x, float w) { return std::fma(x, w, x); }},
      {"Add %11, %12", "Fma", [](float x, float w) { return std::fma(x, w, w); }},
      {"Sub %12, %11", "Fms", [](float x, float w) { return std::fma(x, w, -w); }},
      {"Sub %11, %12", "Fnma", [](float x, float w) { return std::fma(-x, w, w); }},
  };
  for (const Case& one : cases) {
    const std::string text = row_kernel(
        GetParam().lanes, load("f32") + weight("f32") + "    %12:f32 = Mul %10, %11\n    %20:f32 = " + one.sum + "\n");
    const std::string done = print(optimised(text, {.memory_operands = false}));
    EXPECT_EQ(count(done, one.op + " "), 2) << done;
    EXPECT_EQ(count(done, "Mul"), 0) << done;
    for (const bool memory_operands : {false, true}) {
      const auto code = compiled(optimised(text, {.memory_operands = memory_operands}));
      ASSERT_NE(code, nullptr);
      check<float>(*code, one.expected);
    }
    // Without contraction: two roundings.
    const std::string plain = print(optimised(text, {.contract = false, .memory_operands = false}));
    EXPECT_EQ(count(plain, "Mul"), 2) << plain;
  }
}

TEST_P(Passes, WhatIsNegatedAndAddedIsSubtracted) {
  for (const char* sum : {"Add %12, %11", "Add %11, %12"}) {
    const std::string text = row_kernel(
        GetParam().lanes, load("f32") + weight("f32") + "    %12:f32 = Neg %10\n    %20:f32 = " + sum + "\n");
    const LinearKernel kernel = optimised(text);
    EXPECT_EQ(count(print(kernel), "Neg"), 0) << print(kernel);
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    check<float>(*code, [](float x, float w) { return w - x; });
  }
  // The negation remains if its result has another reader.
  const std::string twice =
      load("f32") + weight("f32") + "    %12:f32 = Neg %10\n    %13:f32 = Add %12, %11\n    %20:f32 = Max %12, %13\n";
  EXPECT_EQ(count(print(optimised(row_kernel(GetParam().lanes, twice))), "Neg"), 2);
}

TEST_P(Passes, ANegatedProductIsSubtractedAtOnce) {
  for (const char* sum : {"Add %13, %11", "Add %11, %13"}) {
    const std::string text = row_kernel(
        GetParam().lanes,
        load("f32") + weight("f32") + "    %12:f32 = Mul %10, %11\n    %13:f32 = Neg %12\n    %20:f32 = " + sum + "\n");
    const std::string done = print(optimised(text, {.memory_operands = false}));
    EXPECT_EQ(count(done, "Fnma "), 2) << done;
    EXPECT_EQ(count(done, "Mul") + count(done, "Neg"), 0) << done;
    const auto code = compiled(optimised(text));
    ASSERT_NE(code, nullptr);
    check<float>(*code, [](float x, float w) { return std::fma(-x, w, w); });
    EXPECT_EQ(count(print(optimised(text, {.contract = false})), "Neg"), 2);
  }
}

TEST_P(Passes, ANegatedMagnitudeIsOneInstruction) {
  const std::string magnitude = load("f32") + weight("f32") + "    %12:f32 = Abs %10\n    %13:f32 = Neg %12\n";
  const LinearKernel kernel = optimised(row_kernel(GetParam().lanes, magnitude + "    %20:f32 = Mul %13, %11\n"));
  const std::string done = print(kernel);
  EXPECT_EQ(count(done, "NegAbs"), 2) << done;
  EXPECT_EQ(count(done, "Abs "), 2) << done;
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return -std::abs(x) * w; });
  const std::string twice = print(optimised(row_kernel(GetParam().lanes, magnitude + "    %20:f32 = Mul %13, %12\n")));
  EXPECT_EQ(count(twice, "NegAbs"), 0) << twice;
}

TEST_P(Passes, AProductThatOthersReadStays) {
  const std::string twice = load("f32") + weight("f32") +
                            "    %12:f32 = Mul %10, %11\n    %13:f32 = Add %12, %11\n    %20:f32 = Max %12, %13\n";
  EXPECT_EQ(count(print(optimised(row_kernel(GetParam().lanes, twice))), "Mul"), 2);
  // A factor of the product changes before the sum.
  const std::string changed =
      load("f32") + weight("f32") + "    %12:f32 = Mul %10, %11\n    %10:f32 = Copy %11\n    %20:f32 = Add %12, %10\n";
  EXPECT_EQ(count(print(optimised(row_kernel(GetParam().lanes, changed))), "Mul"), 2);
  // Integers have no fused multiply-add.
  const std::string ints = load("i32") + weight("i32") + "    %12:i32 = Mul %10, %11\n    %20:i32 = Add %12, %11\n";
  EXPECT_EQ(count(print(optimised(row_kernel(GetParam().lanes, ints, "i32"))), "Fma"), 0);
}

TEST_P(Passes, LoadsBecomeOperands) {
  struct Case {
    std::string op, result;
    float (*expected)(float x, float w);
  };
  // %13 = w * w, so that w has several uses.
  const std::vector<Case> cases = {
      {"Add %10, %13", "AddMemory", [](float x, float w) { return x + w * w; }},
      {"Add %13, %10", "AddMemory", [](float x, float w) { return w * w + x; }},
      {"Sub %13, %10", "SubMemory", [](float x, float w) { return w * w - x; }},
      {"Mul %13, %10", "MulMemory", [](float x, float w) { return w * w * x; }},
      {"Div %13, %10", "DivMemory", [](float x, float w) { return w * w / x; }},
      {"Max %13, %10", "MaxMemory", [](float x, float w) { return std::max(w * w, x); }},
      {"Min %13, %10", "MinMemory", [](float x, float w) { return std::min(w * w, x); }},
      {"Fma %10, %13, %11", "FmaMemory", [](float x, float w) { return std::fma(x, w * w, w); }},
      {"Fma %13, %10, %11", "FmaMemory", [](float x, float w) { return std::fma(x, w * w, w); }},
      {"Fma %11, %13, %10", "FmaMemory", [](float x, float w) { return std::fma(w, w * w, x); }},
  };
  for (const Case& one : cases) {
    const std::string text = row_kernel(GetParam().lanes, weight("f32") + "    %13:f32 = Mul %11, %11\n" + load("f32") +
                                                              "    %20:f32 = " + one.op + "\n");
    const LinearKernel kernel = optimised(text, {.contract = false});
    const std::string done = print(kernel);
    EXPECT_EQ(count(done, one.result + " f32 [%0 + %3]"), 1) << "in the loop, not in the tail\n" << done;
    EXPECT_EQ(count(done, "= Load "), 0) << done;
    // The text form is parsed to the same kernel.
    EXPECT_EQ(print(parsed(done)), done);
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    check<float>(*code, one.expected);
  }
}

// As the operator specifies: NaN if either operand is NaN, and of two zeros the second.
TEST_P(Passes, ExtremesWithMemoryKeepNaN) {
  const auto kernel_of = [&](const std::string& type, const std::string& op) {
    return optimised(row_kernel(GetParam().lanes,
                                weight(type) + "    %13:" + type + " = Mul %11, %11\n" + load(type) +
                                    "    %20:" + type + " = " + op + " %13, %10\n",
                                type),
                     {.contract = false});
  };
  const auto check_type = [&](auto zero, const std::string& type) {
    using T = decltype(zero);
    constexpr T kNaN = std::numeric_limits<T>::quiet_NaN(), kInfinity = std::numeric_limits<T>::infinity();
    for (const bool greater : {true, false}) {
      const LinearKernel kernel = kernel_of(type, greater ? "Max" : "Min");
      const auto code = compiled(kernel);
      ASSERT_NE(code, nullptr);
      for (const T w : {T{0}, T{2}, kInfinity, kNaN}) {
        std::vector<T> x(static_cast<size_t>(3 * GetParam().lanes + 1));
        const std::array<T, 7> values{T{1}, kNaN, -zero, kInfinity, T{100}, -kInfinity, -kNaN};
        for (size_t i = 0; i < x.size(); ++i) x[i] = values[i % values.size()];
        const std::vector<T> y = run<T>(*code, x, w);
        for (size_t i = 0; i < x.size(); ++i) {
          const T a = w * w, b = x[i];
          if (std::isnan(a) || std::isnan(b)) {
            EXPECT_TRUE(std::isnan(y[i])) << a << ", " << b;
          } else {
            EXPECT_EQ(y[i], greater ? std::max(a, b) : std::min(a, b)) << a << ", " << b;
            EXPECT_EQ(std::signbit(y[i]), std::signbit(greater ? (a > b ? a : b) : (a < b ? a : b))) << a << ", " << b;
          }
        }
      }
    }
  };
  if (GetParam().lanes == lanes_of(GetParam().isa, kF32)) check_type(0.0f, "f32");
  if (GetParam().lanes == lanes_of(GetParam().isa, kF64)) check_type(0.0, "f64");
}

TEST_P(Passes, LoadsStayWhereTheyMust) {
  const int lanes = GetParam().lanes;
  const auto loads_left = [&](const std::string& inside, std::string_view element = "f32") {
    return count(print(optimised(row_kernel(lanes, inside, element), {.contract = false})), "= Load ");
  };
  const std::string w = weight("f32");
  EXPECT_EQ(loads_left(w + load("f32") + "    %20:f32 = Sub %10, %11\n"), 1) << "the first operand of Sub";
  EXPECT_EQ(loads_left(w + load("f32") + "    %20:f32 = Max %10, %11\n"), 1) << "of two zeros the second counts";
  EXPECT_EQ(loads_left(load("f32") + "    %20:f32 = Add %10, %10\n"), 1) << "two uses";
  EXPECT_EQ(loads_left(w + load("f32") + "    Store f32 [%1], %11\n    %20:f32 = Add %11, %10\n"), 1)
      << "a store between might write to it";
  EXPECT_EQ(loads_left(w + "    %10:f32 = Load@ f16 [%0 + %3]!\n    %20:f32 = Add %11, %10\n"), 1) << "a conversion";
  EXPECT_EQ(loads_left(weight("i32") + load("i32") + "    %20:i32 = Div %11, %10\n", "i32"), 1) << "integers";
}

TEST_P(Passes, WhatIsMadeBeforeALoopStaysThere) {
  // Moves `lines` from the loop to before it; the tail keeps its own.
  const auto ahead = [&](const std::string& lines, const std::string& behind) {
    std::string text = row_kernel(GetParam().lanes, lines + load("f32") + behind);
    const size_t loop = text.find("  loop 0 d0"), begin = text.find('\n', loop) + 1,
                 end = text.find("= Load f32 [%0", begin);
    const size_t first = text.rfind('\n', end) + 1;
    const std::string moved = text.substr(begin, first - begin);
    text.erase(begin, moved.size());
    text.insert(loop, moved);
    return print(optimised(text));
  };
  const std::string line = "    %11:f32 = Load f32 [%2]\n";
  // As an operand, it would be read in each iteration, although the loop may store to it.
  const std::string read = ahead(line, "    %12:f32 = Neg %10\n    %20:f32 = Max %12, %11\n");
  EXPECT_LT(read.find("= Load f32 [%2]"), read.find("  loop 0 d0")) << read;
  // As part of a fused operator, it would be multiplied in each iteration.
  const std::string product = ahead(line + "    %13:f32 = Mul %11, %11\n", "    %20:f32 = Add %13, %10\n");
  EXPECT_LT(product.find("= Mul "), product.find("  loop 0 d0")) << product;
}

TEST_P(Passes, OneElementIsBroadcastByItsUser) {
  const std::string text = row_kernel(
      GetParam().lanes, load("f32") + "    %12:f32 = Neg %10\n" + weight("f32") + "    %20:f32 = Mul %12, %11\n");
  const LinearKernel kernel = optimised(text);
  EXPECT_EQ(count(print(kernel), "BroadcastLoad"), GetParam().isa == Isa::avx512 ? 0 : 2) << print(kernel);
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  check<float>(*code, [](float x, float w) { return -x * w; });
}

// Two rows at once, where the pointer of the second is that of the first plus a step.
TEST_P(Passes, KnownStepsBecomePartOfAddresses) {
  const auto text = [](std::string_view known, std::string_view more) {
    return str("kernel @rows lanes 4 {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = limit loop 0\n  #3 = shift 0 loop 0",
               known, "\n  #4 = shift 1 loop 0\n  %0:g = Parameter #0\n  %1:g = Parameter #1\n  %2:g = Zero\n",
               "  loop 0 d0 dim 0 %2 step 2 limit #2 {\n    %3:g = AddParameter %0 #3\n    %4:g = AddParameter %3 #3\n",
               "    %10:f32 = Load f32 [%3 + 8]\n    %11:f32 = Load f32 [%4]\n", more,
               "    %12:f32 = Add %10, %11\n    Store f32 [%1], %12\n    %0:g = AddParameter %0 #3\n  }\n}\n");
  };
  const auto done = [&](std::string_view known, std::string_view more = "") {
    LinearKernel kernel = parsed(text(known, more));
    fold_steps(kernel);
    EXPECT_TRUE(snippet::verify(kernel).ok());
    EXPECT_EQ(print(parsed(print(kernel))), print(kernel));
    return print(kernel);
  };
  const std::string folded = done(" known 100");
  EXPECT_EQ(count(folded, "Load f32 [%0 + 108]"), 1) << folded;
  EXPECT_EQ(count(folded, "Load f32 [%0 + 200]"), 1) << folded;
  EXPECT_EQ(count(folded, "AddParameter"), 1) << "what the loop moves stays: " << folded;
  EXPECT_EQ(count(done(""), "AddParameter"), 3) << "not known";
  EXPECT_EQ(count(done(" known 3000000000"), "AddParameter"), 3) << "more than an address holds";
  EXPECT_EQ(count(done(" known 100", "    %0:g = AddParameter %0 #4\n    %13:f32 = Load f32 [%4]\n"), "AddParameter"),
            3)
      << "the second row's pointer is read after the first one's has moved";
}

TEST_P(Passes, DoublesHaveTheSameForms) {
  if (GetParam().lanes * 64 > vector_bits(GetParam().isa)) return;  // no body with so many lanes has f64
  const std::string text =
      row_kernel(GetParam().lanes,
                 weight("f64") + load("f64") + "    %12:f64 = Mul %11, %10\n    %20:f64 = Sub %11, %12\n", "f64");
  const auto code = compiled(optimised(text, {.prefetch_writes = {.lines = 40}}));
  ASSERT_NE(code, nullptr);
  check<double>(*code, [](double x, double w) { return std::fma(-w, x, w); });
  const auto plain = compiled(optimised(text, {.contract = false, .memory_operands = true}));
  ASSERT_NE(plain, nullptr);
  check<double>(*plain, [](double x, double w) {
    const volatile double product = w * x;  // volatile: rounded even if the test is compiled with contraction
    return w - product;
  });
}

TENON_ON_ALL_MACHINES(Passes);

// On avx2 the opposite of a comparison of integers may be one instruction. It is used unless the comparison has readers
// other than choices.
TEST_P(Passes, ChoicesByTheOpposite) {
  const auto kernel_of = [&](const std::string& op, const std::string& end) {
    return row_kernel(GetParam().lanes, load("i32") + weight("i32") + "    %12:bool = " + op + " %10, %11\n" + end,
                      "i32");
  };
  const std::string choice = "    %20:i32 = Where %12, %10, %11\n";
  const bool turns = GetParam().isa == Isa::avx2;
  struct Case {
    const char *op, *opposite;
    bool (*holds)(int32_t, int32_t);
  };
  for (const auto& [op, opposite, holds] :
       {Case{"LessOrEqual", "Greater", [](int32_t a, int32_t b) { return a <= b; }},
        Case{"GreaterOrEqual", "Less", [](int32_t a, int32_t b) { return a >= b; }},
        Case{"NotEqual", "Equal", [](int32_t a, int32_t b) { return a != b; }},
        Case{"Less", "GreaterOrEqual", [](int32_t a, int32_t b) { return a < b; }}}) {
    const LinearKernel kernel = optimised(kernel_of(op, choice));
    const std::string text = print(kernel);
    const bool is_costly = std::string_view(op) != "Less";
    EXPECT_EQ(count(text, str("= ", opposite, " ")), turns && is_costly ? 2 : 0) << "of the loop and the tail\n"
                                                                                 << text;
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    check<int32_t>(*code, [holds = holds](int32_t x, int32_t w) { return holds(x, w) ? x : w; });
    const LinearKernel both = optimised(kernel_of(
        op, "    %13:i32 = Where %12, %10, %11\n    %14:i32 = Where %12, %11, %10\n    %20:i32 = Sub %13, %14\n"));
    const auto two = compiled(both);
    ASSERT_NE(two, nullptr);
    check<int32_t>(*two, [holds = holds](int32_t x, int32_t w) { return holds(x, w) ? x - w : w - x; });
    const std::string stays = print(optimised(kernel_of(
        op, "    %13:bool = Not %12\n    %14:i32 = Where %12, %10, %11\n    %20:i32 = Where %13, %14, %11\n")));
    EXPECT_EQ(count(stays, str("= ", op, " ")), 2) << stays;
  }
}

// The same for combined comparisons whose result selects. A choice between a value and 0 is one instruction.
TEST_P(Passes, JoinedChoicesByTheOpposite) {
  const bool turns = GetParam().isa == Isa::avx2;
  const auto of = [&](const std::string& first, const std::string& second, const std::string& join,
                      const std::string& end) {
    return optimised(row_kernel(
        GetParam().lanes,
        load("i32") + weight("i32") + "    %12:i32 = Scalar {bits = 0x0}\n    %13:bool = " + first +
            " %10, %11\n    %14:bool = " + second + " %10, %12\n    %15:bool = " + join + " %13, %14\n" + end,
        "i32"));
  };
  struct Case {
    const char *first, *second, *join, *left;
    bool (*holds)(int32_t, int32_t);
  };
  for (const auto& [first, second, join, left, holds] :
       {Case{"LessOrEqual", "GreaterOrEqual", "Or", "And", [](int32_t x, int32_t w) { return x <= w || x >= 0; }},
        Case{"LessOrEqual", "GreaterOrEqual", "And", "Or", [](int32_t x, int32_t w) { return x <= w && x >= 0; }},
        Case{"LessOrEqual", "Less", "And", "Drop", [](int32_t x, int32_t w) { return x <= w && x < 0; }},
        Case{"Less", "NotEqual", "And", "Drop", [](int32_t x, int32_t w) { return x < w && x != 0; }},
        Case{"GreaterOrEqual", "Less", "Or", "Drop", [](int32_t x, int32_t w) { return x >= w || x < 0; }}}) {
    const LinearKernel chosen = of(first, second, join, "    %20:i32 = Where %15, %10, %11\n");
    const std::string text = print(chosen);
    EXPECT_EQ(count(text, str("= ", left, " ")), turns ? 2 : 0) << text;
    EXPECT_EQ(count(text, "OrEqual") + count(text, "NotEqual"),
              turns ? 0 : count(text, "OrEqual") + count(text, "NotEqual"))
        << text;
    const auto code = compiled(chosen);
    ASSERT_NE(code, nullptr);
    check<int32_t>(*code, [holds = holds](int32_t x, int32_t w) { return holds(x, w) ? x : w; });
    for (const bool other : {false, true}) {
      const LinearKernel kept = of(
          first, second, join, other ? "    %20:i32 = Where %15, %12, %10\n" : "    %20:i32 = Where %15, %10, %12\n");
      EXPECT_EQ(count(print(kept), "Where"), turns ? 0 : 2) << print(kept);
      const auto beside = compiled(kept);
      ASSERT_NE(beside, nullptr);
      check<int32_t>(*beside, [holds = holds, other](int32_t x, int32_t w) { return holds(x, w) != other ? x : 0; });
    }
  }
  // Or remains if the result has readers other than choices.
  const std::string stays = print(of("LessOrEqual", "Less", "Or",
                                     "    %16:bool = Not %15\n    %17:i32 = Where %15, %10, %11\n"
                                     "    %20:i32 = Where %16, %17, %11\n"));
  EXPECT_EQ(count(stays, "= Or "), 2) << stays;
}

}  // namespace
}  // namespace tenon::x86::testing
