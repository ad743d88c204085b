#include <tenon/program/exec/bound_program.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "program/random_program.hpp"
#include "support/count_allocations.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ThreadPool& pool() {
  static ThreadPool three(3);
  return three;
}

Data random_data(int64_t workers) {
  Data data;
  data.add("in", {12, 10});
  data.add("out", {12, 10});
  data.scalar("workers", workers);
  return data;
}

void expect_same(const RunStatistics& a, const RunStatistics& b) {
  EXPECT_EQ(a.heap, b.heap);
  EXPECT_EQ(a.stack, b.stack);
  EXPECT_EQ(a.heap_peak, b.heap_peak);
  EXPECT_EQ(a.stack_peak, b.stack_peak);
  EXPECT_EQ(a.loop_iterations, b.loop_iterations);
  EXPECT_EQ(a.parallel_loops, b.parallel_loops);
  EXPECT_EQ(a.stages, b.stages);
  EXPECT_EQ(a.copies, b.copies);
}

// Interpreted in order, interpreted in random order, compiled, and compiled with threads.
void expect_all_agree(const Program& program, uint64_t seed, int64_t workers) {
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().to_string();
  Data expected = random_data(workers), shuffled = random_data(workers), compiled = random_data(workers);
  RunStatistics of_interpreter, of_compiled;
  auto result = interpret(program, expected.arguments(), {.stack_bytes = 100}, &of_interpreter);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  result = interpret(program, shuffled.arguments(), {.threads = 3, .seed = seed + 1});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(shuffled["out"], expected["out"]) << "interpreted with seed " << seed + 1;

  auto counted = BoundProgram::bind(program, compiled.arguments(), {.stack_bytes = 100, .statistics = true});
  ASSERT_TRUE(counted.ok()) << counted.error().to_string();
  result = counted->run(compiled.arguments(), &of_compiled);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(compiled["out"], expected["out"]) << "compiled\n" << counted->disassembly();
  expect_same(of_compiled, of_interpreter);

  for (const int64_t beside : {INT64_MAX, int64_t{0}}) {  // transfers where they start, or on a thread of their own
    auto threaded = BoundProgram::bind(program, compiled.arguments(), {.pool = &pool(), .beside_bytes = beside});
    ASSERT_TRUE(threaded.ok()) << threaded.error().to_string();
    for (int run = 0; run < 3; ++run) {
      std::fill(compiled["out"].begin(), compiled["out"].end(), -1);
      result = threaded->run(compiled.arguments());
      ASSERT_TRUE(result.ok()) << result.error().to_string();
      EXPECT_EQ(compiled["out"], expected["out"]) << "with threads, run " << run << "\n" << threaded->disassembly();
    }
  }
}

TEST(BoundProgram, RandomProgramsGiveTheBytesOfTheInterpreter) {
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    const std::string text = RandomProgram(seed).text();
    SCOPED_TRACE(str("seed ", seed, "\n", text));
    expect_all_agree(parsed(text), seed, static_cast<int64_t>(seed % 4) + 1);
  }
}

TEST(BoundProgram, TextOfRandomProgramsReadsBack) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Program program = parsed(RandomProgram(seed).text());
    EXPECT_TRUE(parsed(print(program)).body == program.body || print(parsed(print(program))) == print(program))
        << "seed " << seed;
  }
}

// Memory --------------------------------------------------------------------------------------------------------

