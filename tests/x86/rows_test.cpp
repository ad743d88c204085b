// Rows beyond the caches with several sweeps: which sweep prefetches the next row, and that all forms give the same
// bits.
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>
#include <support_lib/guarded.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <random>

#include <tenon/ir/text.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/lower/lower.hpp>
#include <tenon/snippet/tokenize/tokenize.hpp>

#include "x86/compiler.hpp"
#include "x86/forms/forms.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::GuardAt;
using tenon::testing::Guarded;

int count(const std::string& text, std::string_view what) {
  int found = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

// d = x - sum(x); y = (d - min(d)) weight: three sweeps over a row, each of single vectors and a tail.
std::string text_of(NextRow when) {
  snippet::test::BodyBuilder build("rows", "kr");
  const snippet::ValueId x = build.input(3), weight = build.input(2);
  const snippet::ValueId d = build.op("Sub", {x, build.reduce("ReduceSum", x)});
  build.output(build.op("Mul", {build.op("Sub", {d, build.reduce("ReduceMin", d)}), weight}));
  auto kernel = snippet::lower(build.take(), {.lanes = 32, .unroll = 1, .rows = 1});
  EXPECT_TRUE(kernel.ok());
  const NextRows next = fetch_next_rows(*kernel, when);
  EXPECT_EQ(next.fetched.size(), when == NextRow::none ? 0u : 1u);
  EXPECT_EQ(next.standing.size(), when == NextRow::none ? 0u : 1u) << "the weights";
  EXPECT_TRUE(snippet::verify(*kernel).ok()) << print(*kernel);
  return print(*kernel);
}

// The part of `text` from the beginning of loop `loop` to its end.
std::string loop_of(const std::string& text, int loop) {
  const size_t begin = text.find(str("loop ", loop, " "));
  return text.substr(begin, text.find("\n    }\n", begin) - begin);
}

TEST(Rows, TheSweepThatIsAskedForFetchesTheNextRow) {
  constexpr int kSums = 1, kLeast = 3, kResults = 5;  // the loops over vectors, between tails
  EXPECT_EQ(count(text_of(NextRow::none), "Prefetch"), 0);
  for (const NextRow when :
       {NextRow::before_last, NextRow::before_last_to_second, NextRow::last, NextRow::last_to_second}) {
    const std::string text = text_of(when);
    const bool early = when == NextRow::before_last || when == NextRow::before_last_to_second;
    EXPECT_EQ(count(text, "PrefetchRead"), 2) << "two lines of 32 floats: " << text;
    EXPECT_EQ(count(loop_of(text, kSums), "Prefetch"), 0) << text;
    EXPECT_EQ(count(loop_of(text, kLeast), "Prefetch"), early ? 2 : 0) << text;
    EXPECT_EQ(count(loop_of(text, kResults), "Prefetch"), early ? 0 : 2) << text;
    EXPECT_EQ(count(text, "second = 1"), is_to_second(when) ? 2 : 0) << text;
  }
}

// y = (x - sum(x)) w for groups. The sum traverses channels and pixels as one dim; the sweep that stores goes channel
// by channel.
TEST(Rows, WhatIsStoredChannelByChannelFetchesTheNextGroup) {
  snippet::test::BodyBuilder build("groups", "krr");
  const snippet::ValueId x = build.input(7), weight = build.input(2);
  build.output(build.op("Mul", {build.op("Sub", {x, build.reduce("ReduceSum", x)}), weight}));
  const auto lowered = snippet::lower(build.take(), {.lanes = 16, .unroll = 1, .rows = 1});
  ASSERT_TRUE(lowered.ok());
  constexpr int kSums = 1, kResults = 4;  // the loops over vectors, between tails and the loop over channels
  for (const NextRow when : {NextRow::last, NextRow::last_to_second}) {
    snippet::LinearKernel kernel = *lowered;
    EXPECT_EQ(fetch_next_rows(kernel, when).fetched.size(), 1u);
    ASSERT_TRUE(snippet::verify(kernel).ok()) << print(kernel);
    const std::string text = print(kernel);
    EXPECT_EQ(count(text, "PrefetchRead"), 1) << "one line of 16 floats: " << text;
    EXPECT_EQ(count(loop_of(text, kSums), "Prefetch"), when == NextRow::last ? 1 : 0) << text;
    EXPECT_EQ(count(loop_of(text, kResults), "Prefetch"), when == NextRow::last ? 0 : 1) << text;
  }
}

// Caches so small that even short rows are of all size classes, and that calls with a few rows are large.
constexpr size_t kFirst = 2'000, kSecond = 8'000, kThird = 32'000;
// `times`: factor for all sizes.
TargetDescription with_tiny_caches(Isa isa, size_t times = 1) {
  TargetDescription target = testing::target_of(isa);
  target.memories = {
      {.name = "l1", .size_bytes = times * kFirst},
      {.name = "l2", .size_bytes = times * kSecond},
      {.name = "l3", .size_bytes = times * kThird, .row_lines = 16},
      {.name = "host", .size_bytes = 1 << 30, .prefetch_reads = 32, .streams = 4, .most_streams = 10, .row_lines = 2}};
  return target;
}

TargetDescription unfetched(TargetDescription target) {
  for (MemorySpace& memory : target.memories) memory.prefetch_reads = memory.prefetch_writes = 0;
  return target;
}

struct Case {
  std::string_view name, inputs, operators;
};
constexpr Case kSoftmax{"softmax", "%x: f32[R,C]", "%y = Softmax %x {axis = -1}"};
constexpr Case kNorm{"norm", "%x: f32[R,C], %s: f32[C], %b: f32[C]",
                     "%y = LayerNormalization %x, %s, %b {axis = -1, epsilon = 1e-5}"};
constexpr Case kSkipNorm{"skip norm", "%x: f32[R,C], %z: f32[R,C], %s: f32[C], %b: f32[C]",
                         "%t = Add %x, %z\n%y = LayerNormalization %t, %s, %b {axis = -1, epsilon = 1e-5}"};
constexpr Case kRootMeanSquare{"RMS norm", "%x: f32[R,C], %s: f32[C]", "%y = RMSNormalization %x, %s {axis = -1}"};
constexpr Case kSumOfRows{"sum of rows", "%x: f32[R,C]",
                          "%a = Constant {value = dense<i64[1]: 1>}\n%y = ReduceSum %x, %a"};

constexpr Case kGroups{"group norm", "%x: f32[R,4,C], %s: f32[4], %b: f32[4]",
                       "%y = GroupNormalization %x, %s, %b {num_groups = 2, epsilon = 1e-5}"};

class RowForms : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }

  snippet::Body body_of(const Case& one, const std::string& rows, const std::string& columns) const {
    std::string inputs(one.inputs);
    for (const auto& [letter, extent] : {std::pair{'R', rows}, {'C', columns}})
      for (size_t at = inputs.find(letter); at != inputs.npos; at = inputs.find(letter, at + extent.size()))
        inputs.replace(at, 1, extent);
    auto graph = parse_graph(str("graph @g(", inputs, ") -> %y {\n", one.operators, "\n}"));
    TENON_CHECK(graph.ok(), graph.ok() ? "" : graph.error().to_string());
    const Compiler compiler(target_, **jitter_table());
    snippet::TokenizeOptions options;
    options.can_emit = [&](const codegen::Signature& s) { return compiler.can_emit(s); };
    const auto made = snippet::tokenize_snippets(**graph, options);
    TENON_CHECK(made.ok() && *made == 1, one.name, " is no snippet");
    for (const Op& op : (*graph)->body())
      if (isa<snippet::Subgraph>(op)) return *snippet::make_body(op);
    TENON_CHECK(false, "no snippet");
  }

  // y of one form for inputs of `extents`, all next to guard pages.
  std::vector<float> run(const irgen::SnippetForm& form, const snippet::Body& body, const Dims& extents,
                         unsigned seed) const {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto plan = snippet::CallPlan::make_for_extents(body, form.kernel, extents);
    TENON_CHECK(plan.ok(), plan.ok() ? "" : plan.error().to_string());
    std::deque<Guarded<std::byte>> buffers;
    std::vector<void*> addresses;
    for (size_t i = 0; i <= body.inputs.size(); ++i) {
      const bool is_input = i < body.inputs.size();
      Guarded<std::byte>& buffer = buffers.emplace_back(plan->port_bytes(i), is_input ? GuardAt::end : GuardAt::lines);
      std::ranges::fill(buffer.values(), std::byte{0xa5});
      for (size_t at = 0; is_input && at < buffer.values().size(); at += sizeof(float)) {
        const float x = uniform(random);
        std::memcpy(buffer.data() + at, &x, sizeof x);
      }
      addresses.push_back(buffer.data());
    }
    Guarded<std::byte> scratch(plan->scratch_bytes(), GuardAt::lines);
    std::vector<int64_t> words(plan->words());
    plan->fill(words, addresses, scratch.data());
    form.run(words.data());
    const auto* y = reinterpret_cast<const float*>(buffers.back().data());
    return {y, y + buffers.back().values().size() / sizeof(float)};
  }

  const TargetDescription target_ = with_tiny_caches(GetParam());
  const FormMaker maker_{target_, **jitter_table(), {}};
  const FormMaker larger_{with_tiny_caches(GetParam(), 16), **jitter_table(), {}};
  const FormMaker unfetched_{unfetched(with_tiny_caches(GetParam(), 16)), **jitter_table(), {}};
};

