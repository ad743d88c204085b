#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include <support_lib/random_graph.hpp>
#include <support_lib/test_ops.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const Type kType(kF32, Shape(Dims{2}));

class GraphTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::register_test_ops(); }

  Op& op(std::string_view name, std::vector<Value*> operands, size_t results = 1) {
    return graph.body().create(name, operands, std::vector<Type>(results, kType));
  }
  std::vector<std::string> order() const {
    std::vector<std::string> names;
    for (const Op& op : graph.body()) names.push_back(op.name().str());
    return names;
  }

  Graph graph{"g"};
  Value* x = graph.body().add_input("x", kType);
};

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return graph.ok() ? *std::move(graph) : nullptr;
}

TEST_F(GraphTest, UsesAreListed) {
  Op& a = op("A", {x, x});
  Op& b = op("B", {a.result(), nullptr, x});
  graph.body().add_output(a.result(), "out");
  EXPECT_EQ(x->use_count(), 3u);
  EXPECT_EQ(a.result()->use_count(), 2u);
  EXPECT_TRUE(a.result()->is_region_output());
  EXPECT_FALSE(b.result()->used());
  EXPECT_FALSE(b.has_uses());
  std::vector<std::pair<std::string, size_t>> users;
  for (const Use* use : x->uses()) users.emplace_back(use->user()->name().str(), use->index());
  EXPECT_THAT(users, UnorderedElementsAre(std::pair("A", 0u), std::pair("A", 1u), std::pair("B", 2u)));
  EXPECT_EQ(b.operand(1), nullptr);
  EXPECT_EQ(b.operand(99), nullptr);
  EXPECT_EQ(x->producer(), nullptr);
  EXPECT_EQ(x->region(), &graph.body());
  EXPECT_EQ(a.result()->region(), &graph.body());
}

TEST_F(GraphTest, SetOperandMovesTheUse) {
  Op& a = op("A", {x});
  Op& b = op("B", {x});
  b.set_operand(0, a.result());
  EXPECT_TRUE(x->has_one_use());
  EXPECT_TRUE(a.result()->has_one_use());
  b.set_operand(0, nullptr);
  EXPECT_FALSE(a.result()->used());
  b.set_operands(std::vector<Value*>{a.result(), x, a.result()});
  EXPECT_EQ(a.result()->use_count(), 2u);
  EXPECT_EQ(b.operand_count(), 3u);
  b.set_operands(std::vector<Value*>{});
  EXPECT_FALSE(a.has_uses());
  EXPECT_TRUE(x->has_one_use());
}

