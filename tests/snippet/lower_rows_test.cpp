// Several rows at a time: how many, how they are reduced, and how they are stored.
#include <snippet/lower_support.hpp>

namespace tenon::snippet::test {
namespace {

using LowerRows = Lower;

bool folds_four_rows(const LinearKernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const Instruction& instruction) { return instruction.op == "FoldRows"; });
}

TEST_F(LowerRows, ShortRowsGoSideBySide) {
  options_.vectors = 32;
  const Body softmax = softmax_body("kr");
  EXPECT_TRUE(folds_four_rows(*lower(softmax, options_)));
  for (const int64_t rows : {0, 1, 3, 4, 5, 9}) check_widths(softmax, {rows, 0}, 1e-6);
  // A body with two sums processes two rows at once.
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

TEST_F(LowerRows, LongRowsGoAlone) {
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

// Values for several tensors are stored at the end of a loop of two copies: copy by copy if a vector is a cache line,
// otherwise tensor by tensor, both halves of a line together.
TEST_F(LowerRows, SeveralOutputsAreStoredInTurn) {
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

// With two rows at once, two vectors of a row are stored consecutively: they are halves of one line.
TEST_F(LowerRows, RowsSideBySideStoreTwoVectorsInTurn) {
  BodyBuilder build("residual", "kr");
  const ValueId x = build.input(3), sum = build.op("Add", {x, build.input(3)});
  build.output(sum);
  build.output(build.op("Mul", {sum, build.reduce("ReduceMax", sum)}));
  const Body body = build.take();
  options_.rows = 2;
  const auto kernel = lower(body, options_);
  ASSERT_TRUE(kernel.ok());
  std::vector<std::pair<RegisterId, int64_t>> stored;  // pointers and displacements of the stores of the first sweep
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

// Rows that are known to end within a line are processed one by one if half a line is stored to each of two outputs.
TEST_F(LowerRows, RowsThatEndWithinALineGoOneByOne) {
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

// Adjacent rows are stored one at a time if they are known to end within a line, in loops and unrolled. Reductions of
// several rows remain interleaved.
TEST_F(LowerRows, RowsThatEndWithinALineAreStoredOneByOne) {
  bool makes_shared = false, adds_shared = false, shares = true;
  const auto of_columns = [&](int64_t columns) {
    BodyBuilder build("scaled", "kr");
    const ValueId x = build.input(3), all = shares ? build.input(2) : build.scalar(2);
    const ValueId row = makes_shared ? build.op("Exp", {all}) : all;
    const ValueId sum = build.op("Add", {x, row}), scaled = build.op("Mul", {sum, build.reduce("ReduceSum", x)});
    build.output(adds_shared ? build.op("Add", {scaled, build.input(2)}) : scaled);
    Body body = build.take();
    body.dims.back().extent = Expr(columns);
    return body;
  };
  // How many times the pointer changes between consecutive stores, up to the end of the first loop over rows.
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
  // Vectors as wide as a cache line straddle two lines where rows do not begin at lines.
  options_.lanes = 16, options_.vectors = 32;
  EXPECT_GT(changes(128), 1);
  EXPECT_EQ(changes(120), 1);
  EXPECT_GT(changes(40), 1);
  shares = false;
  EXPECT_EQ(changes(40), 1) << "nothing is loaded again";
  EXPECT_GT(changes(48), 1);
  options_.lanes = 8, options_.vectors = 16;
  EXPECT_GT(changes(20), 1) << "parts of lines";
}

// Loops of several copies are not emitted if no row is long enough for them.
TEST_F(LowerRows, KnownExtentsLimitCopies) {
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

// A partial load gives 0 after the end, which does not change a sum.
TEST_F(LowerRows, TailsOfLoadedSumsAreNotFilled) {
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

// Rows are processed one by one because there is only one row of scratch memory.
TEST_F(LowerRows, RowsWithScratchGoAlone) {
  options_.vectors = 32;
  BodyBuilder build("softmax", "kr");
  const ValueId x = build.input(3, kF16);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Round", {build.op("Div", {e, build.reduce("ReduceSum", e)})}, {{"to", "f16"}}), kF16);
  const Body body = build.take();
  EXPECT_FALSE(folds_four_rows(*lower(body, options_)));
  check_widths(body, {5, 0}, 1e-3);
}

}  // namespace
}  // namespace tenon::snippet::test
