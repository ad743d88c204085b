// The forms that stage items and rows (plugins/x86/passes/items.cpp), on the machine, with any alignment: memory around
// the output is checked, and the page after it is inaccessible.
#include <gtest/gtest.h>

#include <random>
#include <snippet/bodies.hpp>
#include <support_lib/guarded.hpp>
#include <tenon/snippet/body/params.hpp>

#include "x86/compiler.hpp"
#include "x86/kernel_support.hpp"

namespace tenon::x86 {
namespace {

using snippet::Body;
using snippet::ValueId;
using snippet::test::BodyBuilder;
using tenon::testing::Guarded;

// Caches of realistic sizes, so that the items of these tests are eligible for the form.
TargetDescription target(Isa isa) {
  TargetDescription made = testing::target_of(isa);
  made.memories = {{.name = "l1", .size_bytes = size_t{48} << 10},
                   {.name = "l2", .size_bytes = size_t{1} << 20},
                   {.name = "host", .size_bytes = size_t{1} << 30}};
  return made;
}

snippet::DimSet all_of(std::string_view dims) { return (snippet::DimSet{1} << dims.size()) - 1; }

Body softmax_body(std::string_view dims) {
  BodyBuilder build("softmax", dims);
  const ValueId x = build.input(all_of(dims)), greatest = build.reduce("ReduceMax", x);
  const ValueId e = build.op("Exp", {build.op("Sub", {x, greatest})}), sum = build.reduce("ReduceSum", e);
  build.output(build.op("Div", {e, sum}));
  return build.take();
}

// Normalisation of items of shape [rows, columns] down their columns, with a factor per row.
Body norm_body() {
  BodyBuilder build("norm", "krk");
  const ValueId x = build.input(all_of("krk")), factor = build.input(2);
  const ValueId sum = build.reduce("ReduceSum", build.op("Mul", {x, x}));
  build.output(build.op("Mul", {build.op("Div", {x, build.op("Sqrt", {sum})}), factor}));
  return build.take();
}

bool is_staged(const FormMaker::Tier& tier) { return tier.passes.items || tier.passes.staged_rows; }

class StagedForms : public ::testing::Test {
 protected:
  static irgen::SnippetForm make(const FormMaker& maker, const Body& body, bool staged) {
    for (const FormMaker::Tier& tier : maker.tiers_of(body)) {
      if (is_staged(tier) != staged) continue;
      auto made = maker.make(body, tier);
      EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
      return *std::move(made);
    }
    ADD_FAILURE() << "there is no such form";
    return {};
  }

  // y as computed by the form in up to `parts` pieces. y begins `at` elements after the beginning of a line; memory
  // around it has the value 77.
  template <class T>
  static std::vector<T> call(const Body& body, const irgen::SnippetForm& form, const Dims& extents,
                             std::vector<std::vector<float>>& inputs, size_t count, size_t at, int64_t parts) {
    const auto plan = snippet::CallPlan::make_for_extents(body, form.kernel, extents);
    EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().to_string());
    const size_t bytes = count * sizeof(T), beyond = bytes / 64 * 64 + 64 - bytes;  // so that memory begins a line
    Guarded<T> memory(count + beyond / sizeof(T) + 64 / sizeof(T));
    std::ranges::fill(memory.values(), T(77));
    std::vector<int64_t> words(plan->words());
    std::vector<void*> addresses;
    for (std::vector<float>& input : inputs) addresses.push_back(input.data());
    addresses.push_back(memory.data() + at);
    const size_t lines = (plan->scratch_bytes() + 63) / 64 * 8;  // words of 8 bytes, up to the guard page
    Guarded<int64_t> scratch(lines);
    const snippet::Split split = plan->split(parts, 1);
    for (int64_t chunk = 0; chunk < split.chunks(); ++chunk) {
      plan->fill(words, addresses, scratch.data(), split, chunk);
      form.run(words.data());
    }
    return {memory.values().begin(), memory.values().end()};
  }

