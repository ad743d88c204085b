// The store of a row together with the reduction of the next.
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

namespace tenon::snippet::test {
namespace {

class LowerSkewed : public ::testing::Test {
 protected:
  // Without register allocation, and with few and many registers.
  void check(const Body& body, const Dims& extents, bool skewed = true) {
    for (const int count : {0, 4, 16}) {
      HarnessOptions options{.lower = options_, .parts = 1 + count / 8, .tolerance = 1e-5};
      if (count > 0) options.machine = test_machine(count, count == 16, true);
      options.passes = [&](LinearKernel& kernel) -> Result<void> {
        EXPECT_EQ(kernel.skewed, skewed);
        EXPECT_EQ(kernel.skewed_twice, twice_);
        EXPECT_EQ(kernel.stored_together, together_);
        return {};
      };
      check_body(body, extents, random_, options);
      if (HasFatalFailure()) return;
    }
  }

  bool twice_ = false;     // expected LinearKernel::skewed_twice
  bool together_ = false;  // expected LinearKernel::stored_together
  LowerOptions options_{.lanes = 4, .unroll = 4, .merge_sweeps = true, .skew_rows = true};
  std::mt19937 random_{1};
};

constexpr DimSet kOfRow = 1, kAlongRow = 2, kBoth = 3;  // sets of dims of "kr"

// x minus its mean, and the root of its variance plus 1.
std::pair<ValueId, ValueId> centred_and_deviation(BodyBuilder& build, ValueId x) {
  const ValueId count = build.count();
  const ValueId mean = build.op("Div", {build.reduce("ReduceSum", x), count}), centred = build.op("Sub", {x, mean});
  const ValueId square = build.reduce("ReduceSum", build.op("Mul", {centred, centred}));
  return {centred, build.op("Sqrt", {build.op("Add", {build.op("Div", {square, count}), build.scalar(1)})})};
}

// Normalisation of x + residual, with factors shared by all rows, one factor per row, and a tensor that only the last
// sweep reads. The deviation is also a result.
Body norm_body() {
  BodyBuilder build("norm", "kr");
  const ValueId x = build.op("Add", {build.input(kBoth), build.input(kBoth, kF16)});
  const auto [centred, deviation] = centred_and_deviation(build, x);
  const ValueId scaled = build.op("Mul", {build.op("Div", {centred, deviation}), build.input(kAlongRow)});
  build.output(build.op("Add", {build.op("Mul", {scaled, build.input(kOfRow)}), build.input(kBoth)}));
  build.output(deviation);
  return build.take();
}

// x / (sum of |x * number| + 1), with a number per row.
Body share_body(DimSet x_varies = kBoth, std::string_view dims = "kr") {
  BodyBuilder build("share", dims);
  const ValueId x = build.input(x_varies), number = build.input(kOfRow);
  const ValueId sum = build.reduce("ReduceSum", build.op("Abs", {build.op("Mul", {x, number})}));
  build.output(build.op("Div", {x, build.op("Add", {sum, build.scalar(1)})}));
  return build.take();
}

// Instance normalisation: (x - mean) / deviation * factor, with a factor for each element of the dim of rows.
Body scaled_body() {
  BodyBuilder build("scaled", "kkr");
  const ValueId x = build.input(0b111);
  const auto [centred, deviation] = centred_and_deviation(build, x);
  build.output(build.op("Mul", {build.op("Div", {centred, deviation}), build.input(0b010)}));
  return build.take();
}

// softmax(x * scale) * (factor + maximum), with a scale and a factor per row. The maximum, the sum and twice the scale
// are also results.
Body scaled_softmax_body() {
  BodyBuilder build("scaled", "kr");
  const ValueId x = build.input(kBoth), scale = build.input(kOfRow), factor = build.input(kOfRow);
  const ValueId scaled = build.op("Mul", {x, scale}), greatest = build.reduce("ReduceMax", scaled);
  const ValueId e = build.op("Exp", {build.op("Sub", {scaled, greatest})}), sum = build.reduce("ReduceSum", e);
  build.output(build.op("Mul", {build.op("Div", {e, sum}), build.op("Add", {factor, greatest})}));
  build.output(greatest);
  build.output(sum);
  build.output(build.op("Add", {scale, scale}));
  return build.take();
}

TEST_F(LowerSkewed, RowsOfAllWidths) {
  for (const int64_t row : {0, 1, 3, 4, 5, 11, 16, 33}) {
    for (const int64_t rows : {0, 1, 2, 3, 7}) {
      check(share_body(), {rows, row});
      if (rows == 1 || rows == 3) check(norm_body(), {rows, row});
    }
    check(softmax_body(), {2, row});
  }
  options_.vectors = 32;  // larger groups
  for (const int64_t row : {31, 32, 101}) check(norm_body(), {2, row});
}

// Sweeps are not merged. The sweep that stores is fused with the one that keeps the values it reads: the second in a
// softmax.
TEST_F(LowerSkewed, RowsOfThreeWalks) {
  options_.merge_sweeps = false;
  for (const bool near : {false, true}) {
    options_.keep_joined = near;
    options_.resweep_cycles = near ? 0 : 2.5;  // 2.5: powers are kept
    for (const int64_t row : {0, 1, 3, 4, 5, 11, 16, 33}) {
      for (const int64_t rows : {0, 1, 2, 3, 7}) {
        check(norm_body(), {rows, row});
        for (const bool twice : {false, true}) {
          options_.skew_twice = twice;
          twice_ = twice && !near;  // near: the first sweep keeps x
          check(softmax_body(), {rows, row});
          check(scaled_softmax_body(), {rows, row});
          check(residual_softmax_body(), {rows, row}, !near);  // near: the second sweep reads x, which the first keeps
        }
        twice_ = false;
        if (HasFailure()) return;
      }
    }
  }
}

// Normalisation with a factor and an offset for each element of a row, shared by all rows.
Body shared_norm_body() {
  BodyBuilder build("norm", "kr");
  const ValueId x = build.input(kBoth);
  const auto [centred, deviation] = centred_and_deviation(build, x);
  const ValueId scaled = build.op("Mul", {build.op("Div", {centred, deviation}), build.input(kAlongRow)});
  build.output(build.op("Add", {scaled, build.input(kAlongRow)}));
  return build.take();
}

// Group normalisation: channels and pixels of a group are reduced, factors are per channel.
Body group_body() {
  BodyBuilder build("group", "kkrr");
  const ValueId x = build.input(0b1111);
  const auto [centred, deviation] = centred_and_deviation(build, x);
  const ValueId scaled = build.op("Mul", {build.op("Div", {centred, deviation}), build.input(0b0110)});
  build.output(build.op("Add", {scaled, build.input(0b0110)}));
  return build.take();
}

// Instead of being combined with the next row's reduction, several rows are stored in one sweep.
TEST_F(LowerSkewed, RowsThatAreStoredTogether) {
  options_.skew_rows = false;
  for (const bool merges : {false, true}) {
    options_.merge_sweeps = merges;
    for (const int rows_together : {2, 4}) {
      options_.stored_together = rows_together;
      for (const int64_t row : {0, 1, 3, 4, 5, 33}) {
        for (const int64_t rows : {0, 1, 3, 4, 5}) {
          together_ = true;
          check(shared_norm_body(), {rows, row}, false);
          check(softmax_body(), {rows, row}, false);
          check(share_body(), {rows, row}, false);
          check(scaled_body(), {2, rows, row}, false);
          check(share_body(0b111, "krr"), {rows, 2, row}, false);
          together_ = false;
          check(norm_body(), {rows, row}, false);  // two rows of six tensors are too many pointers
          check(group_body(), {1, rows, 2, row}, false);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Operands that are shared by all rows are loaded once for the rows that are stored together.
TEST_F(LowerSkewed, RowsThatAreStoredTogetherReadOnce) {
  options_.skew_rows = false, options_.stored_together = 4, options_.vectors = 32, options_.resweep_cycles = 24;
  const Body body = shared_norm_body();
  const auto kernel = lower(body, options_);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  ASSERT_TRUE(kernel->stored_together);
  int loads = 0, stores = 0;
  std::vector<std::pair<int, int>> loops;  // loops that store: number of loads and stores
  for (const Instruction& one : kernel->body) {
    if (one.op == "LoopBegin" || one.op == "TailBegin") loads = stores = 0;
    loads += one.op == "Load";
    stores += one.op == "Store";
    if ((one.op == "LoopEnd" || one.op == "TailEnd") && stores > 0)
      loops.emplace_back(std::exchange(loads, 0), std::exchange(stores, 0));
  }
  using Loops = std::vector<std::pair<int, int>>;
  EXPECT_EQ(loops, (Loops{{12, 8}, {6, 4}, {6, 4}, {12, 4}, {3, 1}, {3, 1}})) << print(*kernel);
}

// Each vector is loaded just before it is stored, instead of the loads of several vectors before their stores.
TEST_F(LowerSkewed, StoresGoVectorByVector) {
  options_.merge_sweeps = false, options_.resweep_cycles = 2.5, options_.vectors = 32;
  for (const Body& body : {share_body(), softmax_body()}) {
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    ASSERT_TRUE(kernel->skewed);
    const auto output_port = static_cast<int>(body.inputs.size());
    RegisterId output = -1;
    int loads = 0, alone = 0, most = 0;  // alone: stores preceded by their own loads
    for (const Instruction& one : kernel->body) {
      if (one.op == "Parameter" && kernel->params[static_cast<size_t>(one.number)].port == output_port)
        output = one.out[0];
      if (one.op == "LoopBegin") loads = alone = 0;
      if (one.op == "Load") ++loads;
      if (one.op == "Store" && one.memory->base == output && std::exchange(loads, 0) > 0)
        most = std::max(most, ++alone);
    }
    EXPECT_EQ(most, options_.unroll) << print(*kernel);
  }
}

// With loops around those over rows, each of them starts anew: its last row leaves nothing for the next one.
TEST_F(LowerSkewed, LoopsAroundRows) {
  for (const int64_t outer : {0, 1, 2, 3})
    for (const int64_t rows : {0, 1, 2, 4})
      for (const int64_t row : {0, 3, 9, 33}) {
        check(share_body(0b111, "kkr"), {outer, rows, row});
        check(scaled_body(), {outer, rows, row});
        if (HasFailure()) return;
      }
}

// The sweep that stores is a loop over channels and one over pixels, and so is the reduction combined with it.
TEST_F(LowerSkewed, GroupsOfChannels) {
  for (const bool merges : {false, true}) {
    options_.merge_sweeps = merges;
    for (const int64_t channels : {0, 1, 2, 3})
      for (const int64_t groups : {0, 1, 2, 4})
        for (const int64_t pixels : {0, 1, 3, 4, 5, 11, 16, 33}) {
          check(group_body(), {2, groups, channels, pixels});
          check(share_body(0b111, "krr"), {groups, channels, pixels});
          if (HasFailure()) return;
        }
  }
}

// A number per row and channel, used by both the reduction and the sweep that stores, with frames around channels. The
// store of the last row must not advance the pointer to the numbers of the next row, which is not set.
TEST_F(LowerSkewed, NumbersOfChannelsThatAllWalksTake) {
  BodyBuilder build("embedded", "krrr");
  const ValueId x = build.input(0b1111), number = build.input(0b0101);
  const ValueId sum = build.reduce("ReduceSum", build.op("Abs", {build.op("Add", {x, number})}));
  build.output(build.op("Div", {build.op("Mul", {x, number}), build.op("Add", {sum, build.scalar(1)})}));
  const Body body = build.take();
  for (const int64_t groups : {0, 1, 2, 4})
    for (const int64_t channels : {0, 1, 3})
      for (const int64_t pixels : {0, 1, 5, 16}) {
        check(body, {groups, 2, channels, pixels});
        if (HasFailure()) return;
      }
}

// Sweeps that only reduce traverse channels and pixels as one.
TEST_F(LowerSkewed, StatisticsOfGroupsWalkOneDim) {
  options_.merge_sweeps = false;
  for (const bool skews : {false, true}) {
    options_.skew_rows = skews;
    const auto kernel = lower(group_body(), options_);
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    EXPECT_EQ(kernel->stretch, 2);
    const auto loops = [&](int dim) {
      return std::ranges::count_if(kernel->loops, [&](const Loop& loop) { return loop.dim == dim; });
    };
    // A sweep consists of a loop over four vectors, a loop over one, and a tail.
    EXPECT_EQ(loops(4), 6) << "sums and squares; of the first row, and squares of the next\n" << print(*kernel);
    EXPECT_EQ(loops(2), skews ? 3 : 1) << "what stores; the first row's fold, both, the last row's store";
  }
}

// Not with reduced columns, nor if two sweeps keep rows that are read later: the first sweep of the next row would
// overwrite one of them.
TEST_F(LowerSkewed, OtherBodiesAreNot) {
  check(share_body(0b110, "rkr"), {3, 2, 9}, false);
  options_.merge_sweeps = false, options_.resweep_cycles = 0;
  check(residual_softmax_body(), {3, 9}, false);
}

// A tensor that the last sweep reads together with powers is kept by the same sweep as the powers. The sweep before
// keeps nothing.
TEST_F(LowerSkewed, TensorsAreKeptByTheWalkThatGoesAlong) {
  options_.merge_sweeps = false, options_.resweep_cycles = 2.5, options_.skew_twice = true;
  const auto kernel = lower(residual_softmax_body(), options_);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  EXPECT_TRUE(kernel->skewed_twice) << print(*kernel);
  EXPECT_EQ(kernel->scratch.size(), 2U) << print(*kernel);
}

// The loop of single vectors: stores a row from the scratch row, then keeps the next row there.
TEST_F(LowerSkewed, OneVectorReadsAsThis) {
  options_.unroll = 1;
  const auto kernel = lower(share_body(), options_);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const std::string text = print(*kernel);
  EXPECT_NE(text.find("#7 = limit loop 3 ahead 1\n"), text.npos) << text;
  const size_t begin = text.find("loop 3 d0"), end = text.find("tail 5 ");
  ASSERT_NE(end, text.npos) << text;
  EXPECT_EQ(text.substr(begin, end - begin), R"(loop 3 d0 dim 0 %1 step 1 limit #7 moves %7 #8 -, %3 #9 -, %25 #10 - {
      %27:g = AddParameter %7 #8
      %20:g = AddParameter %3 #9
      %19:f32 = BroadcastLoad f32 [%20]
      %21:f32 = Scalar {bits = 0x0} ; ReduceSum n4
      %22:g = Zero
      loop 4 d1 dim 1 %22 vector step 4 limit #2 {
        %23:f32 = Load f32 [%8 + %22]
        %24:f32 = Div %23, %18 ; Div n7
        Store f32 [%25 + %22], %24
        %26:f32 = Load f32 [%27 + %22]
        Store f32 [%8 + %22], %26
        %28:f32 = Mul %26, %19 ; Mul n2
        %29:f32 = Abs %28 ; Abs n3
        %21:f32 = Add %21, %29 ; ReduceSum n4
      }
      )")
      << text;
  const auto again = parse_linear(text);
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(print(*again), text);
}

}  // namespace
}  // namespace tenon::snippet::test
