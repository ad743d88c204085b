#include <tenon/snippet/linear/allocate.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <utility>

#include <tenon/support/str.hpp>

namespace tenon::snippet::test {
namespace {

using ::testing::HasSubstr;

size_t count_of(const LinearKernel& kernel, Name op) {
  return static_cast<size_t>(std::count_if(kernel.body.begin(), kernel.body.end(),
                                           [&](const Instruction& instruction) { return instruction.op == op; }));
}

// n values that are all live at once, then combined in the order of their computation.
Body wide_body(int n) {
  BodyBuilder build("wide", "kk");
  const ValueId x = build.input(3);
  std::vector<ValueId> made;
  for (int i = 0; i < n; ++i) made.push_back(build.op("Add", {x, build.input(3)}));
  ValueId sum = made[0];
  for (size_t i = 1; i < made.size(); ++i) sum = build.op("Sub", {made[i], sum});
  build.output(sum);
  return build.take();
}

// A chain of n operators whose other operands come from arbitrary positions in it.
Body chain_body(int n) {
  BodyBuilder build("chain", "kk");
  std::vector<ValueId> made{build.input(3), build.input(2), build.input(1)};
  std::mt19937 random(7);
  for (int i = 0; i < n; ++i)
    made.push_back(build.op("Sub", {made[made.size() - 1 - random() % 3], made[random() % made.size()]}));
  build.output(made.back());
  return build.take();
}

TEST(Allocate, AnyNumberOfTensorsInFewRegisters) {
  std::mt19937 random(1);
  for (const int registers : {4, 5, 8, 16, 32})
    for (const int n : {1, 5, 20, 60})
      for (const bool masks : {false, true})
        check_body(wide_body(n), {2, 11}, random,
                   {.lower = {.lanes = 4, .unroll = 2}, .machine = test_machine(registers, masks, masks)});
}

TEST(Allocate, NothingIsSpilledWhereAllFits) {
  auto kernel = lower(wide_body(4), {.lanes = 4, .unroll = 1});
  ASSERT_TRUE(kernel.ok());
  const TestMachine machine = test_machine(16, true, false);
  ASSERT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok());
  EXPECT_EQ(count_of(*kernel, "Spill"), 0u);
  EXPECT_EQ(kernel->frame_slots, 0);
}

// Attempts are abandoned as soon as registers spill.
TEST(Allocate, WhoeverWantsNoMoreInstructionsIsTold) {
  const TestMachine machine = test_machine(16, true, false);
  auto fits = lower(wide_body(4), {.lanes = 4, .unroll = 1}), spills = lower(wide_body(40), {.lanes = 4, .unroll = 1});
  ASSERT_TRUE(fits.ok() && spills.ok());
  for (LinearKernel* kernel : {&*fits, &*spills}) insert_shifts(*kernel);
  LinearKernel tried = *spills;
  EXPECT_TRUE(allocate(*fits, machine.pool, machine.needs, fits->body.size()).ok());
  const auto refused = allocate(tried, machine.pool, machine.needs, tried.body.size());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::resource_exhausted);
  EXPECT_TRUE(allocate(*spills, machine.pool, machine.needs).ok());
  EXPECT_GT(count_of(*spills, "Spill"), 0u);
}

// Eight constants that are summed in four registers, each read by several instructions.
LinearKernel sum_of_constants(int readers) {
  std::string text = "kernel @sum lanes 4 {\n  #0 = pointer 0\n  %0:g = Parameter #0\n";
  for (int i = 1; i <= 8; ++i) text += str("  %", i, ":f32 = Scalar {bits = 0x", i, "}\n");
  int sum = 1;
  for (int round = 0, made = 9; round < readers; ++round)
    for (int i = round == 0 ? 2 : 1; i <= 8; ++i, sum = made++)
      text += str("  %", made, ":f32 = Add %", sum, ", %", i, "\n");
  auto kernel = parse_linear(str(text, "  Store f32 [%0], %", sum, "\n}\n"));
  TENON_CHECK(kernel.ok(), kernel.ok() ? "" : kernel.error().to_string());
  return *std::move(kernel);
}

// A constant with one reader is moved next to it, which adds no instruction. One with several would be repeated.
TEST(Allocate, WhoeverWantsNoMoreInstructionsMayHaveThemMoved) {
  const TestMachine machine = test_machine(4, true, false);
  LinearKernel once = sum_of_constants(1), twice = sum_of_constants(2);
  const size_t instructions = once.body.size();
  ASSERT_TRUE(allocate(once, machine.pool, machine.needs, instructions).ok());
  EXPECT_EQ(once.body.size(), instructions);
  EXPECT_EQ(count_of(once, "Spill"), 0u);
  EXPECT_FALSE(allocate(twice, machine.pool, machine.needs, twice.body.size()).ok());
}

