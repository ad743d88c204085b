#include <tenon/passes/walk_slots.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/random_tensor.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<SlotView> view_of(std::string_view text, const Dims& shape = {2, 42, 5, 7}) {
  auto layout = Layout::parse(text, "NCHW", shape, 32);
  EXPECT_TRUE(layout.ok()) << layout.error().to_string();
  return slot_view(*layout);
}

TEST(WalkSlots, SlotsInTheOrderOfTheLayout) {
  EXPECT_THAT(view_of("NCHW")->slots(), ElementsAre(2, 42, 5, 7));
  EXPECT_THAT(view_of("NHWC")->slots(), ElementsAre(2, 5, 7, 42));
  EXPECT_THAT(view_of("NCHW{16c}")->slots(), ElementsAre(2, 3, 5, 7, 16));
  EXPECT_THAT(view_of("NCHW{2h16c}")->slots(), ElementsAre(2, 3, 3, 7, 2, 16));
  EXPECT_THAT(view_of("NCHW{4c2n4c}")->padded, ElementsAre(2, 48, 5, 7));
}

TEST(WalkSlots, OtherLayoutsAreRefusedWithAReason) {
  const std::pair<const char*, const char*> kCases[] = {
      {"NHWC<2c:64>", "words are not one element"},
      {"[4h]NCHW", "banks"},
      {"NCHW;off(H)=1", "offset"},
      {"NCHW;fold(H)=4", "ring"},
      {"NCHW{16c~}", "ragged"},
      {"NCHW{4w2w};xor(W@2)=H", "swizzled"},
      {"NCHW;stride(H)=96", "gaps"},
      {"(n, c, h, w) -> (n, c, h, (w + h) mod 7)", "index map"},
  };
  for (const auto& [text, reason] : kCases) {
    const auto layout = Layout::parse(text, "NCHW", {2, 42, 5, 7}, 32);
    ASSERT_TRUE(layout.ok()) << layout.error().to_string();
    const auto view = slot_view(*layout);
    ASSERT_FALSE(view.ok()) << text;
    EXPECT_EQ(view.error().code(), Code::unsupported);
    EXPECT_THAT(view.error().message(), HasSubstr(reason)) << text;
  }
}

// An operator that sums over padded channels finds zeros there, whatever was computed.
TEST(WalkSlots, ReadersOfALayoutGetItWithItsPadding) {
  auto graph = parse_graph(
      "graph @g(%x: f32[1,5,3,2]) -> %r {\n"
      " %y = layout.Reorder %x : f32[1,5,3,2] in \"NCHW{4c}\" pad zero\n"
      " %e = Exp %y : f32[1,5,3,2] in \"NCHW{4c}\" pad dirty\n"
      " %s = layout.Scrub %e {bits = 0} : f32[1,5,3,2] in \"NCHW{4c}\" pad zero\n"
      " %r = ReduceSum %s {keepdims = 1, layout.kernel = \"padded\"} : f32[1,1,1,1] }");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  std::mt19937 random(2);
  const std::vector<Datum> inputs{random_tensor(random, kF32, {1, 5, 3, 2})};
  const auto result = [&](const Graph& of) {
    auto interpreter = Interpreter::prepare(of, {.poison_padding = PoisonPadding::nan});
    EXPECT_TRUE(interpreter.ok()) << interpreter.error().to_string();
    auto made = (*interpreter)->run(inputs);
    EXPECT_TRUE(made.ok()) << made.error().to_string() << "\n" << print(of);
    return made->at(0).tensor().double_at(0);
  };
  const double wanted = result(**graph);
  const auto report = walk_slots(**graph, {.poison = PoisonPadding::nan});
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_EQ(report->operators, 1u);
  EXPECT_THAT(report->refused, ElementsAre(HasSubstr("ReduceSum")));
  ASSERT_TRUE(verify(**graph).ok()) << print(**graph);
  EXPECT_EQ(result(**graph), wanted) << print(**graph);
}

}  // namespace
}  // namespace tenon::testing