// Tests all forms, also outside the lengths of rows that they serve. Known extents give constants in the code where
// unknown ones give words.
TEST_P(RowForms, AllGiveTheSameBits) {
  for (const Case& one : {kSoftmax, kNorm, kSkipNorm, kRootMeanSquare}) {
    for (const int64_t columns : {16, 48, 64, 176, 1040}) {
      const snippet::Body open = body_of(one, "R", "C"), known = body_of(one, "5", str(columns));
      std::map<int64_t, std::vector<float>> wanted;  // of the first form, by the number of rows
      size_t tried = 0;
      for (const snippet::Body* body : {&open, &known}) {
        std::vector<FormMaker::Tier> tiers = maker_.tiers_of(open);
        std::ranges::copy_if(larger_.tiers_of(open), std::back_inserter(tiers),
                             [](const FormMaker::Tier& tier) { return is_skewed(tier.row_order); });
        std::ranges::copy_if(unfetched_.tiers_of(open), std::back_inserter(tiers),
                             [](const FormMaker::Tier& tier) { return tier.row_order == RowOrder::one_by_one; });
        for (const FormMaker::Tier& tier : tiers) {
          if (tier.lower.merge_sweeps) continue;  // merged sums have different bits (merged_test.cpp)
          const auto form = maker_.make(*body, tier);
          ASSERT_TRUE(form.ok()) << form.error().to_string();
          for (const int64_t rows : {1, 5}) {
            if (body == &known && rows != 5) continue;
            const std::vector<float> made = run(*form, *body, {rows, columns}, 7);
            const std::vector<float>& first = wanted.try_emplace(rows, made).first->second;
            ASSERT_EQ(std::memcmp(made.data(), first.data(), made.size() * sizeof(float)), 0)
                << one.name << tier.suffix << " of " << rows << " x " << columns;
            ++tried;
          }
        }
      }
      EXPECT_GT(tried, 15u);
    }
  }
}

