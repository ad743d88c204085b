// Short rows of columns, several of which are traversed as one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

namespace tenon::snippet::test {
namespace {

class LowerJoined : public ::testing::Test {
 protected:
  // Without register allocation, and with few and many registers. The kernel must join rows.
  void check(const Body& body, const Dims& extents, double tolerance = 0) {
    for (const int count : {0, 4, 16}) {
      HarnessOptions options{.lower = options_, .parts = 1 + count / 8, .tolerance = tolerance};
      if (count > 0) options.machine = test_machine(count, count == 16, true);
      options.passes = [](LinearKernel& kernel) -> Result<void> {
        EXPECT_GE(kernel.joined.rows, 0);
        return {};
      };
      check_body(body, extents, random_, options);
      if (HasFatalFailure()) return;
    }
  }
  // All widths of rows; no row, one row, a few, whole groups of joined rows, and some remaining after them.
  void check_rows(const Body& body, Dims extents, double tolerance) {
    for (const int64_t columns : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33}) {
      const int64_t each = rows_to_join(100000, columns, options_.lanes);
      EXPECT_GT(each, 1);
      for (const int64_t rows : {int64_t{0}, int64_t{1}, each - 1, each, each + 1, 6 * each, 7 * each - 1}) {
        extents[extents.size() - 2] = rows, extents.back() = columns;
        check(body, extents, tolerance);
        if (HasFatalFailure()) return;
      }
    }
  }
  static double cycles(const Body&, const BodyNode& node) { return node.op == "Exp" ? 10 : 1; }

  LowerOptions options_{.lanes = 4, .unroll = 4, .cycles = cycles, .whole_rows = true, .join_rows = true};
  std::mt19937 random_{1};
};

Body softmax_body(std::string_view dims, ElementType element = kF32) {
  BodyBuilder build("softmax", dims);
  const ValueId x = build.input((DimSet{1} << dims.size()) - 1, element);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Div", {e, build.reduce("ReduceSum", e)}));
  return build.take();
}

TEST_F(LowerJoined, SoftmaxOfAllWidths) {
  check_rows(softmax_body("rk"), {0, 0}, 1e-6);
  options_.resweep_cycles = 100;  // exponentials are recomputed
  check_rows(softmax_body("krk"), {2, 0, 0}, 1e-6);
}

TEST_F(LowerJoined, OneRowOrFourAtOnce) {
  for (const int rows : {1, 2, 4}) {
    options_.rows = rows;
    for (const int64_t count : {48, 115, 130, 160, 300}) {
      check(softmax_body("rk", kF16), {count, 8}, 1e-3);
      check(softmax_body("rrk"), {3, count, 8}, 1e-6);
      check(softmax_body("rkrk"), {2, 3, count, 8}, 1e-6);
    }
  }
}

// Values before and after the reductions, also values per column and per outer row, in several types, some of which are
// stored.
TEST_F(LowerJoined, WhatStandsAroundFolds) {
  for (const char* fold : {"ReduceSum", "ReduceMax", "ReduceMin"}) {
    BodyBuilder build("columns", "krk");
    const ValueId x = build.input(7, kF16), bias = build.input(4, kF16), of_column = build.input(5),
                  outer = build.input(1);
    const ValueId scaled = build.op("Mul", {build.op("Add", {x, build.op("Abs", {bias})}), of_column});
    const ValueId folded = build.reduce(fold, scaled), shifted = build.op("Add", {folded, build.op("Neg", {bias})});
    const ValueId least = build.reduce("ReduceMin", build.op("Sub", {scaled, shifted}));
    build.output(build.op("Div", {build.op("Add", {build.op("Mul", {scaled, least}), outer}), build.count()}));
    build.output(shifted);
    build.output(folded, kF16);
    build.output(of_column);
    const Body body = build.take();
    for (const int64_t columns : {3, 8, 20, 127}) {
      check(body, {2, 7 * rows_to_join(10000, columns, options_.lanes) + 1, columns});
      check(body, {3, 5, columns});
      check(body, {1, 0, columns});
    }
  }
}

// The kernel of a sum: partial results of joined rows, the remaining rows, and the sum of the partial results.
TEST_F(LowerJoined, TheKernelOfASum) {
  BodyBuilder build("sum", "rk");
  build.output(build.reduce("ReduceSum", build.input(3)));
  options_.rows = options_.unroll = 1;
  auto kernel = lower(build.take(), options_);
  ASSERT_TRUE(kernel.ok());
  const std::string text = print(*kernel);
  EXPECT_EQ(print(*parse_linear(text)), text);
  EXPECT_EQ(text.substr(text.find("  joined")), R"(  joined rows 0
  %1:f32 = Scalar {bits = 0x0}
  %2:g = Parameter #1
  %9:g = Parameter #4
  %29:g = Parameter #13
  %0:g = Zero
  loop 0 d1 dim 1 %0 vector step 4 limit #0 {
    Store f32 [%2 + %0], %1
  }
  tail 1 d1 dim 1 %0 limit #2 -> %3:bool, %4:g {
    Store.partial f32 [%2 + %0], %1, %3, %4
  }
  %5:g = Zero
  loop 2 d0 dim 0 %5 step 1 limit #3 moves %9 #7 - {
    %6:g = Zero
    loop 3 d1 dim 1 %6 vector step 4 limit #0 {
      %7:f32 = Load f32 [%2 + %6]
      %8:f32 = Load f32 [%9 + %6]
      %10:f32 = Add %7, %8 ; ReduceSum n1
      Store f32 [%2 + %6], %10
    }
    tail 4 d1 dim 1 %6 limit #2 -> %11:bool, %12:g {
      %13:f32 = Load.partial f32 [%2 + %6], %11, %12
      %14:f32 = Load.partial f32 [%9 + %6], %11, %12
      %15:f32 = Add %13, %14 ; ReduceSum n1
      Store.partial f32 [%2 + %6], %15, %11, %12
    }
  }
  %16:g = Zero
  loop 5 d3 dim 3 %16 vector step 4 limit #5 {
    %17:f32 = Load f32 [%2 + %16]
    %18:f32 = Load f32 [%9 + %16]
    %19:f32 = Add %17, %18 ; ReduceSum n1
    Store f32 [%2 + %16], %19
  }
  tail 6 d3 dim 3 %16 limit #6 -> %20:bool, %21:g {
    %22:f32 = Load.partial f32 [%2 + %16], %20, %21
    %23:f32 = Load.partial f32 [%9 + %16], %20, %21
    %24:f32 = Add %22, %23 ; ReduceSum n1
    Store.partial f32 [%2 + %16], %24, %20, %21
  }
  %9:g = AddParameter %9 #8
  %25:g = Zero
  loop 7 d2 dim 2 %25 vector step 4 limit #9 {
    %26:f32 = Scalar {bits = 0x0} ; ReduceSum n1
    %27:g = Zero
    loop 8 d4 dim 4 %27 step 1 limit #10 moves %2 #11 #12 {
      %28:f32 = Load f32 [%2 + %25]
      %26:f32 = Add %26, %28 ; ReduceSum n1
    }
    Store f32 [%29 + %25], %26
  }
  tail 9 d2 dim 2 %25 limit #14 -> %30:bool, %31:g {
    %32:f32 = Scalar {bits = 0x0} ; ReduceSum n1
    %33:g = Zero
    loop 10 d4 dim 4 %33 step 1 limit #10 moves %2 #15 #16 {
      %34:f32 = Load.partial f32 [%2 + %25], %30, %31
      %32:f32 = Add %32, %34 ; ReduceSum n1
    }
    Store.partial f32 [%29 + %25], %32, %30, %31
  }
}
)");
}

