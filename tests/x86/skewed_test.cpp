// The store of a row fused with the reduction of the next, on the machine: rows and widths around those of a group,
// next to guard pages, and the loop after the passes.
#include <snippet/bodies.hpp>

#include <tenon/snippet/linear/emit.hpp>

#include "x86/kernel_support.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86::testing {
namespace {

using snippet::Body;
using snippet::LinearKernel;
using snippet::ValueId;
using snippet::test::BodyBuilder;
using snippet::test::HarnessOptions;
using snippet::test::residual_softmax_body;
using snippet::test::softmax_body;

constexpr snippet::DimSet kAlongRow = 2, kBoth = 3;  // sets of dims of "kr"

// (x + z - mean) / sqrt(variance + 1) * factor, and variances.
Body skip_norm_body() {
  BodyBuilder build("skip_norm", "kr");
  const ValueId x = build.op("Add", {build.input(kBoth), build.input(kBoth)}), count = build.count();
  const ValueId mean = build.op("Div", {build.reduce("ReduceSum", x), count}), centred = build.op("Sub", {x, mean});
  const ValueId variance = build.op("Div", {build.reduce("ReduceSum", build.op("Mul", {centred, centred})), count});
  const ValueId deviation = build.op("Sqrt", {build.op("Add", {variance, build.scalar(1)})});
  build.output(build.op("Mul", {build.op("Div", {centred, deviation}), build.input(kAlongRow)}));
  build.output(variance);
  return build.take();
}

// x / sqrt(sum of squares + 1)
Body norm_body() {
  BodyBuilder build("norm", "kr");
  const ValueId x = build.input(kBoth);
  const ValueId square = build.reduce("ReduceSum", build.op("Mul", {x, x}));
  build.output(build.op("Div", {x, build.op("Sqrt", {build.op("Add", {square, build.scalar(1)})})}));
  return build.take();
}

// Normalisation over "kkr": rows in groups, with a factor for each row of a group.
Body grouped_body() {
  BodyBuilder build("grouped", "kkr");
  const ValueId x = build.input(7), count = build.count();
  const ValueId centred = build.op("Sub", {x, build.op("Div", {build.reduce("ReduceSum", x), count})});
  const ValueId square = build.reduce("ReduceSum", build.op("Mul", {centred, centred}));
  const ValueId deviation = build.op("Sqrt", {build.op("Add", {square, build.scalar(1)})});
  build.output(build.op("Mul", {build.op("Div", {centred, deviation}), build.input(2)}));
  return build.take();
}

class Skewed : public MachineTest {
 protected:
  snippet::LowerOptions lower_options(bool merges = true, bool twice = false) const {
    return {.lanes = GetParam().lanes,
            .vectors = GetParam().isa == Isa::avx512 ? 32 : 16,
            .resweep_cycles = merges ? 6 : 2.5,  // 2.5: powers are kept
            .merge_sweeps = merges,
            .skew_rows = true,
            .skew_twice = twice};
  }

  FormPasses passes(bool streams, NextRow next_row = NextRow::none) const {
    return {.isa = GetParam().isa,
            .stream_stores = streams,
            .streams = {.each = 4},
            .prefetch_reads = {.lines = 64},
            .next_row = next_row};
  }

  void check(const Body& body, const Dims& extents, bool streams, bool merges = true, bool twice = false,
             bool together = false) {
    const TargetDescription target = target_of(GetParam().isa);
    HarnessOptions options{.tolerance = 1e-5};
    options.lower = lower_options(merges, twice);
    if (together) options.lower.skew_rows = false, options.lower.stored_together = 4;
    options.outputs = streams ? tenon::testing::GuardAt::lines : tenon::testing::GuardAt::end;
    options.machine = {register_pool(GetParam().isa), snippet::needs_of(full_table(), target)};
    options.passes = [&](LinearKernel& kernel) {
      return optimise(kernel, passes(streams, merges || twice || together ? NextRow::none : NextRow::last));
    };
    options.run = [&](const LinearKernel& kernel, std::span<const int64_t> words) -> Result<void> {
      EXPECT_EQ(kernel.skewed, !together);
      EXPECT_EQ(kernel.stored_together, together);
      TENON_TRY(object, assemble(kernel, full_table(), target));
      TENON_TRY(code, JitMemory::shared().add(std::make_shared<CodeObject>(std::move(object))));
      code->function()(words.data());
      return {};
    };
    check_body(body, extents, random_, options);
  }

