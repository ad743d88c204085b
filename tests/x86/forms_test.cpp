// Which forms of a snippet's code are made, and when.
#include "x86/forms/forms.hpp"

#include <gtest/gtest.h>

#include <array>
#include <tuple>

#include <tenon/ir/text.hpp>
#include <tenon/snippet/canonical/canonical.hpp>

#include "x86/body_of.hpp"
#include "x86/code/code_cache.hpp"
#include "x86/compiler.hpp"
#include "x86/guarded_graph.hpp"
#include "x86/kernel_support.hpp"
#include "x86/passes_support.hpp"

namespace tenon::x86 {
namespace {

class Forms : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  TargetDescription target() const {
    TargetDescription target = testing::target_of(GetParam());
    target.memories = {{.name = "l2", .size_bytes = 100'000},
                       {.name = "l3", .size_bytes = 1'000'000, .prefetch_reads = 7, .prefetch_writes = 5},
                       {.name = "host", .size_bytes = 1'000'000'000, .prefetch_reads = 9, .streams = 3}};
    return target;
  }
  // y = |x| + number, of `rows` rows. Bodies with other numbers have other code.
  static snippet::Body body(std::string_view rows, int number) {
    return body_of(str("f32[", rows, ",64]"),
                   str("%c = Constant {value = dense<f32[]: ", number, ".0>}\n  %y = Add %x, %c"));
  }
  // Of the operator that makes y.
  static snippet::Body body_of(std::string_view type, std::string_view operators) {
    const auto graph = parse_graph(str("graph @g(%x: ", type, ") -> %y {\n  ", operators, "\n}"));
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
    auto body = snippet::make_body(*(*graph)->body().output(0)->producer());
    EXPECT_TRUE(body.ok()) << (body.ok() ? "" : body.error().to_string());
    return *std::move(body);
  }
  static size_t made() { return CodeCache::shared().counts().made; }
};

// As instructions of several vectors, where the emitter's code may go in turn and registers suffice for it.
TEST_P(Forms, CopiesComputeFunctionsInTurn) {
  const auto text = [&](std::string_view type, std::string_view operators) {
    const auto code = Compiler(target(), **jitter_table()).compile(body_of(type, operators));
    EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().to_string());
    return snippet::print((*code)->form.kernel);
  };
  EXPECT_NE(text("f32[N]", "%y = Tanh %x").find("= TanhInTurn2 "), std::string::npos);
  EXPECT_NE(text("f32[N]", "%y = Tanh %x").find("= Tanh "), std::string::npos) << "the tail has one vector";
  const std::string_view exp = GetParam() == Isa::avx512 ? "= ExpInTurn4 " : "= ExpInTurn2 ";
  EXPECT_NE(text("f32[N]", "%y = Exp %x").find(exp), std::string::npos);
  EXPECT_EQ(text("f32[N]", "%y = Sin %x").find("InTurn"), std::string::npos) << "it jumps";
  EXPECT_EQ(text("f32[8]", "%y = Tanh %x").find("InTurn"), std::string::npos) << "one vector";
  TargetDescription few = target();
  few.registers = {{.name = "vector", .count = 12, .width_bits = static_cast<uint64_t>(vector_bits(GetParam()))}};
  const auto code = Compiler(few, **jitter_table()).compile(body_of("f32[N]", "%y = Tanh %x"));
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  EXPECT_EQ(snippet::print((*code)->form.kernel).find("InTurn"), std::string::npos) << "there is no room";
}

// Conversions with one check go in turn where AVX2 keeps few registers for anything else; beside functions that take
// more than there are, too.
TEST_P(Forms, CopiesShareTheChecksOfConversions) {
  const auto text = [&](const TargetDescription& target, std::string_view operators) {
    const auto body = testing::body_of(str("graph @g(%x: f32[N]) -> %y {\n  ", operators, "\n}"));
    const auto code = Compiler(target, **jitter_table()).compile(body);
    EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().to_string());
    EXPECT_EQ((*code)->form.kernel.frame_slots, 0);
    return snippet::print((*code)->form.kernel);
  };
  const std::string squares = R"(%i = Cast %x {to = type<i32[*]>}
  %q = Mul %i, %i
  %s = Add %q, %i
  %c = Constant {value = dense<i32[]: 7>}
  %l = Less %s, %c
  %m = Less %q, %i
  %b = And %l, %m
  %w = Where %b, %i, %s
  %y = Sub %w, %q)";
  EXPECT_NE(text(target(), squares).find("= ConvertInTurn"), std::string::npos);
  TargetDescription few = target();
  few.registers = {{.name = "vector", .count = 12, .width_bits = static_cast<uint64_t>(vector_bits(GetParam()))}};
  const std::string text_of_few = text(few, R"(%t = Tanh %x
  %i = Cast %x {to = type<i32[*]>}
  %f = Cast %i {to = type<f32[*]>}
  %y = Sub %t, %f)");
  EXPECT_NE(text_of_few.find("= ConvertInTurn"), std::string::npos) << text_of_few;
  EXPECT_EQ(text_of_few.find("= TanhInTurn"), std::string::npos) << text_of_few;
}

// By the tensor of which an output is a part, too.
TEST_P(Forms, WhereRowsBegin) {
  const auto aligned = [](std::string_view type, std::vector<snippet::PortCut> cuts) {
    snippet::Body made = body_of(type, "%y = Softmax %x {axis = -1}");
    made.outputs[0].cuts = std::move(cuts);
    EXPECT_TRUE(verify(made).ok());
    return rows_aligned(made);
  };
  EXPECT_EQ(aligned("f32[N,64]", {}), true);
  EXPECT_EQ(aligned("f32[7,65]", {}), false);
  EXPECT_EQ(aligned("f32[N,65]", {}), std::nullopt) << "there may be one row";
  EXPECT_EQ(aligned("f32[7,N]", {}), std::nullopt);
  EXPECT_EQ(aligned("f32[7,64]", {{.dim = 1, .begin = 16, .box = 64, .whole = 96}}), true);
  EXPECT_EQ(aligned("f32[7,64]", {{.dim = 1, .begin = 0, .box = 64, .whole = 97}}), false);
  EXPECT_EQ(aligned("f32[7,64]", {{.dim = 1, .begin = 4, .box = 64, .whole = 96}}), false);
  EXPECT_EQ(aligned("f32[7,65]", {{.dim = 1, .begin = 0, .box = 65, .whole = 80}}), true);
  EXPECT_EQ(aligned("f32[7,N]", {{.dim = 1, .begin = 0, .box = 4, .whole = 8}}), std::nullopt);
}

// Those for large calls, of extents that may or may not be large, when somebody asks; also when the compiler is gone.
TEST_P(Forms, ForLargeCallsWaitForOne) {
  const size_t before = made();
  auto compiler = std::make_unique<Compiler>(target(), **jitter_table());
  const auto code = compiler->compile(body("N", 11));
  ASSERT_TRUE(code.ok()) << code.error().to_string();
  compiler.reset();
  EXPECT_EQ(made() - before, 1u);
  ASSERT_EQ((*code)->larger.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto form = (*code)->larger[i]->get((*code)->body);
    ASSERT_TRUE(form.ok()) << form.error().to_string();
    EXPECT_EQ(made() - before, i + 2);
    EXPECT_EQ((*form)->non_temporal, i == 1);
    EXPECT_EQ(*(*code)->larger[i]->get((*code)->body), *form);
    EXPECT_EQ(made() - before, i + 2);
  }
}

TEST_P(Forms, OfKnownExtentsAreThoseThatCallsRun) {
  const auto larger = [&](std::string_view rows, int number) {
    Compiler compiler(target(), **jitter_table());
    const size_t before = made();
    const auto code = compiler.compile(body(rows, number));
    EXPECT_TRUE(code.ok());
    EXPECT_EQ(made() - before, 1 + (*code)->larger.size()) << "at once";
    return (*code)->larger.size();
  };
  EXPECT_EQ(larger("10", 21), 0u);    // 5 KB
  EXPECT_EQ(larger("1000", 22), 0u);  // 512 KB: fetched ahead
  EXPECT_EQ(larger("4000", 23), 1u);  // 2 MB: non-temporal, and where outputs are not aligned the form before
}

// Where a fold takes more than L2, of what is known and of what a call shows.
TEST_P(Forms, SweepsAreMergedOfLongStretches) {
  const auto least = [&](std::string_view shape, int axis, std::string_view op = "Softmax") {
    const FormMaker maker(target(), **jitter_table(), {});
    std::vector<double> least;
    for (const FormMaker::Tier& tier :
         maker.tiers_of(body_of(str("f32[", shape, "]"), str("%y = ", op, " %x {axis = ", axis, "}"))))
      if (tier.lower.merge_sweeps) least.push_back(tier.calls.least_folded_bytes);
    return least;
  };
  using Least = std::vector<double>;
  EXPECT_EQ(least("8,100000", 1), Least{1e5});
  EXPECT_EQ(least("8,100000", 1, "LogSoftmax"), Least{1e5});
  EXPECT_EQ(least("2000,1000", 1), Least{}) << "rows that a cache holds";
  EXPECT_EQ(least("10,200000", 0), Least{}) << "256 columns of 10 rows";
  EXPECT_EQ(least("100,20000", 0), (Least{1e5, 80000})) << "in blocks whose powers wait for the next, or alone";
  EXPECT_EQ(least("100000,8", 0), Least{1e5}) << "joined";
  EXPECT_EQ(least("N,8", 0), Least{1e5}) << "joined or in tiles";
  const bool lines = GetParam() == Isa::avx512;
  EXPECT_EQ(least("N,M", 0), (lines ? Least{1e5, 1e5, 1e5, 80000, 80000} : Least{1e5, 1e5, 80000}))
      << "joined, of rows at lines, and of others";
  EXPECT_EQ(least("N,M", 1), (Least{1e5, 1e5})) << "with heads or without";
  EXPECT_EQ(least("N,100", 1, "LpNormalization"), Least{}) << "one sweep, and another that stores";
}

// Also within the last-level cache, of rows that L2 does not hold, where lines are fetched out of that.
TEST_P(Forms, SweepsAreMergedWhereTheLastLevelAnswersSlowly) {
  const auto least = [&](const TargetDescription& from, std::string_view op) -> std::vector<int64_t> {
    const FormMaker maker(from, **jitter_table(), {});
    std::vector<int64_t> least;
    for (const FormMaker::Tier& tier : maker.tiers_of(body_of("f32[N,M]", op)))
      if (tier.lower.merge_sweeps && !tier.passes.stream_stores) {
        EXPECT_EQ(tier.suffix, ".prefetching.merged");
        EXPECT_EQ(tier.calls.least_bytes, 1e5);
        least.push_back(tier.calls.rows.least);
      }
    return least;
  };
  constexpr std::string_view kNorm = "%y = MeanVarianceNormalization %x {axes = [1]}";
  EXPECT_EQ(least(target(), kNorm), std::vector<int64_t>{25'001});
  EXPECT_EQ(least(target(), "%y = Softmax %x {axis = 1}"), std::vector<int64_t>{}) << "powers would be made twice";
  TargetDescription unfetched = target();
  unfetched.memories[1].prefetch_reads = 0;
  EXPECT_EQ(least(unfetched, kNorm), std::vector<int64_t>{});
  const FormMaker maker(target(), **jitter_table(), {});
  const snippet::Body known = body_of("f32[2,30000]", kNorm);  // 480 KB
  const std::vector<FormMaker::Tier> tiers = maker.tiers_of(known);
  ASSERT_EQ(tiers.back().suffix, ".prefetching.merged");
  const auto form = maker.make(known, tiers.back());
  ASSERT_TRUE(form.ok()) << form.error().to_string();
  EXPECT_TRUE(form->kernel.merged);
}

// Sums down columns. Short rows are joined: at once where extents say so, else in forms of their own, which wait for a
// call with such rows.
TEST_P(Forms, ShortRowsAreJoined) {
  const auto sorts = [&](std::string_view shape) {
    const auto graph = parse_graph(str("graph @g(%x: f32[", shape, R"(]) -> %y {
  %a = Constant {value = dense<i64[1]: 1>}
  %y = ReduceSum %x, %a
})"));
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
    const auto body = snippet::make_body(*(*graph)->body().output(0)->producer());
    const auto code = Compiler(target(), **jitter_table()).compile(*body);
    EXPECT_TRUE(code.ok());
    std::string made = (*code)->form.kernel.joined.rows >= 0 ? "joined" : "apart";
    for (const auto& larger : (*code)->larger) {
      const auto form = larger->get((*code)->body);
      EXPECT_TRUE(form.ok());
      EXPECT_EQ(larger->calls().joins_rows, (*form)->kernel.joined.rows >= 0);
      made += larger->calls().joins_rows ? " joined" : " apart";
    }
    return made;
  };
  EXPECT_EQ(sorts("3,100,8"), "joined");
  EXPECT_EQ(sorts("N,100,8"), "joined joined joined");
  EXPECT_EQ(sorts("3,20,8"), "joined") << "six of two rows and more";
  EXPECT_EQ(sorts("3,10,8"), "apart") << "few rows";
  EXPECT_EQ(sorts("3,N,800"), "apart apart apart apart apart apart") << "long rows";
  EXPECT_EQ(sorts("3,N,8"), "apart joined apart joined apart joined");
}

// From the sizes of caches on, that the target states, of the last one three quarters; down columns, of rows of two
// vectors and more.
TEST_P(Forms, ForLargeCallsServeNoOthers) {
  const auto larger = [&](const snippet::Body& body) {
    const auto code = Compiler(target(), **jitter_table()).compile(body);
    EXPECT_TRUE(code.ok()) << code.error().to_string();
    EXPECT_EQ((*code)->form.least_row, 0);
    std::vector<std::pair<double, int64_t>> least;
    for (const auto& form : (*code)->larger)
      least.emplace_back(form->calls().least_bytes, (*form->get((*code)->body))->least_row);
    return least;
  };
  using Least = std::vector<std::pair<double, int64_t>>;
  const int64_t row = 2 * lanes_of(GetParam(), kF32);
  EXPECT_EQ(larger(body("N", 51)), (Least{{1e5, 0}, {7.5e5, 0}}));
  EXPECT_EQ(larger(body_of("f32[N,800]", "%y = Softmax %x {axis = 0}")),
            (Least{{1e5, row}, {7.5e5, row}, {7.5e5, row}, {7.5e5, row}, {7.5e5, row}, {7.5e5, row}, {7.5e5, row}}));
}

// What is only for large calls is not in the code for small ones, and names of kernels say which is which.
TEST_P(Forms, HaveWhatTheirCallsNeed) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const FormMaker maker(target(), **jitter_table(), {});
  const std::vector<FormMaker::Tier> open = maker.tiers_of(body_of("f32[N,800]", "%y = Softmax %x {axis = 0}"));
  constexpr std::array kSuffixes{"",
                                 ".prefetching",
                                 ".streaming",
                                 ".streaming.blocks",
                                 ".streaming.blocks256",
                                 ".streaming.blocks128",
                                 ".streaming.merged",
                                 ".streaming.blocks.merged"};
  // Columns of blocks, and bytes of a fold: two fifths of 100,000 in one block.
  constexpr std::array kColumns{0, 0, 0, 512, 256, 128, 0, 0};
  constexpr std::array kLeast{0., 0., 0., 0., 20e3, 40e3, 100e3, 80e3};
  ASSERT_EQ(open.size(), kSuffixes.size());
  for (size_t i = 0; i < open.size(); ++i) {
    const FormMaker::Tier& tier = open[i];
    EXPECT_EQ(tier.suffix, kSuffixes[i]);
    EXPECT_EQ(tier.lower.whole_rows, i > 0);
    EXPECT_EQ(tier.passes.prefetch_blocks, i > 0);
    EXPECT_EQ(tier.passes.block_cache_bytes, i > 0 ? 100'000 : 0);
    EXPECT_EQ(tier.passes.stream_stores, i > 1);
    EXPECT_EQ(tier.lower.resweep_cycles > snippet::LowerOptions{}.resweep_cycles, i > 1);
    EXPECT_EQ(tier.passes.last_cache_bytes, i > 0 ? 1'000'000 : 0);
    EXPECT_EQ(tier.lower.behind_blocks, (i >= 3 && i <= 5) || i == 7);
    EXPECT_EQ(tier.lower.merge_sweeps, i > 5);
    EXPECT_EQ(tier.passes.block_columns, kColumns[i]);
    EXPECT_NEAR(tier.calls.least_folded_bytes, kLeast[i], 1e-6);
    EXPECT_EQ(tier.calls.most_folded_bytes, i == 3 || i == 4 ? open[i + 1].calls.least_folded_bytes : kNone);
    EXPECT_FALSE(tier.certain);
  }
  const std::vector<FormMaker::Tier> known = maker.tiers_of(body("4000", 61));
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].suffix, "") << "it is the first of its calls";
  EXPECT_EQ(known[1].suffix, ".streaming");
  EXPECT_TRUE(known[0].certain && known[1].certain);
}

// An output that does not vary over the innermost dim may have loops of its own, along another one: rows do not say
// where its vectors begin.
TEST_P(Forms, OutputsOfOtherRowsStayInTheCaches) {
  const FormMaker maker(target(), **jitter_table(), {});
  snippet::Body both = body_of("f32[N,19,M]", "%y = Softmax %x {axis = 1}");  // for its dims
  ASSERT_EQ(both.rank(), 3u);
  both.dims[1].reduced = false;
  both.dims.insert(both.dims.begin(), both.dims[0]);
  both.values = {{kF32, 15}, {kF32, 15}, {kF32, 5}, {kF32, 5}};
  both.inputs = {{0, kF32}, {2, kF32}};
  both.outputs = {{1, kF32}, {3, kF32}};
  both.nodes = {{.op = "Neg", .operands = {0}, .result = 1}, {.op = "Neg", .operands = {2}, .result = 3}};
  const auto tiers = maker.tiers_of(both);
  const auto streaming = std::ranges::find(tiers, ".streaming", &FormMaker::Tier::suffix);
  ASSERT_NE(streaming, tiers.end());
  const auto form = maker.make(both, *streaming);
  ASSERT_TRUE(form.ok()) << form.error().to_string();
  EXPECT_TRUE(form->non_temporal);
  for (const snippet::Instruction& one : form->kernel.body) {
    if (one.op != Name("StoreStreaming")) continue;
    for (const snippet::Instruction& pointer : form->kernel.body) {
      if (pointer.op != Name("Parameter") || pointer.out[0] != one.memory->base) continue;
      EXPECT_EQ(form->kernel.params[static_cast<size_t>(pointer.number)].port, 2) << snippet::print(form->kernel);
    }
  }
}

// What a sweep would keep for the next one is written by the sweep that both are, too. Its rows begin anywhere.
TEST_P(Forms, ScratchMemoryIsNotWrittenPastTheCaches) {
  const FormMaker maker(target(), **jitter_table(), {});
  auto graph = parse_graph(
      "graph @g(%x: f32[N,M], %m: f32[1,M]) -> %y {\n%a = Asinh %x\n%t = Min %a, %m\n"
      "%y = ReduceLogSumExp %t\n}");
  testing::GuardedGraph(GetParam(), {}).tokenize(**graph);
  const auto body = snippet::make_body(*(*graph)->body().output(0)->producer());
  size_t merged = 0;
  for (const FormMaker::Tier& tier : maker.tiers_of(*body)) {
    const auto form = maker.make(*body, tier);
    ASSERT_TRUE(form.ok()) << form.error().to_string();
    merged += form->kernel.merged;
    const std::string text = snippet::print(form->kernel);
    EXPECT_EQ(text.find("StoreStreaming"), std::string::npos) << tier.suffix << " folds to one number: " << text;
  }
  EXPECT_GT(merged, 0u);
}

// Of 512 bits, where they fit half of them; columns and rows of open length in whole ones.
TEST_P(Forms, ShortRowsGoInHalfVectors) {
  const FormMaker maker(target(), **jitter_table(), {});
  const int lanes = lanes_of(GetParam(), kF32), half = GetParam() == Isa::avx512 ? lanes / 2 : lanes;
  const auto expect = [&](std::string_view type, std::string_view op, int wanted) {
    for (const FormMaker::Tier& tier : maker.tiers_of(body_of(type, str("%y = ", op))))
      EXPECT_EQ(tier.lower.lanes, wanted) << type << ", " << op << tier.suffix;
  };
  expect("f32[N,2]", "Softmax %x {axis = 1}", half);
  expect("f32[5,8]", "Softmax %x {axis = 1}", half);
  expect("f32[N,9]", "Softmax %x {axis = 1}", lanes);
  expect("f32[8,N]", "Softmax %x {axis = 1}", lanes);
  expect("f32[N,8]", "Softmax %x {axis = 0}", lanes);
  expect("f32[8]", "Neg %x", half);
  expect("f32[9]", "Neg %x", lanes);
  expect("f32[N]", "Neg %x", lanes);
}

// Rows that begin anywhere: where nothing is known of rows, the form is one more; of known ones the one that they want.
TEST_P(Forms, RowsThatBeginAnywhereHaveTheirOwn) {
  const FormMaker maker(target(), **jitter_table(), {});
  const auto suffixes = [&](std::string_view x, std::string_view operators) {
    std::string made;
    for (const FormMaker::Tier& tier : maker.tiers_of(body_of(x, operators))) {
      EXPECT_EQ(tier.passes.row_begins == RowBegins::behind_heads, tier.suffix.ends_with(".heads"));
      EXPECT_EQ(tier.passes.row_begins == RowBegins::turned, tier.suffix.ends_with(".lines"));
      const irgen::RowRange any;
      if (!tier.certain && (tier.calls.rows != any || tier.calls.innermost != any)) continue;
      made += tier.suffix + " ";
    }
    return made;
  };
  const std::string_view rows = "%y = Softmax %x {axis = -1}";
  EXPECT_EQ(suffixes("f32[N,M]", rows), " .prefetching .streaming .streaming.heads ");
  EXPECT_EQ(suffixes("f32[N,1008]", rows), " .prefetching .streaming ") << "63 lines";
  EXPECT_EQ(suffixes("f32[N,1001]", rows), " .prefetching .streaming .streaming.heads ") << "one row is aligned";
  const bool avx512 = GetParam() == Isa::avx512;
  const std::string_view twice = avx512 ? ".streaming.skewed.twice " : "", lines = avx512 ? ".lines" : "";
  const std::string anywhere =
      avx512 ? " .streaming.heads .streaming.skewed.lines .streaming.skewed.twice.lines " : " .streaming.l1.heads ";
  EXPECT_EQ(suffixes("f32[2000,1025]", rows), anywhere);
  EXPECT_EQ(suffixes("f32[30000,225]", rows), avx512 ? anywhere : " .far ") << "14 lines";
  EXPECT_EQ(suffixes("f32[30000,223]", rows), avx512 ? " .streaming.heads .staged " : " .far .staged ") << "less";
  EXPECT_EQ(suffixes("f32[2000,1024]", rows), str(" .streaming .streaming.skewed ", twice));
  EXPECT_EQ(suffixes("f32[9000,49]", rows), " .far .staged ") << "most lines would be two rows'";
  EXPECT_EQ(suffixes("f32[30000,15]", rows), " .far ") << "less than a line a row";
  EXPECT_EQ(suffixes("f32[9000,48]", rows).find("staged"), std::string::npos) << "whole lines";
  EXPECT_EQ(suffixes("f32[900,10,49]", "%y = Softmax %x {axis = 1}").find("staged"), std::string::npos) << "columns";
  EXPECT_EQ(suffixes("f32[9000,48]", "%y = Softmax %x {axis = 0}").find("far"), std::string::npos) << "columns";
  EXPECT_EQ(suffixes("f16[9000,1024,33]", "%y = Softmax %x {axis = 1}").find("heads"), std::string::npos);
  EXPECT_EQ(suffixes("f32[1,2000003]", "%y = Abs %x"), " .streaming ") << "one row";
  EXPECT_EQ(suffixes("f32[77,100003]", "%y = Softmax %x {axis = 0}"),
            str(" .streaming", lines, " .streaming.blocks128", lines, " .streaming.merged", lines,
                " .streaming.blocks.merged", lines, " "))
      << "columns, 157,696 bytes of 256";
}

// Where nothing is fetched ahead, rows that L1 holds go alone instead of skewed, and none is fetched
// along with another but longer ones, into L2.
TEST_P(Forms, RowsGoAloneWhereNothingIsFetchedAhead) {
  TargetDescription stated = target();
  stated.memories[2].prefetch_reads = stated.memories[2].prefetch_writes = 0;
  const auto suffixes = [](const TargetDescription& target, std::string_view x, std::string_view operators) {
    const FormMaker maker(target, **jitter_table(), {});
    std::string made;
    for (const FormMaker::Tier& tier : maker.tiers_of(body_of(x, operators))) {
      EXPECT_EQ(tier.row_order == RowOrder::one_by_one, tier.suffix.find(".alone") != std::string::npos);
      const bool fetches = tier.passes.next_row != NextRow::none && !is_skewed(tier.row_order);
      const auto ends = [&](std::string_view suffix) { return tier.suffix.find(suffix) != std::string::npos; };
      EXPECT_EQ(tier.passes.next_row == NextRow::last_to_second, ends(".alone.fetching") || ends(".skewed.fetching"))
          << tier.suffix;
      EXPECT_EQ(tier.passes.next_row == NextRow::before_last_to_second, ends(".alone.paged") || ends(".alone.near"))
          << tier.suffix;
      EXPECT_EQ(tier.lower.keep_near && tier.row_order != RowOrder::as_lowered, ends(".alone.near")) << tier.suffix;
      const bool to_second = is_to_second(tier.passes.next_row);
      EXPECT_FALSE(fetches && target.memories[2].prefetch_reads == 0 && !to_second) << tier.suffix;
      made += tier.suffix + " ";
    }
    return made;
  };
  const bool avx512 = GetParam() == Isa::avx512;
  const std::string_view norm = "%y = MeanVarianceNormalization %x {axes = [1]}",
                         once = "%y = LpNormalization %x {axis = -1}", softmax = "%y = Softmax %x {axis = -1}";
  EXPECT_EQ(suffixes(target(), "f32[2000,1024]", norm).find("alone"), std::string::npos);
  EXPECT_EQ(suffixes(stated, "f32[2000,1024]", norm), " .streaming .streaming.alone ");
  const std::string_view fetching = " .streaming .streaming.alone.fetching ";
  EXPECT_EQ(suffixes(stated, "f32[2000,2048]", norm), " .streaming .streaming.alone ") << "16 KB with what is kept";
  EXPECT_EQ(suffixes(stated, "f32[2000,2064]", norm), fetching);
  const int64_t most = static_cast<int64_t>(stated.memory("l2")->size_bytes) / 2 / 8 / 16 * 16;
  EXPECT_EQ(suffixes(stated, str("f32[2000,", most, "]"), norm), fetching) << "two rows, as long as what is kept";
  EXPECT_EQ(suffixes(stated, str("f32[2000,", most + 16, "]"), norm).find("alone"), std::string::npos);
  EXPECT_EQ(suffixes(stated, "f32[1,4096000]", norm).find("alone"), std::string::npos) << "no next row";
  const std::string_view anywhere = avx512 ? ".alone.lines " : ".alone.heads ";
  EXPECT_EQ(suffixes(stated, "f32[2000,1025]", norm), str(" .streaming.heads .streaming", anywhere));
  EXPECT_EQ(suffixes(stated, "f32[2000,1024]", once).find("alone"), std::string::npos) << "one loop is as fast";
  EXPECT_EQ(suffixes(stated, "f32[2000,4112]", once).find("alone"), std::string::npos) << "wherever rows lie";
  EXPECT_NE(suffixes(stated, "f32[2000,1025]", once).find(anywhere), std::string::npos);
  // Of whole pages alone: 4 KB. Of one L1 holds two with what waits in y; what waits elsewhere is one row.
  const std::string paged = ".streaming.alone.paged ", near = ".streaming.alone.near ";
  for (const auto& [x, order] : {std::pair("f32[2000,1024]", paged),
                                 {"f32[2000,2048]", near},
                                 {"f32[2000,4096]", near},
                                 {"f32[2000,5120]", ""},
                                 {"f16[9000,2048]", paged},
                                 {"f16[9000,4096]", ""},
                                 {"f32[2000,1008]", ""},
                                 {"f32[2000,1536]", ""},
                                 {"f32[2000,512]", ""},
                                 {"f32[2000,3088]", ""},
                                 {"f16[9000,1024]", ""},
                                 {"f32[1,4096000]", ""}}) {
    const std::string made = suffixes(stated, x, softmax);
    if (order.empty() || !avx512)
      EXPECT_EQ(made.find("alone"), made.npos) << x << made;
    else
      EXPECT_NE(made.find(order), made.npos) << x << made;
  }
  // What L1 does not hold beside its powers, fetches the next row into L2.
  for (const auto& [x, operators, far] : {std::tuple("f32[2000,4112]", softmax, true),
                                          {"f32[2000,4080]", softmax, false},
                                          {"f16[9000,8192]", softmax, false},
                                          {"f32[2000,8192]", softmax, true}}) {
    EXPECT_EQ(suffixes(stated, x, operators).find(".streaming.skewed.fetching ") != std::string::npos, far) << x;
    EXPECT_EQ(suffixes(target(), x, operators).find(".skewed.fetching"), std::string::npos) << x << ": fetched ahead";
  }
  EXPECT_EQ(suffixes(target(), "f32[2000,1024]", softmax).find("alone"), std::string::npos);
  EXPECT_EQ(suffixes(stated, "f32[2000,1024]", "%y = LogSoftmax %x {axis = -1}").find("alone"), std::string::npos);
  EXPECT_NE(suffixes(stated, "f32[2000,2047]", softmax).find(".alone.heads "), std::string::npos);
  EXPECT_EQ(suffixes(stated, "f32[2000,2049]", softmax).find("alone"), std::string::npos) << "powers wait in y";
  EXPECT_EQ(suffixes(stated, "f32[2000,1025]", "%y = LogSoftmax %x {axis = -1}").find("alone"), std::string::npos);
}

// Where lines are fetched ahead into L2, so are those of all orders beyond the caches, and no others.
// Rows that are folded twice beside what they share are skewed as far as L1 holds them and from an eighth
// of the second on; between, the sweep that stores fetches the next one.
TEST_P(Forms, RowsAreFetchedIntoTheSecondLevel) {
  TargetDescription stated = target();
  constexpr int64_t kFirst = 32 << 10, kSecond = 1 << 20;
  stated.memories[0].size_bytes = kSecond;
  stated.memories[1].size_bytes = 4 << 20;
  const auto orders = [&](std::string_view operators, int64_t columns, std::string_view element = "f32") {
    const FormMaker maker(stated, **jitter_table(), {});
    const std::string row = str(": ", element, "[", columns, "]"), rows = str(": ", element, "[8000,", columns, "]");
    auto graph =
        parse_graph(str("graph @g(%x", rows, ", %z", rows, ", %w", row, ", %b", row, ") -> %y {\n", operators, "\n}"));
    testing::GuardedGraph(GetParam(), {}).tokenize(**graph);
    const bool exponentials = operators.find("oftmax") != std::string_view::npos;
    std::string made;
    for (const FormMaker::Tier& tier : maker.tiers_of(*snippet::make_body(*(*graph)->body().output(0)->producer()))) {
      EXPECT_EQ(tier.passes.prefetch_reads.to_second,
                tier.row_order != RowOrder::as_lowered && stated.memories[2].prefetch_level == 2 &&
                    !tier.suffix.ends_with(".far") && !tier.suffix.ends_with(".together") &&
                    !(exponentials && tier.suffix.ends_with(".merged")))
          << tier.suffix;
      if (tier.row_order != RowOrder::as_lowered) made = tier.suffix;  // the last one that serves a call does
    }
    return made;
  };
  const std::string_view norm = "%y = LayerNormalization %x, %w, %b {axis = -1}",
                         once = "%y = RMSNormalization %x, %w {axis = -1}";
  const std::string skewed = ".streaming.skewed", fetching = ".streaming.alone.fetching";
  // Of 4 bytes each: a row, two that are shared, what is kept.
  constexpr int64_t kElement = 16, kMost = kFirst / kElement, kLong = kSecond / 8 / kElement;
  EXPECT_EQ(orders(norm, kMost), skewed);
  EXPECT_EQ(orders(norm, kMost + 16), "") << "fetched into L1";
  stated.memories[2].prefetch_level = 2;
  EXPECT_EQ(orders(norm, kMost), skewed);
  EXPECT_EQ(orders(norm, kMost + 16), fetching);
  EXPECT_EQ(orders(norm, kLong), fetching);
  EXPECT_EQ(orders(norm, kLong + 16), skewed);
  EXPECT_EQ(orders(norm, kSecond / 2 / kElement), skewed);
  const std::string merged = skewed + ".merged";
  EXPECT_EQ(orders(norm, kSecond / 2 / kElement + 16), merged);
  // Beside what is shared L2 holds no two rows: several are stored together.
  constexpr int64_t kTwoRows = kSecond / (kElement + 4) / 16 * 16;
  EXPECT_EQ(orders(norm, kTwoRows), merged);
  EXPECT_EQ(orders(norm, kTwoRows + 16), ".streaming.together");
  EXPECT_EQ(orders(norm, kTwoRows + 1), GetParam() == Isa::avx512 ? merged + ".lines" : "") << "begins anywhere";
  EXPECT_EQ(orders("%t = Add %x, %z\n%y = LayerNormalization %t, %w, %b {axis = -1}", kTwoRows + 16), merged);
  EXPECT_EQ(orders(once, kMost + 16), skewed) << "folded once";
  // Three rows and what is kept of one, of 4 bytes each; avx2 has no registers for three walks.
  const std::string_view softmax = "%y = Softmax %x {axis = -1}";
  const bool twice = GetParam() == Isa::avx512;
  EXPECT_EQ(orders(softmax, kMost), twice ? ".streaming.skewed.twice" : skewed);
  EXPECT_EQ(orders(softmax, kMost + 16), twice ? ".streaming.skewed.twice.far" : skewed);
  constexpr int64_t kFar = kSecond / 4 * 3 / kElement;
  EXPECT_EQ(orders(softmax, kFar), twice ? ".streaming.skewed.twice.far" : skewed);
  EXPECT_EQ(orders(softmax, kFar + 16), twice ? merged : skewed) << "two powers an element instead of one that is kept";
  EXPECT_EQ(orders(softmax, kSecond / (3 * 2 + 4) / 32 * 32 + 32, "f16"), skewed) << "half as much is read again";
  const std::string_view masked = "%s = Add %x, %w\n%y = Softmax %s {axis = -1}";
  EXPECT_EQ(orders(masked, kMost), twice ? ".streaming.skewed.twice" : skewed);
  EXPECT_EQ(orders(masked, kMost + 16), twice ? merged : skewed);
  EXPECT_EQ(orders("%s = Add %x, %z\n%y = Softmax %s {axis = -1}", 128), twice ? merged : skewed) << "of two tensors";
  EXPECT_EQ(orders("%y = LogSoftmax %x {axis = -1}", 128), twice ? merged : skewed) << "one power an element";
  EXPECT_EQ(orders("%y = MeanVarianceNormalization %x {axes = [1]}", kMost + 16), skewed) << "nothing is shared";
}

// An L2 that has no room for two rows beyond half of L1 leaves all of that to those that go alone.
TEST_P(Forms, RowsGoAloneAsFarAsTheFirstLevelWhereTheSecondHoldsNoTwo) {
  TargetDescription stated = target();
  stated.memories[2].prefetch_reads = stated.memories[2].prefetch_writes = 0;
  const auto orders = [&](uint64_t l2_bytes, int64_t columns) {
    stated.memories[0].size_bytes = l2_bytes;
    const FormMaker maker(stated, **jitter_table(), {});
    bool alone = false, fetching = false;
    for (const FormMaker::Tier& tier :
         maker.tiers_of(body_of(str("f32[2000,", columns, "]"), "%y = MeanVarianceNormalization %x {axes = [1]}"))) {
      const bool fetches = tier.passes.next_row == NextRow::last_to_second;
      fetching |= fetches;
      alone |= tier.row_order == RowOrder::one_by_one && !fetches;
    }
    return std::pair(alone, fetching);
  };
  constexpr std::pair kAlone(true, false), kFetching(false, true), kNeither(false, false);
  // L1 holds 4096 elements with what is kept of them.
  constexpr uint64_t kLevel = 32 << 10;
  for (const uint64_t bytes : {uint64_t{64}, kLevel / 4, kLevel / 2, kLevel}) {
    for (const int64_t columns : {1024, 2048, 2064, 4096})
      EXPECT_EQ(orders(bytes, columns), kAlone) << bytes << columns;
    EXPECT_EQ(orders(bytes, 4112), kNeither) << bytes;
  }
  EXPECT_EQ(orders(2 * kLevel, 2048), kAlone);
  for (const int64_t columns : {2064, 4096}) EXPECT_EQ(orders(2 * kLevel, columns), kFetching) << columns;
  EXPECT_EQ(orders(2 * kLevel, 4112), kNeither);
}

// As they are lowered, rows of 160 elements go several at a time.
TEST_P(Forms, NoOtherRowGoesWithOneThatGoesAlone) {
  TargetDescription stated = target();
  stated.memories[2].prefetch_reads = stated.memories[2].prefetch_writes = 0;
  const FormMaker maker(stated, **jitter_table(), {});
  const snippet::Body body = body_of("f32[20000,160]", "%y = MeanVarianceNormalization %x {axes = [1]}");
  std::vector<FormMaker::Tier> tiers = maker.tiers_of(body);
  std::erase_if(tiers, [](const FormMaker::Tier& tier) { return tier.row_order != RowOrder::one_by_one; });
  ASSERT_EQ(tiers.size(), 1u);
  const auto rows_together = [&] {
    const auto form = maker.make(body, tiers[0]);
    EXPECT_TRUE(form.ok() && form->non_temporal);
    int64_t rows = 0;
    for (const snippet::Loop& loop : form->kernel.loops)
      if (loop.kind == snippet::Loop::Kind::scalar) rows = std::max(rows, loop.increment);
    return rows;
  };
  EXPECT_EQ(rows_together(), 1);
  tiers[0].row_order = RowOrder::as_lowered;
  EXPECT_GT(rows_together(), 1);
}

// A mask of keys lies still while heads and queries go by; one of queries and keys moves on with them.
TEST_P(Forms, RowsGoAloneBesideWhatRowsBehindOneAnotherShare) {
  TargetDescription stated = target();
  stated.memories[2].prefetch_reads = stated.memories[2].prefetch_writes = 0;
  const FormMaker maker(stated, **jitter_table(), {});
  const auto any_alone = [&](std::string_view mask) {
    auto graph = parse_graph(
        str("graph @g(%x: f32[4,2000,197], %m: ", mask, ") -> %y {\n%t = Add %x, %m\n%y = Softmax %t {axis = -1}\n}"));
    testing::GuardedGraph(GetParam(), {}).tokenize(**graph);
    const auto body = snippet::make_body(*(*graph)->body().output(0)->producer());
    return std::ranges::any_of(maker.tiers_of(*body),
                               [](const FormMaker::Tier& tier) { return tier.row_order == RowOrder::one_by_one; });
  };
  EXPECT_TRUE(any_alone("f32[4,1,197]"));
  EXPECT_FALSE(any_alone("f32[1,2000,197]"));
}

// Short rows that begin anywhere are fetched from as far as others, but stored to the caches.
TEST_P(Forms, ShortRowsThatBeginAnywhereAreFetchedFromFar) {
  const FormMaker maker(target(), **jitter_table(), {});
  const auto tiers = maker.tiers_of(body_of("f32[N,M]", "%y = Softmax %x {axis = -1}"));
  const auto named = [&](std::string_view suffix) {
    return *std::ranges::find(tiers, suffix, [](const auto& tier) { return std::string_view(tier.suffix); });
  };
  const FormMaker::Tier far = named(".far"), streaming = named(".streaming");
  EXPECT_FALSE(far.passes.stream_stores);
  EXPECT_EQ(far.calls.least_bytes, streaming.calls.least_bytes);
  EXPECT_EQ(far.passes.prefetch_reads.lines, streaming.passes.prefetch_reads.lines);
  EXPECT_EQ(far.calls.innermost, (irgen::RowRange{.least = 0, .most = lanes_of(GetParam(), kF32) == 16 ? 127 : 767}));
}

// Forms that would be no other than the one before are for no call.
TEST_P(Forms, WithoutStoresPastTheCachesAreForNoCall) {
  const auto least_row = [&](std::string_view type, std::string_view operators, std::string_view suffix) {
    const FormMaker maker(target(), **jitter_table(), {});
    const snippet::Body body = body_of(type, operators);
    for (const FormMaker::Tier& tier : maker.tiers_of(body)) {
      if (tier.suffix != suffix) continue;
      const auto form = maker.make(body, tier);
      EXPECT_TRUE(form.ok()) << (form.ok() ? "" : form.error().to_string());
      return std::pair(form->least_row, form->non_temporal);
    }
    ADD_FAILURE() << "no form " << suffix << " of " << body.to_string();
    return std::pair(int64_t{-1}, false);
  };
  const int64_t lanes = lanes_of(GetParam(), kF32), none = std::numeric_limits<int64_t>::max();
  const std::string_view sum = "%a = Constant {value = dense<i64[1]: 1>}\n  %y = ReduceSum %x, %a";
  const bool lines = lanes * 4 == kLineBytes;
  EXPECT_EQ(least_row("f32[N,M]", "%y = Softmax %x {axis = -1}", ".streaming.heads"),
            std::pair(int64_t{lines ? 128 : 768}, true));
  EXPECT_EQ(least_row("f16[N,M]", "%y = Softmax %x {axis = -1}", ".streaming.heads"), std::pair(int64_t{768}, true))
      << "half lines";
  EXPECT_EQ(least_row("f32[N,800]", "%y = Softmax %x {axis = 0}", ".streaming.blocks"), std::pair(2 * lanes, true));
  EXPECT_EQ(least_row("f32[N,M,K]", sum, ".streaming.blocks"), std::pair(none, true)) << "one sweep";
  const auto narrow = [](int axis) {
    return str("%y = snippet.Subgraph %x \"narrow\" ((%0: f64[N,800]) -> %3 {\n    %1 = Softmax %0 {axis = ", axis,
               R"(} : f64[N,800]
    %2 = Constant {value = dense<f64[]: 0.5>} : f64[]
    %3 = Less %1, %2 : bool[N,800]
  }) : bool[N,800])");
  };
  EXPECT_EQ(least_row("f64[N,800]", narrow(0), ".streaming.blocks"), std::pair(none, false)) << "8 bytes a vector";
  EXPECT_EQ(least_row("f64[N,800]", narrow(1), ".streaming.heads"), std::pair(none, false)) << "8 bytes a vector";
}