  template <class T>
  static void check(const Body& body, const std::vector<Dims>& all, Isa isa = Isa::avx512) {
    const FormMaker maker(target(isa), **jitter_table(), {});
    const irgen::SnippetForm near = make(maker, body, false), staged = make(maker, body, true);
    ASSERT_TRUE(staged.non_temporal && staged.whole_items && staged.least_row == 0) << print(staged.kernel);
    std::mt19937 random(1);
    for (const Dims& extents : all) {
      std::vector<std::vector<float>> inputs;
      size_t count = 1;
      for (const int64_t extent : extents) count *= static_cast<size_t>(extent);
      for (const snippet::BodyPort& input : body.inputs) {
        size_t size = 1;
        for (size_t d = 0; d < extents.size(); ++d)
          if (body.values[static_cast<size_t>(input.value)].varies >> d & 1) size *= static_cast<size_t>(extents[d]);
        for (float& one : inputs.emplace_back(size)) one = static_cast<float>(random() % 1000 + 1) / 100;
      }
      const std::vector<T> wanted = call<T>(body, near, extents, inputs, count, 0, 1);
      for (size_t at = 0; at <= 64 / sizeof(T); at += 1 + random() % 5) {
        const std::vector<T> got = call<T>(body, staged, extents, inputs, count, at, at % 3 == 0 ? 1 : 3);
        for (size_t i = 0; i < got.size(); ++i) {
          const bool inside = i >= at && i < at + count;
          const auto expected = static_cast<double>(inside ? wanted[i - at] : T(77));
          ASSERT_NEAR(static_cast<double>(got[i]), expected, inside ? 1e-5 * std::abs(expected) : 0)
              << body.name << " " << ::testing::PrintToString(extents) << ", " << at << " elements on, element " << i;
        }
      }
    }
  }
};

class ItemForms : public StagedForms {
 protected:
  void SetUp() override {
    if (!machine_has(Isa::avx512)) GTEST_SKIP() << "this machine has no avx512";
  }
};

std::vector<Dims> extents_of_three() {
  std::vector<Dims> all;
  for (const int64_t columns : {0, 1, 5, 15, 16, 17, 31, 32, 33, 49, 64, 65, 100, 257})
    for (const int64_t rows : {0, 1, 2, 7, 20})
      for (const int64_t items : {1, 2, 5}) all.push_back({items, rows, columns});
  return all;
}

TEST_F(ItemForms, OfAllWidthsAndAddresses) {
  check<float>(softmax_body("krk"), extents_of_three());
  check<float>(norm_body(), extents_of_three());
}

TEST_F(ItemForms, OfSeveralDims) {
  check<float>(softmax_body("kkrrk"), {{2, 3, 4, 5, 33}, {3, 1, 1, 9, 64}, {1, 4, 3, 2, 17}});
}

// Only bodies with one run each of item, reduced and column dims have the form; their items are contiguous.
TEST_F(ItemForms, OthersHaveNone) {
  const FormMaker maker(target(Isa::avx512), **jitter_table(), {});
  for (const char* dims : {"rk", "kr", "rkrk", "krkr", "rkk", "krkk"}) {
    for (const FormMaker::Tier& tier : maker.tiers_of(softmax_body(dims)))
      EXPECT_FALSE(tier.passes.items.has_value()) << dims << tier.suffix;
  }
  EXPECT_TRUE(items_of(softmax_body("krk")).has_value());
}

// If items are contiguous, the lines of the next item are prefetched in order, otherwise those that the sweep reads.
TEST_F(ItemForms, FetchTheNextItemAsItLies) {
  const FormMaker maker(target(Isa::avx512), **jitter_table(), {});
  const std::string text = print(make(maker, softmax_body("krk"), true).kernel);
  EXPECT_NE(text.find("FetchOn"), std::string::npos) << text;
  EXPECT_EQ(text.find("PrefetchRead"), std::string::npos) << text;
  EXPECT_EQ(items_of(norm_body())->dense, std::vector{0}) << "factors are no stretch of each item";
  Body parts = softmax_body("krk");
  parts.inputs[0].cuts.emplace_back();
  EXPECT_TRUE(items_of(parts)->dense.empty());
}

class RowForms : public StagedForms, public ::testing::WithParamInterface<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
};

TEST_P(RowForms, OfAllWidthsAndAddresses) {
  std::vector<Dims> all;
  for (const int64_t columns : {0, 1, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 49, 64, 65, 100, 257, 1001})
    for (const int64_t rows : {0, 1, 2, 5, 23, 101}) all.push_back({rows, columns});
  check<float>(softmax_body("kr"), all, GetParam());
}

TEST_P(RowForms, OfKnownLengths) {
  for (const int64_t columns : {3, 7, 49, 100, 197}) {
    Body body = softmax_body("kr");
    body.dims[1].extent = columns;
    check<float>(body, {{1, columns}, {2, columns}, {57, columns}}, GetParam());
  }
}

TEST_P(RowForms, OfSeveralDims) { check<float>(softmax_body("krr"), {{3, 4, 9}, {20, 3, 33}, {7, 1, 17}}, GetParam()); }

// Only bodies with contiguous rows have the form, and only if rows are not known to be aligned to lines.
TEST_P(RowForms, OthersHaveNone) {
  const FormMaker maker(target(GetParam()), **jitter_table(), {});
  for (const char* dims : {"kk", "kkr", "rk", "krk", "krkr"}) {
    for (const FormMaker::Tier& tier : maker.tiers_of(softmax_body(dims)))
      EXPECT_FALSE(tier.passes.staged_rows) << dims << tier.suffix;
  }
  Body lines = softmax_body("kr");
  lines.dims[1].extent = 64;
  for (const FormMaker::Tier& tier : maker.tiers_of(lines)) EXPECT_FALSE(tier.passes.staged_rows) << tier.suffix;
}

INSTANTIATE_TEST_SUITE_P(Isas, RowForms, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

}  // namespace
}  // namespace tenon::x86
