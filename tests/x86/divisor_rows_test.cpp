// Quotients by a row of divisors that several rows share (passes/divisor_rows.cpp).
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>

#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/lower/lower.hpp>

#include "x86/body_of.hpp"
#include "x86/passes_support.hpp"

namespace tenon::x86::testing {
namespace {

using snippet::CallPlan;

class DivisorRows : public Passes {
 protected:
  int lanes() const { return GetParam().lanes; }
  // A graph of rows %x and %z, and of rows %s and %t of divisors.
  static std::string text_of(std::string_view operators, int64_t rows, int64_t columns,
                             std::string_view outputs = "%y") {
    const std::string all = str("f32[", rows, ",", columns, "]"), row = str("f32[", columns, "]");
    return str("graph @g(%x: ", all, ", %z: ", all, ", %s: ", row, ", %t: ", row, ") -> (", outputs,
               ") {\n%k = Constant {value = dense<f32[]: 0.25>}\n", operators, "\n}");
  }
  LinearKernel lowered(const snippet::Body& body, int unroll = 4) const {
    auto kernel = snippet::lower(body, {.lanes = lanes(), .unroll = unroll});
    EXPECT_TRUE(kernel.ok());
    return *std::move(kernel);
  }
  LinearKernel kernel_of(std::string_view operators, int64_t rows, int64_t columns, std::string_view outputs = "%y") {
    return optimised(lowered(body_of(text_of(operators, rows, columns, outputs))), FormPasses());
  }
  static bool is_moderate(float s) {
    const float magnitude = std::abs(s);
    return magnitude >= 0x1p-126f && magnitude <= 0x1p122f;
  }
  static std::vector<float> hard() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    std::vector<float> made{0.0f, -0.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
    for (const int exponent : {-149, -127, -126, -100, -60, 0, 1, 60, 121, 122, 126, 127})
      for (const float m : {1.0f, -1.0f, 1.5f, 0x1.fffffep0f}) made.push_back(std::ldexp(m, exponent));
    return made;
  }
  // Calls the kernel of `x / s` for some rows of some columns, on memory between guard pages.
  std::vector<float> call(const snippet::Body& body, const LinearKernel& kernel, const JitCode& code,
                          const std::vector<float>& x, const std::vector<float>& s) {
    const auto columns = static_cast<int64_t>(s.size()),
               rows = columns == 0 ? 0 : static_cast<int64_t>(x.size()) / columns;
    auto plan = CallPlan::make_for_extents(body, kernel, {rows, columns});
    EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().to_string());
    if (!plan.ok()) return {};
    const auto put = [](const std::vector<float>& values) {
      GuardedBuffer made(values.size() * sizeof(float));
      if (!values.empty()) std::memcpy(made.data(), values.data(), made.bytes());
      return made;
    };
    const GuardedBuffer above = put(x), below = put(s), out(x.size() * sizeof(float));
    // The last scratch row has no padding behind it.
    const size_t padding = (64 - s.size() * sizeof(float) % 64) % 64;
    const GuardedBuffer scratch(plan->scratch_bytes() - (plan->scratch_bytes() > 0 ? padding : 0));
    std::vector<void*> addresses{above.data(), below.data(), out.data()};
    std::vector<int64_t> words(plan->words());
    plan->fill(words, addresses, scratch.data());
    code.function()(words.data());
    std::vector<float> y(x.size());
    if (!y.empty()) std::memcpy(y.data(), out.data(), out.bytes());
    return y;
  }
  // Whether the quotient is that of the machine, or close enough to it where the divisor and its row are moderate.
  static bool is_right(float x, float s, float y, bool by_products) {
    const float wanted = x / s;
    if (std::isnan(wanted)) return std::isnan(y);
    if (std::bit_cast<uint32_t>(y) == std::bit_cast<uint32_t>(wanted)) return true;
    if (!by_products || x == 0 || !std::isfinite(wanted)) return false;
    const auto next = [&](float towards) {
      const float one = std::nextafter(wanted, towards);
      return std::abs(wanted) < 0x1p-100f ? std::nextafter(one, towards) : one;
    };
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return next(-kInfinity) <= y && y <= next(kInfinity);
  }
};

constexpr std::string_view kQuotient = "%y = Div %x, %s";

constexpr std::string_view kByProducts = R"(kernel @y lanes LANES {
  #0 = limit loop 0
  #1 = limit loop 1
  #2 = pointer 0
  #3 = pointer 1
  #4 = pointer 2
  #5 = limit loop 2
  #6 = shift 0 loop 0
  #7 = shift 2 loop 0
  #8 = pointer 3
  #9 = pointer 4
  #10 = limit loop 3
  #11 = limit loop 4
  scratch f32 dims 0x2 width 1
  scratch f32 dims 0x2 width 1
  %3:g = Parameter #2
  %5:g = Parameter #3
  %7:g = Parameter #4
  %0:g = Zero
  %13:g = Copy %5
  %14:g = Parameter #8
  %15:g = Parameter #8
  %16:g = Parameter #9
  %17:g = Parameter #9
  %18:bool = Scalar {bits = 0x0}
  %19:g = Zero
  %21:f32 = Scalar {bits = 0x3f7ffffe}
  %22:f32 = Scalar {bits = 0x3f800000}
  %23:f32 = Scalar {bits = 0x21800000}
  loop 3 d1 dim 1 %19 vector step LANES limit #10 {
    %20:f32 = Load f32 [%13 + %19]
    %24:f32 = Div %21, %20
    %25:f32 = Fnma %24, %20, %22
    %26:f32 = ClampLow %23, %25
    %27:f32 = Mul %26, %24
    %28:f32 = Fma %27, %26, %27
    %29:bool = OddDivisor %20
    Store f32 [%15 + %19], %24
    Store f32 [%17 + %19], %28
    %18:bool = Or %18, %29
  }
  tail 4 d1 dim 1 %19 limit #11 -> %30:bool, %31:g {
    %32:f32 = Load.partial f32 [%13 + %19], %30, %31
    %33:f32 = Div %21, %32
    %34:f32 = Fnma %33, %32, %22
    %35:f32 = ClampLow %23, %34
    %36:f32 = Mul %35, %33
    %37:f32 = Fma %36, %35, %36
    %38:bool = OddDivisor %32
    Store.partial f32 [%15 + %19], %33, %30, %31
    Store.partial f32 [%17 + %19], %37, %30, %31
    %39:bool = And %38, %30
    %18:bool = Or %18, %39
  }
  loop 0 d0 dim 0 %0 step 1 limit #0 moves %3 #6 -, %7 #7 - {
    %1:g = Zero
    loop 1 d1 dim 1 %1 vector step LANES limit #1 {
      %2:f32 = Load f32 [%3 + %1]
      %4:f32 = Load f32 [%5 + %1]
      %40:f32 = Load f32 [%14 + %1]
      %41:f32 = Load f32 [%16 + %1]
      %42:f32 = Mul %2, %41 ; Div
      %43:f32 = Fma %2, %40, %42 ; Div
      %6:f32 = DivOdd %43, %2, %4, %18 ; Div
      Store f32 [%7 + %1], %6
    }
    tail 2 d1 dim 1 %1 limit #5 -> %8:bool, %9:g {
      %10:f32 = Load.partial f32 [%3 + %1], %8, %9
      %11:f32 = Load.partial f32 [%5 + %1], %8, %9
      %44:f32 = Load.partial f32 [%14 + %1], %8, %9
      %45:f32 = Load.partial f32 [%16 + %1], %8, %9
      %46:f32 = Mul %10, %45 ; Div
      %47:f32 = Fma %10, %44, %46 ; Div
      %12:f32 = DivOdd %47, %10, %11, %18 ; Div
      Store.partial f32 [%7 + %1], %12, %8, %9
    }
  }
}
)";

