// How forms traverse rows: in merged sweeps, several short ones at once, alone, and with which prefetch distance.
#include <tuple>

#include "x86/forms_support.hpp"

namespace tenon::x86 {
namespace {

using FormsRows = Forms;

// Sweeps are merged if a reduction exceeds L2, according to known extents or those of a call.
TEST_P(FormsRows, SweepsAreMergedOfLongStretches) {
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

// Also within the last-level cache, for rows that L2 does not hold, if lines are prefetched from there.
TEST_P(FormsRows, SweepsAreMergedWhereTheLastLevelAnswersSlowly) {
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

// Sums down columns: short rows are joined, in the first form if known extents require it, otherwise in separate forms,
// which are made for the first call with such rows.
TEST_P(FormsRows, ShortRowsAreJoined) {
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

// With 512 bits, rows that fit into half a vector use half vectors; columns and rows of unknown length use whole ones.
TEST_P(FormsRows, ShortRowsGoInHalfVectors) {
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

// Short rows with arbitrary alignment are prefetched as far ahead as others, but stored to the caches.
TEST_P(FormsRows, ShortRowsThatBeginAnywhereAreFetchedFromFar) {
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

// Rows with arbitrary alignment have a form of their own. If nothing is known about rows, it is an additional one; if
// they are known, there is only the matching one.
TEST_P(FormsRows, RowsThatBeginAnywhereHaveTheirOwn) {
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

// If nothing is prefetched, rows that L1 holds are processed alone instead of skewed, and only longer ones are
// prefetched together with another, into L2.
TEST_P(FormsRows, RowsGoAloneWhereNothingIsFetchedAhead) {
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
  // Only rows of whole pages of 4 KB. For rows of one page, L1 holds two rows and the values kept in y. Values kept
  // elsewhere take one row.
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
  // A row that does not fit into L1 together with its powers fetches the next row into L2.
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

// If the target states that lines are prefetched into L2, so are those of all row orders beyond the caches, and no
// others. Rows with shared operands that are reduced twice are skewed if L1 holds them, and from an eighth of L2 on. In
// between, the sweep that stores prefetches the next row.
TEST_P(FormsRows, RowsAreFetchedIntoTheSecondLevel) {
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
      if (tier.row_order != RowOrder::as_lowered) made = tier.suffix;  // a call uses the last one that serves it
    }
    return made;
  };
  const std::string_view norm = "%y = LayerNormalization %x, %w, %b {axis = -1}",
                         once = "%y = RMSNormalization %x, %w {axis = -1}";
  const std::string skewed = ".streaming.skewed", fetching = ".streaming.alone.fetching";
  // Per element 4 bytes each of a row, of two shared operands, and of the kept values.
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
  // If L2 does not hold two rows in addition to the shared operands, several rows are stored together.
  constexpr int64_t kTwoRows = kSecond / (kElement + 4) / 16 * 16;
  EXPECT_EQ(orders(norm, kTwoRows), merged);
  EXPECT_EQ(orders(norm, kTwoRows + 16), ".streaming.together");
  EXPECT_EQ(orders(norm, kTwoRows + 1), GetParam() == Isa::avx512 ? merged + ".lines" : "") << "begins anywhere";
  EXPECT_EQ(orders("%t = Add %x, %z\n%y = LayerNormalization %t, %w, %b {axis = -1}", kTwoRows + 16), merged);
  EXPECT_EQ(orders(once, kMost + 16), skewed) << "folded once";
  // Per element 4 bytes each of three rows and of the kept values of one. avx2 has no registers for three sweeps.
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

// If L2 does not hold two rows of more than half of L1, rows are processed alone up to the size of L1.
TEST_P(FormsRows, RowsGoAloneAsFarAsTheFirstLevelWhereTheSecondHoldsNoTwo) {
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
  // L1 holds 4096 elements together with their kept values.
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

// Without the order one_by_one, lowering would process several rows of 160 elements at a time.
TEST_P(FormsRows, NoOtherRowGoesWithOneThatGoesAlone) {
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

// A mask of keys is the same for consecutive rows; a mask of queries and keys is not.
TEST_P(FormsRows, RowsGoAloneBesideWhatRowsBehindOneAnotherShare) {
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

INSTANTIATE_TEST_SUITE_P(Both, FormsRows, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