TEST(BoundProgram, ARunTakesNothingFromTheHeap) {
  // Kernels of the tests do; these do not.
  KernelTable table;
  for (const char* kernel : {"add1", "twice", "add", "sum3", "iota"})
    table[kernel] = make_kernel(
        kernel,
        [](CallContext& c) -> Result<void> {
          const BufferView& out = c.operands.back();
          *out.base = std::byte{1};
          return {};
        },
        true);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto program = parse_program(RandomProgram(seed).text(), table);
    ASSERT_TRUE(program.ok());
    Data data = random_data(3);
    auto bound = BoundProgram::bind(*program, data.arguments(),
                                    {.pool = &pool(), .beside_bytes = seed % 2 == 0 ? 0 : INT64_MAX});
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    const std::vector<std::byte*> buffers = {data.view("in").base, data.view("out").base};
    ASSERT_TRUE(bound->run(buffers).ok());  // the pool's list of loops, too, grows once
    const int64_t before = test::allocations;
    ASSERT_TRUE(bound->run(buffers).ok());
    EXPECT_EQ(test::allocations - before, 0) << "seed " << seed;
  }
}

TEST(BoundProgram, LifetimesShareOneArena) {
  Data data;
  data.add("out", {16});
  auto bound = BoundProgram::bind(parsed(R"(program @chain() {
    output %out : i32 rank 1
    allocate %a : i32[0 +: 16] {
      call iota(out %a; 0)
      allocate %b : i32[0 +: 16] {
        call add1(in %a, out %b)
        allocate %c : i32[0 +: 16] {
          call add1(in %b, out %c)
          allocate %d : i32[0 +: 16] in scratch { call add1(in %c, out %d) call add1(in %d, out %out) }
        }
      }
    }
  })"),
                                  data.arguments());
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  EXPECT_EQ(bound->arena_bytes().at("host"), 2 * 64);
  EXPECT_EQ(bound->arena_lower_bound_bytes().at("host"), 2 * 64);
  EXPECT_EQ(bound->arena_bytes().at("scratch"), 64);
  EXPECT_EQ(bound->plan().size(), 4u);
  ASSERT_TRUE(bound->run(data.arguments()).ok());
  EXPECT_EQ(data["out"][3], 34);
}

TEST(BoundProgram, AllocationsOfVaryingSizeGrowToWhatIsNeeded) {
  const Program program = parsed(R"(program @grows() {
    output %out : i32 rank 1
    for i in [0, 8) {
      allocate %a : i32[0 +: i * (7 - i) + 1] {
        call iota(out %a; i)
        copy %out[i +: 1](x) = %a(i * (7 - i))
      }
    }
  })");
  int64_t taken[2] = {0, 0};  // by kernels, in a run after the first
  for (const bool planned : {false, true}) {
    Data data;
    data.add("out", {8});
    auto bound = BoundProgram::bind(program, data.arguments(), {.most_planned_bytes = planned ? int64_t{1} << 30 : 16});
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    EXPECT_EQ(bound->arena_bytes().contains("host"), planned);
    ASSERT_TRUE(bound->run(data.arguments()).ok());
    EXPECT_THAT(data["out"], ElementsAre(0, 61, 102, 123, 124, 105, 66, 7));
    const int64_t before = test::allocations;
    ASSERT_TRUE(bound->run(data.arguments()).ok());
    taken[planned] = test::allocations - before;
  }
  EXPECT_EQ(taken[0], taken[1]);
}

// Errors --------------------------------------------------------------------------------------------------------

std::string error_of(std::string_view text, int64_t threads) {
  Data data;
  data.add("out", {4});
  auto bound = BoundProgram::bind(parsed(text), data.arguments(), {.pool = &pool(), .threads = threads});
  if (!bound.ok()) return bound.error().to_string();
  const auto result = bound->run(data.arguments());
  return result.ok() ? std::string() : result.error().to_string();
}

TEST(BoundProgram, KernelErrorsSayWhereTheyHappened) {
  for (const int64_t threads : {1, 3})
    EXPECT_EQ(error_of(R"(program @errors() {
      output %out : i32 rank 1
      for i in [0, 4) parallel 8 { for j in [2, 3) { call fails(out %out[i +: 1]) as "bad" } }
    })",
                       threads)
                  .substr(0, 43),
              "it failed\n  in call 'bad'\n  in loop j = 2\n ");
}