// The preparation precedes the rows; each quotient is two products and a check.
TEST_P(DivisorRows, BecomeProducts) {
  LinearKernel kernel = lowered(body_of("graph @g(%x: f32[64,200], %s: f32[200]) -> %y {\n%y = Div %x, %s\n}"), 1);
  divide_by_rows(kernel, FormPasses{.isa = GetParam().isa});
  ASSERT_TRUE(snippet::verify(kernel).ok());
  std::string expected(kByProducts);
  for (size_t at; (at = expected.find("LANES")) != std::string::npos;) expected.replace(at, 5, str(lanes()));
  EXPECT_EQ(print(kernel), expected);
}

// All vectors of a call are divided by the machine where one divisor is odd.
TEST_P(DivisorRows, AreRightForAllNumbers) {
  const snippet::Body body = body_of("graph @g(%x: f32[64,200], %s: f32[200]) -> %y {\n%y = Div %x, %s\n}");
  for (const bool in_memory : {true, false}) {
    const LinearKernel kernel = optimised(lowered(body), FormPasses{.memory_operands = in_memory});
    const std::string text = print(kernel);
    ASSERT_GT(count(text, "= DivOdd "), 0) << text;
    ASSERT_EQ(count(text, "= DivOddMemory ") > 0, in_memory) << text;
    const auto code = compiled(kernel);
    ASSERT_NE(code, nullptr);
    const std::vector<float> numbers = hard();
    std::vector<float> moderate;
    std::ranges::copy_if(numbers, std::back_inserter(moderate), is_moderate);
    std::mt19937 random(26);
    for (const int64_t columns : {0, 1, lanes() - 1, lanes(), lanes() + 1, 4 * lanes() + 3, 9 * lanes()}) {
      for (int64_t rows = 1; rows <= 9; ++rows) {
        for (size_t odd = 0; odd <= numbers.size(); ++odd) {
          std::vector<float> s(static_cast<size_t>(columns)), x(static_cast<size_t>(rows * columns));
          for (float& one : s) one = moderate[random() % moderate.size()];
          if (odd < numbers.size() && columns > 0) s[random() % s.size()] = numbers[odd];
          for (float& one : x) one = numbers[random() % numbers.size()];
          const bool by_products = std::ranges::all_of(s, is_moderate);
          const std::vector<float> y = call(body, kernel, *code, x, s);
          ASSERT_EQ(y.size(), x.size());
          for (size_t i = 0; i < x.size(); ++i)
            ASSERT_TRUE(is_right(x[i], s[i % s.size()], y[i], by_products))
                << x[i] << " / " << s[i % s.size()] << " is " << y[i] << " in " << rows << " rows of " << columns;
        }
      }
    }
  }
}

