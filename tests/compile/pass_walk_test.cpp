// Running all passes of a compilation up to a given one; cutting graphs.
#include <tenon/compile/pass_walk.hpp>

#include <tenon/compile/partition.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

#include "plugin/plugin_test.hpp"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PassWalkTest : public testing::PluginTest {
 protected:
  static constexpr std::string_view kGraph =
      "graph @g(%x: f32[4]) -> (%y) { %a = Exp %x %i = Identity %a %n = Neg %i %y = Sin %n }";

  void SetUp() override {
    PluginTest::SetUp();
    install("faulty");
  }
  static WalkedGraph walked(int64_t limit, const PassWalk::Finished& finished = {}) {
    TargetRegistry registry;
    const auto walk = PassWalk::open(registry, {.targets = {"faulty"}});
    EXPECT_TRUE(walk.ok()) << walk.error().to_string();
    auto made = walk->run(graph(kGraph), limit, finished);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return *std::move(made);
  }
  static std::string text(const WalkedGraph& walked) {
    return walked.cut.parts[0].graph ? print(*walked.cut.parts[0].graph, {.types = false}) : "";
  }
};

TEST_F(PassWalkTest, StopsAfterAnyNumberOfSteps) {
  const WalkedGraph all = walked(-1);
  // The fixture's own are the last: twenty of tensor selection.
  EXPECT_EQ(all.steps, all.prepared_steps + 1 + 20);
  EXPECT_EQ(all.phase, "tensor selection of faulty");
  EXPECT_EQ(all.pass, "idle-19");
  EXPECT_EQ(all.outputs.size(), 1u);
  EXPECT_EQ(all.cut.parts[0].target, 0u);
  for (int64_t limit = 0; limit <= all.steps; ++limit) {
    const WalkedGraph some = walked(limit);
    EXPECT_EQ(some.steps, limit);
    const bool placed = limit > all.prepared_steps;
    EXPECT_EQ(some.cut.parts[0].target, placed ? 0 : WalkedGraph::kNoTarget) << limit;
    EXPECT_EQ(some.cut.output_slots.size(), 1u) << limit;
    EXPECT_TRUE(verify(*some.cut.parts[0].graph).ok()) << limit;
  }
  EXPECT_EQ(walked(all.prepared_steps + 1).pass, "partition");
  EXPECT_EQ(walked(all.prepared_steps + 3).pass, "idle-1");
  const WalkedGraph none = walked(0);
  EXPECT_EQ(none.pass, "");
  EXPECT_THAT(text(none), HasSubstr("Identity"));
  EXPECT_EQ(text(walked(all.prepared_steps)).find("Identity"), std::string::npos);
}

TEST_F(PassWalkTest, PartsAreFinishedOnceTheirPhasesAreThrough) {
  int finished = 0;
  const auto count = [&](GraphPart& part) -> Result<void> {
    ++finished;
    return part.graph ? Result<void>() : error(Code::internal, "no graph");
  };
  const int64_t steps = walked(-1, count).steps;
  EXPECT_EQ(finished, 1);
  walked(steps - 1, count);
  EXPECT_EQ(finished, 1) << "a part that a limit cuts off is not finished";
}

TEST_F(PassWalkTest, PreparationsSayThatTheyMayChangeNumbers) {
  const testing::Environment fault("FIXTURE_FAULT", "prepare");
  const WalkedGraph all = walked(-1);
  EXPECT_EQ(walked(all.prepared_steps).pass, "drop-negs");
  EXPECT_TRUE(walked(all.prepared_steps).in_preparation);
  EXPECT_FALSE(walked(all.prepared_steps - 1).in_preparation);
  EXPECT_FALSE(walked(all.prepared_steps + 1).in_preparation);
  EXPECT_FALSE(all.in_preparation);
}

TEST(CutGraph, TakesOperatorsWithTheConstantsThatTheyRead) {
  const auto whole = parse_graph(
      "graph @g(%x: f32[2], %c: bool[]) -> (%y) {\n"
      "  %k = Constant {value = dense<f32[]: 2.0>}\n"
      "  %a = Mul %x, %k\n"
      "  %0 = Neg %a\n"
      "  %b = If %c (() -> %t { %t = Add %0, %k }, () -> %a {})\n"
      "  %y = Sub %b, %0\n}");
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  const std::vector<Op*> all = (*whole)->body().ops();
  const std::vector<Op*> some = {all[3]};
  std::vector<const Value*> asked;
  const CutGraph cut = cut_graph(**whole, "piece", some, [&](const Value& value) {
    asked.push_back(&value);
    return 10 + asked.size();
  });
  EXPECT_TRUE(verify(*cut.graph).ok());
  EXPECT_THAT(cut.inputs, ElementsAre(11u, 12u, 13u));
  EXPECT_THAT(cut.outputs, ElementsAre(14u));
  EXPECT_THAT(asked, ElementsAre((*whole)->body().input(1), all[2]->result(), all[1]->result(), all[3]->result()));
  EXPECT_EQ(print(*cut.graph, {.types = false}),
            "graph @piece(%c: bool[], %slot12: f32[2], %a: f32[2]) -> %b {\n"
            "  %k = Constant {value = dense<f32[]: 2.0>}\n"
            "  %b = If %c (() -> %t {\n"
            "    %t = Add %slot12, %k\n"
            "  }, () -> %a {})\n"
            "}\n");
}

}  // namespace
}  // namespace tenon