TEST(BoundProgram, BoxesThatLeaveTheirBufferAreNamed) {
  EXPECT_EQ(
      error_of(R"(program @leaves() {
    output %out : i32 rank 1
    for i in [0, 3) { call iota(out %out[2 * i +: 1]; 0) }
  })",
               1),
      "operand 0 (out 'out'): dim 0: the box ends behind the buffer 'out'\n  in loop i = 2\n  in program 'leaves'");
  EXPECT_EQ(error_of(R"(program @empty() {
    output %out : i32 rank 1
    for i in [0, 3) { call iota(out %out[2 * i +: 2 - i]; 0) }
  })",
                     1),
            "");
}

TEST(BoundProgram, AFailingWorkerEndsThePipeline) {
  EXPECT_THAT(error_of(R"(program @fails() {
    output %out : i32 rank 1
    for i in [0, 1000) pipelined 3 {
      await 0
      check (i == 500) == 0 : "five hundred"
      signal 0
    }
  })",
                       3),
              HasSubstr("five hundred"));
}

// The inner loop has one worker, because the outer one has several: its signals are not stages of the outer one.
TEST(BoundProgram, SignalsOfANestedPipelineAreNotThoseOfTheOneAround) {
  Data data;
  data.add("out", {12, 10});
  auto bound = BoundProgram::bind(parsed(R"(program @nest() {
    output %out : i32 rank 2
    call iota(out %out[0 +: 12, 0 +: 1]; 0)
    for y in [1, 10) pipelined 3 {
      await 1
      for x in [0, 12) pipelined 3 {
        await 0
        view %last : i32 = %out at (y - 1) * out.stride1 + x * out.stride0 [x +: 1, y +: 1] {
          call add1(in %last, out %out[x +: 1, y +: 1])
        }
        signal 0
      }
      signal 1
    }
  })"),
                                  data.arguments(), {.pool = &pool()});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  const std::string code = bound->disassembly();
  EXPECT_THAT(code, AllOf(HasSubstr("await 1 of y"), HasSubstr("signal 1 of y")));
  EXPECT_THAT(code, Not(AnyOf(HasSubstr("await 0"), HasSubstr("signal 0")))) << code;
  for (int run = 0; run < 20; ++run) {
    ASSERT_TRUE(bound->run(data.arguments()).ok());
    for (int64_t x = 0; x < 12; ++x) ASSERT_EQ(data["out"][static_cast<size_t>(108 + x)], 10 * x + 9) << "run " << run;
  }
}

// Calls in strips of bands use the simple path, also in a shorter band, and in one that begins differently. There is no
// separate code for each band. Errors name the loops of the program.
TEST(BoundProgram, BandsHaveTheSameCodeForAnyNumberOfWorkers) {
  std::set<int64_t> sizes;
  for (const int64_t bands : {4, 5, 40}) {
    const int64_t rows = 8 * bands - 2;
    Data data, expected;
    for (Data* d : {&data, &expected}) d->add("out", {12, rows});
    const Program program =
        parsed(str("program @bands() { output %out : i32 rank 2 for y in [0, ", rows, ") step 8 parallel ", bands, R"( {
      for z in [y, min(y + 8, )",
                   rows, R"()) step 2 {
        let from = max(z - 4, 0) {
          call iota(out %out[0 +: 12, z +: 2]; from)
        }
      }
    } })"));
    ThreadPool threads(static_cast<int>(bands));
    auto bound = BoundProgram::bind(program, data.arguments(), {.pool = &threads, .threads = static_cast<int>(bands)});
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    const std::string code = bound->disassembly();
    EXPECT_THAT(code, AllOf(HasSubstr("workers y"), HasSubstr("call_plain iota"), Not(HasSubstr("call iota"))));
    EXPECT_THAT(code, Not(ContainsRegex("loop z [^\n]*\n[0-9]+: max"))) << "the first band begins otherwise, alone";
    sizes.insert(std::ranges::count(code, '\n'));
    ASSERT_TRUE(interpret(program, expected.arguments()).ok());
    for (int run = 0; run < 5; ++run) {
      std::fill(data["out"].begin(), data["out"].end(), -1);
      ASSERT_TRUE(bound->run(data.arguments()).ok());
      ASSERT_EQ(data["out"], expected["out"]) << "run " << run << "\n" << code;
    }
  }
  EXPECT_EQ(sizes.size(), 1u);
}