  std::mt19937 random_{1};
};

TEST_P(Skewed, RowsOfAllWidths) {
  const int lanes = GetParam().lanes;
  for (const int vectors : {0, 1, 2, 4, 8, 9, 16, 27}) {
    for (const int more : {-1, 0, 1, 3}) {
      const int64_t row = int64_t{vectors} * lanes + more;
      for (const int64_t rows : {0, 1, 2, 3, 5}) {
        if (row < 0) continue;
        const bool streams = row % 64 == 0;
        check(skip_norm_body(), {rows, row}, streams);
        check(norm_body(), {rows, row}, streams);
        check(skip_norm_body(), {rows, row}, streams, false);
        check(softmax_body(), {rows, row}, streams, false);
        check(softmax_body(), {rows, row}, streams, false, true);
        check(residual_softmax_body(), {rows, row}, streams, false);
        check(residual_softmax_body(), {rows, row}, streams, false, true);
        check(grouped_body(), {2, rows, row}, streams, rows % 2 == 0);
        if (HasFailure()) return;
      }
    }
  }
}

// Instead of being skewed, several rows are stored in one sweep.
TEST_P(Skewed, RowsThatAreStoredTogether) {
  const int lanes = GetParam().lanes;
  for (const int vectors : {0, 1, 2, 8, 17}) {
    for (const int more : {-1, 0, 1, 3}) {
      const int64_t row = int64_t{vectors} * lanes + more;
      for (const int64_t rows : {0, 1, 4, 5}) {
        if (row < 0) continue;
        const bool streams = row % 64 == 0;
        for (const bool merges : {false, true}) {
          check(norm_body(), {rows, row}, streams, merges, false, true);
          check(softmax_body(), {rows, row}, streams, merges, false, true);
          check(grouped_body(), {2, rows, row}, streams, merges, false, true);
        }
        if (HasFailure()) return;
      }
    }
  }
}

// In the loop over whole groups, only lines of the next row are prefetched, alternating with the stores of this one.
TEST_P(Skewed, PrefetchesStandBetweenStores) {
  for (const Body& body : {skip_norm_body(), norm_body()}) {
    auto kernel = snippet::lower(body, lower_options());
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    ASSERT_TRUE(optimise(*kernel, passes(true)).ok());
    size_t loops = 0, fetches = 0, stores = 0, in_a_row = 0, most = 0;
    for (const snippet::Instruction& one : kernel->body) {
      if (one.op == "LoopBegin") fetches = stores = in_a_row = most = 0;
      if (one.op == "PrefetchRead") ++fetches, most = std::max(most, ++in_a_row);
      if (one.op == "StoreStreaming") ++stores, in_a_row = 0;
      const bool ends =
          one.op == "LoopEnd" && kernel->loops[static_cast<size_t>(one.number)].kind == snippet::Loop::Kind::vector;
      if (!ends || stores < 2 || fetches == 0) continue;
      ++loops;
      const size_t tensors = body.inputs.size() == 1 ? 1 : 2;
      EXPECT_EQ(fetches * kLineBytes, stores * tensors * static_cast<size_t>(GetParam().lanes) * sizeof(float));
      EXPECT_LE(most, tensors) << print(*kernel);
    }
    EXPECT_GT(loops, 0u) << print(*kernel);
  }
}

// In a softmax the store is combined with the sums of the next row's powers, and these prefetch the row after that.
TEST_P(Skewed, PowersFetchTheRowBehindTheNext) {
  constexpr int64_t kRow = 1024;
  Body body = softmax_body();
  body.dims[0].extent = Expr(10), body.dims[1].extent = Expr(kRow);
  auto kernel = snippet::lower(body, lower_options(false));
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  ASSERT_TRUE(snippet::CallPlan::write_known(body, *kernel).ok());
  ASSERT_TRUE(optimise(*kernel, passes(true, NextRow::last)).ok());
  size_t loops = 0, stores = 0;
  std::vector<int64_t> fetched;  // distances from the row that is stored
  for (const snippet::Instruction& one : kernel->body) {
    if (one.op == "LoopBegin") stores = 0, fetched.clear();
    if (one.op == "StoreStreaming") ++stores;
    if (one.op == "PrefetchRead") fetched.push_back(one.memory->displacement_bytes);
    if (one.op != "LoopEnd" || stores < 2 || fetched.empty()) continue;
    ++loops;
    EXPECT_EQ(fetched.front(), 2 * kRow * int64_t{sizeof(float)}) << print(*kernel);
    EXPECT_EQ(fetched.size() * kLineBytes, stores * static_cast<size_t>(GetParam().lanes) * sizeof(float));
  }
  EXPECT_EQ(loops, 1u) << print(*kernel);
}

// Loads of the next row precede the stores of this one. With rows of whole pages they would otherwise wait for the
// stores.
TEST_P(Skewed, ReadsTheNextRowBeforeItStoresThisOne) {
  constexpr int64_t kRow = 1024;
  for (const bool merges : {false, true}) {
    Body body = merges ? norm_body() : softmax_body();
    body.dims[0].extent = Expr(10), body.dims[1].extent = Expr(kRow);
    auto kernel = snippet::lower(body, lower_options(merges));
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    ASSERT_TRUE(snippet::CallPlan::write_known(body, *kernel).ok());
    ASSERT_TRUE(optimise(*kernel, passes(true)).ok());
    size_t before = 0, behind = 0;
    bool stored = false;
    for (const snippet::Instruction& one : kernel->body) {
      if (one.op == "LoopBegin" || one.op == "TailBegin") stored = false;
      stored |= one.op == "StoreStreaming";
      const bool next_row = one.memory && one.memory->displacement_bytes >= kRow * int64_t{sizeof(float)};
      if (next_row && one.op != "PrefetchRead") (stored ? behind : before) += 1;
    }
    EXPECT_GT(before, 0u) << print(*kernel);
    EXPECT_EQ(behind, 0u) << print(*kernel);
  }
}

TENON_ON_ALL_MACHINES(Skewed);

}  // namespace
}  // namespace tenon::x86::testing