// Other numbers are correctly rounded, except for a few in a million.
TEST_P(DivisorRows, AreAsExactAsThoseByOneDivisor) {
  const snippet::Body body = body_of("graph @g(%x: f32[64,200], %s: f32[200]) -> %y {\n%y = Div %x, %s\n}");
  const LinearKernel kernel = optimised(lowered(body), FormPasses());
  const auto code = compiled(kernel);
  ASSERT_NE(code, nullptr);
  std::mt19937 random(27);
  const auto any = [&] {
    return std::ldexp(1.0f + static_cast<float>(random() >> 9) * 0x1p-23f, static_cast<int>(random() % 100) - 50);
  };
  std::vector<float> s(1000), x(1000 * s.size());
  std::ranges::generate(s, any), std::ranges::generate(x, any);
  const std::vector<float> y = call(body, kernel, *code, x, s);
  ASSERT_EQ(y.size(), x.size());
  size_t apart = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(is_right(x[i], s[i % s.size()], y[i], true)) << x[i] << " / " << s[i % s.size()] << " is " << y[i];
    apart += y[i] != x[i] / s[i % s.size()];
  }
  EXPECT_LE(apart, 5u) << "of a million";
}

// Rows have to be enough, known, not too long, and shared; loops must have little other work.
TEST_P(DivisorRows, OnlyWhereTheyPay) {
  const auto rows_of = [&](std::string_view operators, int64_t rows, int64_t columns) {
    return kernel_of(operators, rows, columns).scratch.size();
  };
  const int64_t columns = 8 * lanes();
  EXPECT_EQ(rows_of(kQuotient, 16, columns), 2u);
  EXPECT_EQ(rows_of(kQuotient, 15, columns), 0u) << "few rows";
  EXPECT_EQ(rows_of(kQuotient, 16, 16384), 2u);
  EXPECT_EQ(rows_of(kQuotient, 16, 16385), 0u) << "a near cache does not hold the factors";
  PassOptions joined(FormPasses{.isa = GetParam().isa});
  joined.joined_rows = 8;
  for (const int64_t rows : {16 * 8, 16 * 8 - 1}) {
    LinearKernel kernel = lowered(body_of(text_of(kQuotient, rows, lanes())));
    ASSERT_TRUE(optimise(kernel, joined).ok());
    EXPECT_EQ(kernel.scratch.size(), rows < 16 * 8 ? 0u : 2u) << "short rows are joined";
  }
  EXPECT_EQ(rows_of("%y = Div %x, %z", 64, columns), 0u) << "each row has its own divisors";
  const auto polynomial = [&](int count) {
    std::string text = "%p0 = Mul %x, %z\n";
    for (int i = 0; i < count; ++i) text += str("%q", i, " = Mul %p", i, ", %x\n%p", i + 1, " = Sub %z, %q", i, "\n");
    return str(text, "%y = Div %p", count, ", %s");
  };
  EXPECT_EQ(rows_of(polynomial(2), 64, columns), 2u);
  EXPECT_EQ(rows_of(polynomial(5), 64, columns), 0u) << "the divider is not what takes longest";
  LinearKernel open = lowered(body_of(text_of(kQuotient, 64, columns)));
  open.extents[0] = -1;
  EXPECT_EQ(optimised(std::move(open), FormPasses()).scratch.size(), 0u) << "any number of rows";
  const LinearKernel exact =
      optimised(lowered(body_of(text_of(kQuotient, 64, columns))), FormPasses{.contract = false});
  EXPECT_EQ(exact.scratch.size(), 0u) << "products have other bits";
}