TEST(Allocate, ConstantsAreMadeAgainNotSpilled) {
  BodyBuilder build("constants", "k");
  ValueId x = build.input(1);
  for (int i = 0; i < 30; ++i) x = build.op("Add", {x, build.scalar(static_cast<float>(i))});
  x = build.op("Mul", {x, build.input(0)});  // a broadcast load of memory that nobody writes
  build.output(x);
  auto kernel = lower(build.take(), {.lanes = 4, .unroll = 1});
  ASSERT_TRUE(kernel.ok());
  const TestMachine machine = test_machine(4, true, false);
  ASSERT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok());
  EXPECT_EQ(count_of(*kernel, "Spill"), 0u) << print(*kernel);
  EXPECT_TRUE(verify(*kernel).ok());
}

TEST(Allocate, LoadsOfMemoryThatIsWrittenAreNotRepeated) {
  // Both pointers have the same port, so loads through #0 may read what is stored through #1.
  const auto kernel = parse_linear(R"(kernel @written lanes 4 {
  #0 = pointer 0
  #1 = pointer 0
  %0:g = Parameter #0
  %1:g = Parameter #1
  %2:f32 = BroadcastLoad f32 [%0]
  %3:f32 = Add %2, %2
  Store.one f32 [%1], %3
  %4:f32 = Add %3, %3
  %5:f32 = Add %4, %3
  %6:f32 = Add %5, %4
  %7:f32 = Add %6, %5
  %8:f32 = Add %7, %2
  Store.one f32 [%1 + 4], %8
  %9:f32 = Add %3, %4
  %10:f32 = Add %9, %5
  Store.one f32 [%1 + 8], %10
}
)");
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  for (const int registers : {2, 3}) {
    LinearKernel allocated = *kernel;
    const TestMachine machine = test_machine(registers, true, false);
    ASSERT_TRUE(allocate(allocated, machine.pool, machine.needs).ok());
    EXPECT_EQ(count_of(allocated, "BroadcastLoad"), 1u) << print(allocated);
    std::vector<float> memory{3, 0, 0}, alone{3, 0, 0};
    const auto run = [](const LinearKernel& k, std::vector<float>& at) {
      const auto address = static_cast<int64_t>(reinterpret_cast<intptr_t>(at.data()));
      const std::vector<int64_t> words(2, address);
      const std::vector<LinearBuffer> buffers{{at.data(), at.size() * 4, true}};
      return run_linear(k, words, buffers).ok();
    };
    EXPECT_TRUE(run(*kernel, alone));
    EXPECT_TRUE(run(allocated, memory));
    EXPECT_EQ(memory, alone);
  }
}

TEST(Allocate, CountersOfManyLoopsGoToMemory) {
  std::mt19937 random(2);
  BodyBuilder build("deep", "kkkkkkkkr");
  const ValueId x = build.input(0x1ff), y = build.input(0x155);
  const ValueId sum = build.reduce("ReduceSum", build.op("Add", {x, y}));
  build.output(sum);
  build.output(build.op("Sub", {x, sum}));
  const Body body = build.take();
  auto kernel = lower(body, {.lanes = 4});
  const TestMachine machine = test_machine(4, true, true);
  ASSERT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok());
  EXPECT_TRUE(std::any_of(kernel->loops.begin(), kernel->loops.end(), [&](const Loop& loop) {
    return kernel->places[static_cast<size_t>(loop.counter)].number == 3;
  }));
  for (const int64_t width : {0, 1, 6})
    check_body(body, {2, 1, 2, 1, 2, 2, 1, 2, width}, random, {.lower = {.lanes = 4}, .machine = machine});
}

TEST(Allocate, BooleansLiveInTheFileOfThePool) {
  BodyBuilder build("masks", "k");
  const ValueId x = build.input(1);
  std::vector<ValueId> masks;
  for (int i = 0; i < 8; ++i) masks.push_back(build.op("Less", {x, build.scalar(static_cast<float>(i))}, {}, kBool));
  ValueId all = masks[0];
  for (const ValueId mask : masks) all = build.op("Xor", {mask, all});
  build.output(build.op("Where", {all, x, build.scalar(0)}));
  const Body body = build.take();
  std::mt19937 random(3);
  for (const bool masks_file : {false, true}) {
    const TestMachine machine = test_machine(6, masks_file, false);
    auto kernel = lower(body, {.lanes = 4});
    ASSERT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok());
    for (size_t id = 0; id < kernel->registers.size(); ++id) {
      const bool used = kernel->registers[id].element.is_bool() && kernel->places[id].number >= 0;
      EXPECT_TRUE(!used || kernel->places[id].file == machine.pool.lane_mask_file);
    }
    for (const int64_t width : widths_of(4))
      check_body(body, {width}, random, {.lower = {.lanes = 4}, .machine = machine});
  }
}