// Merged sums do not depend on the grouping of rows, either.
TEST_P(RowForms, AllThatMergeGiveTheSameBits) {
  TargetDescription to_second = with_tiny_caches(GetParam(), 16);
  to_second.memories.back().prefetch_level = 2;
  const FormMaker maker(to_second, **jitter_table(), {});
  const snippet::Body body = body_of(kNorm, "R", "C");
  for (const int64_t columns : {16, 208, 1040}) {
    for (const int64_t rows : {1, 4, 7}) {
      std::map<std::string, std::vector<float>> made;
      for (const FormMaker::Tier& tier : maker.tiers_of(body)) {
        if (!tier.lower.merge_sweeps || tier.passes.row_begins != RowBegins::at_lines) continue;
        const auto form = maker.make(body, tier);
        ASSERT_TRUE(form.ok()) << form.error().to_string();
        made[tier.suffix] = run(*form, body, {rows, columns}, 7);
      }
      ASSERT_TRUE(made.contains(".streaming.together") && made.contains(".streaming.skewed.merged"));
      const std::vector<float>& first = made.begin()->second;
      for (const auto& [suffix, y] : made)
        ASSERT_EQ(std::memcmp(y.data(), first.data(), y.size() * sizeof(float)), 0)
            << suffix << " of " << rows << " x " << columns;
    }
  }
}

