#include <tenon/snippet/lower/lower.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

namespace tenon::snippet::test {
namespace {

using ::testing::HasSubstr;

class Lower : public ::testing::Test {
 protected:
  // Without registers, and with few and many of them.
  void check(const Body& body, const Dims& extents, double tolerance = 0) {
    for (const int count : {0, 4, 16}) {
      HarnessOptions options{.lower = options_, .blocks = blocks_, .tolerance = tolerance};
      if (count > 0) options.machine = test_machine(count, count == 16, true);
      check_body(body, extents, random_, options);
      if (HasFatalFailure()) return;
    }
  }
  // All widths of the innermost dim.
  void check_widths(const Body& body, Dims extents, double tolerance = 0) {
    for (const int64_t width : widths_of(options_.lanes)) {
      extents.back() = width;
      check(body, extents, tolerance);
      if (HasFatalFailure()) return;
    }
  }
  // As a target says: a transcendental function is worth a scratch row.
  static double cycles(const Body&, const BodyNode& node) { return node.op == "Exp" ? 10 : 1; }

  LowerOptions options_{.lanes = 4, .unroll = 4, .cycles = cycles};
  std::vector<LinearKernel::Blocks::Size> blocks_ = {{128, 2000}, {.elements = 64}};
  std::mt19937 random_{1};
};

Body add_body(DimSet a, DimSet b, std::string_view dims) {
  BodyBuilder build("add", dims);
  build.output(build.op("Add", {build.input(a), build.input(b)}));
  return build.take();
}

TEST_F(Lower, AddWithAllBroadcastPatterns) {
  for (DimSet a = 0; a < 8; ++a) check_widths(add_body(a, 7, "kkk"), {2, 3, 0});
  for (DimSet a = 0; a < 4; ++a) check_widths(add_body(a, 3 & ~a, "kk"), {3, 0});
}

TEST_F(Lower, SingleElements) {
  BodyBuilder build("single", "");
  build.output(build.op("Mul", {build.input(0), build.scalar(3)}));
  check(build.take(), {});
}

TEST_F(Lower, NarrowTypesInMemory) {
  for (const ElementType element : {kF16, kBF16, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF64, kBool}) {
    BodyBuilder build("copy", "k");
    const ValueId x = build.input(1, element);
    build.output(element.is_bool() ? build.op("Not", {x}) : build.op("Add", {x, x}), element);
    check_widths(build.take(), {0});
  }
}

Body softmax_body(std::string_view dims) {
  BodyBuilder build("softmax", dims);
  const ValueId x = build.input((DimSet{1} << dims.size()) - 1);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Div", {e, build.reduce("ReduceSum", e)}));
  return build.take();
}

TEST_F(Lower, SoftmaxOverEveryAxis) {
  for (const char* dims : {"r", "kr", "rk", "krk", "rkr", "kkr", "krkk", "rr", "rrk"}) {
    const Dims extents = std::string_view(dims).size() == 1   ? Dims{0}
                         : std::string_view(dims).size() == 2 ? Dims{3, 0}
                         : std::string_view(dims).size() == 3 ? Dims{2, 3, 0}
                                                              : Dims{2, 3, 2, 0};
    check_widths(softmax_body(dims), extents, 1e-6);
  }
}

TEST_F(Lower, ExpensiveValuesWaitInTheOutput) {
  options_.rows = 1;
  const auto kernel = lower(softmax_body("kr"), options_);
  ASSERT_TRUE(kernel.ok());
  EXPECT_TRUE(kernel->scratch.empty());
  size_t exponentials = 0;
  for (const Instruction& instruction : kernel->body) exponentials += instruction.op == "Exp";
  EXPECT_EQ(exponentials, 4u + 1 + 1);  // one phase: 4 copies, a single vector, the tail
}

// Does a kernel read what it wrote to the first output?
bool reads_output(const LinearKernel& kernel, const Body& body) {
  const auto is_read = [&](const Instruction& pointer) {
    return std::ranges::any_of(kernel.body, [&](const Instruction& one) {
      return one.memory && one.op != "Store" && one.memory->base == pointer.out[0];
    });
  };
  return std::ranges::any_of(kernel.body, [&](const Instruction& one) {
    return one.op == "Parameter" &&
           kernel.params[static_cast<size_t>(one.number)].port == static_cast<int>(body.inputs.size()) && is_read(one);
  });
}

TEST_F(Lower, ValuesThatCostLessThanTheirMemoryAreMadeAgain) {
  options_.rows = 1;
  options_.resweep_cycles = 12;
  for (const char* dims : {"kr", "rk"}) {
    const Body body = softmax_body(dims);
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok());
    EXPECT_FALSE(reads_output(*kernel, body)) << print(*kernel);
    check_widths(body, {3, 0}, 1e-6);
  }
}

// The sum of two tensors and its square cost two cycles and two loads, though the product reads the sum twice.
TEST_F(Lower, WhatIsReadTwiceCostsOnce) {
  options_.rows = 1;
  BodyBuilder build("squares", "kr");
  const ValueId sum = build.op("Add", {build.input(3), build.input(3)}), square = build.op("Mul", {sum, sum});
  build.output(build.op("Sub", {square, build.reduce("ReduceSum", square)}));
  const Body body = build.take();
  for (const double cycles : {3.0, 4.0}) {
    options_.resweep_cycles = cycles;
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(reads_output(*kernel, body), cycles < 4) << print(*kernel);
    check_widths(body, {3, 0});
  }
}

// One accumulator a vector leaves room for wide tiles; what is left of a wide one goes in narrower ones.
TEST_F(Lower, TilesOfColumnsAreAsWideAsRegistersHold) {
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

// Columns in whole rows, in blocks: everything that may stand around a fold, all widths, one to several blocks and
// pieces.
TEST_F(Lower, ColumnsInWholeRows) {
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

// A dim that has no elements says nothing of an output that does not vary over it: that has not to wait for its loop.
TEST_F(Lower, WholeRowsKeepNothingForADimWithoutElements) {
  options_.whole_rows = true;
  options_.resweep_cycles = 0;  // all is kept that may be
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

// Values before and behind the folds, of rows and of columns alone, stored and not.
TEST_F(Lower, WhatStandsAroundFoldsOfWholeRows) {
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

// What varies over the outer folded dim alone is stored though the inner one has no element.
TEST_F(Lower, WholeRowsAreStoredBesideEmptyOnes) {
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

// Two functions of a row's constant: a tile holds them while it goes down, whole rows would make them again.
TEST_F(Lower, ExpensiveValuesOfOuterRowsKeepTheTile) {
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

TEST_F(Lower, ExpensiveValuesWaitInScratchWhereTheOutputIsNarrow) {
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

Body layer_norm_body(std::string_view dims, DimSet scale) {
  BodyBuilder build("layer_norm", dims);
  const ValueId x = build.input((DimSet{1} << dims.size()) - 1);
  const ValueId gamma = build.input(scale), beta = build.input(scale);
  const ValueId mean = build.op("Div", {build.reduce("ReduceSum", x), build.count()});
  const ValueId centred = build.op("Sub", {x, mean});
  const ValueId square = build.op("Mul", {centred, centred});
  const ValueId variance = build.op("Div", {build.reduce("ReduceSum", square), build.count()});
  const ValueId deviation = build.op("Sqrt", {build.op("Add", {variance, build.scalar(0.001f)})});
  const ValueId normal = build.op("Div", {centred, deviation});
  build.output(build.op("Add", {build.op("Mul", {normal, gamma}), beta}));
  build.output(mean);
  return build.take();
}

TEST_F(Lower, LayerNorm) {
  check_widths(layer_norm_body("kr", 2), {3, 0}, 1e-4);
  check_widths(layer_norm_body("krr", 1), {2, 3, 0}, 1e-4);
  check_widths(layer_norm_body("rkr", 2), {2, 3, 0}, 1e-4);
  check_widths(layer_norm_body("rk", 2), {3, 0}, 1e-4);
}

TEST_F(Lower, SumsOverSeveralAxes) {
  for (const char* dims : {"r", "rr", "kr", "rk", "rkr", "krk", "rkrk", "krkr", "rrkk"}) {
    BodyBuilder build("sum", dims);
    const std::string_view all = dims;
    const ValueId x = build.input((DimSet{1} << all.size()) - 1);
    build.output(build.reduce("ReduceSum", x));
    build.output(build.reduce("ReduceMax", x));
    const Body body = build.take();
    Dims extents;
    for (size_t d = 0; d < all.size(); ++d) extents.push_back(static_cast<int64_t>(d) % 2 + 2);
    check_widths(body, extents);
    extents.front() = 0;
    check(body, extents);
  }
}

// So that a sum has the same bits in a long body as alone.
TEST_F(Lower, SumsHaveAsManyAccumulatorsInAnyBody) {
  options_.rows = 1;
  for (const int length : {0, 10, 100}) {
    BodyBuilder build("sum", "kr");
    ValueId x = build.input(3);
    for (int i = 0; i < length; ++i) x = build.op("Neg", {x});
    build.output(build.reduce("ReduceSum", x));
    const auto kernel = lower(build.take(), options_);
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(std::count_if(kernel->body.begin(), kernel->body.end(),
                            [](const Instruction& instruction) { return instruction.op == "Scalar"; }),
              options_.unroll);
  }
}

TEST_F(Lower, ExtremesByPlainConstantsAreClamps) {
  const auto body_of = [](const char* op, float constant, bool first) {
    BodyBuilder build("extreme", "k");
    const ValueId x = build.input(1), c = build.scalar(constant);
    build.output(first ? build.op(op, {c, x}) : build.op(op, {x, c}));
    return build.take();
  };
  const auto clamps = [&](const Body& body) {
    const auto kernel = lower(body, options_);
    return std::any_of(kernel->body.begin(), kernel->body.end(), [](const Instruction& instruction) {
      return instruction.op == "ClampLow" || instruction.op == "ClampHigh";
    });
  };
  for (const bool first : {false, true}) {
    for (const char* op : {"Max", "Min"}) {
      for (const float constant : {2.0f, -3.0f, std::numeric_limits<float>::infinity()}) {
        const Body body = body_of(op, constant, first);
        EXPECT_TRUE(clamps(body)) << op << " " << constant;
        check_widths(body, {0});
      }
      for (const float constant : {0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN()})
        EXPECT_FALSE(clamps(body_of(op, constant, first))) << op << " " << constant;
    }
  }
}

bool folds_four_rows(const LinearKernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const Instruction& instruction) { return instruction.op == "FoldRows"; });
}

TEST_F(Lower, ShortRowsGoSideBySide) {
  options_.vectors = 32;
  const Body softmax = softmax_body("kr");
  EXPECT_TRUE(folds_four_rows(*lower(softmax, options_)));
  for (const int64_t rows : {0, 1, 3, 4, 5, 9}) check_widths(softmax, {rows, 0}, 1e-6);
  // Of two sums at once, two rows.
  const Body norm = layer_norm_body("kkr", 4);
  for (const int64_t rows : {1, 2, 5}) check_widths(norm, {2, rows, 0}, 1e-4);
  options_.rows = 1;
  EXPECT_FALSE(folds_four_rows(*lower(softmax, options_)));
}

Body sum_body(int64_t extent = -1) {
  BodyBuilder build("sum", "kr");
  build.output(build.reduce("ReduceSum", build.input(3)));
  Body body = build.take();
  if (extent >= 0) body.dims.back().extent = Expr(extent);
  return body;
}

TEST_F(Lower, LongRowsGoAlone) {
  options_.vectors = 32;
  const auto runs_several = [&](const Body& body, int64_t length) {
    const auto kernel = lower(body, options_);
    const auto plan = CallPlan::make_for_extents(body, *kernel, {8, length});
    std::vector<int64_t> words(plan->words());
    const std::vector<void*> addresses(2, nullptr);
    plan->fill(words, addresses, nullptr);
    for (const Loop& loop : kernel->loops)
      if (loop.kind == Loop::Kind::scalar && loop.increment == 4) return words[static_cast<size_t>(loop.limit)] >= 0;
    return false;
  };
  const Body softmax = softmax_body("kr");
  EXPECT_TRUE(runs_several(softmax, 33));
  EXPECT_TRUE(runs_several(softmax, 1000));
  EXPECT_FALSE(runs_several(softmax, 65536));
  options_.longest_row_again = 500;
  EXPECT_FALSE(runs_several(softmax, 1000));
  EXPECT_TRUE(runs_several(softmax, 500));
  check(softmax, {5, 1500}, 1e-6);
  EXPECT_TRUE(runs_several(sum_body(), 256));
  EXPECT_FALSE(runs_several(sum_body(), 257)) << "walked once";
  options_.longest_row_once = 257;
  EXPECT_TRUE(runs_several(sum_body(), 257));
}

// What goes to several tensors is stored at the end of a loop of two copies: copy by copy where a vector is a line,
// else both halves of a line of each tensor in turn.
TEST_F(Lower, SeveralOutputsAreStoredInTurn) {
  BodyBuilder build("several", "k");
  const ValueId x = build.input(1), y = build.input(1), sum = build.op("Add", {x, y});
  build.output(sum);
  build.output(build.op("Mul", {x, sum}));
  build.output(build.op("Neg", {y}));
  const Body body = build.take();
  const auto ports = [&] {
    const auto kernel = lower(body, options_);
    std::vector<int> of_register(kernel->registers.size(), -1), stored;
    for (const Instruction& one : kernel->body) {
      if (one.op == "Parameter")
        of_register[static_cast<size_t>(one.out[0])] = kernel->params[static_cast<size_t>(one.number)].port;
      if (one.op == "Store") stored.push_back(of_register[static_cast<size_t>(one.memory->base)]);
      if (one.op == "LoopEnd") break;
    }
    return stored;
  };
  options_.lanes = 16, options_.vectors = 32;
  EXPECT_EQ(ports(), (std::vector<int>{2, 3, 4, 2, 3, 4}));
  check_widths(body, {0});
  options_.lanes = 8, options_.vectors = 16;
  EXPECT_EQ(ports(), (std::vector<int>{2, 2, 3, 3, 4, 4}));
  check_widths(body, {0});
}

// Of two rows that go at once, two vectors of a row are stored one behind the other: they are halves of one line.
TEST_F(Lower, RowsSideBySideStoreTwoVectorsInTurn) {
  BodyBuilder build("residual", "kr");
  const ValueId x = build.input(3), sum = build.op("Add", {x, build.input(3)});
  build.output(sum);
  build.output(build.op("Mul", {sum, build.reduce("ReduceMax", sum)}));
  const Body body = build.take();
  options_.rows = 2;
  const auto kernel = lower(body, options_);
  ASSERT_TRUE(kernel.ok());
  std::vector<std::pair<RegisterId, int64_t>> stored;  // of the first sweep: through which pointer, and how far on
  for (const Instruction& one : kernel->body) {
    if (one.op == "Store") stored.emplace_back(one.memory->base, one.memory->displacement_bytes);
    if (one.op == "LoopEnd") break;
  }
  ASSERT_GE(stored.size(), 4u) << print(*kernel);
  for (size_t i = 0; i + 1 < stored.size(); i += 2) {
    EXPECT_EQ(stored[i].first, stored[i + 1].first) << print(*kernel);
    EXPECT_EQ(stored[i].second + 16, stored[i + 1].second) << print(*kernel);
  }
  EXPECT_NE(stored[0].first, stored[2].first) << "rows in turn\n" << print(*kernel);
  for (const int64_t columns : {0, 1, 3, 4, 5, 31, 32, 33, 67}) check(body, {5, columns});
}

// Rows that are known to end within a line go one by one where two halves of lines are stored for each vector.
TEST_F(Lower, RowsThatEndWithinALineGoOneByOne) {
  const auto most_rows = [&](int64_t columns, bool two_outputs) {
    BodyBuilder build("residual", "kr");
    const ValueId x = build.input(3), sum = build.op("Add", {x, build.input(3)});
    if (two_outputs) build.output(sum);
    build.output(build.op("Mul", {sum, build.reduce("ReduceMax", sum)}));
    Body body = build.take();
    body.dims.back().extent = Expr(columns);
    const auto kernel = lower(body, options_);
    int64_t most = 1;
    for (const Loop& loop : kernel->loops)
      if (loop.kind == Loop::Kind::scalar) most = std::max<int64_t>(most, loop.increment);
    check(body, {5, columns});
    return most;
  };
  options_.lanes = 8;
  EXPECT_GT(most_rows(304, true), 1);
  EXPECT_EQ(most_rows(300, true), 1);
  EXPECT_GT(most_rows(300, false), 1) << "one half";
}

// Rows side by side whose vectors are parts of lines are stored one behind the other where they are known to end within
// a line, by loops and written out; folds stay side by side.
TEST_F(Lower, RowsThatEndWithinALineAreStoredOneByOne) {
  bool makes_shared = false, adds_shared = false;
  const auto of_columns = [&](int64_t columns) {
    BodyBuilder build("scaled", "kr");
    const ValueId x = build.input(3), all = build.input(2), row = makes_shared ? build.op("Exp", {all}) : all;
    const ValueId sum = build.op("Add", {x, row}), scaled = build.op("Mul", {sum, build.reduce("ReduceSum", x)});
    build.output(adds_shared ? build.op("Add", {scaled, build.input(2)}) : scaled);
    Body body = build.take();
    body.dims.back().extent = Expr(columns);
    return body;
  };
  // How often the pointer changes from one store to the next, up to the end of the first rows.
  const auto changes = [&](int64_t columns) {
    const auto kernel = lower(of_columns(columns), options_);
    int changed = -1;
    RegisterId last = -1;
    for (const Instruction& one : kernel->body) {
      if (one.op == "Store") changed += std::exchange(last, one.memory->base) != one.memory->base;
      if (one.op == "LoopEnd" && kernel->loops[static_cast<size_t>(one.number)].kind == Loop::Kind::scalar) break;
    }
    check(of_columns(columns), {5, columns});
    return changed;
  };
  options_.lanes = 8, options_.rows = 2;
  EXPECT_GT(changes(304), 1);
  EXPECT_EQ(changes(300), 1);
  EXPECT_EQ(changes(296), 1) << "half a line";
  makes_shared = true;
  EXPECT_GT(changes(300), 1) << "what rows share is made once";
  makes_shared = false;
  options_.held_vectors = 16;
  EXPECT_GT(changes(64), 1);
  EXPECT_EQ(changes(60), 1);
  EXPECT_GT(changes(20), 1) << "too short to gain by it";
  adds_shared = true;
  EXPECT_GT(changes(60), 1) << "two rows are shared";
  adds_shared = false;
  for (const int64_t columns : {0, 1, 7, 8, 9, 19, 41, 100}) check(of_columns(columns), {5, columns});
}

// Copies that no row is long enough for are not written.
TEST_F(Lower, KnownExtentsLimitCopies) {
  const auto vector_steps = [&](int64_t extent) {
    std::vector<int64_t> steps;
    const auto kernel = lower(sum_body(extent), options_);
    for (const Loop& loop : kernel->loops)
      if (loop.kind == Loop::Kind::vector) steps.push_back(loop.increment);
    return steps;
  };
  options_.rows = 1;
  EXPECT_EQ(vector_steps(-1), (std::vector<int64_t>{16, 4}));
  EXPECT_EQ(vector_steps(16), (std::vector<int64_t>{16, 4}));
  EXPECT_EQ(vector_steps(15), (std::vector<int64_t>{4}));
  for (const int64_t extent : {0, 1, 3, 4, 5, 15, 16, 17}) check(sum_body(extent), {3, extent});
}

// A partial load leaves 0 behind the end, which adds nothing.
TEST_F(Lower, TailsOfLoadedSumsAreNotFilled) {
  const auto fills = [&](const char* fold, bool loaded) {
    BodyBuilder build("fold", "kr");
    const ValueId x = build.input(3);
    build.output(build.reduce(fold, loaded ? x : build.op("Add", {x, build.scalar(1)})));
    const auto kernel = lower(build.take(), options_);
    return std::any_of(kernel->body.begin(), kernel->body.end(),
                       [](const Instruction& instruction) { return instruction.op == "FillTail"; });
  };
  EXPECT_FALSE(fills("ReduceSum", true));
  EXPECT_TRUE(fills("ReduceSum", false));
  EXPECT_TRUE(fills("ReduceMax", true));
}

// What waits in scratch memory has one row of it: rows go one by one.
TEST_F(Lower, RowsWithScratchGoAlone) {
  options_.vectors = 32;
  BodyBuilder build("softmax", "kr");
  const ValueId x = build.input(3, kF16);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Round", {build.op("Div", {e, build.reduce("ReduceSum", e)})}, {{"to", "f16"}}), kF16);
  const Body body = build.take();
  EXPECT_FALSE(folds_four_rows(*lower(body, options_)));
  check_widths(body, {5, 0}, 1e-3);
}

// A reduction folds all reduced dims, whether its operand varies or not.
TEST_F(Lower, ReductionsOfInvariantOperands) {
  for (DimSet varies = 0; varies < 8; ++varies) {
    for (const char* dims : {"krr", "rkr", "rrk", "krk", "rkk"}) {
      BodyBuilder build("sum", dims);
      const ValueId s = build.reduce("ReduceSum", build.input(varies));
      build.output(s);
      build.output(build.op("Add", {build.input(7), s}));
      check(build.take(), {2, 3, 5});
    }
  }
}

TEST_F(Lower, OutputsOfDifferentLevels) {
  BodyBuilder build("levels", "kkk");
  const ValueId a = build.input(7), b = build.input(3), c = build.input(1), d = build.input(5), e = build.input(4);
  build.output(build.op("Add", {a, b}));
  build.output(build.op("Mul", {b, c}));
  build.output(build.op("Neg", {c}));
  build.output(build.op("Add", {d, e}));
  build.output(build.op("Abs", {e}));
  build.output(build.op("Neg", {build.input(0)}));
  const Body body = build.take();
  check_widths(body, {2, 3, 0});
  check(body, {2, 0, 5});
  check(body, {0, 3, 5});
}

// As attention's sums of one tensor beside others: reductions at different levels of one nest.
TEST_F(Lower, ReductionsOfDifferentLevels) {
  for (const char* dims : {"kkr", "krk", "rkk"}) {
    BodyBuilder build("levels", dims);
    const ValueId x = build.input(7);
    for (DimSet varies = 0; varies < 8; ++varies) {
      const ValueId s = build.reduce("ReduceMax", build.op("Add", {build.input(varies), build.scalar(1)}));
      build.output(s);
      build.output(build.op("Sub", {x, s}));
    }
    check_widths(build.take(), {2, 3, 0});
  }
}

// exp(b) of a bias row is made once, not for each row; so are whole reductions.
TEST_F(Lower, InvariantRowsAreMadeOnce) {
  BodyBuilder build("rows", "kk");
  const ValueId e = build.op("Exp", {build.input(2)});
  build.output(build.op("Mul", {build.input(3), build.op("Add", {e, build.scalar(1)})}));
  const Body body = build.take();
  const auto kernel = lower(body, {.lanes = 4, .unroll = 1, .cycles = cycles});
  ASSERT_EQ(kernel->scratch.size(), 1u);
  for (const Instruction& instruction : kernel->body) {
    if (instruction.op == "LoopBegin" && kernel->loops[static_cast<size_t>(instruction.number)].dim == 0) break;
    EXPECT_NE(instruction.op, Name("Mul"));
  }
  const auto count = [&](Name op) {
    return std::count_if(kernel->body.begin(), kernel->body.end(), [&](const Instruction& i) { return i.op == op; });
  };
  EXPECT_EQ(count("Exp"), 2);
  EXPECT_EQ(count("Add"), 2);
  check_widths(body, {3, 0});
  check(body, {0, 5});
}

TEST_F(Lower, InvariantReductionsAndColumns) {
  for (const char* dims : {"kkr", "krk", "rkk", "krr"}) {
    for (DimSet varies = 1; varies < 8; ++varies) {
      BodyBuilder build("invariant", dims);
      const ValueId x = build.input(7), w = build.input(varies);
      const ValueId scaled = build.op("Sub", {w, build.reduce("ReduceMax", build.op("Exp", {w}))});
      const ValueId y = build.op("Add", {x, build.op("Exp", {scaled})});
      build.output(build.reduce("ReduceMin", y));
      build.output(y);
      check(build.take(), {3, 2, 5}, 1e-6);
    }
  }
}

TEST_F(Lower, OutputsThatOthersReadAreMadeOnce) {
  BodyBuilder build("shared", "kk");
  const ValueId e = build.op("Exp", {build.input(2)});
  build.output(build.op("Mul", {build.input(3), e}));
  build.output(e);
  const Body body = build.take();
  EXPECT_TRUE(lower(body, options_)->scratch.empty());
  check_widths(body, {3, 0});
}

TEST_F(Lower, ManyInputs) {
  BodyBuilder build("many", "kk");
  ValueId sum = build.input(3);
  for (int i = 0; i < 40; ++i)
    sum = build.op("Sub", {build.input(static_cast<DimSet>(i) % 4), build.op("Add", {sum, build.scalar(i)})});
  build.output(sum);
  check_widths(build.take(), {3, 0});
}

TEST_F(Lower, WorkIsCutIntoPieces) {
  for (const char* dims : {"kkk", "kkr", "rkk", "krk"}) {
    BodyBuilder build("cut", dims);
    const ValueId x = build.input(7), y = build.input(5);
    const ValueId s = build.op("Add", {x, y});
    build.output(build.op("Sub", {s, std::string_view(dims) == "kkk" ? y : build.reduce("ReduceSum", s)}));
    const Body body = build.take();
    for (const int64_t parts : {2, 3, 7, 100})
      check_body(body, {3, 4, 130}, random_, {.lower = options_, .parts = parts});
  }
}

TEST_F(Lower, Deterministic) {
  const Body body = layer_norm_body("krr", 1);
  EXPECT_EQ(print(*lower(body, options_)), print(*lower(body, options_)));
}

TEST_F(Lower, RefusesWhatIsNoBody) {
  BodyBuilder build("bad", "r");
  build.output(build.reduce("ReduceSum", build.input(1)));
  Body body = build.take();
  body.nodes[0].attributes.erase("initial");
  const auto lowered = lower(body, options_);
  ASSERT_FALSE(lowered.ok());
  EXPECT_THAT(lowered.error().message(), HasSubstr("has no integer 'initial'"));
  EXPECT_FALSE(lower(body, {.lanes = 0}).ok());
}

TEST_F(Lower, InlineOnRegisters) {
  BodyBuilder build("epilogue", "kk");
  const ValueId x = build.input(3), bias = build.input(2);
  const ValueId y = build.op("ClampLow", {build.op("Add", {x, bias}), build.scalar(0)});
  build.output(y);
  build.output(bias);
  const Body body = build.take();
  LinearKernel kernel{.name = "host", .lanes = 4};
  const std::vector<RegisterId> inputs{kernel.add_lanes(kF32), kernel.add_lanes(kF32)};
  const auto code = lower_inline(body, kernel, inputs);
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  ASSERT_EQ(code->invariant.size(), 1u);
  EXPECT_EQ(print(kernel, code->invariant[0]), "%3:f32 = Scalar {bits = 0x0}");
  ASSERT_EQ(code->body.size(), 2u);
  EXPECT_EQ(print(kernel, code->body[0]), "%2:f32 = Add %0, %1");
  EXPECT_EQ(print(kernel, code->body[1]), "%4:f32 = ClampLow %2, %3");
  EXPECT_EQ(code->outputs, (std::vector<RegisterId>{4, 1}));
  EXPECT_FALSE(lower_inline(body, kernel, std::vector<RegisterId>{0}).ok());
  EXPECT_FALSE(lower_inline(softmax_body("r"), kernel, std::vector<RegisterId>{0}).ok());
}

}  // namespace
}  // namespace tenon::snippet::test
