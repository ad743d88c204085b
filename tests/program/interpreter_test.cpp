#include <tenon/program/exec/interpreter.hpp>

#include <gmock/gmock.h>

#include <random>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kBlur = R"(program @blur() {
  input %in : i32 rank 2
  output %out : i32 rank 2
  allocate %rows : i32[out.min0 - 1 +: out.extent0 + 2, out.min1 - 1 +: out.extent1 + 2 fold 3] {
    for y in [out.min1 - 2, out.min1 + out.extent1) {
      call add1(in %in, out %rows[out.min0 - 1 +: out.extent0 + 2, y + 1 +: 1])
      crop %line = %out[_, y +: 1] {
        call sum3(in %rows, out %line)
      }
    }
  }
})";

Data blur_data() {
  Data data;
  data.add("in", {12, 9}, {-1, -1});
  data.add("out", {10, 7});
  return data;
}

int32_t blur_at(const Data& data, int64_t x, int64_t y) {
  int32_t sum = 0;
  for (int64_t dy = 0; dy < 3; ++dy)
    for (int64_t dx = 0; dx < 3; ++dx) sum += data["in"][static_cast<size_t>((y + dy) * 12 + x + dx)] + 1;
  return sum;
}

TEST(Interpreter, SlidesAWindowOverARingOfRows) {
  Data data = blur_data();
  RunStatistics counts;
  const auto result = interpret(parsed(kBlur), data.arguments(), {}, &counts);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  for (int64_t y = 0; y < 7; ++y)
    for (int64_t x = 0; x < 10; ++x) EXPECT_EQ(data["out"][static_cast<size_t>(y * 10 + x)], blur_at(data, x, y));
  EXPECT_THAT(counts.heap, ElementsAre(12 * 3 * 4));
  EXPECT_EQ(counts.heap_peak, 12 * 3 * 4);
  EXPECT_EQ(counts.loop_iterations, 9);
  EXPECT_EQ(counts.stages.at("add1->rows"), (StageStatistics{9, 0, 9 * 12}));
  EXPECT_EQ(counts.stages.at("sum3->out"), (StageStatistics{7, 2, 70}));
}

TEST(Interpreter, ARingThatIsTooSmallGivesWrongRows) {
  std::string text(kBlur);
  text.replace(text.find("fold 3"), 6, "fold 2");
  Data data = blur_data();
  ASSERT_TRUE(interpret(parsed(text), data.arguments()).ok());
  EXPECT_NE(data["out"][0], blur_at(data, 0, 0));
}

TEST(Interpreter, ABoxOutsideOfTheBufferIsNamed) {
  std::string text(kBlur);
  text.replace(text.find("y + 1 +: 1"), 10, "y + 2 +: 1");
  Data data = blur_data();
  const auto result = interpret(parsed(text), data.arguments());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().to_string(),
            "dim 1: the box has 1 indices from 8 on, the buffer 'rows' has 9 from -1 on\n"
            "  in operand 1 (out 'rows')\n"
            "  in call 'add1'\n"
            "  in loop y = 6\n"
            "  in program 'blur'");
}

// Views ---------------------------------------------------------------------------------------------------------

TEST(Interpreter, ViewsReadWhereTheySay) {
  Data data;
  data.add("in", {4, 3});
  data.add("sliced", {4});
  data.add("transposed", {3, 4});
  data.add("flipped", {4});
  data.add("diagonal", {3});
  const auto result = interpret(parsed(R"(program @views() {
    input %in : i32 rank 2
    output %sliced : i32 rank 1
    output %transposed : i32 rank 2
    output %flipped : i32 rank 1
    output %diagonal : i32 rank 1
    slice %row = %in[_, 2] { call add1(in %row, out %sliced) }
    transpose %turned = %in[1, 0] { call add1(in %turned, out %transposed) }
    view %back : i32 = %in at 12 [0 +: 4 stride -4] { call add1(in %back, out %flipped) }
    view %diag : i32 = %in at 0 [0 +: 3 stride in.stride0 + in.stride1] { call add1(in %diag, out %diagonal) }
  })"),
                                data.arguments());
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  const auto& in = data["in"];
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(data["sliced"][i], in[8 + i] + 1);
    EXPECT_EQ(data["flipped"][i], in[3 - i] + 1);
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(data["transposed"][i * 3 + j], in[j * 4 + i] + 1);
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(data["diagonal"][i], in[i * 5] + 1);
}