// A row that the loop over rows writes itself is another one in each iteration.
TEST_P(DivisorRows, AreNotWrittenMeanwhile) {
  const snippet::Body body = body_of(
      text_of("%axes = Constant {value = dense<i64[1]: 1>}\n%e = Exp %z\n%q = ReduceSum %e, %axes\n%p = Mul %x, %q\n"
              "%y = Div %p, %e",
              64, 8 * lanes()));
  const auto cycles = [](const snippet::Body&, const snippet::BodyNode& node) { return node.op == "Exp" ? 100. : 1.; };
  auto kernel = snippet::lower(body, {.lanes = lanes(), .rows = 1, .cycles = cycles, .keep_near = true});
  ASSERT_TRUE(kernel.ok());
  ASSERT_EQ(kernel->scratch.size(), 1u) << print(*kernel);
  divide_by_rows(*kernel, FormPasses{.isa = GetParam().isa});
  EXPECT_EQ(kernel->scratch.size(), 1u) << print(*kernel);
}

// Each matrix has its own row of divisors, which is prepared inside the loop over matrices.
TEST_P(DivisorRows, OfEachMatrix) {
  if (lanes() != lanes_of(GetParam().isa, kF32)) return;
  const auto text = [&](int64_t rows, int64_t columns) {
    return str("graph @g(%x: f32[3,", rows, ",", columns, "], %s: f32[3,1,", columns, "]) -> %y {\n%y = Div %x, %s\n}");
  };
  EXPECT_EQ(optimised(lowered(body_of(text(16, 8 * lanes()))), FormPasses()).scratch.size(), 2u);
  EXPECT_EQ(optimised(lowered(body_of(text(15, 8 * lanes()))), FormPasses()).scratch.size(), 0u);
  std::mt19937 random(29);
  std::uniform_real_distribution<double> any(0.25, 4);
  for (const bool small_caches : {false, true}) {
    auto graph = graph_of(text(17, 8 * lanes() + 3));
    Tensor x = *Tensor::zeros(kF32, {3, 17, 8 * lanes() + 3}), s = *Tensor::zeros(kF32, {3, 1, 8 * lanes() + 3});
    for (Tensor* tensor : {&x, &s})
      for (int64_t i = 0; i < tensor->size(); ++i) tensor->set_double(i, any(random));
    GuardedGraph runner(GetParam().isa, {.small_caches = small_caches});
    runner.tokenize(*graph);
    runner.run(*graph, {Datum(x), Datum(s)}, random);
  }
}

