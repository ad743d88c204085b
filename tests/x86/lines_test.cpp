// The forms that store by whole lines, and those that keep rows in the output, on the machine, with any alignment of
// rows. Memory around the output is checked, and the page after it is inaccessible.
#include <gtest/gtest.h>

#include <set>

#include <support_lib/guarded.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/canonical/canonical.hpp>

#include "x86/compiler.hpp"
#include "x86/guarded_graph.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::Guarded;

class Lines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!machine_has(Isa::avx512)) GTEST_SKIP() << "this machine has no avx512";
  }
  void parse(std::string_view operators, std::string_view types) {
    const auto graph = parse_graph(str("graph @g(", types, ") -> %y {\n  ", operators, "\n}"));
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    body_ = *snippet::make_body(*(*graph)->body().output(0)->producer());
  }
  irgen::SnippetForm make(const FormMaker& maker, const FormMaker::Tier& tier) const {
    auto made = maker.make(body_, tier);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    return *std::move(made);
  }

  // y as computed by the form. y begins `at` elements after the beginning of a line; memory around it has the value 77.
  template <class T>
  std::vector<T> call(const irgen::SnippetForm& form, int64_t rows, int64_t columns, std::vector<T>& x,
                      size_t at) const {
    const auto plan = snippet::CallPlan::make_for_extents(body_, form.kernel, {rows, columns});
    EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().to_string());
    const size_t bytes = x.size() * sizeof(T), beyond = bytes / 64 * 64 + 64 - bytes;  // so that memory begins a line
    Guarded<T> memory(x.size() + beyond / sizeof(T) + 64 / sizeof(T));
    std::ranges::fill(memory.values(), T(77));
    std::vector<int64_t> words(plan->words());
    const auto scratch = allocate_aligned(plan->scratch_bytes() + 64);
    EXPECT_TRUE(scratch.ok());
    const snippet::Split split = plan->split(1, 1);
    for (int64_t chunk = 0; chunk < split.chunks(); ++chunk) {
      plan->fill(words, std::vector<void*>{x.data(), memory.data() + at}, scratch->get(), split, chunk);
      form.run(words.data());
    }
    return {memory.values().begin(), memory.values().end()};
  }

  // Compares all forms that store by whole lines or keep rows in the output with the one for tensors in the caches.
  template <class T>
  void check(TargetDescription target = testing::with_small_caches(testing::target_of(Isa::avx512)),
             std::string_view part_of_name = "") {
    names_.clear();
    const FormMaker maker(std::move(target), **jitter_table(), {});
    const std::vector<FormMaker::Tier> tiers = maker.tiers_of(body_);
    const irgen::SnippetForm near = make(maker, tiers.front());
    std::mt19937 random(1);
    for (const FormMaker::Tier& tier : tiers) {
      const bool turned = tier.passes.row_begins == RowBegins::turned;
      if (!turned && !(tier.row_order == RowOrder::one_by_one && tier.passes.row_begins == RowBegins::behind_heads))
        continue;
      if (tier.suffix.find(part_of_name) == std::string::npos) continue;
      const irgen::SnippetForm form = make(maker, tier);
      if (form.least_row == std::numeric_limits<int64_t>::max()) continue;  // the body does not allow it
      EXPECT_TRUE(form.non_temporal && form.any_rows) << print(form.kernel);
      names_.insert(tier.suffix);
      // Forms by whole lines prefetch the edges of later rows for writing.
      const bool edges = turned && form.kernel.blocks.dim < 0;
      EXPECT_EQ(edges, print(form.kernel).find("PrefetchWrite") != std::string::npos && form.kernel.blocks.dim < 0);
      for (const int64_t columns : {0, 1, 15, 16, 17, 35, 127, 128, 257, 511, 512, 513, 1061, 1601}) {
        for (const int64_t rows : {1, 2, 5, 9}) {
          std::vector<T> x(static_cast<size_t>(rows * columns));
          for (T& one : x) one = static_cast<T>(random() % 1000) / 100;
          const std::vector<T> wanted = call<T>(near, rows, columns, x, 0);
          for (size_t at = 0; at <= 64 / sizeof(T); at += 1 + random() % 3) {
            const std::vector<T> got = call<T>(form, rows, columns, x, at);
            for (size_t i = 0; i < got.size(); ++i) {
              const bool inside = i >= at && i < at + x.size();
              const T expected = inside ? wanted[i - at] : T(77);
              ASSERT_NEAR(got[i], expected, inside ? 1e-5 * std::abs(expected) : 0)
                  << tier.suffix << ", " << rows << " rows of " << columns << ", " << at << " elements on, element "
                  << i;
            }
          }
        }
      }
    }
  }

  snippet::Body body_;
  std::set<std::string> names_;  // of the forms
};