TEST(Interpreter, ACropChangesWhatTheMetadataMean) {
  Data data;
  data.add("out", {10}, {5});
  ASSERT_TRUE(interpret(parsed(R"(program @crops() {
    output %out : i32 rank 1
    call iota(out %out; 0)
    crop %out[7 +: 100] {
      check out.min0 == 7 : "min"
      check out.extent0 == 8 : "extent"
      crop %out[0 +: 9] {
        call iota(out %out; out.min0 * 100 + out.extent0)
      }
    }
  })"),
                        data.arguments())
                  .ok());
  EXPECT_THAT(data["out"], ElementsAre(50, 60, 772, 782, 90, 100, 110, 120, 130, 140));
}

TEST(Interpreter, AViewThatLeavesItsMemoryIsNamed) {
  Data data;
  data.add("out", {4});
  const auto result = interpret(parsed(R"(program @leaves() {
    output %out : i32 rank 1
    view %v : i32 = %out at 4 [0 +: 4] { call iota(out %v; 0) }
  })"),
                                data.arguments());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(), "buffer 'v' reaches from byte 4 to 20 of 'out', which has 16");
}

// Copies --------------------------------------------------------------------------------------------------------

struct CopyCase {
  const char* name;
  const char* copy;
  std::vector<int64_t> out_extents;
  std::function<int64_t(int64_t, int64_t)> source;  // position in a 4 x 3 input, or -1: padding
};

class CopyTest : public ::testing::TestWithParam<CopyCase> {};

TEST_P(CopyTest, OneStatementDoesIt) {
  const CopyCase& c = GetParam();
  Data data;
  data.add("in", {4, 3});
  data.add("out", c.out_extents);
  RunStatistics counts;
  const auto result = interpret(parsed(str("program @copies() {\n input %in : i32 rank 2\n output %out : i32 rank ",
                                           c.out_extents.size(), "\n copy %out", c.copy, "\n}")),
                                data.arguments(), {}, &counts);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(counts.copies.at("copy->out").calls, 1);
  const int64_t width = c.out_extents[0], height = c.out_extents.size() > 1 ? c.out_extents[1] : 1;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const int64_t from = c.source(x, y);
      EXPECT_EQ(data["out"][static_cast<size_t>(y * width + x)], from < 0 ? 6 : data["in"][static_cast<size_t>(from)])
          << x << ", " << y;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Maps, CopyTest,
    ::testing::Values(
        CopyCase{"plain", "(x, y) = %in(x, y)", {4, 3}, [](int64_t x, int64_t y) { return 4 * y + x; }},
        CopyCase{"flip", "(x, y) = %in(3 - x, 2 - y)", {4, 3}, [](int64_t x, int64_t y) { return 11 - 4 * y - x; }},
        CopyCase{"transpose", "(x, y) = %in(y, x)", {3, 4}, [](int64_t x, int64_t y) { return 4 * x + y; }},
        CopyCase{
            "upsample", "(x, y) = %in(x, y floordiv 2)", {4, 6}, [](int64_t x, int64_t y) { return y / 2 * 4 + x; }},
        CopyCase{"reshape",
                 "(x, y) = %in((x + 6 * y) mod 4, (x + 6 * y) floordiv 4)",
                 {6, 2},
                 [](int64_t x, int64_t y) { return 6 * y + x; }},
        CopyCase{"broadcast", "(x, y) = %in(x, 1)", {4, 5}, [](int64_t x, int64_t) { return 4 + x; }},
        CopyCase{"flatten", "(i) = %in(i mod 4, i floordiv 4)", {12}, [](int64_t x, int64_t) { return x; }},
        CopyCase{"padded",
                 "(x, y) = %in(x - 1, y - 1) pad 0x06000000",
                 {6, 5},
                 [](int64_t x, int64_t y) { return x < 1 || x > 4 || y < 1 || y > 3 ? -1 : 4 * (y - 1) + x - 1; }},
        CopyCase{"kept_box",
                 "(x, y) = %in[1 +: 2, 0 +: 2](x, y) pad 0x06000000",
                 {4, 3},
                 [](int64_t x, int64_t y) { return x < 1 || x > 2 || y > 1 ? -1 : 4 * y + x; }}),
    [](const auto& info) { return info.param.name; });

