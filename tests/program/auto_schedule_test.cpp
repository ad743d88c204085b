#include <tenon/program/auto_schedule.hpp>

#include <program/pipeline_support.hpp>

namespace tenon::program {

namespace {

const Expr x = var("x"), y = var("y");

struct Blurs {
  Pipeline p;
  BufferRef source, result;
  StageRef last;
};

Blurs blurs(int stages) {
  Pipeline p("blurs");
  BufferRef source = p.buffer("source", kI32, 2), from = source;
  std::optional<StageRef> last;
  for (int s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "result" : "mid" + std::to_string(s), kI32, 2);
    last = p.stage("stage" + std::to_string(s), window_sum<int32_t>({0, -1}, {0, 1})).reads(from, {x, {y - 1, y + 1}}).writes(to, {x, y});
    from = to;
  }
  return {std::move(p), source, from, *last};
}

SymbolValues sizes(int64_t side) {
  return {{"result.min0", 0}, {"result.extent0", side}, {"result.min1", 0}, {"result.extent1", side}};
}

std::vector<int32_t> results(const Blurs& b) {
  const auto program = b.p.build({b.source}, {b.result});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  Array<int32_t> a({0, -8}, {12, 40}), o({12, 24});
  a.fill_pattern();
  const auto ran = interpret(program.value(), {{{"source", a.argument()}, {"result", o.argument()}}, {}});
  EXPECT_TRUE(ran.ok()) << ran.error().to_string();
  return o.data();
}

TEST(AutoSchedule, FusesStencilsOfLargeImagesIntoStrips) {
  Blurs b = blurs(6);
  const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(2048), CostModel::host());
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  ASSERT_EQ(report.value().groups.size(), 1u) << report.value().to_string();
  EXPECT_LT(report.value().automatic.seconds(), report.value().by_hand.seconds());
  EXPECT_NE(print(b.p.build({b.source}, {b.result}).value()).find("for y_"), std::string::npos);
}

TEST(AutoSchedule, ChangesNoResult) {
  Blurs plain = blurs(4), scheduled = blurs(4);
  ASSERT_TRUE(auto_schedule(scheduled.p, {scheduled.source}, {scheduled.result}, sizes(2048), CostModel::host()).ok());
  EXPECT_EQ(results(plain), results(scheduled));
}

TEST(AutoSchedule, IsNotPredictedToCostMoreThanAnyHandSchedule) {
  for (const int64_t step : {1, 4, 16, 64, 256}) {
    Blurs b = blurs(6);
    b.last.loops({{y, step}});
    const auto by_hand = predict_cost(b.p, {b.source}, {b.result}, sizes(2048), CostModel::host());
    ASSERT_TRUE(by_hand.ok()) << by_hand.error().to_string();
    const auto report = auto_schedule(b.p, {b.source}, {b.result}, sizes(2048), CostModel::host());
    ASSERT_TRUE(report.ok()) << report.error().to_string();
    EXPECT_LE(report.value().automatic.seconds(), by_hand.value().seconds() * 1.0001) << "step " << step;
    EXPECT_DOUBLE_EQ(report.value().by_hand.seconds(), by_hand.value().seconds());
  }
}

TEST(AutoSchedule, NamesTheSizeThatIsMissing) {
  Blurs b = blurs(2);
  const auto report = auto_schedule(b.p, {b.source}, {b.result}, {{"result.min0", 0}}, CostModel::host());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().to_string().find("result."), std::string::npos) << report.error().to_string();
}

}  // namespace
}  // namespace tenon::program