TEST(BoundProgram, DivisionsByZeroAreRefused) {
  EXPECT_THAT(
      error_of("program @zero() { output %out : i32 rank 1 for i in [0, 4) { call iota(out %out; 3 floordiv i) } }", 1),
      HasSubstr("may divide by zero"));
}

// Transfers ----------------------------------------------------------------------------------------------------

// More concurrent transfers than a queue has room for, of two tokens, waited for in another order.
TEST(BoundProgram, TransfersMayBeManyAndEndInAnyOrderOfTheirTokens) {
  Data data;
  data.add("in", {12, 100});
  data.add("out", {12, 100});
  auto bound = BoundProgram::bind(parsed(R"(program @many() {
    input %in : i32 rank 2
    output %out : i32 rank 2
    token %a
    token %b
    for y in [0, 50) {
      start %a copy %out[0 +: 12, 2 * y +: 1](x, y) = %in(x, y)
      start %b copy %out[0 +: 12, 2 * y + 1 +: 1](x, y) = %in(11 - x, y)
    }
    for y in [0, 50) { wait %b }
    for y in [0, 50) { wait %a }
  })"),
                                  data.arguments(), {.pool = &pool(), .beside_bytes = 0});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  for (int run = 0; run < 5; ++run) {
    std::fill(data["out"].begin(), data["out"].end(), -1);
    ASSERT_TRUE(bound->run(data.arguments()).ok());
    for (size_t y = 0; y < 100; ++y)
      for (size_t x = 0; x < 12; ++x)
        ASSERT_EQ(data["out"][12 * y + x], data["in"][12 * y + (y % 2 == 0 ? x : 11 - x)]) << x << ", " << y;
  }
}

// A run that fails leaves no transfer running, and the next one starts afresh.
TEST(BoundProgram, AFailedRunEndsItsTransfers) {
  Data data;
  data.add("in", {12, 10});
  data.add("out", {12, 10});
  const Program program = parsed(R"(program @fails(shift) {
    input %in : i32 rank 2
    output %out : i32 rank 2
    token %a
    start %a copy %out[0 +: 12, 0 +: 5](x, y) = %in[0 +: 12, 0 +: 5](x + shift, y)
    start %a copy %out[0 +: 12, 5 +: 5](x, y) = %in(x, y)
    wait %a
    wait %a
  })");
  data.scalar("shift", 1);
  auto bound = BoundProgram::bind(program, data.arguments(), {.pool = &pool(), .beside_bytes = 0});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  for (int run = 0; run < 5; ++run) {
    const auto result = bound->run(data.arguments());
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().to_string(), HasSubstr("in dma 'a'"));
  }
}

