// Random bodies through the whole compilation, on the machine, compared with their operators one by one, with the
// registers of the machine and with so few that values spill. Buffers end at guard pages. TENON_FUZZ_SEEDS sets the
// number of seeds, TENON_FUZZ_FIRST the first.
#include <snippet/random_body.hpp>
#include <support_lib/environment.hpp>

#include <tenon/snippet/linear/emit.hpp>

#include "x86/assembly/listing.hpp"
#include "x86/forms/forms.hpp"
#include "x86/kernel_support.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86::testing {
namespace {

using snippet::LinearKernel;
using snippet::test::HarnessOptions;
using snippet::test::RandomBody;
using tenon::testing::GuardAt;

Result<void> run(const LinearKernel& kernel, const TargetDescription& target, std::span<const int64_t> words) {
  TENON_TRY(object, assemble(kernel, full_table(), target));
  if (std::getenv("TENON_TEST_LISTING")) std::puts(listing(object).c_str());
  TENON_TRY(code, JitMemory::shared().add(std::make_shared<CodeObject>(std::move(object))));
  code->function()(words.data());
  return {};
}

// Non-temporal stores need rows aligned to cache lines: one row of any length, or any number of rows of whole lines.
void align_rows(RandomBody& random, Dims& extents) {
  if (extents.empty()) return;
  const bool one = random.pick(2) == 0;
  for (size_t d = 0; one && d + 1 < extents.size(); ++d) extents[d] = std::min<int64_t>(extents[d], 1);
  if (!one || random.pick(2) == 0) extents.back() = 64 * static_cast<int64_t>(random.pick(10));
  if (one) extents.back() += static_cast<int64_t>(random.pick(64));
}

class Bodies : public MachineTest {
 protected:
  // `unswitches`: loops that select by a loop-invariant condition are unswitched.
  void try_seed(uint64_t seed, bool unswitches = false) {
    SCOPED_TRACE(str("seed ", seed, " (TENON_FUZZ_FIRST)"));
    const auto [isa, lanes] = GetParam();
    const TargetDescription target = target_of(isa);
    RandomBody random(seed);
    const bool rows = isa == Isa::avx512 && random.pick(10) == 0;  // rows that are stored by whole lines
    snippet::Body body = rows ? random.make_swept(/*columns=*/false) : random.make();
    codegen::RegisterPool pool = register_pool(isa);
    if (random.pick(3) == 0) {
      pool.registers[static_cast<size_t>(codegen::RegisterFile::vector)].resize(10);
      pool.registers[static_cast<size_t>(codegen::RegisterFile::general)].resize(8);
    }
    PassOptions passes(FormPasses{.isa = isa, .contract = random.pick(2) == 0, .memory_operands = random.pick(4) != 0});
    passes.prefetch_writes.lines = random.pick(4) == 0 ? 48 : 0;
    passes.prefetch_reads.lines = random.pick(4) == 0 ? 64 : 0;
    passes.prefetch_blocks = random.pick(2) == 0;
    passes.stream_stores = random.pick(3) == 0;
    if (passes.stream_stores && random.pick(2) == 0) passes.row_begins = RowBegins::behind_heads;
    if (passes.stream_stores && isa == Isa::avx512 && random.pick(2) == 0) passes.row_begins = RowBegins::turned;
    passes.streams = {.each = 1 << static_cast<int>(random.pick(3)), .least_elements = 64};
    HarnessOptions options;
    options.lower = {.lanes = lanes, .unroll = 1 << random.pick(3), .rows = 1 << random.pick(3), .vectors = 32};
    options.lower.recompute_cycles = static_cast<double>(random.pick(6));
    options.lower.resweep_cycles = static_cast<double>(random.pick(6));
    options.lower.whole_rows = random.pick(2) == 0;
    options.lower.join_rows = random.pick(2) == 0;
    options.lower.heads = passes.row_begins == RowBegins::behind_heads;
    options.lower.behind_blocks = !options.lower.join_rows && random.pick(2) == 0;
    options.lower.keep_near = random.pick(3) == 0;
    options.lower.keep_joined = random.pick(3) == 0;
    if (random.pick(2) == 0) options.lower.apart_cycles = static_cast<double>(random.pick(6));
    options.lower.skew_rows = random.pick(3) == 0;
    options.lower.skew_twice = random.pick(2) == 0;
    options.lower.stored_together = 1 << random.pick(3);
    passes.next_row = std::array{NextRow::none, NextRow::before_last, NextRow::before_last_to_second, NextRow::last,
                                 NextRow::last_to_second}[static_cast<size_t>(random.pick(5))];
    passes.next_row_lines = random.pick(2) == 0;
    options.lower.merge_sweeps = random.pick(2) == 0;
    if (rows) {
      passes.stream_stores = true;
      passes.row_begins = RowBegins::turned;
      passes.alone = random.pick(3) == 0;
      options.lower.skew_rows = !passes.alone;
      if (passes.alone) options.lower.rows = 1;
      options.lower.join_rows = options.lower.heads = options.lower.behind_blocks = false;
    }
    passes.block_cache_bytes = static_cast<int64_t>(random.pick(3)) * 8000;
    options.blocks = random.block_sizes();
    options.parts = random.pick(3) == 0 ? static_cast<int64_t>(random.pick(6)) + 2 : 1;
    options.machine = {pool, snippet::needs_of(full_table(), target)};
    // As in forms for tensors in the caches: no prefetches, and small calls are not divided.
    snippet::DimSet whole = 0;
    if (random.pick(4) == 0 || unswitches) {
      passes = FormPasses{.isa = isa, .contract = passes.contract};
      passes.near = true;
      if (unswitches) passes.unswitch_cycles = 0;
      options.lower.whole_rows = options.lower.join_rows = options.lower.heads = options.lower.skew_rows = false;
      options.lower.behind_blocks = options.lower.merge_sweeps = false;
      options.lower.all_copies = random.pick(3) == 0;
      if (random.pick(2) == 0) whole = body.all_dims() & ~body.reduced_dims();
    }
    const auto items = items_of(body);
    const auto staged = staged_rows_of(body);
    if (!unswitches && ((items && isa == Isa::avx512) || staged) && random.pick(2) == 0) {
      passes = FormPasses{.isa = isa, .contract = passes.contract, .items = items, .staged_rows = staged};
      options.lower.whole_rows = options.lower.join_rows = options.lower.heads = options.lower.skew_rows = false;
      options.lower.behind_blocks = options.lower.merge_sweeps = false;
    }
    options.passes = [&](LinearKernel& kernel) -> Result<void> {
      const bool known = std::ranges::all_of(body.dims, [](const auto& dim) { return dim.extent.is_constant(); });
      TENON_OK(snippet::CallPlan::write_known(body, kernel, known ? whole : 0));
      TENON_OK(optimise(kernel, passes));
      const auto is_line = [](const snippet::Instruction& one) { return one.op == "StoreLine"; };
      const bool lines = std::ranges::any_of(kernel.body, is_line);
      skewed_lines_ += kernel.skewed && lines;
      lines_alone_ += passes.alone && lines;
      unswitched_ += std::ranges::any_of(kernel.body, [](const auto& one) { return one.op == "WhenBegin"; });
      staged_ += passes.items && has_streaming_stores(kernel);
      staged_rows_ += passes.staged_rows && has_streaming_stores(kernel);
      return {};
    };
    options.run = [&](const LinearKernel& kernel, std::span<const int64_t> words) {
      return run(kernel, target, words);
    };
    Dims extents = random.extents(body, lanes);
    if (passes.stream_stores && passes.row_begins == RowBegins::at_lines)
      align_rows(random, extents);
    else if (options.lower.join_rows)
      random.lengthen_rows(body, extents);
    const bool anywhere =
        passes.row_begins == RowBegins::behind_heads && body.outputs.size() == 1 && random.pick(2) == 0;
    options.outputs =
        passes.stream_stores && !anywhere && passes.row_begins != RowBegins::turned ? GuardAt::lines : GuardAt::end;
    options.lower.held_vectors = std::array{0, 2, 16}[random.pick(3)];
    options.lower.reread_outputs = !passes.stream_stores && random.pick(2) == 0;
    random.make_known(body, extents);
    if (random.pick(3) == 0) random.cut_inputs(body, extents);
    // Whether a call would choose this form, which depends on the alignment of rows.
    const auto serves = [&](const snippet::BodyPort&, const snippet::PortLayout& layout) {
      if (!passes.stream_stores || passes.row_begins == RowBegins::turned) return true;
      const auto lines = [](int64_t bytes) { return bytes % 64 == 0; };
      const auto rows = std::span(layout.strides).first(layout.strides.size() - (layout.strides.empty() ? 0 : 1));
      return lines(layout.begin_bytes) &&
             (passes.row_begins != RowBegins::at_lines || std::ranges::all_of(rows, lines));
    };
    if (!passes.items && !passes.staged_rows && random.pick(3) == 0) random.cut_outputs(body, extents, serves);
    check_body(body, extents, random.random(), options);
  }

