// Heap allocations of runs of a compiled model, and the addresses of values between its segments.
#include <gtest/gtest.h>

#include <thread>

#include "compile/alternating.hpp"
#include "support/count_allocations.hpp"

namespace tenon {
namespace {

using testing::alternating;
using testing::expect_absolute;
using testing::filled;

// Inputs, and memory for both outputs.
struct Caller {
  explicit Caller(int64_t rows, float first = -100)
      : inputs{Datum(filled(rows, first))}, outputs{Datum(filled(rows, 0)), Datum(filled(rows, 0))} {}
  void operator()(const CompiledModel& model) {
    const auto ran = model.run_into(inputs, outputs, {.parallel = &serial()});
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
  }
  int64_t taken(const CompiledModel& model) {
    const int64_t before = test::allocations;
    (*this)(model);
    return test::allocations - before;
  }
  void check() const {
    for (const Datum& output : outputs) expect_absolute(output, inputs[0]);
  }
  std::vector<Datum> inputs, outputs;
};

TEST(ModelMemory, RunsAfterTheFirstTakeNothing) {
  const auto model = alternating("8");
  Caller run(8);
  run(*model);
  EXPECT_EQ(run.taken(*model), 0);
  run.check();
}

TEST(ModelMemory, RunsOfExtentsAsBeforeTakeNothing) {
  const auto model = alternating("N");
  Caller few(8), many(33, -2000);
  for (int i = 0; i < 2; ++i) few(*model), many(*model);
  EXPECT_EQ(few.taken(*model), 0);
  EXPECT_EQ(many.taken(*model), 0);
  EXPECT_EQ(few.taken(*model), 0);
  few.check();
  many.check();
}

TEST(ModelMemory, ValuesBetweenSegmentsShareAnArena) {
  constexpr size_t kValue = 8 * 64 * 4;
  // %b is an output, and lies where the caller wants it: %a, and later two of %c, %d, %e at a time.
  const auto fixed = alternating("8");
  EXPECT_EQ(fixed->arena_bytes(), 2 * kValue);
  EXPECT_EQ(fixed->arena_lower_bound_bytes(), 2 * kValue);
  const auto open = alternating("N");
  EXPECT_EQ(open->arena_bytes(), 0u) << "before a run nothing is known";
  Caller run(8);
  run(*open);
  EXPECT_EQ(open->arena_bytes(), 2 * kValue);
}

// y = |||---x|||: two live values at a time within each segment, beside the one between them.
TEST(ModelMemory, SegmentsShareAnArenaForWhatIsWithinThem) {
  constexpr size_t kValue = 8 * 64 * 4;
  for (const char* extent : {"8", "N"}) {
    const auto model = testing::on_two_targets(str("graph @g(%x: f32[", extent, R"(,64]) -> (%y) {
      %a = Neg %x
      %b = Neg %a
      %c = Neg %b
      %d = Abs %c
      %e = Abs %d
      %y = Abs %e
    })"));
    ASSERT_EQ(model->segments().size(), 2u);
    const std::vector<Datum> inputs{Datum(filled(8, -100))};
    std::vector<Datum> outputs{Datum(filled(8, 0))};
    for (int i = 0; i < 3; ++i) {
      const int64_t before = test::allocations;
      ASSERT_TRUE(model->run_into(inputs, outputs, {.parallel = &serial()}).ok());
      EXPECT_EQ(i < 2 ? 0 : test::allocations - before, 0);
      expect_absolute(outputs[0], inputs[0]);
    }
    EXPECT_EQ(model->arena_bytes(), 3 * kValue) << extent;
    EXPECT_EQ(model->arena_lower_bound_bytes(), 3 * kValue);
    const auto bound = *model->bind(inputs, outputs, {.parallel = &serial()});
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(bound->run().ok());
      expect_absolute(bound->outputs()[0], inputs[0]);
    }
  }
}

TEST(ModelMemory, OutputsOfEarlierRunsStayAsTheyAre) {
  const auto model = alternating("N");
  std::vector<std::vector<Datum>> inputs, outputs;
  for (const int64_t rows : {4, 4, 9, 4}) {
    inputs.push_back({Datum(filled(rows, static_cast<float>(-7 * rows)))});
    auto made = model->run(inputs.back());
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    outputs.push_back(*std::move(made));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const Datum& output : outputs[i]) expect_absolute(output, inputs[i][0]);
}

TEST(ModelMemory, RunsAtTheSameTimeHavePlacesOfTheirOwn) {
  for (const char* extent : {"8", "N"}) {
    const auto model = alternating(extent);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&model, t] {
        Caller run(8, static_cast<float>(-100 * t));
        for (int i = 0; i < 50; ++i) {
          run(*model);
          run.check();
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(ModelMemory, OutputsThatAreInputsOrOthersOwnTheirBytes) {
  const auto model = alternating("8", "%y, %x, %y, %b");
  const std::vector<Datum> inputs{Datum(filled(8, -100))};
  const auto outputs = model->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE((*outputs)[1].tensor().identical(inputs[0].tensor()));
  EXPECT_NE((*outputs)[1].tensor().data(), inputs[0].tensor().data());
  EXPECT_NE((*outputs)[0].tensor().data(), (*outputs)[2].tensor().data());
  for (const size_t i : {0u, 2u, 3u}) expect_absolute((*outputs)[i], inputs[0]);
}

TEST(ModelMemory, ARunThatFailsLeavesNothingBehind) {
  const auto model = alternating("8");
  Caller run(8);
  run(*model);
  const std::vector<Datum> wrong{Datum(filled(9, 0))};
  EXPECT_FALSE(model->run(wrong).ok());
  run(*model);
  run.check();
}

TEST(ModelMemory, LargeOutputsThatNobodyHoldsServeTheNextRun) {
  const auto model = alternating("8192", "%y");
  const auto run = [&](float first) {
    const Datum input(filled(8192, first));
    auto outputs = model->run({&input, 1});
    EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
    expect_absolute((*outputs)[0], input);
    return std::move((*outputs)[0]);
  };
  const auto place = [](const Datum& output) { return output.tensor().data(); };
  Datum held = run(-5);
  const auto first = place(held);
  const Datum copy = held;
  held = run(-7);
  EXPECT_NE(place(held), first) << "somebody has a copy";
  expect_absolute(copy, Datum(filled(8192, -5)));
  const auto second = place(held);
  held = Datum();
  held = run(-9);
  EXPECT_EQ(place(held), second);
}

TEST(ModelMemory, SmallOutputsStayWithTheirCallers) {
  const auto model = alternating("4", "%y");
  const Datum input(filled(4, -5));
  std::weak_ptr<void> owner = (*model->run({&input, 1}))[0].tensor().owner();
  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace tenon
