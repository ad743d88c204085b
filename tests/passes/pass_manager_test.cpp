#include <tenon/passes/pass_manager.hpp>

#include <climits>
#include <new>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/test_ops.hpp>
#include <tenon/ir/text.hpp>

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Passes that record their runs.
class PassManagerTest : public ::testing::Test {
 protected:
  Pass pass(const std::string& name, std::vector<std::string> needs = {}, int changes = 0) {
    auto left = std::make_shared<int>(changes);
    return {.name = name,
            .contract = "",
            .run = [this, name, left](Graph&) -> Result<Change> {
              ran_.push_back(name);
              return Change{(*left)-- > 0};
            },
            .needs = std::move(needs)};
  }
  // Registered for the whole process, so under a name of this test.
  std::string registered(const std::string& name, std::vector<std::string> needs = {}) {
    const std::string full = str(::testing::UnitTest::GetInstance()->current_test_info()->name(), ".", name);
    for (std::string& need : needs) {
      need = str(::testing::UnitTest::GetInstance()->current_test_info()->name(), ".", need);
    }
    Pass made = pass(full, std::move(needs));
    made.run = [](Graph&) -> Result<Change> { return Change::no; };  // outlives the fixture
    EXPECT_TRUE(register_pass(std::move(made)).ok());
    return full;
  }
  static std::vector<std::string> names(const PassManager& manager) {
    std::vector<std::string> out;
    for (const Pass& pass : manager.passes()) out.push_back(pass.name);
    return out;
  }
  static std::unique_ptr<Graph> graph() {
    register_test_ops();
    return *parse_graph("graph @g(%x: f32[2]) -> %y { %a = test.Neg %x \n %y = test.Neg %a }");
  }
  // Moves the user of a value before its producer.
  static Pass broken(const std::string& name) {
    return {.name = name, .contract = "", .run = [](Graph& graph) -> Result<Change> {
              graph.body().last()->move_before(*graph.body().first());
              return Change::yes;
            }};
  }

  std::vector<std::string> ran_;
};

TEST_F(PassManagerTest, WhatAPassThrowsIsAnErrorThatNamesIt) {
  const auto thrown = [](std::function<void()> thrower) {
    PassManager manager;
    EXPECT_TRUE(manager
                    .add(Pass{.name = "loud",
                              .contract = "",
                              .run = [thrower](Graph&) -> Result<Change> {
                                thrower();
                                return Change::no;
                              }})
                    .ok());
    const auto ran = manager.run(*graph());
    return ran.ok() ? "no error" : ran.error().to_string();
  };
  EXPECT_THAT(thrown([] { throw std::runtime_error("out of paper"); }),
              HasSubstr("threw: out of paper; errors are returned, as a tenon::Error\n  in pass 'loud' on graph 'g'"));
  EXPECT_THAT(thrown([] { throw 42; }), HasSubstr("no std::exception"));
  EXPECT_THAT(thrown([] { throw std::bad_alloc(); }), HasSubstr("ran out of memory\n  in pass 'loud'"));
}

TEST_F(PassManagerTest, NeedsComeFirstOnceAndFromTheRegistry) {
  const std::string a = registered("a"), b = registered("b", {"a"}), c = registered("c", {"a", "b"});
  PassManager manager;
  ASSERT_TRUE(manager.add(std::string_view(c)).ok());
  EXPECT_THAT(names(manager), ElementsAre(a, b, c));
  ASSERT_TRUE(manager.add(std::string_view(b)).ok());  // wanted again; what it needs is there
  EXPECT_THAT(names(manager), ElementsAre(a, b, c, b));
}

TEST_F(PassManagerTest, AMissingNeedIsAnErrorThatNamesBoth) {
  registered("remove-things");
  PassManager manager("mine");
  const auto added = manager.add(pass("p", {str("AMissingNeedIsAnErrorThatNamesBoth.remove-thing")}));
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().code(), Code::not_found);
  EXPECT_THAT(added.error().message(), HasSubstr("pass 'p' needs 'AMissingNeedIsAnErrorThatNamesBoth.remove-thing'"));
  EXPECT_THAT(added.error().message(), HasSubstr("did you mean 'AMissingNeedIsAnErrorThatNamesBoth.remove-things'?"));
  EXPECT_THAT(names(manager), IsEmpty());
  EXPECT_EQ(manager.add(std::string_view("no-such-pass")).error().code(), Code::not_found);
}

