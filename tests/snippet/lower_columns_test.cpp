// Reductions down columns, in tiles and in whole rows.
#include <gmock/gmock.h>

#include <snippet/lower_support.hpp>

namespace tenon::snippet::test {
namespace {

using LowerColumns = Lower;

// One accumulator per vector leaves room for wide tiles; the remainder of a wide one is processed in narrower ones.
TEST_F(LowerColumns, TilesOfColumnsAreAsWideAsRegistersHold) {
  const auto steps = [&](const Body& body) {
    std::vector<int64_t> made;
    const auto kernel = lower(body, options_);
    for (const Loop& loop : kernel->loops)
      if (loop.kind == Loop::Kind::vector) made.push_back(loop.increment / options_.lanes);
    return made;
  };
  BodyBuilder build("columns", "rk");
  build.output(build.reduce("ReduceSum", build.input(3)));
  const Body sum = build.take();
  options_.vectors = 32;
  EXPECT_THAT(steps(sum), ::testing::ElementsAre(16, 4, 1));
  options_.vectors = 16;
  EXPECT_THAT(steps(sum), ::testing::ElementsAre(8, 2, 1));
  EXPECT_THAT(steps(softmax_body("rk")), ::testing::ElementsAre(4, 1)) << "a maximum and a sum";
  for (const int64_t width : {16, 32, 63, 64, 85, 150}) check(sum, {3, width});
}

// Columns in whole rows and in blocks: bodies with all kinds of values around a reduction, all widths, one or several
// blocks and pieces.
TEST_F(LowerColumns, ColumnsInWholeRows) {
  options_.whole_rows = true;
  for (const int rows : {1, 2, 4}) {
    options_.rows = rows;
    for (const char* dims : {"rk", "krk", "rkk", "rkrk", "rrk"}) {
      Dims extents{3, 0};
      while (extents.size() < std::string_view(dims).size()) extents.insert(extents.begin(), 2);
      check_widths(softmax_body(dims), extents, 1e-6);
      extents[0] = 7;
      check_widths(softmax_body(dims), extents, 1e-6);
    }
    for (const double cycles : {0.0, 100.0}) {
      options_.resweep_cycles = cycles;
      check(softmax_body("rk"), {9, 150}, 1e-6);
      check(softmax_body("krk"), {2, 5, 203}, 1e-6);
    }
    options_.resweep_cycles = 6;
  }
}

// An empty dim does not affect an output that does not vary over it; such a value need not be kept for the dim's loop.
TEST_F(LowerColumns, WholeRowsKeepNothingForADimWithoutElements) {
  options_.whole_rows = true;
  options_.resweep_cycles = 0;  // keep everything that may be kept
  for (const bool near : {false, true}) {
    options_.keep_near = near;
    BodyBuilder build("columns", "rrk");
    const ValueId x = build.input(5), all = build.input(7), negated = build.op("Neg", {x});
    build.output(build.op("Add", {build.reduce("ReduceMin", negated), build.reduce("ReduceMax", all)}));
    build.output(negated, kF16);
    const Body body = build.take();
    for (const int64_t middle : {0, 1, 3}) check(body, {2, middle, 9});
  }
}

// Values before and after the reductions, also values per row and per column, some of which are stored.
TEST_F(LowerColumns, WhatStandsAroundFoldsOfWholeRows) {
  options_.whole_rows = true;
  for (const char* fold : {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"}) {
    BodyBuilder build("columns", "krk");
    const ValueId x = build.input(7), bias = build.input(4, kF16), of_row = build.input(3), outer = build.input(1);
    const ValueId scaled = build.op("Mul", {build.op("Add", {x, bias}), build.op("Neg", {of_row})});
    const ValueId folded = build.reduce(fold, scaled), shifted = build.op("Add", {folded, build.op("Neg", {bias})});
    const ValueId least = build.reduce("ReduceMin", build.op("Sub", {scaled, shifted}));
    build.output(build.op("Add", {build.op("Mul", {scaled, least}), outer}));
    build.output(shifted);
    build.output(folded, kF16);
    build.output(bias);
    const Body body = build.take();
    check_widths(body, {2, 3, 0});
    check_widths(body, {1, 6, 0});
    check(body, {3, 0, 20});
  }
}

// A value that varies only over the outer reduced dim is stored although the inner one is empty.
TEST_F(LowerColumns, WholeRowsAreStoredBesideEmptyOnes) {
  options_.whole_rows = true;
  BodyBuilder build("columns", "krrk");
  const ValueId x = build.input(15), outer = build.input(11);
  build.output(build.op("Neg", {x}));
  build.output(outer);
  build.output(build.op("Abs", {outer}));
  const Body body = build.take();
  check_widths(body, {2, 3, 2, 0});
  check(body, {2, 3, 0, 9});
}

// A function of an operand that does not vary over the inner rows: a tile keeps its result while it goes down, whole
// rows would recompute it.
TEST_F(LowerColumns, ExpensiveValuesOfOuterRowsKeepTheTile) {
  options_.whole_rows = true;
  for (const bool expensive : {false, true}) {
    BodyBuilder build("columns", "rrk");
    ValueId slow = build.input(5);
    if (expensive) slow = build.op("Exp", {slow});
    build.output(build.reduce("ReduceSum", build.op("Mul", {build.input(7), slow})));
    const Body body = build.take();
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(kernel->blocks.dim, expensive ? -1 : 2);
    check_widths(body, {2, 3, 0}, 1e-6);
  }
}

TEST_F(LowerColumns, ExpensiveValuesWaitInScratchWhereTheOutputIsNarrow) {
  for (const char* dims : {"kr", "rk", "rrk", "krr"}) {
    BodyBuilder build("softmax", dims);
    const std::string_view all = dims;
    const ValueId x = build.input((DimSet{1} << all.size()) - 1, kF16);
    const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
    build.output(build.op("Round", {build.op("Div", {e, build.reduce("ReduceSum", e)})}, {{"to", "f16"}}), kF16);
    const Body body = build.take();
    EXPECT_EQ(lower(body, options_)->scratch.size(), 1u);
    check_widths(body, all.size() == 2 ? Dims{3, 0} : Dims{2, 3, 0}, 1e-3);
  }
}

}  // namespace
}  // namespace tenon::snippet::test
