// Blocks of columns inside of the kernel, the last sweep one block behind the others.
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

namespace tenon::snippet::test {
namespace {

class LowerBlocks : public ::testing::Test {
 protected:
  // Without registers, and with few and many of them.
  void check(const Body& body, const Dims& extents, double tolerance = 0) {
    for (const int count : {0, 4, 16}) {
      HarnessOptions options{.lower = options_, .parts = 1 + count / 8, .tolerance = tolerance};
      if (count > 0) options.machine = test_machine(count, count == 16, true);
      options.passes = [&](LinearKernel& kernel) -> Result<void> {
        EXPECT_TRUE(kernel.blocks.inside);
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

// No block, a part of one, one, several, and columns left behind them; rows alone and several at once.
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

// Two sweeps: what is stored waits from the sweep that folds it. An outer value, and rows that are results themselves.
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

// The next block's row would be there in place of this one's.
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