#ifndef __SANITIZE_THREAD__  // looking at memory that a transfer writes is a race, here on purpose
TEST(BoundProgram, TransfersGoOnWhileKernelsRun) {
  constexpr int64_t kElements = 1 << 20;
  std::vector<int32_t> in(kElements, 7), out(kElements);
  KernelTable table;
  // Sees the last element arrive, before anyone waits for it.
  table["looks"] = make_kernel("looks", [&out](CallContext& c) -> Result<void> {
    const volatile int32_t& last = out.back();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (last != 7)
      if (std::chrono::steady_clock::now() > end) return error(Code::internal, "nothing arrives");
    c.elements<int32_t>(0)(0) = 1;
    return {};
  });
  const auto program = parse_program(R"(program @overlap() {
    input %in : i32 rank 1
    output %out : i32 rank 1
    output %seen : i32 rank 1
    token %t
    start %t copy %out(x) = %in(x)
    call looks(out %seen)
    wait %t
  })",
                                     table);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  int32_t seen = 0;
  Arguments arguments;
  arguments.buffers["in"] = BufferArgument::dense(in.data(), kI32, {kElements});
  arguments.buffers["out"] = BufferArgument::dense(out.data(), kI32, {kElements});
  arguments.buffers["seen"] = BufferArgument::dense(&seen, kI32, {1});
  auto bound = BoundProgram::bind(*program, arguments, {.pool = &pool()});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  const auto result = bound->run(arguments);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(in, out);
}
#endif

TEST(BoundProgram, TooFewSlotsAreNamed) {
  EXPECT_THAT(error_of(R"(program @slots() {
    output %out : i32 rank 1
    allocate %a : i32[0 +: 1] slots 2 { for i in [0, 4) parallel 3 { call iota(out %a; i) } }
  })",
                       3),
              HasSubstr("'a', which has 2 slots"));
}

TEST(BoundProgram, ArgumentsMustHaveTheBoundShapes) {
  Data data;
  data.add("out", {4});
  auto bound = BoundProgram::bind(parsed("program @p() { output %out : i32 rank 1 }"), data.arguments());
  ASSERT_TRUE(bound.ok());
  data.add("out", {5});
  EXPECT_THAT(bound->run(data.arguments()).error().message(),
              HasSubstr("other dims than those that the program is bound to"));
  EXPECT_THAT(bound->run(std::vector<std::byte*>{}).error().message(), HasSubstr("declares 1 buffers, 0 are given"));
}

// A chain longer than the nesting limit of statements.
Program long_chain(int64_t length) {
  Program program;
  program.name = "chain";
  const BufferId in = program.add_buffer({"in", kI32, 1, Role::input, "host"});
  const BufferId out = program.add_buffer({"out", kI32, 1, Role::output, "host"});
  const KernelHandle add = kernels().find("add1")->second;
  Block body;
  BufferId from = in;
  for (int64_t i = 0; i < length; ++i) {
    BufferId to = out;
    if (i + 1 < length) {
      to = program.add_buffer({str("t", i), kI32, 1, Role::local, "host"});
      Allocation local;
      local.buffer = to;
      local.dims = {{0, extent_of("in", 0), std::nullopt, std::nullopt}};
      program.locals.push_back(std::move(local));
    }
    body.statements.push_back(Call{.kernel = add, .operands = {{Access::in, {from, {}}}, {Access::out, {to, {}}}}});
    if (from != in) body.statements.push_back(Free{from});
    from = to;
  }
  program.body = std::move(body);
  return program;
}

Data chain_data() {
  Data data;
  data.add("in", {16});
  data.add("out", {16});
  return data;
}

TEST(BoundProgram, LocalsLiveFromFirstUseToFree) {
  const Program program = long_chain(2000);
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().to_string();
  Data interpreted = chain_data(), compiled = chain_data();
  RunStatistics of_interpreter, of_compiled;
  ASSERT_TRUE(interpret(program, interpreted.arguments(), {}, &of_interpreter).ok());
  auto bound = BoundProgram::bind(program, compiled.arguments(), {.statistics = true});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  ASSERT_TRUE(bound->run(compiled.arguments(), &of_compiled).ok());
  EXPECT_EQ(compiled["out"], interpreted["out"]);
  expect_same(of_interpreter, of_compiled);
  EXPECT_EQ(of_compiled.heap_peak, 2 * 64);
  EXPECT_EQ(bound->arena_bytes().at("host"), 2 * 64);
}