// Reductions of few rows down columns, in the caches and beyond them, give the same bits as the forms for any number of
// rows. For whole rows see lower_test.cpp.
TEST_P(RowForms, OfFewRowsGiveTheSameBits) {
  for (const std::string_view op : {"ReduceSum", "ReduceMax", "ReduceMean"}) {
    const std::string operators = str("%a = Constant {value = dense<i64[1]: 0>}\n%y = ", op, " %x, %a {keepdims = 0}");
    const Case one{op.data(), "%x: f32[R,C]", operators.c_str()};
    const snippet::Body body = body_of(one, "R", "C");
    int few = 0;
    for (const int64_t columns : {32, 48, 256, 512, 1040, 4000}) {
      for (const int64_t rows : {1, 2, 5, 10}) {
        std::vector<float> first;
        for (const FormMaker::Tier& tier : maker_.tiers_of(body)) {
          if (tier.lower.whole_rows) continue;
          const auto form = maker_.make(body, tier);
          ASSERT_TRUE(form.ok()) << form.error().to_string();
          const std::vector<float> made = run(*form, body, {rows, columns}, 7);
          if (first.empty()) first = made;
          ASSERT_EQ(std::memcmp(made.data(), first.data(), made.size() * sizeof(float)), 0)
              << op << tier.suffix << " of " << rows << " x " << columns;
          few += tier.calls.most_folded == 10;
        }
      }
    }
    EXPECT_EQ(few, 6 * 4 * 2) << "in the caches and past them";
  }
}

// The two channels of a group form a row. Each form states how long the planes of its rows may be.
TEST_P(RowForms, OfGroupsGiveTheSameBits) {
  for (const int64_t columns : {16, 49, 64, 128, 208, 512, 576}) {
    int skewed = 0;
    const snippet::Body open = body_of(kGroups, "R", "C"), known = body_of(kGroups, "5", str(columns));
    std::map<int64_t, std::vector<float>> wanted;  // of the first form, by the number of rows
    for (const snippet::Body* body : {&open, &known}) {
      for (const FormMaker::Tier& tier : maker_.tiers_of(open)) {
        if (tier.lower.merge_sweeps || !tier.calls.holds_rows(2 * columns, columns)) continue;
        const auto form = maker_.make(*body, tier);
        ASSERT_TRUE(form.ok()) << form.error().to_string();
        EXPECT_EQ(form->kernel.stretch, 2);
        for (const int64_t rows : {1, 5}) {
          if ((body == &known && rows != 5) || (form->non_temporal && columns % 16 != 0)) continue;
          const std::vector<float> made = run(*form, *body, {rows, 2, 2, columns}, 7);
          const std::vector<float>& first = wanted.try_emplace(rows, made).first->second;
          ASSERT_EQ(std::memcmp(made.data(), first.data(), made.size() * sizeof(float)), 0)
              << tier.suffix << " of " << rows << " x " << columns;
          skewed += form->kernel.skewed;
        }
      }
    }
    EXPECT_EQ(skewed > 0, columns == 128 || columns == 512 || columns == 576) << columns;
  }
}

// Forms for as few rows as one loop processes together exist only for reductions down columns, if rows have at least
// the columns of a tile, and no output varies over the reduced rows.
TEST_P(RowForms, OfFewRowsAreReductionsAlone) {
  const auto few = [&](std::string_view operators, const std::string& rows, const std::string& columns) {
    const std::string text(operators);
    int found = 0;
    for (const FormMaker::Tier& tier :
         maker_.tiers_of(body_of({"columns", "%x: f32[R,C]", text.c_str()}, rows, columns))) {
      if (tier.suffix.find(".few") == tier.suffix.npos && tier.calls.most_folded != 10) continue;
      ++found;
      EXPECT_FALSE(tier.lower.whole_rows);
      EXPECT_EQ(tier.calls.rows.least, 16 * lanes_of(GetParam(), kF32));
    }
    return found;
  };
  constexpr std::string_view kSum = "%a = Constant {value = dense<i64[1]: 0>}\n%y = ReduceSum %x, %a";
  EXPECT_EQ(few(kSum, "R", "C"), 2);
  EXPECT_EQ(few(kSum, "10", "100000"), 2);
  EXPECT_EQ(few(kSum, "11", "100000"), 0);
  EXPECT_EQ(few(kSum, "R", "100"), lanes_of(GetParam(), kF32) * 16 <= 100 ? 2 : 0);
  EXPECT_EQ(few("%y = Softmax %x {axis = 0}", "R", "C"), 0);
}