// Rows are not joined if a value varies only over rows, or is reduced without varying over them: it would differ within
// a joined row.
TEST_F(LowerJoined, OtherBodiesKeepTheirRows) {
  const auto joins = [&](const Body& body) {
    const auto kernel = lower(body, options_);
    EXPECT_TRUE(kernel.ok());
    EXPECT_EQ(may_join_rows(body), kernel->joined.rows >= 0) << body.to_string();
    return kernel->joined.rows >= 0;
  };
  EXPECT_TRUE(joins(softmax_body("rk")));
  EXPECT_FALSE(joins(softmax_body("kr")));
  EXPECT_FALSE(joins(softmax_body("rkk")));
  for (const bool of_row : {true, false}) {
    BodyBuilder build("columns", "rk");
    const ValueId x = build.input(3), other = build.input(of_row ? 1 : 2);
    build.output(build.reduce("ReduceSum", of_row ? build.op("Mul", {x, other}) : other));
    build.output(x);
    EXPECT_FALSE(joins(build.take()));
  }
}

// There is a second nest, for an output whose dims are not the outermost loops of the first one.
TEST_F(LowerJoined, BodiesOfSeveralNestsKeepTheirRows) {
  BodyBuilder build("nests", "krk");
  const ValueId bias = build.input(4);
  build.output(build.reduce("ReduceSum", build.op("Add", {build.input(7), bias})));
  build.output(build.op("Neg", {bias}));
  const Body body = build.take();
  EXPECT_TRUE(may_join_rows(body));
  const auto kernel = lower(body, options_);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->joined.rows, -1);
  check_body(body, {2, 100, 8}, random_, {.lower = options_});
}

}  // namespace
}  // namespace tenon::snippet::test
