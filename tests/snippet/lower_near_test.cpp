// Values that sweeps over a row keep in scratch memory, so that outputs are written once and never read.
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

#include <tenon/snippet/lower/lower.hpp>

namespace tenon::snippet::test {
namespace {

double cycles(const Body&, const BodyNode& node) { return node.op == "Exp" ? 10 : 1; }

class LowerNear : public ::testing::Test {
 protected:
  LinearKernel lowered(const Body& body) const {
    auto kernel = lower(body, options_);
    EXPECT_TRUE(kernel.ok()) << (kernel.ok() ? "" : kernel.error().to_string());
    return kernel.ok() ? *std::move(kernel) : LinearKernel();
  }
  // The number of instructions `op` in the kernel that access a full vector of a port.
  static int count(const LinearKernel& kernel, Name op, int port) {
    int found = 0;
    for (const Instruction& one : kernel.body) {
      if (one.op != op || one.touched != codegen::Lanes::full) continue;
      for (const Instruction& made : kernel.body)
        found += made.op == "Parameter" && made.out[0] == one.memory->base &&
                 kernel.params[static_cast<size_t>(made.number)].port == port;
    }
    return found;
  }
  void check(const Body& body, Dims extents, double tolerance = 0) {
    for (const int rows : {1, 4}) {
      options_.rows = rows;
      for (const int64_t width : widths_of(options_.lanes)) {
        extents.back() = width;
        for (const int registers : {0, 4, 16}) {
          HarnessOptions options{.lower = options_, .parts = 1 + registers / 8, .tolerance = tolerance};
          if (registers > 0) options.machine = test_machine(registers, registers == 16, true);
          check_body(body, extents, random_, options);
          if (HasFatalFailure()) return;
        }
      }
    }
  }

  LowerOptions options_{.lanes = 4, .unroll = 4, .rows = 1, .cycles = cycles};
  std::mt19937 random_{1};
};

Body softmax(std::string_view dims) {
  BodyBuilder build("softmax", dims);
  const ValueId x = build.input((DimSet{1} << dims.size()) - 1, kF16);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Div", {e, build.reduce("ReduceSum", e)}));
  return build.take();
}

// The differences of t = x + z from their sum, less the minimum of these, times weights. t may also be a result.
Body skip_norm(std::string_view dims, ElementType element, bool gives_sum) {
  const DimSet all = (DimSet{1} << dims.size()) - 1;
  BodyBuilder build("skip norm", dims);
  const ValueId x = build.input(all, element), z = build.input(all, element), w = build.input(all & ~DimSet{1});
  const ValueId t = build.op("Add", {x, z}), d = build.op("Sub", {t, build.reduce("ReduceSum", t)});
  const ValueId least = build.reduce("ReduceMin", d);
  build.output(build.op("Mul", {build.op("Sub", {d, least}), w}));
  if (gives_sum) build.output(t);
  return build.take();
}

TEST_F(LowerNear, ExponentialsWaitInScratchMemory) {
  constexpr int kOutput = 1, kScratch = 2;
  const LinearKernel in_output = lowered(softmax("kr"));
  EXPECT_GT(count(in_output, "Load", kOutput), 0) << print(in_output);
  EXPECT_TRUE(in_output.scratch.empty());
  options_.keep_near = true;
  const LinearKernel near = lowered(softmax("kr"));
  EXPECT_EQ(count(near, "Load", kOutput), 0) << print(near);
  EXPECT_EQ(count(near, "Store", kOutput), count(near, "Store", kScratch)) << print(near);
  ASSERT_EQ(near.scratch.size(), 1u);
  EXPECT_EQ(near.scratch[0].dims, DimSet{2}) << "of one row";
  for (const char* dims : {"kr", "kkr", "krr", "r"}) {
    Dims extents(std::string_view(dims).size(), 3);
    check(softmax(dims), extents, 1e-6);
  }
}

// The sum of two tensors is kept and read instead of both, even if it is cheap. Values that depend only on it are
// recomputed.
TEST_F(LowerNear, SumsOfTensorsAreKept) {
  constexpr int kX = 0, kZ = 1, kScratch = 4, kBehindTwo = 5;
  options_.keep_near = true;
  const LinearKernel again = lowered(skip_norm("kr", kF32, false));
  EXPECT_TRUE(again.scratch.empty()) << print(again);
  options_.keep_joined = true;
  const LinearKernel kept = lowered(skip_norm("kr", kF32, false));
  ASSERT_EQ(kept.scratch.size(), 1u) << print(kept);
  for (const int port : {kX, kZ}) {
    EXPECT_EQ(count(kept, "Load", port), count(kept, "Store", kScratch)) << print(kept);
    EXPECT_GT(count(again, "Load", port), 2 * count(kept, "Load", port)) << print(kept);
  }
  EXPECT_EQ(lowered(skip_norm("kr", kF16, false)).scratch.size(), 0u) << "two halves are one float";
  const LinearKernel also_result = lowered(skip_norm("kr", kF32, true));
  EXPECT_GT(count(also_result, "Load", kBehindTwo), 0) << print(also_result);
  EXPECT_EQ(count(also_result, "Load", kScratch), 0) << "outputs are never read: " << print(also_result);
  for (const bool gives_sum : {false, true}) {
    check(skip_norm("kr", kF32, gives_sum), {5, 0});
    check(skip_norm("kkr", kBF16, gives_sum), {2, 3, 0});
    check(skip_norm("krr", kF32, gives_sum), {2, 3, 0});
  }
}

// A sum that is an output anyway is read from there, if nothing is kept in scratch memory.
TEST_F(LowerNear, SumsThatOutputsHaveAreReadAgain) {
  constexpr int kX = 0, kSum = 4;
  EXPECT_EQ(count(lowered(skip_norm("kr", kF32, true)), "Load", kSum), 0);
  options_.reread_outputs = true;
  const LinearKernel kept = lowered(skip_norm("kr", kF32, true));
  EXPECT_GT(count(kept, "Load", kSum), 0) << print(kept);
  EXPECT_EQ(count(kept, "Load", kX), count(kept, "Store", kSum)) << print(kept);
  EXPECT_TRUE(kept.scratch.empty()) << print(kept);
  for (const char* dims : {"kr", "kkr", "krr"})
    check(skip_norm(dims, kF32, true), Dims(std::string_view(dims).size(), 3));
}

}  // namespace
}  // namespace tenon::snippet::test