// Random edits, compared with a list that is maintained by the test.
TEST_F(GraphTest, UseListsHoldAfterManyEdits) {
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE(str("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  std::vector<Value*> values = {x, nullptr};
  std::vector<Op*> users;
  for (int i = 0; i < 10; ++i) values.push_back(op("Source", {}).result());
  for (int i = 0; i < 20; ++i) users.push_back(&op("User", {x, x, nullptr}, 0));
  for (int edit = 0; edit < 2000; ++edit) {
    Op& user = *users[random() % users.size()];
    Value* value = values[random() % values.size()];
    switch (random() % 4) {
      case 0: user.set_operands(std::vector<Value*>(random() % 5, value)); break;
      case 1:
        if (value && value != x) value->replace_all_uses_with(x);
        break;
      default:
        if (user.operand_count() > 0) user.set_operand(random() % user.operand_count(), value);
    }
  }
  std::map<const Value*, size_t> expected;
  for (const Op* user : users) {
    for (const Value* operand : user->operands()) ++expected[operand];
  }
  for (const Value* value : values) {
    if (!value) continue;
    EXPECT_EQ(value->use_count(), expected[value]);
    for (const Use* use : value->uses()) EXPECT_EQ(use->user()->operand(use->index()), value);
  }
}

TEST_F(GraphTest, ReplaceAllUsesReachesOutputsAndInnerRegions) {
  const auto text = parsed(
      "graph(%c: bool[], %x: f32[2]) -> (first: %a, second: %a) {\n"
      "  %a = test.Neg %x\n"
      "  %r = test.If %c (() -> %a {}, () -> %t { %t = test.Add %a, %a })\n"
      "}");
  Region& body = text->body();
  Op& negative = *body.first();
  Value* input = body.input(1);
  negative.result()->replace_all_uses_with(input);
  EXPECT_FALSE(negative.has_uses());
  EXPECT_EQ(body.output(0), input);
  EXPECT_EQ(body.output(1), input);
  EXPECT_EQ(body.output_name(0), "first");
  const Op& choice = *body.last();
  EXPECT_EQ(choice.region(0).output(0), input);
  EXPECT_EQ(choice.region(1).first()->operand(1), input);
  EXPECT_EQ(input->use_count(), 6u);  // Neg's own, two outputs, one branch output, twice in Add
  EXPECT_TRUE(verify(*text).ok());
}

TEST_F(GraphTest, ErasingWhileWalking) {
  Op& a = op("A", {x});
  op("B", {a.result()}, 0);
  Op& c = op("C", {a.result()});
  op("D", {c.result()}, 0);
  std::vector<std::string> seen;
  for (Op* each : graph.body().ops()) {
    seen.push_back(each->name().str());
    if (each->is("B")) each->erase();
  }
  EXPECT_THAT(seen, ElementsAre("A", "B", "C", "D"));
  EXPECT_THAT(order(), ElementsAre("A", "C", "D"));
  EXPECT_TRUE(a.result()->has_one_use());

  seen.clear();
  for_each_op(graph.body(), [&](Op& each) {
    seen.push_back(each.name().str());
    if (each.is("A")) graph.body().create("New", {}, {}, {}, each.next());
    if (each.is("D")) each.erase();
  });
  EXPECT_THAT(seen, ElementsAre("A", "C", "D"));  // what was added is not visited
  EXPECT_THAT(order(), ElementsAre("A", "New", "C"));
  EXPECT_EQ(graph.body().op_count(), 3u);
}

TEST_F(GraphTest, ForEachOpVisitsTheInsideFirst) {
  const auto text = parsed(
      "graph(%c: bool[]) -> () {\n"
      "  Before\n"
      "  Outer (() -> () { InnerA (() -> () { Deep }) }, () -> () { InnerB })\n"
      "}");
  std::vector<std::string> seen;
  for_each_op(std::as_const(text->body()), [&](const Op& each) { seen.push_back(each.name().str()); });
  EXPECT_THAT(seen, ElementsAre("Before", "Deep", "InnerA", "InnerB", "Outer"));
  EXPECT_EQ(text->total_op_count(), 5u);
}

TEST_F(GraphTest, ErasingAUsedOperatorIsAProgramFault) {
  Op& a = op("A", {x});
  op("B", {a.result()}, 0);
  EXPECT_DEATH(a.erase(), "still used by B");
  EXPECT_DEATH(graph.body().erase_input(0), "in use");
}

TEST_F(GraphTest, InputsMoveUp) {
  Value* y = graph.body().add_input("y", kType);
  EXPECT_EQ(y->index(), 1u);
  graph.body().erase_input(0);
  EXPECT_EQ(y->index(), 0u);
  EXPECT_EQ(graph.body().input_count(), 1u);
}

TEST_F(GraphTest, PlaceAndOrder) {
  Op& a = op("A", {}, 0);
  Op& c = op("C", {}, 0);
  Op& b = graph.body().create("B", {}, {}, {}, &c);
  EXPECT_THAT(order(), ElementsAre("A", "B", "C"));
  EXPECT_TRUE(a.is_before(b));
  EXPECT_FALSE(c.is_before(b));
  EXPECT_FALSE(b.is_before(b));
  c.move_before(a);
  EXPECT_THAT(order(), ElementsAre("C", "A", "B"));
  EXPECT_TRUE(c.is_before(a));
  EXPECT_EQ(graph.body().first(), &c);
  EXPECT_EQ(graph.body().last(), &b);
  EXPECT_EQ(c.previous(), nullptr);
  // Repeatedly between the same neighbours: the order numbers run out and are reassigned.
  Op* last = &b;
  for (int i = 0; i < 300; ++i) {
    Op& next = graph.body().create("N", {}, {}, {}, last);
    EXPECT_TRUE(a.is_before(next) && next.is_before(*last)) << i;
    last = &next;
  }
}

// ThreadSanitizer detects whether a reader of a graph writes to it.
TEST_F(GraphTest, SeveralThreadsMayAskForTheOrder) {
  std::vector<const Op*> ops;
  for (int i = 0; i < 100; ++i) ops.push_back(&op("A", {}, 0));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (size_t i = 1; i < ops.size(); ++i) wrong += !ops[i - 1]->is_before(*ops[i]);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(GraphTest, MovesBetweenRegions) {
  Op& outer = op("Outer", {}, 0);
  Region& inside = outer.add_region();
  Op& inner = inside.create("Inner", std::vector<Value*>{x}, {});
  EXPECT_EQ(inside.outer(), &graph.body());
  EXPECT_EQ(inside.parent(), &outer);
  inner.move_before(outer);
  EXPECT_THAT(order(), ElementsAre("Inner", "Outer"));
  EXPECT_TRUE(inside.empty());
  EXPECT_EQ(inside.first(), nullptr);
  EXPECT_EQ(inner.parent(), &graph.body());
  EXPECT_TRUE(x->has_one_use());
}

TEST_F(GraphTest, FreeingAnOperatorFreesWhatIsInside) {
  Op& outer = op("Outer", {}, 0);
  Region& inside = outer.add_region();
  Op& inner = inside.create("Inner", std::vector<Value*>{x}, {kType});
  inside.add_output(inner.result(), "r");
  outer.erase();
  EXPECT_FALSE(x->used());
}

TEST_F(GraphTest, SortingKeepsAGoodOrderAndMendsABadOne) {
  Op& a = op("A", {x});
  Op& b = op("B", {x});
  Op& c = op("C", {b.result()});
  ASSERT_TRUE(graph.body().sort_topologically().ok());
  EXPECT_THAT(order(), ElementsAre("A", "B", "C"));
  a.set_operand(0, c.result());
  b.move_before(const_cast<Op&>(graph.body().return_op()));
  EXPECT_THAT(order(), ElementsAre("A", "C", "B"));
  ASSERT_TRUE(graph.body().sort_topologically().ok());
  EXPECT_THAT(order(), ElementsAre("B", "C", "A"));
  EXPECT_TRUE(b.is_before(c) && c.is_before(a));
}

TEST_F(GraphTest, SortingSeesUsesInsideRegions) {
  Op& outer = op("Outer", {}, 0);
  Op& made = op("Made", {x});
  outer.add_region().create("Inner", std::vector<Value*>{made.result()}, {});
  ASSERT_TRUE(graph.body().sort_topologically().ok());
  EXPECT_THAT(order(), ElementsAre("Made", "Outer"));
  outer.add_region().add_output(op("Late", {}).result(), "r");
  ASSERT_TRUE(graph.body().sort_topologically().ok());
  EXPECT_THAT(order(), ElementsAre("Made", "Late", "Outer"));
}

TEST_F(GraphTest, SortingACycleNamesIt) {
  op("Good", {x}, 0);
  Op& a = op("A", {x});
  Op& b = op("B", {a.result()});
  a.set_operand(0, b.result());
  a.set_label("first");
  auto sorted = graph.body().sort_topologically();
  ASSERT_FALSE(sorted.ok());
  EXPECT_THAT(sorted.error().message(), HasSubstr("cycle"));
  EXPECT_THAT(sorted.error().message(), HasSubstr("A 'first'"));
  EXPECT_THAT(sorted.error().message(), HasSubstr("B"));
  EXPECT_THAT(sorted.error().message(), ::testing::Not(HasSubstr("Good")));
  EXPECT_THAT(order(), ElementsAre("Good", "A", "B"));
}

TEST_F(GraphTest, ShuffledGraphsSort) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    auto shuffled = testing::random_graph(
        {.seed = seed, .ops = 40, .use = {"test.Neg", "test.Add", "test.Clip", "test.Split"}, .branch = "test.If"});
    std::mt19937_64 random(seed);
    const auto ops = shuffled->body().ops();
    for (Op* each : ops) each->move_before(*ops[random() % ops.size()]);
    ASSERT_TRUE(shuffled->body().sort_topologically().ok());
    auto verified = verify(*shuffled);
    EXPECT_TRUE(verified.ok()) << verified.error().to_string();
    EXPECT_EQ(shuffled->body().op_count(), ops.size());
  }
}

TEST_F(GraphTest, Describe) {
  Op& plain = op("A", {});
  EXPECT_EQ(plain.describe(), "A");
  plain.result()->set_name("y");
  EXPECT_EQ(plain.describe(), "A (%y)");
  plain.set_label("layer/a");
  EXPECT_EQ(plain.describe(), "A 'layer/a' (%y)");
}

TEST_F(GraphTest, AttrFallsBackOnAnotherKind) {
  Op& a = op("A", {});
  a.set_attr("n", 3);
  EXPECT_EQ(a.attr<int64_t>("n", 9), 3);
  EXPECT_EQ(a.attr<int64_t>("missing", 9), 9);
  EXPECT_EQ(a.attr<std::string>("n", "none"), "none");
}

constexpr std::string_view kNested =
    "graph @g(%c: bool[], %x: f32[2]) -> (out: %r) {\n"
    "  %k = Constant {value = dense<f32[2]: 1.0, 2.0>}\n"
    "  %a = test.Add %x, %k \"label\"\n"
    "  %r = test.If %c (() -> %a {}, () -> %t { %t = test.Neg %a })\n"
    "}\nproperties { p = \"1\" }";

TEST_F(GraphTest, CloneIsEqualAndApart) {
  const auto original = parsed(kNested);
  auto copy = original->clone();
  EXPECT_TRUE(same_graph(*original, *copy, {.names = true}));
  EXPECT_EQ(print(*copy), print(*original));
  EXPECT_TRUE(verify(*copy).ok());
  EXPECT_EQ(copy->body().first()->attr<Tensor>("value").data(), original->body().first()->attr<Tensor>("value").data());
  const std::string before = print(*original);
  copy->body().last()->region(1).first()->set_operand(0, copy->body().input(1));
  copy->properties()["p"] = "2";
  EXPECT_EQ(print(*original), before);
  EXPECT_FALSE(same_graph(*original, *copy));
}

TEST_F(GraphTest, CloneOfAGraphOutlivesIt) {
  auto original = parsed(kNested);
  const std::string text = print(*original);
  const auto copy = original->clone();
  original.reset();
  EXPECT_EQ(print(*copy), text);
}

TEST_F(GraphTest, CloneBodyInlinesABranch) {
  const auto text = parsed(kNested);
  Op& choice = *text->body().last();
  for (size_t branch = 0; branch < 2; ++branch) {
    const auto outputs = clone_body(choice.region(branch), {}, text->body(), &choice);
    ASSERT_EQ(outputs.size(), 1u);
    if (branch == 0) {
      EXPECT_EQ(outputs[0], choice.region(0).output(0));  // a captured value stays what it is
    } else {
      choice.result()->replace_all_uses_with(outputs[0]);
    }
  }
  choice.erase();
  EXPECT_TRUE(verify(*text).ok());
  EXPECT_EQ(text->body().last()->name().str(), "test.Neg");
  EXPECT_EQ(text->body().output(0), text->body().last()->result());
}

TEST_F(GraphTest, CloneBodyPutsValuesInPlaceOfInputs) {
  const auto callee = parsed("graph(%p: f32[2], %q: f32[2]) -> (%s, %q) { %s = test.Add %p, %q }");
  Op& a = op("A", {x});
  const auto outputs = clone_body(callee->body(), std::vector<Value*>{a.result(), x}, graph.body(), nullptr);
  EXPECT_EQ(outputs[1], x);
  EXPECT_EQ(outputs[0]->producer()->operand(0), a.result());
  EXPECT_EQ(callee->body().first()->operand(0), callee->body().input(0));
}

TEST_F(GraphTest, OutputsAreAddedOneByOneToAnyNumber) {
  Graph graph;
  Region& body = graph.body();
  Value* values[] = {body.add_input("a", kType), body.add_input("b", kType)};
  constexpr size_t kMany = 1000;
  for (size_t i = 0; i < kMany; ++i) body.add_output(values[i % 3 == 0], str("y", i));
  ASSERT_EQ(body.output_count(), kMany);
  for (size_t i = 0; i < kMany; ++i) EXPECT_EQ(body.output(i), values[i % 3 == 0]) << i;
  EXPECT_EQ(values[0]->use_count() + values[1]->use_count(), kMany);
  for (const Use* use : values[1]->uses()) EXPECT_EQ(use->index() % 3, 0u);
  body.set_output(0, values[0]);
  EXPECT_EQ(values[1]->use_count(), (kMany + 2) / 3 - 1);
  const auto copy = graph.clone();
  EXPECT_TRUE(same_graph(graph, *copy));
}

TEST_F(GraphTest, EqualSaysWhatDiffers) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"test.Neg", "test.Clip"},
      {"1.0, 2.0", "1.0, 2.5"},
      {"out: %r", "other: %r"},
      {"out: %r", "out: %a"},
      {"%c: bool[], %x: f32[2]", "%c: bool[], %x: f32[?]"},
      {"test.Add %x, %k", "test.Add %k, %x"},
      {"%x: f32[2]) -> (out: %r)", "%x: f32[2], %more: f32[2]) -> (out: %r)"},
      {"%t = test.Neg %a }", "%t = test.Neg %a test.Log %a }"},
  };
  const auto original = parsed(kNested);
  for (const auto& [from, to] : changes) {
    std::string text(kNested);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    const auto other = parsed(text.replace(at, from.size(), to));
    std::string difference;
    EXPECT_FALSE(same_graph(*original, *other, EqualOptions{}, &difference)) << to;
    EXPECT_FALSE(difference.empty()) << to;
  }
  std::string renamed(kNested);
  renamed.replace(renamed.find("\"label\""), 7, "\"other\"");
  EXPECT_TRUE(same_graph(*original, *parsed(renamed)));
  EXPECT_FALSE(same_graph(*original, *parsed(renamed), {.names = true}));
}

}  // namespace
}  // namespace tenon
