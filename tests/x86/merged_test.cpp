// Two sweeps merged into one, on the machine: rows, columns and joined rows with extents around those of a group, with
// NaN and infinities, and with means far from 0. Buffers end at guard pages.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <snippet/bodies.hpp>
#include <support_lib/guarded.hpp>
#include <support_lib/random_tensor.hpp>

#include <tenon/snippet/linear/emit.hpp>

#include "x86/kernel_support.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86::testing {
namespace {

using snippet::Body;
using snippet::LinearKernel;
using snippet::test::fill_specials;
using snippet::test::HarnessOptions;
using snippet::test::log_sum_exp_body;
using snippet::test::norm_and_moments_body;
using snippet::test::offset_softmax_body;
using snippet::test::softmax_and_sum_body;
using snippet::test::Tensors;
using tenon::testing::Guarded;
using tenon::testing::pick;

class Merged : public MachineTest {
 protected:
  snippet::LowerOptions lower_options(const Body& body, bool joined) const {
    snippet::LowerOptions options{.lanes = GetParam().lanes,
                                  .vectors = GetParam().isa == Isa::avx512 ? 32 : 16,
                                  .resweep_cycles = 24,
                                  .merge_sweeps = true};
    options.whole_rows = !body.dims.back().reduced;
    options.join_rows = joined;
    return options;
  }

  static Result<void> run(const LinearKernel& kernel, const TargetDescription& target, std::span<const int64_t> words) {
    TENON_TRY(object, assemble(kernel, full_table(), target));
    TENON_TRY(code, JitMemory::shared().add(std::make_shared<CodeObject>(std::move(object))));
    code->function()(words.data());
    return {};
  }

  // `behind`: columns that are not joined, in blocks where the last sweep handles the preceding block.
  void check(const Body& body, const Dims& extents, bool joined, bool special, bool behind = false) {
    const TargetDescription target = target_of(GetParam().isa);
    FormPasses passes{.isa = GetParam().isa, .prefetch_reads = {.lines = 64}};
    passes.prefetch_blocks = behind, passes.block_cache_bytes = behind ? 1 << 20 : 0;
    HarnessOptions options{.tolerance = 1e-5, .sums = snippet::test::Sums::round_once};  // e^x has 2 ulp
    options.lower = lower_options(body, joined);
    options.lower.behind_blocks = behind;
    options.blocks = {{.elements = 64}};
    options.machine = {register_pool(GetParam().isa), snippet::needs_of(full_table(), target)};
    options.passes = [&](LinearKernel& kernel) -> Result<void> {
      TENON_OK(optimise(kernel, passes));
      if (behind) kernel.blocks.sizes = {{.elements = 64}};
      return {};
    };
    options.run = [&](const LinearKernel& kernel, std::span<const int64_t> words) {
      EXPECT_TRUE(kernel.merged);
      EXPECT_EQ(kernel.blocks.inside, behind);
      EXPECT_EQ(kernel.joined.rows >= 0, joined);
      return run(kernel, target, words);
    };
    if (special) options.fill = [&](const Tensors& tensors) { fill_specials(tensors, random_); };
    check_body(body, extents, random_, options);
  }

  // The number of groups that a lane processes of a row.
  double groups(size_t count) const { return static_cast<double>(count) / (4 * GetParam().lanes); }

  // Output `output` for the row `x`.
  std::vector<float> outputs_of(const Body& body, std::vector<float>& x, bool merge, size_t output) {
    snippet::LowerOptions options = lower_options(body, false);
    options.merge_sweeps = merge;
    auto kernel = snippet::lower(body, options);
    TENON_CHECK(kernel.ok(), kernel.ok() ? "" : kernel.error().to_string());
    EXPECT_EQ(kernel->merged, merge);
    const TargetDescription target = target_of(GetParam().isa);
    TENON_CHECK(optimise(*kernel, FormPasses{.isa = GetParam().isa}).ok(), "");
    const auto plan = snippet::CallPlan::make_for_extents(body, *kernel, {static_cast<int64_t>(x.size())});
    TENON_CHECK(plan.ok(), "");
    TENON_CHECK(allocate(*kernel, register_pool(GetParam().isa), snippet::needs_of(full_table(), target)).ok(), "");
    std::vector<std::vector<float>> outputs(body.outputs.size(), std::vector<float>(x.size()));
    std::vector<void*> addresses{x.data()};
    for (std::vector<float>& made : outputs) addresses.push_back(made.data());
    std::vector<int64_t> words(plan->words());
    Guarded<std::byte> scratch(plan->scratch_bytes() + 64);
    plan->fill(words, addresses, scratch.data());
    const auto ran = run(*kernel, target, words);
    TENON_CHECK(ran.ok(), ran.ok() ? "" : ran.error().to_string());
    return outputs[output];
  }