TEST_F(PassManagerTest, CyclesOfNeedsAreErrorsWithTheWholeChain) {
  PassManager manager;
  const auto itself = manager.add(pass("self", {"self"}));
  ASSERT_FALSE(itself.ok());
  EXPECT_THAT(itself.error().message(), HasSubstr("self -> self"));
  const std::string a = registered("a", {"b"}), b = registered("b", {"c"}), c = registered("c", {"a"});
  const auto round = manager.add(std::string_view(a));
  ASSERT_FALSE(round.ok());
  EXPECT_THAT(round.error().message(), HasSubstr(str(a, " -> ", b, " -> ", c, " -> ", a)));
  EXPECT_THAT(names(manager), IsEmpty());
}

TEST_F(PassManagerTest, AFailedAddLeavesTheManagerAsItWas) {
  registered("good");
  PassManager manager;
  ASSERT_TRUE(manager.add(pass("first")).ok());
  EXPECT_FALSE(manager.add(pass("p", {"AFailedAddLeavesTheManagerAsItWas.good", "missing"})).ok());
  EXPECT_FALSE(manager.insert_before("first", pass("q", {"AFailedAddLeavesTheManagerAsItWas.good", "missing"})).ok());
  EXPECT_THAT(names(manager), ElementsAre("first"));
}

TEST_F(PassManagerTest, NamesAndFunctionsAreAskedFor) {
  PassManager manager;
  EXPECT_FALSE(manager.add(pass("")).ok());
  EXPECT_FALSE(manager.add(Pass{.name = "empty", .contract = "", .run = {}}).ok());
  const std::string taken = registered("taken");
  EXPECT_EQ(register_pass(pass(taken)).error().code(), Code::already_exists);
}

TEST_F(PassManagerTest, InsertsBesideANamedPassAndRemoves) {
  PassManager manager("mine");
  ASSERT_TRUE(manager.add(pass("a")).ok());
  ASSERT_TRUE(manager.add(pass("b", {"a"})).ok());
  ASSERT_TRUE(manager.insert_before("b", pass("x")).ok());
  ASSERT_TRUE(manager.insert_after("b", pass("y", {"x"})).ok());
  EXPECT_THAT(names(manager), ElementsAre("a", "x", "b", "y"));
  const auto unknown = manager.insert_after("z", pass("w"));
  EXPECT_EQ(unknown.error().code(), Code::not_found);
  EXPECT_THAT(unknown.error().message(), HasSubstr("a, x, b, y"));
  const auto needed = manager.remove("a");
  ASSERT_FALSE(needed.ok());
  EXPECT_THAT(needed.error().message(), HasSubstr("'b' needs it"));
  ASSERT_TRUE(manager.remove("b").ok());
  ASSERT_TRUE(manager.remove("a").ok());
  EXPECT_THAT(names(manager), ElementsAre("x", "y"));
}

TEST_F(PassManagerTest, WhatIsInsertedTooEarlyBringsItsNeedsAlong) {
  const std::string need = registered("need");
  PassManager manager;
  ASSERT_TRUE(manager.add(pass("a")).ok());
  ASSERT_TRUE(manager.add(std::string_view(need)).ok());
  ASSERT_TRUE(manager.insert_before("a", pass("x", {need})).ok());
  EXPECT_THAT(names(manager), ElementsAre(need, "x", "a", need));
}

TEST_F(PassManagerTest, TurnsEndWhenEachHasFoundNothingSinceTheLastChange) {
  PassManager manager;
  ASSERT_TRUE(manager.add(pass("before", {}, 1000)).ok());
  ASSERT_TRUE(manager.add_until_unchanged({pass("a", {}, 1), pass("b", {}, 2), pass("c")}).ok());
  ASSERT_TRUE(manager.add(pass("after", {}, 1000)).ok());
  const auto g = graph();
  const auto report = manager.run(*g);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(ran_, ElementsAre("before", "a", "b", "c", "a", "b", "c", "a", "b", "after"));
  EXPECT_EQ(report->runs, 10);
  EXPECT_EQ(report->last, "after");
  ASSERT_EQ(report->passes.size(), 5u);
  EXPECT_EQ(report->passes[1].runs, 3);
  EXPECT_TRUE(report->passes[2].changed);
  EXPECT_FALSE(report->passes[3].changed);
  EXPECT_THAT(report->to_string(), HasSubstr("b x3"));
}