// Quotients by the same row share its factors; computed divisors are kept as well, unless no check needs them.
TEST_P(DivisorRows, AreComputedOnce) {
  const auto check = [&](std::string_view operators, std::string_view outputs, size_t scratch, int checks) {
    const LinearKernel kernel = kernel_of(operators, 64, 8 * lanes(), outputs);
    EXPECT_EQ(kernel.scratch.size(), scratch) << operators << "\n" << print(kernel);
    EXPECT_EQ(count(print(kernel), "OddDivisor ") > 0, checks > 0) << operators << "\n" << print(kernel);
  };
  check("%y = Div %x, %s\n%w = Div %z, %s", "%y, %w", 2, 1);
  check("%d = Sub %x, %z\n%y = Div %d, %s\n%w = Div %d, %t", "%y, %w", 4, 1);
  check("%e = Add %s, %t\n%y = Div %x, %e", "%y", 3, 1);
  check("%e = Max %s, %k\n%y = Div %x, %e", "%y", 3, 1);
}

// Graphs with such rows against the bounds of their bodies, in all forms.
TEST_P(DivisorRows, OfGraphsAreWithinTheirBounds) {
  if (lanes() != lanes_of(GetParam().isa, kF32)) return;
  static constexpr std::pair<std::string_view, std::string_view> kGraphs[] = {
      {"%y = Div %x, %s", "%y"},
      {"%y = Div %x, %s\n%w = Div %z, %s", "%y, %w"},
      {"%d = Sub %x, %z\n%y = Div %d, %s\n%w = Div %d, %t", "%y, %w"},
      {"%e = Add %s, %t\n%d = Sub %x, %t\n%y = Div %d, %e", "%y"},
      {"%m = Mul %s, %s\n%e = Add %m, %k\n%r = Sqrt %e\n%d = Sub %x, %t\n%y = Div %d, %r", "%y"},
      {"%y = Div %x, %s\n%w = Add %y, %s", "%y, %w"},
  };
  std::mt19937 random(28);
  std::uniform_real_distribution<double> any(0.25, 4);
  const auto drawn = [&](const Dims& dims) {
    Tensor made = *Tensor::zeros(kF32, dims);
    for (int64_t i = 0; i < made.size(); ++i) made.set_double(i, any(random));
    return Datum(made);
  };
  for (const auto& [operators, outputs] : kGraphs) {
    for (const bool small_caches : {false, true}) {
      for (const int64_t columns : {1, lanes() - 1, lanes(), 8 * lanes() + 1, 17 * lanes() + 3}) {
        const int64_t rows = columns < 8 * lanes() ? 16 * (16 * lanes() + 8) + 3 : 19;
        auto graph = graph_of(text_of(operators, rows, columns, outputs));
        GuardedGraph runner(GetParam().isa, {.small_caches = small_caches});
        runner.tokenize(*graph);
        runner.run(*graph, {drawn({rows, columns}), drawn({rows, columns}), drawn({columns}), drawn({columns})},
                   random);
        ASSERT_FALSE(HasFatalFailure()) << operators << ", " << rows << " rows of " << columns;
      }
    }
  }
}

TENON_ON_ALL_MACHINES(DivisorRows);

}  // namespace
}  // namespace tenon::x86::testing