TEST(Interpreter, CopiesPadFromABuffer) {
  Data data;
  data.add("in", {2});
  data.add("pad", {6});
  data.add("out", {6});
  ASSERT_TRUE(interpret(parsed(R"(program @pads() {
    input %in : i32 rank 1
    input %pad : i32 rank 1
    output %out : i32 rank 1
    copy %out(x) = %in(x - 3) pad %pad
  })"),
                        data.arguments())
                  .ok());
  const auto &in = data["in"], &pad = data["pad"];
  EXPECT_THAT(data["out"], ElementsAre(pad[0], pad[1], pad[2], in[0], in[1], pad[5]));
}

TEST(Interpreter, ACopyFromOutsideWithoutPaddingIsNamed) {
  Data data;
  data.add("in", {4});
  data.add("out", {4});
  const auto result = interpret(parsed(R"(program @outside() {
    input %in : i32 rank 1
    output %out : i32 rank 1
    copy %out(x) = %in(x + 1)
  })"),
                                data.arguments());
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("index [3] of the destination comes from index [4] of the source"));
}

TEST(Interpreter, CopiesDownWithinOneBufferAscend) {
  Data data;
  data.add("out", {6});
  ASSERT_TRUE(interpret(parsed(R"(program @moves() {
    output %out : i32 rank 1
    call iota(out %out; 0)
    copy %out[0 +: 4](x) = %out[2 +: 4](x + 2)
  })"),
                        data.arguments())
                  .ok());
  EXPECT_THAT(data["out"], ElementsAre(20, 30, 40, 50, 40, 50));
}

// Loops ---------------------------------------------------------------------------------------------------------

constexpr std::string_view kWorkers = R"(program @workers(n, limit) {
  output %out : i32 rank 1
  allocate %tmp : i32[0 +: 1] slots 3 {
    for i in [0, n) parallel limit {
      call iota(out %tmp; i)
      view %line : i32 = %out at 4 * i [0 +: 1] {
        call add1(in %tmp, out %line) as "store"
      }
    }
  }
})";

TEST(Interpreter, WorkersHaveSlotsOfTheirOwn) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    Data data;
    data.add("out", {10});
    data.scalar("n", 10);
    data.scalar("limit", 3);
    RunStatistics counts;
    const auto result = interpret(parsed(kWorkers), data.arguments(), {.threads = 8, .seed = seed}, &counts);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_THAT(data["out"], ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    EXPECT_THAT(counts.heap, ElementsAre(3 * 4));
    EXPECT_EQ(counts.parallel_loops, 1);
    EXPECT_EQ(counts.stages.at("store->out").calls, 10);
  }
}

TEST(Interpreter, TooFewSlotsAreNamed) {
  Data data;
  data.add("out", {10});
  data.scalar("n", 10);
  data.scalar("limit", 4);
  const auto result = interpret(parsed(kWorkers), data.arguments(), {.threads = 8});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(), "worker 3 uses 'tmp', which has 3 slots");
}

TEST(Interpreter, AStepBelowOneIsAnError) {
  Data data;
  data.scalar("s", 0);
  const auto result = interpret(parsed("program @steps(s) { for i in [0, 4) step s {} }"), data.arguments());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(), "loop i has step 0, at least 1 is needed");
}

TEST(Interpreter, KernelErrorsSayWhereTheyHappened) {
  Data data;
  data.add("out", {4});
  const auto result = interpret(parsed(R"(program @errors() {
    output %out : i32 rank 1
    for i in [0, 4) { for j in [2, 3) { call fails(out %out[i +: 1]) as "bad" } }
  })"),
                                data.arguments());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().to_string(),
            "it failed\n  in call 'bad'\n  in loop j = 2\n  in loop i = 0\n  in program 'errors'");
}

// Memory --------------------------------------------------------------------------------------------------------