TEST_F(PassManagerTest, WhereNothingChangesEachPassOfTheTurnsLooksOnce) {
  PassManager manager;
  ASSERT_TRUE(manager.add_until_unchanged({pass("a"), pass("b")}).ok());
  ASSERT_TRUE(manager.add_until_unchanged({pass("c"), pass("d")}).ok());  // turns of their own
  const std::string e = registered("e"), f = registered("f", {"e"});
  ASSERT_TRUE(manager.add_until_unchanged({e, f}).ok());
  EXPECT_EQ(manager.add_until_unchanged({"fold-constants", "fold-constant"}).error().code(), Code::not_found);
  const auto g = graph();
  const auto report = manager.run(*g);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(ran_, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(report->runs, 6);
  EXPECT_EQ(report->last, f);
}

TEST_F(PassManagerTest, PassesThatUndoEachOtherEndWithAWarning) {
  PassManager manager("mine");
  ASSERT_TRUE(manager.add_until_unchanged({pass("there", {}, INT_MAX), pass("back", {}, INT_MAX)}).ok());
  ASSERT_TRUE(manager.add(pass("after")).ok());
  const auto g = graph();
  ::testing::internal::CaptureStderr();
  const auto report = manager.run(*g);
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->runs, 2 * PassManager::kMostRounds + 1);
  EXPECT_EQ(ran_.back(), "after");
  EXPECT_THAT(said, HasSubstr("'mine' still changes graph 'g' after 32 rounds of the passes from 'there' to 'back'"));
}

TEST_F(PassManagerTest, WhatIsInsertedBesideAPassTakesTurnsWithIt) {
  const std::string need = registered("need");
  PassManager manager;
  ASSERT_TRUE(manager.add_until_unchanged({pass("a", {}, 1), pass("z")}).ok());
  ASSERT_TRUE(manager.insert_before("a", pass("x", {need})).ok());
  ASSERT_TRUE(manager.insert_after("z", pass("y")).ok());
  ASSERT_TRUE(manager.remove("z").ok());
  EXPECT_FALSE(manager.add_until_unchanged({pass("q"), pass("p", {"missing"})}).ok());
  EXPECT_THAT(names(manager), ElementsAre(need, "x", "a", "y"));
  const auto g = graph();
  ASSERT_TRUE(manager.run(*g).ok());
  EXPECT_THAT(ran_, ElementsAre("x", "a", "y", "x", "a"));
}

TEST_F(PassManagerTest, VerifyEachNamesThePassThatBreaksTheGraph) {
  PassManager manager;
  ASSERT_TRUE(manager.add(pass("good")).ok());
  ASSERT_TRUE(manager.add(broken("breaks-order")).ok());
  const auto g = graph();
  const auto report = manager.run(*g, {.verify_each = true});
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().to_string(), HasSubstr("the verifier, after pass 'breaks-order'"));
  const auto h = graph();
  EXPECT_TRUE(manager.run(*h).ok());
}

TEST_F(PassManagerTest, ErrorsOfPassesNameThePassAndTheGraph) {
  PassManager manager;
  ASSERT_TRUE(manager
                  .add(Pass{.name = "fails",
                            .contract = "",
                            .run = [](Graph&) -> Result<Change> { return error(Code::unsupported, "not today"); }})
                  .ok());
  const auto g = graph();
  const auto report = manager.run(*g);
  EXPECT_THAT(report.error().to_string(), HasSubstr("not today\n  in pass 'fails' on graph 'g'"));
}

TEST_F(PassManagerTest, DumpsAfterNamedPassesOrAfterEachChange) {
  PassManager manager;
  ASSERT_TRUE(manager.add(pass("idle")).ok());
  ASSERT_TRUE(manager.add(pass("busy", {}, 1)).ok());
  std::vector<std::string> dumped;
  PassOptions options;
  options.dump = [&](const std::string& name, const Graph& graph) { dumped.push_back(name + " " + graph.name()); };
  options.dump_after = {"idle"};
  const auto g = graph();
  ASSERT_TRUE(manager.run(*g, options).ok());
  EXPECT_THAT(dumped, ElementsAre("idle g"));
  dumped.clear();
  PassManager again;
  ASSERT_TRUE(again.add(pass("idle")).ok());
  ASSERT_TRUE(again.add(pass("busy", {}, 1)).ok());
  options.dump_after = {"*"};
  ASSERT_TRUE(again.run(*g, options).ok());
  EXPECT_THAT(dumped, ElementsAre("busy g"));
}