  int skewed_lines_ = 0;  // kernels that store rows by whole lines and reduce in one loop
  int lines_alone_ = 0;   // kernels that store rows by whole lines, one by one
  int staged_ = 0;        // kernels that stage items
  int staged_rows_ = 0;   // kernels that stage rows
  int unswitched_ = 0;    // kernels with unswitched loops
};

TEST_P(Bodies, MatchTheOperatorsOneByOne) {
  const uint64_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(500);
  for (uint64_t seed = first; seed < first + seeds && !::testing::Test::HasFailure(); ++seed) try_seed(seed);
  const auto [isa, lanes] = GetParam();
  // Only for the default seeds; others may have no such kernel.
  const bool lines = first == 1 && seeds >= 500 && isa == Isa::avx512 && lanes == 16;
  EXPECT_GE(skewed_lines_, lines ? 1 : 0) << "are to be drawn";
  EXPECT_GE(lines_alone_, lines ? 1 : 0) << "are to be drawn";
  EXPECT_GE(staged_, lines ? 1 : 0) << "are to be drawn";
  EXPECT_GE(staged_rows_, first == 1 && seeds >= 500 ? 1 : 0) << "are to be drawn";
}

TEST_P(Bodies, ChoicesBecomeTwoLoops) {
  const uint64_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(1000);
  for (uint64_t seed = first; seed < first + seeds && !::testing::Test::HasFailure(); ++seed) try_seed(seed, true);
  EXPECT_GE(unswitched_, first == 1 && seeds >= 1000 ? 20 : 0) << "are to be drawn";
}

// Short rows of all widths, joined, with and without remaining rows, with all passes for large calls.
TEST_P(Bodies, ShortRowsAreJoined) {
  const auto [isa, lanes] = GetParam();
  const TargetDescription target = target_of(isa);
  const auto body_of = [](bool sums) {
    snippet::test::BodyBuilder build("columns", "krk");
    const snippet::ValueId x = build.input(7, kF16), bias = build.input(4);
    const snippet::ValueId less = build.op("Sub", {x, build.reduce("ReduceMax", x)});
    const snippet::ValueId sum = build.reduce("ReduceSum", build.op("Add", {less, bias}));
    build.output(build.op("Add", {build.op("Mul", {less, bias}), sum}));
    if (sums) build.output(sum);
    return build.take();
  };
  std::mt19937 random(1);
  for (const int64_t columns : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33}) {
    const int64_t each = snippet::rows_to_join(100000, columns, lanes);
    for (const int64_t rows : {int64_t{0}, int64_t{1}, 6 * each - 1, 6 * each, 6 * each + 1, 9 * each - 1}) {
      const int at_once = rows % 2 == 0 ? 4 : 1;
      // Non-temporal where all joined rows are aligned to cache lines; then without sums, whose rows are not.
      const bool aligned = rows >= 6 * each && rows * columns % 16 == 0;
      const FormPasses passes{.isa = isa, .stream_stores = aligned, .prefetch_reads = {.lines = 64}};
      HarnessOptions options;
      options.lower = {.lanes = lanes, .rows = at_once, .vectors = 32, .whole_rows = true, .join_rows = true};
      options.machine = {register_pool(isa), snippet::needs_of(full_table(), target)};
      options.passes = [&](LinearKernel& kernel) { return optimise(kernel, passes); };
      options.run = [&](const LinearKernel& kernel, std::span<const int64_t> words) {
        EXPECT_GE(kernel.joined.rows, 0);
        return run(kernel, target, words);
      };
      options.outputs = aligned ? GuardAt::lines : GuardAt::end;
      check_body(body_of(!aligned), {2, rows, columns}, random, options);
      if (HasFailure()) return;
    }
  }
}

