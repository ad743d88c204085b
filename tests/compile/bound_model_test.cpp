// Runs that are bound to their inputs and outputs.
#include <gmock/gmock.h>

#include <set>
#include <thread>

#include <tenon/compile/compile.hpp>
#include <tenon/plugin/target_registry.hpp>
#include "compile/alternating.hpp"
#include "support/count_allocations.hpp"

namespace tenon {
namespace {

using testing::alternating;
using testing::expect_absolute;
using testing::filled;
using ::testing::HasSubstr;

const RunOptions kAlone{.parallel = &serial()};

void fill(const Datum& datum, float first) {
  Tensor shared = datum.tensor();
  std::ranges::generate(shared.mutable_as<float>(), [&] { return first++; });
}

std::unique_ptr<BoundModel> bound(const CompiledModel& model, std::vector<Datum> inputs,
                                  std::vector<Datum> outputs = {}, const RunOptions& options = kAlone) {
  auto made = model.bind(std::move(inputs), std::move(outputs), options);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return *std::move(made);
}

void run(BoundModel& model) {
  const auto ran = model.run();
  ASSERT_TRUE(ran.ok()) << ran.error().to_string();
}

TEST(BoundModel, RunsReadNewBytesWhereTheInputsLie) {
  for (const char* extent : {"8", "N"}) {
    const auto model = alternating(extent);
    const Datum x(filled(8, -100)), y(filled(8, 0));
    const auto turns = bound(*model, {x}, {y, Datum()});
    for (const float first : {-100.f, -7.f, 3.f, -400.f}) {
      fill(x, first);
      run(*turns);
      expect_absolute(y, x);
      expect_absolute(turns->outputs()[1], x);
      EXPECT_EQ(turns->outputs()[0].tensor().data(), y.tensor().data());
    }
  }
}

TEST(BoundModel, RunsAfterTheFirstTakeNothing) {
  for (const char* extent : {"8", "N"}) {
    const auto model = alternating(extent);
    const auto turns = bound(*model, {Datum(filled(8, -100))});
    run(*turns);
    const std::byte* place = turns->outputs()[0].tensor().data();
    const int64_t before = test::allocations;
    for (int i = 0; i < 3; ++i) run(*turns);
    EXPECT_EQ(test::allocations - before, 0);
    EXPECT_EQ(turns->outputs()[0].tensor().data(), place);
  }
}

TEST(BoundModel, OthersRunAtTheSameTime) {
  const auto model = alternating("N");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&model, t] {
      const Datum x(filled(4 + t % 2, static_cast<float>(-100 * t)));
      const auto turns = bound(*model, {x});
      for (int i = 0; i < 50; ++i) {
        run(*turns);
        for (const Datum& output : turns->outputs()) expect_absolute(output, x);
        const auto made = model->run({&x, 1}, kAlone);
        ASSERT_TRUE(made.ok());
        expect_absolute((*made)[0], x);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(BoundModel, OutputsThatAreInputsOrOthersAreCopiedEachTime) {
  const auto model = alternating("8", "%y, %x, %y, %b");
  const Datum x(filled(8, -100));
  const auto turns = bound(*model, {x});
  for (const float first : {-100.f, 12.f}) {
    fill(x, first);
    run(*turns);
    EXPECT_TRUE(turns->outputs()[1].tensor().identical(x.tensor()));
    for (const size_t i : {0u, 2u, 3u}) expect_absolute(turns->outputs()[i], x);
  }
}

// Like outputs that are computed in place: from the second run on nothing is allocated, and each keeps its address.
TEST(BoundModel, CopiesOfOutputsTakeNothing) {
  for (const char* extent : {"8", "N"}) {
    const auto model = alternating(extent, "%y, %x, %y, %b");
    const Datum x(filled(8, -100));
    const auto turns = bound(*model, {x});
    run(*turns);
    std::vector<const std::byte*> places;
    for (const Datum& output : turns->outputs()) places.push_back(output.tensor().data());
    EXPECT_EQ(std::set<const std::byte*>(places.begin(), places.end()).size(), 4u) << "outputs own their bytes";
    for (const float first : {7.f, -9.f}) {
      fill(x, first);
      const int64_t before = test::allocations;
      run(*turns);
      EXPECT_EQ(test::allocations - before, 0);
    }
    for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(turns->outputs()[i].tensor().data(), places[i]);
    expect_absolute(turns->outputs()[0], x);
    EXPECT_TRUE(turns->outputs()[2].tensor().identical(turns->outputs()[0].tensor()));
  }
}

// Also if nothing is computed: there are only constants and inputs.
TEST(BoundModel, OutputsWithoutSegmentsAreCopiedEachTime) {
  TargetRegistry registry;
  for (const char* strings : {"", ", %d"}) {  // strings cannot be copied as bytes
    auto graph = *parse_graph(str("graph @g(%x: f32[8,64]) -> (%c, %x", strings, R"() {
      %c = Constant {value = splat<f32[8,64]: 5.0>}
      %d = Constant {value = dense<str[2]: "a", "b">}
    })"));
    const auto model = compile(std::move(graph), registry, {.targets = {"reference"}});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    ASSERT_EQ((*model)->segments().size(), 0u);
    const Datum x(filled(8, 3)), five(filled(8, 0)), y(filled(8, 0));
    std::vector<Datum> outputs{five, y};
    outputs.resize((*model)->outputs().size());
    const auto turns = bound(**model, {x}, outputs);
    for (int i = 0; i < 3; ++i) {
      fill(x, static_cast<float>(i));
      fill(five, -1);  // as whoever goes on with it in its place
      run(*turns);
      EXPECT_EQ(five.tensor().double_at(7), 5);
      EXPECT_EQ(y.tensor().double_at(7), i + 7);
      EXPECT_EQ(turns->outputs()[0].tensor().data(), five.tensor().data());
      if (outputs.size() == 3) {
        EXPECT_EQ(turns->outputs()[2].tensor().as<std::string>()[1], "b");
      }
    }
  }
}

TEST(BoundModel, ProfilesEachRun) {
  const auto model = alternating("8");
  std::vector<OpProfile> profile;
  const auto turns = bound(*model, {Datum(filled(8, 1))}, {}, {.parallel = &serial(), .profile = &profile});
  for (size_t i = 1; i <= 3; ++i) {
    run(*turns);
    EXPECT_EQ(profile.size(), 6 * i);
  }
}

TEST(BoundModel, RefusesOtherCountsAndExtents) {
  const auto model = alternating("8");
  const auto none = model->bind({});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().to_string(), HasSubstr("model 'turns' has 1 inputs, 0 are given"));
  const auto few = model->bind({Datum(filled(8, 0))}, {Datum()});
  ASSERT_FALSE(few.ok());
  EXPECT_THAT(few.error().to_string(), HasSubstr("has 2 outputs, places for 1 are given"));
  const auto turns = bound(*model, {Datum(filled(9, 0))});
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(turns->run().ok());
}

TEST(BoundModel, AKernelThatFailsIsNamedAndRunsGoOn) {
  const auto model = alternating("8");
  const Datum x(filled(8, -100));
  const auto turns = bound(*model, {x});
  run(*turns);
  fill(x, testing::kRefused);
  const auto failed = turns->run();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().to_string(), HasSubstr("running model 'turns': target 'first'"));
  fill(x, 5);
  run(*turns);
  expect_absolute(turns->outputs()[0], x);
}

}  // namespace
}  // namespace tenon
