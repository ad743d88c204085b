// The form for rows with arbitrary alignment, on the machine: non-temporal stores at an unaligned address would fault,
// memory around the output is checked, and the page after it is inaccessible.
#include <gtest/gtest.h>

#include <support_lib/guarded.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/canonical/canonical.hpp>

#include "x86/compiler.hpp"
#include "x86/guarded_graph.hpp"

namespace tenon::x86 {
namespace {

using tenon::testing::Guarded;

class Heads : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  }
  // The form with heads of the operator that computes y, for calls beyond the caches.
  irgen::SnippetForm form(std::string_view operators, std::string_view types) {
    const auto graph = parse_graph(str("graph @g(", types, ") -> %y {\n  ", operators, "\n}"));
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
    body_ = *snippet::make_body(*(*graph)->body().output(0)->producer());
    const FormMaker maker(testing::with_small_caches(testing::target_of(GetParam())), **jitter_table(), {});
    for (const FormMaker::Tier& tier : maker.tiers_of(body_)) {
      if (tier.passes.row_begins != RowBegins::behind_heads) continue;
      auto made = maker.make(body_, tier);
      EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
      EXPECT_TRUE(made->non_temporal && made->any_rows) << print(made->kernel);
      return *std::move(made);
    }
    ADD_FAILURE() << "there is none of " << body_.to_string();
    return {};
  }

  // Calls y = f(x, s), where s has one element per row, with y at each element of a line; at the last one y ends at a
  // guard page. `expected` computes f.
  template <class X, class Y, class Expected>
  void check(const irgen::SnippetForm& form, const std::vector<X>& values, Expected expected) {
    constexpr Y kAround = static_cast<Y>(77);
    const int64_t lanes = form.kernel.lanes;
    for (const int64_t width : {int64_t{0}, int64_t{1}, lanes - 1, lanes, lanes + 1, 2 * lanes + 3, 9 * lanes + 1}) {
      const int64_t rows = 5;
      const auto plan = snippet::CallPlan::make_for_extents(body_, form.kernel, {rows, width});
      ASSERT_TRUE(plan.ok()) << plan.error().to_string();
      const auto count = static_cast<size_t>(rows * width), line = size_t{64} / sizeof(Y);
      Guarded<X> x(count), s(static_cast<size_t>(rows));
      for (size_t i = 0; i < count; ++i) x.data()[i] = values[i % values.size()];
      std::ranges::fill(s.values(), values[0]);
      std::vector<int64_t> words(plan->words());
      for (size_t at = 0; at <= line; ++at) {
        Guarded<Y> memory(count + line);
        std::ranges::fill(memory.values(), kAround);
        plan->fill(words, std::vector<void*>{x.data(), s.data(), memory.data() + at}, nullptr);
        form.run(words.data());
        for (size_t i = 0; i < memory.values().size(); ++i) {
          const bool inside = i >= at && i < at + count;
          ASSERT_EQ(memory.values()[i], inside ? expected(x.data()[i - at], values[0]) : kAround)
              << "rows of " << width << ", " << at << " elements on, element " << i;
        }
      }
    }
  }

  snippet::Body body_;
};

TEST_P(Heads, OfAllWidthsAndAddresses) {
  check<float, float>(form("%y = Mul %x, %s", "%x: f32[N,M], %s: f32[N,1]"), {3, -1, 0.5, 7},
                      [](float x, float s) { return x * s; });
  check<double, double>(form("%y = Sub %x, %s", "%x: f64[N,M], %s: f64[N,1]"), {3, -1, 0.5, 7},
                        [](double x, double s) { return x - s; });
  // Bits of f16: 0x3c00 is 1, so products are equal to x.
  check<uint16_t, uint16_t>(form("%y = Mul %x, %s", "%x: f16[N,M], %s: f16[N,1]"), {0x3c00, 0x3d55, 0xb801},
                            [](uint16_t x, uint16_t) { return x; });
  if (lanes_of(GetParam(), kF32) < 16) return;  // bytes of a vector are stored non-temporally from 16 on
  check<float, uint8_t>(form("%y = Less %x, %s", "%x: f32[N,M], %s: f32[N,1]"), {3, -1, 5, 3.5},
                        [](float x, float s) -> uint8_t { return x < s; });
}

INSTANTIATE_TEST_SUITE_P(Both, Heads, ::testing::Values(Isa::avx2, Isa::avx512),
                         [](const auto& info) { return std::string(isa_name(info.param)); });

}  // namespace
}  // namespace tenon::x86