// Forms are chosen by the nearest cache that holds two rows and the kept values.
TEST_P(RowForms, FollowFromTheLengthOfRows) {
  using Range = std::tuple<std::string, int64_t, int64_t, NextRow>;
  const auto ranges = [&](const Case& one) {
    std::vector<Range> found;
    for (const FormMaker::Tier& tier : maker_.tiers_of(body_of(one, "R", "C")))
      if (tier.calls.rows != irgen::RowRange{} && tier.passes.row_begins == RowBegins::at_lines &&
          tier.passes.stream_stores)
        found.emplace_back(tier.suffix.substr(10), tier.calls.rows.least, tier.calls.rows.most, tier.passes.next_row);
    return found;
  };
  const NextRow early = NextRow::before_last, late = NextRow::last;
  const auto beyond = [](int64_t least, const char* suffix = ".merged") {
    return Range(suffix, least, std::numeric_limits<int64_t>::max(), NextRow::none);
  };
  // Two rows of x and one of exponentials: 12 bytes per element. Rows of up to 32 elements are processed together with
  // others, and for twice as many there is no gain. Rows are skewed from 6 lines on with exponentials, from 9 without.
  std::vector<Range> softmax = {{".l1", 65, 166, early},          {".l2", 167, 333, early},
                                {".l2.again", 334, 666, early},   {".l3", 667, 2000, late},
                                {".l3.joined", 2001, 2666, late}, beyond(2667),
                                {".skewed", 96, 2000, late}};
  if (GetParam() == Isa::avx512) softmax.emplace_back(".skewed.twice", 96, 500, NextRow::none);
  EXPECT_EQ(ranges(kSoftmax), softmax);
  // Two rows of x and z, the factors and the sums: 28 bytes per element; 24 if sums are recomputed. 36 with two rows of
  // factors, which is also assumed for a single row, where it is unknown what all rows share.
  EXPECT_EQ(ranges(kSkipNorm), (std::vector<Range>{{".l1", 65, 71, early},
                                                   {".l2", 72, 166, late},
                                                   {".l2.again", 167, 333, late},
                                                   {".l3", 334, 500, late},
                                                   {".l3.joined", 501, 888, late},
                                                   beyond(889),
                                                   beyond(501, ".skewed.merged")}))
      << "skewed rows of 144, with all that they share, would not fit L1";
  EXPECT_EQ(ranges(kRootMeanSquare).back(), beyond(144, ".skewed"));
  // Rows of one tensor fit into an L1 of 32,000 bytes: 16 bytes per element.
  const std::vector<FormMaker::Tier> tiers = larger_.tiers_of(body_of(kNorm, "R", "C"));
  const auto skewed = std::ranges::find_if(tiers, [](const auto& tier) { return is_skewed(tier.row_order); });
  ASSERT_NE(skewed, tiers.end());
  EXPECT_EQ(skewed->suffix, ".streaming.skewed");
  EXPECT_EQ(skewed->calls.rows.most, 2000);
  // Three rows of x and one of powers in an L2 of 128,000.
  std::vector<FormMaker::Tier> twice = larger_.tiers_of(body_of(kSoftmax, "R", "C"));
  std::erase_if(twice, [](const auto& tier) {
    return tier.row_order != RowOrder::skewed_twice || tier.passes.row_begins != RowBegins::at_lines;
  });
  ASSERT_EQ(twice.size(), GetParam() == Isa::avx512 ? 1u : 0u) << "16 registers are too few for three walks";
  for (const FormMaker::Tier& tier : twice) {
    EXPECT_EQ(tier.calls.rows.least, 96);
    EXPECT_TRUE(tier.calls.several_rows);
    EXPECT_EQ(tier.calls.rows.most, 8000);
    const auto form = larger_.make(body_of(kSoftmax, "R", "C"), tier);
    ASSERT_TRUE(form.ok()) << form.error().to_string();
    EXPECT_TRUE(form->kernel.skewed_twice);
    EXPECT_LT(form->least_row, 1024);
  }
  // The same for an L1 of 32,000 bytes if the target states no prefetching.
  for (const FormMaker::Tier& tier : unfetched_.tiers_of(body_of(kSoftmax, "R", "C")))
    EXPECT_TRUE(tier.row_order != RowOrder::skewed_twice || tier.calls.rows.most == 2000)
        << tier.suffix << ' ' << tier.calls.rows.most;
  // For two tensors only rows of whole pages, which would wait for one another if they were skewed: with 20 bytes per
  // element at least half of L1, and at most half of L2.
  const auto fetched = [&](const Case& one) {
    std::vector<int64_t> found;
    for (const int64_t columns : {512, 801, 1024, 1280, 1536, 2048, 3072, 4096})
      for (const FormMaker::Tier& tier : unfetched_.tiers_of(body_of(one, "R", "C")))
        if (tier.passes.next_row == NextRow::last_to_second && tier.passes.row_begins == RowBegins::at_lines &&
            tier.calls.holds_rows(columns, columns))
          found.push_back(columns);
    return found;
  };
  EXPECT_EQ(fetched(kSkipNorm), (std::vector<int64_t>{1024, 2048, 3072}));
  EXPECT_EQ(fetched(kNorm), (std::vector<int64_t>{1024, 1280, 1536, 2048, 3072})) << "one tensor, of 16 bytes";
  const auto other = larger_.make(body_of(kNorm, "R", "C"), twice.empty() ? *skewed : twice.front());
  ASSERT_TRUE(other.ok()) << other.error().to_string();
  EXPECT_EQ(other->least_row == std::numeric_limits<int64_t>::max(), !twice.empty()) << "its first walk keeps x";
  EXPECT_TRUE(ranges(kSumOfRows).empty()) << "one sweep";
  // With known extents there is only the form for such rows, and one for outputs that are not aligned.
  const auto known = [&](const std::string& columns, size_t forms = 2) {
    const std::vector<FormMaker::Tier> tiers = maker_.tiers_of(body_of(kSoftmax, "1000", columns));
    EXPECT_EQ(tiers.size(), forms);
    return tiers.back().suffix;
  };
  const bool avx512 = GetParam() == Isa::avx512;
  EXPECT_EQ(known("80"), ".streaming.l1");
  EXPECT_EQ(known("96", avx512 ? 4 : 3), avx512 ? ".streaming.skewed.twice" : ".streaming.skewed");
  EXPECT_EQ(known("1024", 3), ".streaming.skewed");
  EXPECT_EQ(known("2048"), ".streaming.l3.joined");
  EXPECT_EQ(known("4096", 3), ".streaming.merged") << "and .streaming where sweeps cannot be merged";
  EXPECT_EQ(known("16"), ".streaming");
  // Rows that may be skewed have no other form except the one for bodies that lowering does not skew.
  std::string suffixes;
  for (const FormMaker::Tier& tier : maker_.tiers_of(body_of(kSkipNorm, "1000", "1024"))) suffixes += tier.suffix + " ";
  EXPECT_EQ(suffixes, " .streaming .streaming.skewed.merged ");
  for (const FormMaker::Tier& tier : maker_.tiers_of(body_of(kSkipNorm, "1000", "1021")))
    EXPECT_FALSE(is_skewed(tier.row_order) && tier.suffix.ends_with("heads")) << tier.suffix;
  // Rows with arbitrary alignment are stored by whole lines, which pays from 14, 32 and 64 lines on; not with 256 bits,
  // which are less than a line.
  for (const auto& [one, least] : {std::pair{kSoftmax, 224}, std::pair{kSkipNorm, 512}, std::pair{kNorm, 1024}}) {
    std::vector<FormMaker::Tier> lines = larger_.tiers_of(body_of(one, "R", "C"));
    std::erase_if(lines, [](const auto& tier) {
      return !is_skewed(tier.row_order) || tier.passes.row_begins == RowBegins::at_lines;
    });
    ASSERT_EQ(lines.size(), avx512 ? 2u : 0u) << one.name;
    for (const FormMaker::Tier& tier : lines)
      EXPECT_TRUE(tier.passes.row_begins == RowBegins::turned && tier.suffix.ends_with(".lines")) << tier.suffix;
    EXPECT_TRUE(lines.empty() || lines.front().calls.rows.least == least);
  }
}

// Sweeps keep nothing in outputs, so all outputs are stored non-temporally. Inputs are prefetched one row ahead.
TEST_P(RowForms, StoreOnceAndFetchTheNextRow) {
  const std::vector<FormMaker::Tier> tiers = maker_.tiers_of(body_of(kSoftmax, "R", "C"));
  const auto tier = std::ranges::find(tiers, ".streaming.l1", &FormMaker::Tier::suffix);
  ASSERT_NE(tier, tiers.end());
  const auto form = maker_.make(body_of(kSoftmax, "1000", "160"), *tier);
  ASSERT_TRUE(form.ok());
  const std::string text = print(form->kernel);
  EXPECT_TRUE(form->non_temporal) << text;
  EXPECT_EQ(form->kernel.scratch.size(), 1u) << text;
  // 640 bytes ahead in the sweep of the exponentials, and 32 lines ahead in that of the maxima.
  EXPECT_NE(text.find("+ 640]"), text.npos) << text;
  EXPECT_GT(count(text, "PrefetchRead"), 2) << text;
}

INSTANTIATE_TEST_SUITE_P(Both, RowForms, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
