#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/test_ops.hpp>
#include <tenon/ir/op_view.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/visitor.hpp>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Neg : OpView<Neg> {
  static constexpr std::string_view kName = "test.Neg";
  using OpView::OpView;
  Value* x() const { return operand(0); }
};
struct Split : OpView<Split> {
  static constexpr std::string_view kName = "test.Split";
  using OpView::OpView;
  int64_t axis() const { return attr<int64_t>("axis", 0); }
};
struct Log : OpView<Log> {
  static constexpr std::string_view kName = "test.Log";
  using OpView::OpView;
};

class VisitorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::register_test_ops(); }
  void SetUp() override {
    auto parsed = parse_graph(
        "graph(%x: f32[2,4]) -> () { %n = test.Neg %x \"minus\" %a, %b = test.Split %n {axis = 1} test.Log %a }");
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    graph = *std::move(parsed);
    ops = graph->body().ops();
  }
  std::unique_ptr<Graph> graph;
  std::vector<Op*> ops;
};

TEST_F(VisitorTest, ViewsAreRecognisedByName) {
  EXPECT_TRUE(isa<Neg>(*ops[0]));
  EXPECT_FALSE(isa<Neg>(ops[1]));
  EXPECT_FALSE(isa<Neg>(static_cast<const Op*>(nullptr)));
  EXPECT_EQ(dyn_cast<Neg>(ops[0]).x(), graph->body().input(0));
  EXPECT_FALSE(dyn_cast<Split>(ops[0]));
  EXPECT_FALSE(dyn_cast<Split>(static_cast<Op*>(nullptr)));
  EXPECT_EQ(cast<Split>(*ops[1]).axis(), 1);
  EXPECT_EQ(&cast<Split>(*ops[1]).op(), ops[1]);
  EXPECT_EQ(cast<Split>(*ops[1])->label(), "");
  EXPECT_DEATH(cast<Split>(*ops[0]), "cast to test.Split of test.Neg 'minus'");
}

TEST_F(VisitorTest, ProducersAsViews) {
  EXPECT_TRUE(producer_as<Neg>(ops[1]->operand(0)));
  EXPECT_FALSE(producer_as<Neg>(ops[2]->operand(0)));
  EXPECT_FALSE(producer_as<Neg>(graph->body().input(0)));
  EXPECT_FALSE(producer_as<Neg>(nullptr));
}

TEST_F(VisitorTest, TableCallsTheHandlerOfEachOperator) {
  OpVisitor<int64_t> visitor("count");
  visitor.on<Neg>([](Neg) -> Result<int64_t> { return 1; })
      .on<Split>([](Split split) -> Result<int64_t> { return 10 + split.axis(); })
      .on<Neg>([](Neg) -> Result<int64_t> { return 2; });  // the later one
  EXPECT_EQ(*visitor.visit(*ops[0]), 2);
  EXPECT_EQ(*visitor.visit(*ops[1]), 11);
  EXPECT_TRUE(visitor.handles("test.Neg"));
  EXPECT_FALSE(visitor.handles("test.Log"));
  auto unhandled = visitor.visit(*ops[2]);
  ASSERT_FALSE(unhandled.ok());
  EXPECT_EQ(unhandled.error().code(), Code::unsupported);
  EXPECT_EQ(unhandled.error().message(), "visitor 'count' has no handler for test.Log");
  visitor.otherwise([](Op&) -> Result<int64_t> { return -1; });
  EXPECT_EQ(*visitor.visit(*ops[2]), -1);
  EXPECT_TRUE(visitor.handles("test.Log"));
}

TEST_F(VisitorTest, TableWalksInOrderAndStopsAtAnError) {
  std::vector<std::string> seen;
  OpVisitor<> visitor("walk");
  visitor.otherwise([&](Op& op) -> Result<void> {
    seen.push_back(op.name().str());
    if (op.is("test.Split")) return error(Code::unsupported, "no splitting");
    return {};
  });
  auto walked = visitor.visit(*graph);
  ASSERT_FALSE(walked.ok());
  EXPECT_THAT(seen, ElementsAre("test.Neg", "test.Split"));
  EXPECT_EQ(walked.error().message(), "no splitting");
  EXPECT_THAT(walked.error().to_string(), HasSubstr("visitor 'walk' at test.Split (%a)"));
}

TEST_F(VisitorTest, HandlersMayEraseTheirOperator) {
  OpVisitor<> visitor("clean");
  visitor.on<Log>([](Log log) -> Result<void> {
    log.op().erase();
    return {};
  });
  visitor.otherwise([](Op&) -> Result<void> { return {}; });
  ASSERT_TRUE(visitor.visit(*graph).ok());
  EXPECT_EQ(graph->body().op_count(), 2u);
}

class Cost : public OpVisitorClass<Cost, int64_t, Neg, Split> {
 public:
  Cost() : OpVisitorClass("cost") {}
  Result<int64_t> visit_op(Neg) { return 1; }
  Result<int64_t> visit_op(Split split) {
    if (split.axis() == 1) return error(Code::unsupported, "axis 1");
    return 2;
  }
};

class Names : public OpVisitorClass<Names, void, Neg> {
 public:
  Names() : OpVisitorClass("names") {}
  Result<void> visit_op(Neg neg) { return seen.push_back("minus " + neg.x()->name()), Result<void>(); }
  Result<void> visit_other(Op& op) { return seen.push_back(op.name().str()), Result<void>(); }
  std::vector<std::string> seen;
};

TEST_F(VisitorTest, ClassForm) {
  Cost cost;
  EXPECT_EQ(*cost.visit(*ops[0]), 1);
  EXPECT_THAT(cost.visit(*ops[1]).error().to_string(), HasSubstr("visitor 'cost' at test.Split"));
  auto unhandled = cost.visit(*ops[2]);
  ASSERT_FALSE(unhandled.ok());
  EXPECT_EQ(unhandled.error().message(), "visitor 'cost' has no handler for test.Log");
  Names names;
  ASSERT_TRUE(names.visit(*graph).ok());
  EXPECT_THAT(names.seen, ElementsAre("minus x", "test.Split", "test.Log"));
}

}  // namespace
}  // namespace tenon