  std::mt19937 random_{1};
};

TEST_P(Merged, RowsOfAllWidths) {
  const int lanes = GetParam().lanes;
  for (const int vectors : {0, 1, 2, 3, 4, 7, 8, 9, 16, 24}) {
    for (const int more : {-1, 0, 1, 5}) {
      const int64_t row = int64_t{vectors} * lanes + more;
      for (const auto& [dims, extents] : {std::pair("kr", Dims{3, row}), {"krr", {2, 3, row}}, {"rkr", {3, 2, row}}}) {
        if (row < 0) continue;
        for (const bool special : {false, true}) {
          check(softmax_and_sum_body(dims), extents, false, special);
          check(log_sum_exp_body(dims), extents, false, special);
          check(norm_and_moments_body(dims), extents, false, special);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(Merged, ColumnsAndJoinedRows) {
  for (const int64_t rows : {0, 1, 3, 4, 5, 7, 8, 9, 16, 23, 613, 1031}) {
    for (const int64_t columns : {1, 3, 8, 16, 31, 33, 64, 67}) {
      const bool joined = columns < 64 && rows > 600;
      if (rows > 600 && !joined) continue;
      for (const bool special : {false, true}) {
        check(softmax_and_sum_body("rk"), {rows, columns}, joined, special);
        check(log_sum_exp_body("krk"), {2, rows, columns}, joined, special);
        check(norm_and_moments_body("krk"), {2, rows, columns}, joined, special);
        if (HasFailure()) return;
      }
    }
  }
}

// Powers are kept for the next block. Heights are around that of a group; also with groups of infinities only, and NaN.
TEST_P(Merged, ColumnsOneBlockBehind) {
  const int lanes = GetParam().lanes;
  for (const int64_t rows : {0, 1, 3, 4, 5, 11}) {
    for (const int columns : {0, 1, lanes - 1, lanes, lanes + 1, 2 * lanes + 3, 64, 131}) {
      for (const bool special : {false, true}) {
        check(softmax_and_sum_body("rk"), {rows, columns}, false, special, true);
        check(softmax_and_sum_body("krk"), {2, rows, columns}, false, special, true);
        check(offset_softmax_body("krk"), {2, rows, columns}, false, special, true);
        if (HasFailure()) return;
      }
    }
  }
}

// With means far from 0, constant or changing, variances are at least as exact as by separate sweeps for both moments.
TEST_P(Merged, VariancesAreAsExactAsOfTwoSweeps) {
  const Body body = norm_and_moments_body("r");
  for (const size_t count : {1000u, 4097u, 65536u, 1000003u}) {
    for (const double drift : {0.0, 2.0, 1e4}) {
      SCOPED_TRACE(str(count, " elements, from 1e4 on by ", drift));
      std::normal_distribution<double> noise;
      std::vector<float> x(count);
      double mean = 0, variance = 0;
      for (size_t i = 0; i < count; ++i) {
        x[i] = static_cast<float>(1e4 + drift * static_cast<double>(i) / static_cast<double>(count) + noise(random_));
        mean += x[i] / static_cast<double>(count);
      }
      for (const float one : x) variance += (one - mean) * (one - mean) / static_cast<double>(count);
      const auto error = [&](bool merge) { return std::abs(outputs_of(body, x, merge, 2)[0] - variance) / variance; };
      // If the mean drifts by its own size, the error is that of one rounding per group of a lane.
      EXPECT_LE(error(true), std::max(error(false), drift < 1e4 ? 4e-6 : groups(count) * 0x1p-24));
    }
  }
}

// Rows whose maximum changes with each group, or never. Each change adds the errors of one exponential and one product.
TEST_P(Merged, SumsOfPowersMove) {
  const Body body = softmax_and_sum_body("r");
  for (const float step : {-300.0f, -1.0f, -1e-4f, 1e-4f, 1.0f, 300.0f}) {
    std::vector<float> x(5000);
    double sum = 0, greatest = -INFINITY;
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = step * static_cast<float>(i), greatest = std::max<double>(greatest, x[i]);
    for (const float one : x) sum += std::exp(one - greatest);
    EXPECT_NEAR(outputs_of(body, x, true, 1)[0] / sum, 1, 2e-6 + groups(x.size()) * 0x1p-23) << step;
  }
}

TENON_ON_ALL_MACHINES(Merged);

}  // namespace
}  // namespace tenon::x86::testing