TEST_F(PassManagerTest, StopsAfterANamedPass) {
  PassManager manager("mine");
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(manager.add(pass(name)).ok());
  const auto g = graph();
  ASSERT_TRUE(manager.run(*g, {.stop_after = "b"}).ok());
  EXPECT_THAT(ran_, ElementsAre("a", "b"));
  ran_.clear();
  const auto unknown = manager.run(*g, {.stop_after = "z"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(ran_, IsEmpty());
}

TEST_F(PassManagerTest, LimitCountsEveryRunOfTurns) {
  const auto g = graph();
  for (const auto& [limit, wanted] : std::vector<std::pair<int64_t, size_t>>{{0, 0}, {2, 2}, {3, 3}, {4, 4}, {9, 4}}) {
    PassManager manager;
    ASSERT_TRUE(manager.add_until_unchanged({pass("a", {}, 2)}).ok());
    ASSERT_TRUE(manager.add(pass("b")).ok());
    ran_.clear();
    const auto report = manager.run(*g, {.limit = limit});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(ran_.size(), wanted) << "limit " << limit;
    EXPECT_EQ(report->runs, static_cast<int64_t>(wanted));
  }
}

TEST(FirstBadStep, HalvesUntilGoodMeetsBad) {
  for (const int64_t wanted : {3, 4, 17, 38, 40}) {
    int asked = 0;
    const auto found = first_bad_step(2, 40, [&](int64_t steps) -> Result<bool> {
      EXPECT_TRUE(steps > 2 && steps < 40) << "the ends are known";
      ++asked;
      return steps < wanted;
    });
    EXPECT_EQ(*found, wanted);
    EXPECT_LE(asked, 6);
  }
  const auto failed = first_bad_step(0, 9, [](int64_t) -> Result<bool> { return error(Code::io, "no paper"); });
  EXPECT_EQ(failed.error().message(), "no paper");
}

TEST_F(PassManagerTest, BisectFindsThePassThatSpoilsTheResult) {
  const auto rename = [](std::string name, std::string to) {
    return Pass{.name = std::move(name), .contract = "", .run = [to](Graph& graph) -> Result<Change> {
                  if (!to.empty()) graph.set_name(to);
                  return Change::yes;
                }};
  };
  const auto good = [](const Graph& graph) -> Result<bool> { return graph.name() != "spoilt"; };
  const auto g = graph();
  for (int at = 0; at < 7; ++at) {
    PassManager manager;
    for (int i = 0; i < 7; ++i) ASSERT_TRUE(manager.add(rename(str("p", i), i == at ? "spoilt" : "")).ok());
    const auto found = bisect_passes(manager, *g, good);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->pass, str("p", at));
    EXPECT_EQ(found->run, at + 1);
    EXPECT_EQ(g->name(), "g");  // copies are tried
  }
  // In the second round of turns, when other passes of the same turns have run before.
  PassManager turns;
  auto quiet = pass("quiet"), later = rename("later", "spoilt");
  later.run = [](Graph& graph) -> Result<Change> {
    const bool again = graph.name() != "g";
    graph.set_name(graph.name() == "g" ? "seen" : "spoilt");
    return Change{!again};
  };
  ASSERT_TRUE(turns.add_until_unchanged({later, quiet}).ok());
  const auto second = bisect_passes(turns, *g, good);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->pass, "later");
  EXPECT_EQ(second->run, 3);
  PassManager fine;
  ASSERT_TRUE(fine.add(rename("p", "")).ok());
  EXPECT_EQ(bisect_passes(fine, *g, good)->run, -1);
  g->set_name("spoilt");
  const auto before = bisect_passes(fine, *g, good);
  ASSERT_FALSE(before.ok());
  EXPECT_THAT(before.error().message(), HasSubstr("before any pass"));
}

}  // namespace
}  // namespace tenon::testing
