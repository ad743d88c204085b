// Blocks of columns inside the kernel, with the last sweep one block behind the others.
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

namespace tenon::snippet::test {
namespace {

class LowerBlocks : public ::testing::Test {
 protected:
  // Without register allocation, and with few and many registers.
  void check(const Body& body, const Dims& extents, double tolerance = 0) {
    for (const int count : {0, 4, 16}) {
      HarnessOptions options{.lower = options_, .parts = 1 + count / 8, .tolerance = tolerance};
      if (count > 0) options.machine = test_machine(count, count == 16, true);
      options.passes = [&](LinearKernel& kernel) -> Result<void> {
        EXPECT_TRUE(kernel.blocks.inside);
        EXPECT_EQ(kernel.merged, options_.merge_sweeps);
        kernel.blocks.sizes = blocks_;
        return {};
      };
      check_body(body, extents, random_, options);
      if (HasFatalFailure()) return;
    }
  }
  static double cycles(const Body&, const BodyNode& node) { return node.op == "Exp" ? 10 : 1; }

  std::vector<LinearKernel::Blocks::Size> blocks_ = {{128, 4000}, {.elements = 64}};
  LowerOptions options_{.lanes = 4, .unroll = 4, .cycles = cycles, .whole_rows = true, .behind_blocks = true};
  std::mt19937 random_{1};
};

Body softmax_body(std::string_view dims) {
  BodyBuilder build("softmax", dims);
  const ValueId x = build.input((DimSet{1} << dims.size()) - 1, kF16);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Mul", {e, build.op("Div", {build.scalar(1), build.reduce("ReduceSum", e)})}));
  return build.take();
}

// Widths of no block, a part of one, one, several, and with remaining columns; single rows and several at once.
TEST_F(LowerBlocks, SoftmaxOfAllWidths) {
  for (const int rows : {1, 2, 4}) {
    options_.rows = rows;
    for (const int64_t columns : {0, 1, 3, 4, 5, 63, 64, 65, 128, 200, 257}) {
      for (const int64_t count : {0, 1, 3, 4, 9}) check(softmax_body("rk"), {count, columns}, 1e-6);
      check(softmax_body("krk"), {2, 5, columns}, 1e-6);
      check(softmax_body("rkrk"), {2, 3, 5, columns}, 1e-6);
    }
  }
}

// Two sweeps: the sweep that reduces a value also keeps it for the sweep that stores it. With an outer value, and with
// rows that are results themselves.
TEST_F(LowerBlocks, TwoSweepsAndRowsAsResults) {
  BodyBuilder build("scale", "krk");
  const ValueId x = build.input(7), outer = build.input(1);
  const ValueId sum = build.reduce("ReduceSum", x), twice = build.op("Add", {sum, sum});
  build.output(build.op("Add", {build.op("Sub", {x, twice}), outer}));
  build.output(twice);
  build.output(sum, kF16);
  const Body body = build.take();
  for (const int64_t columns : {5, 64, 130, 192}) check(body, {2, 6, columns});
}

// Elements of tensors that the last sweep reads are also kept in scratch memory, because this sweep runs one block
// behind those that load them. Not in this form if only the last sweep reads a tensor.
TEST_F(LowerBlocks, TensorsWaitForTheLastSweep) {
  BodyBuilder build("norm", "krk");
  const ValueId x = build.input(7, kF16), residual = build.input(7);
  const ValueId root = build.op("Sqrt", {build.reduce("ReduceSum", build.op("Mul", {x, x}))});
  build.output(build.op("Add", {build.op("Div", {x, root}), residual}));
  const Body body = build.take();
  const auto kernel = lower(body, options_);
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE(kernel->blocks.inside) << "a tensor that only the last sweep reads" << print(*kernel);
  BodyBuilder alone("norm", "krk");
  const ValueId y = alone.input(7, kF16);
  const ValueId length = alone.op("Sqrt", {alone.reduce("ReduceSum", alone.op("Mul", {y, y}))});
  alone.output(alone.op("Div", {y, length}));
  alone.output(y);
  const Body both = alone.take();
  for (const int rows : {1, 4}) {
    options_.rows = rows;
    for (const int64_t columns : {0, 1, 5, 64, 200, 257})
      for (const int64_t count : {1, 4, 9}) check(both, {2, count, columns});
  }
}

// Maximum and sum in one sweep, with powers relative to the maximum of four rows: groups, remaining rows, and none.
TEST_F(LowerBlocks, PowersAreKeptByWhatTheirGroupWentBy) {
  options_.merge_sweeps = true;
  for (const int vectors : {16, 32}) {
    options_.vectors = vectors;
    for (const int64_t columns : {0, 1, 3, 4, 5, 11, 64, 200}) {
      for (const int64_t count : {0, 1, 3, 4, 5, 11}) check(softmax_body("rk"), {count, columns}, 1e-5);
      check(softmax_body("krk"), {2, 9, columns}, 1e-5);
      check(softmax_body("rkrk"), {2, 3, 6, columns}, 1e-5);
    }
  }
}

// The loop of single rows: the values kept by the previous block are rescaled with one exponential for all rows of its
// group, then replaced by those of this block.
TEST_F(LowerBlocks, KeptPowersMoveAsThis) {
  options_.merge_sweeps = true, options_.vectors = 32;
  const auto kernel = lower(softmax_body("rk"), options_);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const std::string text = print(*kernel);
  const size_t begin = text.find("      loop 8 "), end = text.find("      tail 9 ");
  ASSERT_NE(end, std::string::npos) << text;
  EXPECT_EQ(text.substr(begin, end - begin), R"(      loop 8 d2 dim 2 %138 vector step 4 limit #5 {
        %139:f32 = Load f32 [%14 + %138]
        %140:f32 = Load f32 [%22 + %138]
        %141:f32 = Load f32 [%24 + %138]
        %142:f32 = Load f32 [%26 + %138]
        %143:f32 = Add %140, %141 ; ReduceMax n1
        %144:f32 = Exp %143 ; ReduceMax n1
        %145:f32 = ClampHigh %144, %29 ; ReduceMax n1
        %146:bool = Equal %145, %7 ; ReduceMax n1
        %147:f32 = Mul %139, %145 ; ReduceMax n1
        %148:f32 = Where %146, %7, %147 ; ReduceMax n1
        %149:f32 = Mul %148, %142 ; Mul n7
        Store f32 [%2 + %138], %149
        %150:f32 = Load f32 [%6 + %138]
        %151:f32 = Load f32 [%8 + %138]
        %152:f32 = Load f16 [%50 + %138]
        %153:f32 = Max %150, %152 ; ReduceMax n1
        Store f32 [%22 + %138], %153
        %154:f32 = Sub %150, %153 ; ReduceMax n1
        %155:f32 = Exp %154 ; ReduceMax n1
        %156:bool = Equal %155, %7 ; ReduceMax n1
        %157:f32 = Mul %151, %155 ; ReduceMax n1
        %158:f32 = Where %156, %7, %157 ; ReduceMax n1
        %159:bool = Equal %150, %153 ; ReduceMax n1
        %160:bool = Equal %151, %7 ; ReduceMax n1
        %161:bool = Or %159, %160 ; ReduceMax n1
        %162:f32 = Where %161, %151, %158 ; ReduceMax n1
        %163:f32 = Sub %152, %153 ; Sub n2
        %164:f32 = Exp %163 ; Exp n3
        Store f32 [%14 + %138], %164
        %165:f32 = Add %162, %164 ; ReduceMax n1
        Store f32 [%6 + %138], %153
        Store f32 [%8 + %138], %165
      }
)") << text;
}

// The sweeps are not merged, because the last one reads differences from the mean, which, unlike powers, no factor
// rescales.
TEST_F(LowerBlocks, OtherSweepsAreNotMadeOne) {
  options_.merge_sweeps = true;
  BodyBuilder build("norm", "rk");
  const ValueId x = build.input(3), count = build.count();
  const ValueId centred = build.op("Sub", {x, build.op("Div", {build.reduce("ReduceSum", x), count})});
  const ValueId squares = build.reduce("ReduceSum", build.op("Mul", {centred, centred}));
  build.output(build.op("Div", {centred, build.op("Sqrt", {squares})}));
  const Body body = build.take();
  const auto kernel = lower(body, options_);
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE(kernel->merged) << print(*kernel);
  EXPECT_TRUE(kernel->blocks.inside) << print(*kernel);
  check_body(body, {5, 130}, random_, {.lower = options_, .blocks = blocks_, .tolerance = 1e-5});
}

// The last sweep stays with its block if it reads a row of accumulators or of another tensor, because that would be the
// next block's row by then.
TEST_F(LowerBlocks, LastSweepsThatReadMoreStayWithTheirBlock) {
  for (const bool bias : {true, false}) {
    BodyBuilder build("columns", "rk");
    const ValueId x = build.input(3), sum = build.reduce("ReduceSum", x);
    build.output(build.op("Sub", {x, bias ? build.input(2) : sum}));
    build.output(sum);
    const Body body = build.take();
    const auto kernel = lower(body, options_);
    ASSERT_TRUE(kernel.ok());
    EXPECT_FALSE(kernel->blocks.inside) << print(*kernel);
    check_body(body, {5, 130}, random_, {.lower = options_});
  }
}

}  // namespace
}  // namespace tenon::snippet::test