// Blocks of columns inside the kernel, with the last sweep one block behind: widths of no block, one, several, and with
// remaining columns.
TEST_P(Bodies, BlocksFollowOneAnother) {
  const auto [isa, lanes] = GetParam();
  const TargetDescription target = target_of(isa);
  snippet::test::BodyBuilder build("softmax", "krk");
  const snippet::ValueId x = build.input(7, kF16);
  const snippet::ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Mul", {e, build.op("Div", {build.scalar(1), build.reduce("ReduceSum", e)})}));
  const snippet::Body body = build.take();
  std::mt19937 random(1);
  for (const int64_t columns : {0, 1, lanes - 1, lanes, lanes + 1, 63, 64, 65, 128, 200, 256, 257}) {
    for (const int64_t rows : {0, 1, 3, 4, 5, 9}) {
      const bool aligned = columns % 16 == 0, merged = random() % 2 == 0, lines = isa == Isa::avx512 && !aligned;
      const FormPasses passes{.isa = isa,
                              .stream_stores = aligned || lines,
                              .row_begins = lines ? RowBegins::turned : RowBegins::at_lines,
                              .prefetch_reads = {.lines = 64},
                              .prefetch_blocks = true};
      HarnessOptions options{.parts = 1 + rows % 3, .tolerance = 1e-5};  // e^x has up to 2 ulp, sums another order
      options.lower = {.lanes = lanes, .rows = rows % 2 == 0 ? 4 : 1, .vectors = 32};
      options.lower.cycles = [](const snippet::Body&, const snippet::BodyNode&) { return 10.0; };
      options.lower.whole_rows = options.lower.behind_blocks = true;
      options.lower.merge_sweeps = merged;
      options.blocks = {{.elements = 64}};
      options.machine = {register_pool(isa), snippet::needs_of(full_table(), target)};
      options.passes = [&](LinearKernel& kernel) { return optimise(kernel, passes); };
      options.run = [&](const LinearKernel& kernel, std::span<const int64_t> words) {
        EXPECT_TRUE(kernel.blocks.inside);
        return run(kernel, target, words);
      };
      options.outputs = aligned ? GuardAt::lines : GuardAt::end;
      check_body(body, {2, rows, columns}, random, options);
      if (HasFailure()) return;
    }
  }
}

TENON_ON_ALL_MACHINES(Bodies);

}  // namespace
}  // namespace tenon::x86::testing