TEST_F(Lines, OfAllWidthsAndAddresses) {
  parse("%y = Softmax %x {axis = 0}", "%x: f32[N,M]");
  check<float>();
  EXPECT_GE(names_.size(), 4u) << "blocks of three sizes, and powers that are kept";
  parse("%y = Softmax %x {axis = 0}", "%x: f64[N,M]");
  check<double>();
  EXPECT_GE(names_.size(), 4u);
}

// Rows are skewed: the sweep that stores is fused with reductions.
TEST_F(Lines, OfRowsThatAreFolded) {
  TargetDescription target = testing::with_small_caches(testing::target_of(Isa::avx512));
  target.memories[0].size_bytes = 200'000, target.memories[1].size_bytes = 400'000;  // large enough for rows
  parse("%y = Softmax %x {axis = 1}", "%x: f32[N,M]");
  check<float>(target);
  EXPECT_GE(names_.size(), 2u) << "two walks in one loop, and three";
  parse("%y = Softmax %x {axis = 1}", "%x: f64[N,M]");
  check<double>(target);
  EXPECT_GE(names_.size(), 2u);
  parse("%y = LpNormalization %x {axis = 1}", "%x: f32[N,M]");
  check<float>(target);
  EXPECT_GE(names_.size(), 1u);
}

// If the target states no prefetching, rows are processed one by one.
TEST_F(Lines, OfRowsThatGoAlone) {
  TargetDescription target = testing::with_small_caches(testing::target_of(Isa::avx512));
  target.memories[0].size_bytes = 200'000, target.memories[1].size_bytes = 400'000;
  target.memories[2].prefetch_reads = target.memories[2].prefetch_writes = 0;
  for (const auto& [operators, forms] :
       {std::pair{"%y = MeanVarianceNormalization %x {axes = [1]}",
                  std::set<std::string>{".streaming.alone.lines", ".streaming.alone.fetching.lines"}},
        std::pair{"%y = LpNormalization %x {axis = 1}", std::set<std::string>{".streaming.alone.lines"}},
        std::pair{"%y = Softmax %x {axis = 1}", std::set<std::string>{".streaming.alone.heads"}}}) {
    parse(operators, "%x: f32[N,M]");
    check<float>(target, ".alone");
    EXPECT_EQ(names_, forms) << operators;
    parse(operators, "%x: f64[N,M]");
    check<double>(target, ".alone");
    EXPECT_EQ(names_, forms) << operators;
  }
}

// If rows are known to be aligned to lines, or not to be, only the forms that calls run exist.
TEST_F(Lines, KnownExtentsHaveTheFormsThatCallsRun) {
  const FormMaker maker(testing::with_small_caches(testing::target_of(Isa::avx512)), **jitter_table(), {});
  for (const auto& [columns, lines] : {std::pair{4096, false}, std::pair{4099, true}}) {
    parse("%y = Softmax %x {axis = 0}", str("%x: f32[70,", columns, "]"));
    size_t non_temporal = 0;
    for (const FormMaker::Tier& tier : maker.tiers_of(body_)) {
      if (!tier.passes.stream_stores) continue;
      ++non_temporal;
      EXPECT_EQ(tier.passes.row_begins == RowBegins::turned, lines) << columns << " columns: " << tier.suffix;
    }
    EXPECT_GT(non_temporal, 0u);
  }
}

}  // namespace
}  // namespace tenon::x86
