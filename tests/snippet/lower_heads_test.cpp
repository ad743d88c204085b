// Heads: lanes before the vectors of a row, so that stores of whole vectors are aligned wherever the row begins.
// Emulated lanes check this.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

namespace tenon::snippet::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LowerHeads : public ::testing::Test {
 protected:
  // Rows that begin at every element of a vector, with few registers and with many.
  void check(const Body& body, double tolerance = 0) {
    for (const int64_t width : widths_of(options_.lanes)) {
      for (const int count : {0, 4, 16}) {
        HarnessOptions options{.lower = options_, .parts = 1 + count / 8, .tolerance = tolerance};
        if (count > 0) options.machine = test_machine(count, count == 16, true);
        if (body.outputs.size() > 1) options.outputs = testing::GuardAt::lines;
        for (const int64_t rows : {1, 2, 3, 9}) check_body(body, {rows, width}, random_, options);
        if (HasFatalFailure()) return;
      }
    }
  }
  std::string text(const Body& body) const {
    const auto kernel = lower(body, options_);
    EXPECT_TRUE(kernel.ok());
    return print(*kernel);
  }
  static int count(const std::string& text, std::string_view what) {
    int found = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
    return found;
  }

  LowerOptions options_{.lanes = 4, .unroll = 2, .heads = true};
  std::mt19937 random_{1};
};

Body scaled_rows(ElementType element = {}) {
  BodyBuilder build("scale", "kk");
  build.output(build.op("Mul", {build.input(3), build.input(1)}), element);
  return build.take();
}

TEST_F(LowerHeads, StandBeforeTheVectorsOfARow) {
  options_.unroll = 1;
  const std::string_view expected = R"(kernel @scale lanes 4 {
  #0 = limit loop 0
  #1 = pointer 1
  #2 = pointer 2
  #3 = pointer 0
  #4 = limit loop 1
  #5 = limit loop 2
  #6 = shift 0 loop 0
  #7 = shift 1 loop 0
  #8 = shift 2 loop 0
  %2:g = Parameter #1
  %3:g = Parameter #2
  %7:g = Parameter #3
  %0:g = Zero
  loop 0 d0 dim 0 %0 step 1 limit #0 moves %7 #6 -, %2 #7 -, %3 #8 - {
    %1:f32 = BroadcastLoad f32 [%2]
    %4:g = HeadLanes f32 [%3] #5
    %5:bool = FirstLanes %4
    %6:f32 = Load.partial f32 [%7], %5, %4
    %8:f32 = Mul %6, %1 ; Mul n2
    Store.partial f32 [%3], %8, %5, %4
    loop 1 d1 dim 1 %4 vector step 4 limit #4 {
      %9:f32 = Load f32 [%7 + %4]
      %10:f32 = Mul %9, %1 ; Mul n2
      Store f32 [%3 + %4], %10 {aligned = 1}
    }
    tail 2 d1 dim 1 %4 limit #5 -> %11:bool, %12:g {
      %13:f32 = Load.partial f32 [%7 + %4], %11, %12
      %14:f32 = Mul %13, %1 ; Mul n2
      Store.partial f32 [%3 + %4], %14, %11, %12
    }
  }
}
)";
  EXPECT_EQ(text(scaled_rows()), expected);
  const auto parsed = parse_linear(expected);
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  EXPECT_EQ(print(*parsed), expected);
}

TEST_F(LowerHeads, OfAllWidthsAndTypes) {
  for (const ElementType element : {kF32, kF16, kBF16}) {
    check(scaled_rows(element));
    if (HasFatalFailure()) return;
  }
}

// Outputs over the same dims have the same alignment, whatever their types. Stores of an output over other dims are not
// marked aligned.
TEST_F(LowerHeads, SeveralOutputs) {
  BodyBuilder build("several", "kk");
  const ValueId x = build.input(3), y = build.input(1);
  build.output(build.op("Mul", {x, y}));
  build.output(build.op("Add", {x, y}), kF16);
  build.output(build.op("Less", {x, y}, {}, kBool));
  const Body body = build.take();
  check(body);
  EXPECT_EQ(count(text(body), "aligned = 1"), 3 * (2 + 1)) << "of two copies and of one";
  BodyBuilder rows("row", "kk");
  const ValueId z = rows.input(2);
  rows.output(rows.op("Mul", {rows.input(3), z}));
  rows.output(rows.op("Neg", {z}));
  check(rows.take());
}

// A sum has no heads, so that its bits do not depend on addresses.
TEST_F(LowerHeads, NotWhereLanesAreFolded) {
  BodyBuilder build("centre", "kr");
  const ValueId x = build.input(3);
  build.output(build.op("Sub", {x, build.reduce("ReduceSum", x)}));
  const Body body = build.take();
  const std::string kernel = text(body);
  EXPECT_EQ(count(kernel, "HeadLanes"), 1) << kernel;
  EXPECT_GT(kernel.find("HeadLanes"), kernel.find("FoldLanes")) << kernel;
  check(body);
  BodyBuilder sum("sum", "kr");
  sum.output(sum.reduce("ReduceSum", sum.input(3)));
  EXPECT_THAT(text(sum.take()), Not(HasSubstr("HeadLanes")));
}

// Whole rows of columns have no heads, because rows that are processed at once differ in alignment.
TEST_F(LowerHeads, NotOfWholeRowsOfColumns) {
  options_.whole_rows = true;
  BodyBuilder build("columns", "rk");
  const ValueId x = build.input(3), sum = build.reduce("ReduceSum", x);
  build.output(build.op("Sub", {x, sum}));
  const Body body = build.take();
  EXPECT_THAT(text(body), Not(HasSubstr("HeadLanes")));
  EXPECT_THAT(text(body), Not(HasSubstr("aligned")));
  check_body(body, {5, 63}, random_, {.lower = options_});
}

}  // namespace
}  // namespace tenon::snippet::test