TEST_P(Forms, AListingShowsAll) {
  const Compiler compiler(target(), **jitter_table());
  const auto all = compiler.assemble_snippet(body("N", 31));
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  ASSERT_EQ(all->size(), 3u);
  EXPECT_NE((*all)[1].name.find(".prefetching"), std::string::npos) << (*all)[1].name;
  EXPECT_NE((*all)[2].name.find(".streaming"), std::string::npos) << (*all)[2].name;
  const auto first = compiler.assemble_snippet(body("N", 31), Compiler::Forms::first);
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->size(), 1u);
  EXPECT_EQ((*first)[0], (*all)[0]);
}

// How each form walks is what the memory says that its calls come from.
TEST_P(Forms, WalkAsTheirMemorySays) {
  TargetDescription stated = target();
  stated.memories[1].row_lines = 2, stated.memories[1].prefetch_together = 64;
  stated.memories[2].most_streams = 6;
  stated.memories.push_back({.name = "l1", .size_bytes = 16'384});
  const FormMaker maker(stated, **jitter_table(), {});
  const std::vector<FormMaker::Tier> tiers = maker.tiers_of(body("N", 41));
  ASSERT_EQ(tiers.size(), 3u);
  const auto lines = [&](size_t tier) {
    const FormPasses& passes = tiers[tier].passes;
    return std::tuple(passes.prefetch_reads.lines, passes.prefetch_writes.lines, passes.streams.each,
                      passes.streams.most);
  };
  EXPECT_EQ(lines(0), std::tuple(0, 0, 1, 0)) << "l2 states nothing";
  EXPECT_EQ(lines(1), std::tuple(7, 5, 1, 0));
  EXPECT_EQ(lines(2), std::tuple(9, 0, 3, 6));
  EXPECT_EQ(tiers[1].passes.prefetch_reads.together, 64);
  // Rows of f32: 2 lines; where lines are not fetched ahead rows may be longer that are walked again, four of them in
  // half of L1.
  EXPECT_EQ(tiers[0].lower.longest_row_again, 512);
  EXPECT_EQ(tiers[1].lower.longest_row_once, 32);
  EXPECT_EQ(tiers[1].lower.longest_row_again, 32);
  // In the code as well.
  const auto listed = [&](size_t tier, std::string_view what) {
    const auto code = maker.make(body("N", 41), tiers[tier]);
    EXPECT_TRUE(code.ok());
    return print(code->kernel).find(what) != std::string::npos;
  };
  EXPECT_FALSE(listed(0, "Prefetch"));
  EXPECT_TRUE(listed(1, "PrefetchRead f32") && listed(1, "PrefetchWrite f32"));
  EXPECT_TRUE(listed(2, "PrefetchRead f32") && !listed(2, "PrefetchWrite f32"));
  EXPECT_TRUE(listed(2, " of 3 least 16384"));
  EXPECT_FALSE(listed(1, " of 3 least 16384"));
  EXPECT_FALSE(listed(2, "LoadHalves")) << "no width is stated";
  const snippet::Body rows = body_of("f32[N,M]", "%a = Constant {value = dense<i64[1]: 1>}\n  %y = ReduceSum %x, %a");
  const auto longest = [&](size_t tier) {
    const auto code = maker.make(rows, maker.tiers_of(rows)[tier]);
    EXPECT_TRUE(code.ok());
    for (const snippet::Param& param : code->kernel.params)
      if (param.longest > 0) return param.longest;
    return 0;
  };
  EXPECT_EQ(longest(0), 256);
  EXPECT_EQ(longest(1), 32);
}

// First walks along what comes from a memory that states the width of loads, but not where functions are waited for.
TEST_P(Forms, LoadAsWideAsTheirMemorySays) {
  TargetDescription stated = target();
  stated.memories[2].load_bytes = 32;
  const FormMaker maker(stated, **jitter_table(), {});
  const auto loads = [&](const snippet::Body& of, std::string_view form) {
    const std::vector<FormMaker::Tier> tiers = maker.tiers_of(of);
    const auto tier = std::ranges::find(tiers, form, &FormMaker::Tier::suffix);
    EXPECT_NE(tier, tiers.end()) << form;
    const auto code = maker.make(of, *tier);
    EXPECT_TRUE(code.ok());
    const std::string text = print(code->kernel);
    const auto has = [&](std::string_view what) { return text.find(what) != std::string::npos; };
    return std::pair(has("= LoadHalves f32"), has("= Load f32") || has("Memory f32"));
  };
  using Found = std::pair<bool, bool>;
  const bool halves = GetParam() == Isa::avx512;
  const snippet::Body costly = body_of("f32[N]", "%y = Sigmoid %x"), cheap = body_of("f32[N]", "%y = Sign %x");
  EXPECT_EQ(loads(cheap, ".prefetching"), Found(false, true)) << "from the last-level cache";
  EXPECT_EQ(loads(cheap, ".streaming"), Found(halves, !halves));
  EXPECT_EQ(loads(costly, ".streaming"), Found(false, true));
  const snippet::Body again =
      body_of("f32[N,512]", "%c = Constant {value = dense<f32[1]: 3.0>}\n  %y = LayerNormalization %x, %c {axis = -1}");
  EXPECT_EQ(loads(again, ".streaming"), Found(halves, true)) << "the second walk finds the row in a cache";
}

// Whole vectors, then the tail once.
TEST_P(Forms, CyclesOfACallCountTripsOfLoops) {
  const FormMaker maker(target(), **jitter_table(), {});
  const int lanes = lanes_of(GetParam(), kF32);
  snippet::LinearKernel kernel = testing::parsed(testing::row_kernel(
      lanes, testing::load("f32") + testing::load("f32").replace(4, 3, "%11") + "    %20:f32 = Div %10, %11\n"));
  const auto cycles = [&](int64_t vectors, int64_t more) {
    kernel.extents = {vectors * lanes + more};
    return *maker.cycles_of_call(kernel);
  };
  const double vector = cycles(1, 0) - cycles(0, 0), tail = cycles(0, 1) - cycles(0, 0);
  EXPECT_GT(vector, 5) << "two loads, a division, a store and the loop's end";
  EXPECT_GT(tail, 5);
  EXPECT_EQ(cycles(7, 0), cycles(0, 0) + 7 * vector);
  EXPECT_EQ(cycles(7, 3), cycles(7, 0) + tail);
  kernel.extents = {-1};
  EXPECT_EQ(maker.cycles_of_call(kernel), std::nullopt);
}

// Whether several vectors or rows go at once, rows are one stretch, or a loop walks several stretches of one.
TEST_P(Forms, CyclesOfACallGoWithItsElements) {
  const FormMaker maker(target(), **jitter_table(), {});
  const auto per_element = [&](std::string_view dims, int64_t elements, std::string_view operators) {
    const snippet::Body body = body_of(str("f32[", dims, "]"), operators);
    double least = INFINITY, most = 0;
    for (const FormMaker::Tier& tier : maker.tiers_of(body)) {
      const auto form = maker.make(body, tier);
      const double cycles = *maker.cycles_of_call(form->kernel) / static_cast<double>(elements);
      least = std::min(least, cycles), most = std::max(most, cycles);
    }
    return std::pair(least, most);
  };
  const auto expect_alike = [&](std::pair<double, double> one, std::pair<double, double> other, std::string_view what) {
    EXPECT_GT(other.first, 0.7 * one.first) << what;
    EXPECT_LT(other.second, 2.5 * one.second) << what << ", where sums are merged, too";
  };
  const std::string_view norm = "%y = MeanVarianceNormalization %x {axes = [1]}";
  for (const std::string_view op : {std::string_view("%y = Abs %x"), {"%y = Softmax %x {axis = -1}"}, norm})
    for (const auto& [rows, columns] : {std::pair(8, 1024), {7, 1024}, {400, 1024}, {2, 500'000}})
      expect_alike(per_element("4,1024", 4096, op), per_element(str(rows, ",", columns), rows * columns, op), op);
  const std::string_view groups = R"(%s = Constant {value = dense<f32[8]: 1, 2, 3, 4, 5, 6, 7, 8>}
%y = GroupNormalization %x, %s, %s {num_groups = 1, epsilon = 1e-5})";
  expect_alike(per_element("4,1024", 4096, norm), per_element("2,8,1024", 16384, groups), "a stretch");
}

// A table takes the place of the function and of what stands before it. Calls that join short rows do not run the tail
// of each.
TEST_P(Forms, CyclesOfACallAreThoseOfTheFinishedKernel) {
  Compiler compiler(target(), **jitter_table());
  const auto cycles = [&](std::string_view type, std::string_view operators) {
    const auto made = *compiler.compile(body_of(type, operators));
    double elements = 1;
    for (const snippet::BodyDim& dim : made->body.dims)
      elements *= dim.extent.is_constant() ? static_cast<double>(dim.extent.constant()) : 0;
    return std::pair(compiler.cycles_of_call(*made), made->cycles_per_element * elements);
  };
  const auto [kernel, graph] = cycles("f32[8,512]", R"(%h = Constant {value = dense<f32[]: 0.70710678>}
%o = Constant {value = dense<f32[]: 1>}
%a = Mul %x, %h
%b = Erf %a
%c = Add %b, %o
%y = Mul %x, %c)");
  EXPECT_LT(kernel, 0.8 * graph);
  const auto [open, none] = cycles("f32[N,512]", "%y = Abs %x");
  EXPECT_EQ(open, 0);
  const auto [joined, same] = cycles("f32[4096,3]", R"(%w = Constant {value = dense<f32[3]: 1, 2, 3>}
%y = Mul %x, %w)");
  EXPECT_EQ(joined, same);
}

INSTANTIATE_TEST_SUITE_P(Both, Forms, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