TEST(BoundProgram, ALocalIsNotUsedAfterItsFree) {
  Program program = long_chain(3);
  Block body = *program.body.as<Block>();
  body.statements.push_back(body.statements[1]);
  program.body = std::move(body);
  const auto checked = verify(program);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().to_string(), HasSubstr("after the free of 't0'"));
}

TEST(BoundProgram, ForksRunAtTheSameTime) {
  const Program program = long_chain(50);
  Data one = chain_data(), other = chain_data();
  auto bound = BoundProgram::bind(program, one.arguments());
  ASSERT_TRUE(bound.ok());
  auto forked = bound->fork();
  ASSERT_TRUE(forked.ok());
  std::thread thread([&] { EXPECT_TRUE(forked->run(other.arguments()).ok()); });
  EXPECT_TRUE(bound->run(one.arguments()).ok());
  thread.join();
  EXPECT_EQ(one["out"], other["out"]);
}

// A model of a thousand kernels has a thousand such programs, each with a context per concurrent run.
TEST(BoundProgram, AContextWithoutTransfersIsSmall) {
  const Program program = long_chain(3);
  Data data = chain_data();
  auto bound = BoundProgram::bind(program, data.arguments());
  ASSERT_TRUE(bound.ok());
  const int64_t before = test::allocated_bytes;
  const auto forked = bound->fork();
  ASSERT_TRUE(forked.ok());
  EXPECT_LT(test::allocated_bytes - before, 8192);
}

struct Calls final : KernelState {
  int64_t count = 0;
};

// A kernel keeps a state for each call site, and sees the threads of the run; an observer is notified of each call.
TEST(BoundProgram, PlacesHaveStatesAndRunsHaveObservers) {
  ParallelFor* seen = nullptr;
  int64_t most = 0;
  auto kernel = std::make_shared<Kernel>(*kernels().find("add1")->second);
  kernel->make_state = [] { return std::make_unique<Calls>(); };
  kernel->run = [&, inner = kernel->run](CallContext& call) -> Result<void> {
    seen = call.parallel;
    most = std::max(most, ++static_cast<Calls*>(call.state)->count);
    return inner(call);
  };
  Program program = long_chain(3);
  Block body = *program.body.as<Block>();
  for (Statement& s : body.statements)
    if (const Call* call = s.as<Call>()) {
      Call changed = *call;
      changed.kernel = kernel;
      s = changed;
    }
  program.body = std::move(body);
  Data data = chain_data();
  auto bound = BoundProgram::bind(program, data.arguments());
  ASSERT_TRUE(bound.ok());
  struct : StageObserver {
    std::vector<std::string> stages;
    void ran(std::string_view stage, double microseconds, bool in_loop) override {
      EXPECT_GE(microseconds, 0);
      EXPECT_FALSE(in_loop);
      stages.emplace_back(stage);
    }
  } observer;
  const std::vector<std::byte*> buffers = {data.arguments().buffers.at("in").data,
                                           data.arguments().buffers.at("out").data};
  ASSERT_TRUE(bound->run(buffers, {.pool = &pool(), .observer = &observer}).ok());
  EXPECT_EQ(seen, &pool());
  EXPECT_EQ(observer.stages, std::vector<std::string>(3, "add1"));
  ASSERT_TRUE(bound->run(buffers, RunWith{}).ok());
  EXPECT_EQ(observer.stages.size(), 3u);
  EXPECT_EQ(most, 2);
}

// Extents beyond 2^63 are refused where memory is allocated; next to an extent of 0 no stride is needed.
TEST(BufferArgument, StatesAnyExtents) {
  const BufferArgument large = BufferArgument::dense(nullptr, kF32, {INT64_MAX, 2, 3});
  EXPECT_EQ(large.dims[0].stride, 4);
  EXPECT_EQ(large.dims[2].extent, 3);
  EXPECT_EQ(BufferArgument::dense(nullptr, kF32, {INT64_MAX, INT64_MAX, 0}).dims[2].extent, 0);
}

}  // namespace
}  // namespace tenon::program
