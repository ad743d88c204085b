// Loops with a small, known trip count are unrolled. Results have the same bits, and short rows have no loops.
#include <gtest/gtest.h>
#include <snippet/random_body.hpp>
#include <support_lib/environment.hpp>

#include <tenon/snippet/linear/unroll.hpp>

namespace tenon::snippet::test {
namespace {

constexpr int kLanes = 4;

int count(const LinearKernel& kernel, Name op) {
  return static_cast<int>(std::ranges::count_if(kernel.body, [&](const Instruction& one) { return one.op == op; }));
}
int borders(const LinearKernel& kernel) { return count(kernel, "LoopBegin") + count(kernel, "TailBegin"); }

DimSet kept(const Body& body) { return body.all_dims() & ~body.reduced_dims(); }

// The kernel of a body with known extents, unrolled; kept dims are not divided.
LinearKernel written_out(const Body& body, LowerOptions options = {.lanes = kLanes}) {
  auto kernel = lower(body, options);
  EXPECT_TRUE(kernel.ok());
  EXPECT_TRUE(CallPlan::write_known(body, *kernel, kept(body)).ok());
  unroll_known_loops(*kernel);
  EXPECT_TRUE(verify(*kernel).ok()) << verify(*kernel).error().to_string() << print(*kernel);
  return *std::move(kernel);
}

// z = x * y + y, where y varies only over the innermost dim, which is reduced if the last of `dims` is r.
Body body_of(std::string_view dims, const Dims& extents) {
  BodyBuilder build("rows", dims);
  const auto all = static_cast<DimSet>((1u << dims.size()) - 1);
  const ValueId x = build.input(all), y = build.input(DimSet{1} << (dims.size() - 1));
  const ValueId z = build.op("Add", {build.op("Mul", {x, y}), y});
  build.output(dims.back() == 'r' ? build.reduce("ReduceSum", z) : z);
  Body body = build.take();
  for (size_t d = 0; d < extents.size(); ++d) body.dims[d].extent = extents[d];
  return body;
}

TEST(UnrollKnownLoops, FewVectorsHaveNoLoops) {
  for (const char* dims : {"k", "r"}) {
    for (const int64_t width : {1, 3, 4, 5, 8, 15, 16, 17, 31}) {
      const LinearKernel kernel = written_out(body_of(dims, {width}));
      EXPECT_EQ(borders(kernel), 0) << dims << " of " << width << "\n" << print(kernel);
      EXPECT_EQ(count(kernel, "Zero"), 0);
    }
    const LinearKernel longer = written_out(body_of(dims, {2 * 16 + 9}));
    EXPECT_EQ(borders(longer), 1) << "twice four vectors are a loop, the rest is not\n" << print(longer);
    EXPECT_EQ(borders(written_out(body_of(dims, {0}))), 0) << "what never runs is not there";
  }
}

// Only one of two conditional regions runs, so the counter of the second continues from its value before the first.
TEST(UnrollKnownLoops, WhensCountForThemselves) {
  const auto when = [](const char* head, int loop, int load) {
    return str("  when ", head, "%3 {\n    loop ", loop, " d0 dim 0 %4 vector step 4 limit #2 {\n      %", load,
               ":f32 = Load f32 [%0 + %4]\n      Store f32 [%1 + %4], %", load, "\n    }\n  }\n");
  };
  auto kernel = parse_linear(
      "kernel @when lanes 4 {\n  #0 = pointer 0\n  #1 = pointer 1\n  #2 = limit loop 0 known 4\n  %0:g = Parameter #0\n"
      "  %1:g = Parameter #1\n  %2:f32 = BroadcastLoad f32 [%0]\n  %3:bool = Less %2, %2\n  %4:g = Zero\n" +
      when("", 0, 5) + when("not ", 1, 6) + "}\n");
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  unroll_known_loops(*kernel);
  ASSERT_TRUE(verify(*kernel).ok()) << verify(*kernel).error().to_string() << print(*kernel);
  EXPECT_EQ(borders(*kernel), 0) << print(*kernel);
  EXPECT_EQ(count(*kernel, "Zero"), 0);
  std::vector<int64_t> stores;
  for (const Instruction& one : kernel->body)
    if (one.op == "Store") stores.push_back(one.memory->displacement_bytes);
  EXPECT_EQ(stores, (std::vector<int64_t>{0, 16, 0, 16})) << print(*kernel);
}

// Each copy has its own registers. With shared ones, a value would be live, and occupy a register, from the first copy
// to the last.
TEST(UnrollKnownLoops, CopiesHaveRegistersOfTheirOwn) {
  const auto written_twice = [](const LinearKernel& kernel) {
    std::vector<int> writes(kernel.registers.size(), 0);
    for (const Instruction& one : kernel.body)
      for (const RegisterId id : one.out) ++writes[static_cast<size_t>(id)];
    return std::ranges::count_if(writes, [](int times) { return times > 1; });
  };
  const LinearKernel apart = written_out(body_of("k", {15}));
  EXPECT_EQ(count(apart, "Store"), 4);
  EXPECT_EQ(written_twice(apart), 0) << print(apart);
  const LinearKernel folded = written_out(body_of("r", {15}));
  EXPECT_EQ(written_twice(folded), 1) << "the sum of all copies\n" << print(folded);
}

TEST(UnrollKnownLoops, RowsKeepTheirLoopAlone) {
  EXPECT_EQ(borders(written_out(body_of("kk", {7, 9}))), 1);
  EXPECT_EQ(borders(written_out(body_of("kk", {1, 9}))), 0);
  EXPECT_EQ(borders(written_out(body_of("kr", {7, 9}), {.lanes = kLanes, .rows = 1})), 1);
  const LinearKernel held = written_out(body_of("kr", {7, 9}), {.lanes = kLanes, .held_vectors = 16});
  EXPECT_EQ(borders(held), 1) << "four rows at once are gone, three single ones are not\n" << print(held);
  EXPECT_EQ(count(held, "Number"), 2) << "lanes of the tail, and what the single rows begin with\n" << print(held);
}

TEST(UnrollKnownLoops, OpenExtentsStay) {
  Body body = body_of("k", {9});
  body.dims[0].extent = Expr::symbol("N");
  auto kernel = lower(body, {.lanes = kLanes});
  ASSERT_TRUE(kernel.ok());
  const std::string before = print(*kernel);
  unroll_known_loops(*kernel);
  EXPECT_EQ(print(*kernel), before);
}

TEST(UnrollKnownLoops, RandomBodiesHaveTheSameBits) {
  const uint32_t first = tenon::testing::first_seed(), seeds = tenon::testing::seeds(400);
  int without_loops = 0, shorter = 0;
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomBody random(seed);
    Body body = random.make();
    const Dims extents = random.extents(body, kLanes);
    for (size_t d = 0; d < body.rank(); ++d) body.dims[d].extent = extents[d];
    std::mt19937 numbers(seed);
    HarnessOptions options{.parts = 1 + seed % 3};
    options.lower.rows = seed % 2 == 0 ? 4 : 1;
    options.lower.held_vectors = seed % 5 == 0 ? 0 : 16;
    if (seed % 2 != 0) options.machine = test_machine(seed % 4 == 1 ? 6 : 16, seed % 8 < 4, true);
    options.passes = [&](LinearKernel& kernel) -> Result<void> {
      const int before = borders(kernel);
      TENON_OK(CallPlan::write_known(body, kernel, seed % 3 == 0 ? 0 : kept(body)));
      unroll_known_loops(kernel);
      without_loops += borders(kernel) == 0;
      shorter += borders(kernel) < before;
      return verify(kernel);
    };
    check_body(body, extents, numbers, options);
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
  }
  EXPECT_GT(without_loops, static_cast<int>(seeds) / 10);
  EXPECT_GT(shorter, static_cast<int>(seeds) / 4);
}

// A plan for an unrolled kernel does not divide its whole dims, and refuses other extents.
TEST(UnrollKnownLoops, WholeDimsAreNotCut) {
  const Body body = body_of("kk", {64, 128});
  const LinearKernel kernel = written_out(body);
  const auto plan = CallPlan::make_for_extents(body, kernel, {64, 128});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->split(8, 1).chunks(), 1);
  EXPECT_FALSE(CallPlan::make_for_extents(body, kernel, {64, 129}).ok());
  auto open = lower(body, {.lanes = kLanes});
  ASSERT_TRUE(open.ok() && CallPlan::write_known(body, *open, DimSet{2}).ok());
  const auto rows = CallPlan::make_for_extents(body, *open, {64, 128});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->split(8, 1).parts, (std::vector<int64_t>{8, 1}));
}

}  // namespace
}  // namespace tenon::snippet::test