TEST(Interpreter, FreeEndsALife) {
  Data data;
  data.add("out", {4});
  const std::string text = R"(program @frees() {
    output %out : i32 rank 1
    allocate %a : i32[0 +: 4] {
      call iota(out %a; 0)
      allocate %b : i32[0 +: 4] stack {
        call add1(in %a, out %b)
        free %a
        allocate %c : i32[0 +: 4] {
          call add1(in %b, out %c)
          call add1(in %c, out %out)
        }
      }
    }
  })";
  RunStatistics counts;
  ASSERT_TRUE(interpret(parsed(text), data.arguments(), {}, &counts).ok());
  EXPECT_THAT(data["out"], ElementsAre(3, 13, 23, 33));
  EXPECT_THAT(counts.heap, ElementsAre(16, 16));
  EXPECT_EQ(counts.heap_peak, 16);
  EXPECT_THAT(counts.stack, ElementsAre(16));

  std::string after_end = text;
  after_end.replace(after_end.find("in %c, out %out"), 15, "in %a, out %out");
  const auto result = interpret(parsed(after_end), data.arguments());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(), "buffer 'a' is used after its end");
}

TEST(Interpreter, AutomaticAllocationsUpToTheLimitAreStack) {
  const Program program = parsed(R"(program @automatic() {
    output %out : i32 rank 1
    allocate %a : i32[0 +: 4] { call iota(out %a; 0) call add1(in %a, out %out) }
  })");
  Data data;
  data.add("out", {4});
  RunStatistics counts;
  ASSERT_TRUE(interpret(program, data.arguments(), {.stack_bytes = 16}, &counts).ok());
  EXPECT_THAT(counts.stack, ElementsAre(16));
  ASSERT_TRUE(interpret(program, data.arguments(), {.stack_bytes = 15}, &counts).ok());
  EXPECT_THAT(counts.stack, IsEmpty());
  EXPECT_THAT(counts.heap, ElementsAre(16));
}

// Transfers -----------------------------------------------------------------------------------------------------

constexpr std::string_view kLoads = R"(program @loads() {
  input %in : i32 rank 2
  output %out : i32 rank 2
  token %load
  allocate %tile : i32[0 +: 4, 0 +: 8 fold 2] in scratch {
    start %load copy %tile[0 +: 4, 0 +: 1](x, y) = %in(x, y)
    for i in [0, 7) {
      start %load copy %tile[0 +: 4, i + 1 +: 1](x, y) = %in(x, y)
      wait %load
      call add1(in %tile[0 +: 4, i +: 1], out %out[0 +: 4, i +: 1])
    }
    wait %load
    call add1(in %tile[0 +: 4, 7 +: 1], out %out[0 +: 4, 7 +: 1])
  }
})";

TEST(Interpreter, TransfersMayHappenAtAnyMomentUntilTheWait) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Data data;
    data.add("in", {4, 8});
    data.add("out", {4, 8});
    const auto result = interpret(parsed(kLoads), data.arguments(), {.seed = seed});
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(data["out"][i], data["in"][i] + 1) << "seed " << seed;
  }
}

TEST(Interpreter, AMissingWaitIsNamed) {
  std::string text(kLoads);
  text.replace(text.rfind("wait %load"), 10, "");
  Data data;
  data.add("in", {4, 8});
  data.add("out", {4, 8});
  const auto result = interpret(parsed(text), data.arguments());
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("'tile' is freed while a transfer of token 'load' is under way"));
}

TEST(Interpreter, AWaitForNothingIsNamed) {
  Data data;
  const auto result = interpret(parsed("program @waits() { token %t wait %t }"), data.arguments());
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("no transfer of this token is under way"));
}

// Arguments -----------------------------------------------------------------------------------------------------

TEST(Interpreter, WrongArgumentsAreNamed) {
  const Program program = parsed("program @p(n) { input %in : i32 rank 1 output %out : i32 rank 1 }");
  const auto message = [&](Data& data) {
    const auto result = interpret(program, data.arguments());
    return result.ok() ? std::string("no error") : result.error().to_string();
  };
  Data data;
  EXPECT_THAT(message(data), HasSubstr("scalar n is not given"));
  data.scalar("n", 1);
  data.add("in", {3});
  EXPECT_THAT(message(data), HasSubstr("buffer 'out' is not given"));
  data.add("out", {3, 3});
  EXPECT_THAT(message(data), HasSubstr("given with 2 dims, declared with 1\n  in buffer 'out'"));
  data.add("out", {3});
  EXPECT_EQ(message(data), "no error");
  data.add("more", {1});
  EXPECT_THAT(message(data), HasSubstr("declares no buffer 'more'; it has in, out"));
}

}  // namespace
}  // namespace tenon::program