TEST(Allocate, TooFewRegistersForOneInstruction) {
  auto kernel = lower(wide_body(3), {.lanes = 4});
  const TestMachine machine = test_machine(1, true, false);
  const auto allocated = allocate(*kernel, machine.pool, machine.needs);
  ASSERT_FALSE(allocated.ok());
  EXPECT_EQ(allocated.error().code(), Code::resource_exhausted);
  EXPECT_THAT(allocated.error().message(),
              HasSubstr("registers of the pool do not hold the operands, results and scratch registers of '"));
}

TEST(Allocate, FrameSlotsAreShared) {
  // Groups of values whose lifetimes do not overlap: later ones reuse the slots of the first.
  const auto slots = [](int groups) {
    BodyBuilder build("groups", "k");
    ValueId sum = build.input(1);
    for (int g = 0; g < groups; ++g) {
      std::vector<ValueId> made;
      for (int i = 0; i < 20; ++i) made.push_back(build.op("Mul", {sum, build.scalar(static_cast<float>(i))}));
      for (const ValueId id : made) sum = build.op("Sub", {id, sum});
    }
    build.output(sum);
    auto kernel = lower(build.take(), {.lanes = 4, .unroll = 1});
    const TestMachine machine = test_machine(6, true, false);
    EXPECT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok());
    return kernel->frame_slots;
  };
  EXPECT_GT(slots(1), 0);
  EXPECT_LE(slots(4), slots(1) + 4);
}

double seconds_for(int nodes) {
  const Body body = chain_body(nodes);
  const TestMachine machine = test_machine(16, true, false);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    auto kernel = lower(body, {.lanes = 8});
    EXPECT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

TEST(Allocate, TimeGrowsWithTheNumberOfOperators) {
  const double small = seconds_for(20), large = seconds_for(1000);
  printf("lower and allocate: 20 operators %.3f ms, 1000 operators %.3f ms\n", small * 1e3, large * 1e3);
  EXPECT_LT(large, small * 50 * 12);  // near linear; quadratic growth would be 50 * 50
}

// Processor time, since other processes may use the machine.
template <class Work>
double milliseconds_of(const Work& work) {
  const std::clock_t begin = std::clock();
  work();
  return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Allocate, TimeGrowsWithTheNumberOfOutputs) {
  const auto milliseconds_for = [](int outputs) {
    BodyBuilder build("fan", "k");
    const ValueId x = build.input(1);
    for (int i = 0; i < outputs; ++i) build.output(build.op("Mul", {x, build.scalar(static_cast<float>(i))}));
    const Body body = build.take();
    return milliseconds_of([&] { EXPECT_TRUE(lower(body, {.lanes = 8, .unroll = 1}).ok()); });
  };
  const double small = milliseconds_for(2000), large = milliseconds_for(40000);
  printf("lower: 2,000 outputs %.1f ms, 40,000 outputs %.1f ms\n", small, large);
  EXPECT_LT(large, 3 * 20 * small);  // quadratic growth would be 400 times
}

// All spilled values are live at the same time.
TEST(Allocate, TimeGrowsWithTheNumberOfSpills) {
  const auto milliseconds_for = [](int values) {
    BodyBuilder build("wait", "k");
    const ValueId x = build.input(1);
    std::vector<ValueId> made{x};
    for (int i = 0; i < values; ++i) made.push_back(build.op("Neg", {made.back()}));
    ValueId sum = x;
    for (const ValueId id : made) sum = build.op("Sub", {id, sum});
    build.output(sum);
    auto kernel = lower(build.take(), {.lanes = 8, .unroll = 1});
    EXPECT_TRUE(kernel.ok());
    const TestMachine machine = test_machine(16, true, false);
    const double ms = milliseconds_of([&] { EXPECT_TRUE(allocate(*kernel, machine.pool, machine.needs).ok()); });
    EXPECT_GT(kernel->frame_slots, values / 2);
    return ms;
  };
  const double small = std::min({milliseconds_for(2000), milliseconds_for(2000), milliseconds_for(2000)});
  const double large = milliseconds_for(80000);
  printf("allocate: 2,000 spills %.1f ms, 80,000 spills %.1f ms\n", small, large);
  EXPECT_LT(large, 5 * 40 * small);  // quadratic growth would be 1600 times
}

}  // namespace
}  // namespace tenon::snippet::test
