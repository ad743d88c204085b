// Loops whose first and last iterations have separate code (exec/steady.cpp).
#include <tenon/program/exec/bound_program.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <regex>

#include <tenon/program/exec/interpreter.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::HasSubstr;

BoundProgram bound_to(const Program& program, Data& data) {
  auto bound = BoundProgram::bind(program, data.arguments());
  EXPECT_TRUE(bound.ok()) << bound.error().to_string();
  return *std::move(bound);
}

// The instructions of each loop, without those that begin and end it.
std::vector<std::string> loop_bodies(const std::string& code) {
  std::vector<std::string> bodies;
  const std::regex loop(R"(\d+: loop [^\n]*\n([^]*?)\d+: next [^\n]*\n)");
  for (std::sregex_iterator it(code.begin(), code.end(), loop), end; it != end; ++it) bodies.push_back((*it)[1]);
  return bodies;
}

// A window that begins early, and a last strip that is cropped.
const char* const kWindow = R"(program @window() {
  output %out : i32 rank 2
  for y in [-4, 31) step 2 {
    let from = max(y, 0) {
      let to = min(y + 2, 31) {
        call iota(out %out[0 +: 3, from +: to - from]; select(y == 0, 7, y))
      }
    }
  }
})";

TEST(Steady, MostIterationsDecideNothing) {
  Data data, expected;
  data.add("out", {3, 31});
  expected.add("out", {3, 31});
  const Program program = parsed(kWindow);
  BoundProgram bound = bound_to(program, data);
  const std::vector<std::string> bodies = loop_bodies(bound.disassembly());
  ASSERT_EQ(bodies.size(), 2u) << bound.disassembly();
  EXPECT_TRUE(std::regex_match(bodies[1], std::regex(R"(\d+: call_plain [^\n]*\n)"))) << bound.disassembly();
  // The last strip is code of its own, with numbers that are known.
  EXPECT_TRUE(std::regex_search(bound.disassembly(), std::regex(R"(: next [^\n]*\n\d+: call_plain [^\n]*\n\d+: end)")))
      << bound.disassembly();
  ASSERT_TRUE(bound.run(data.arguments()).ok());
  ASSERT_TRUE(interpret(program, expected.arguments(), {}).ok());
  EXPECT_EQ(data["out"], expected["out"]);
}

// A condition on the value of another one, and rising conditions: none of them is in the longest part.
TEST(Steady, ConditionsWithinConditionsAndRisingOnesHaveOneOutcome) {
  for (const char* value : {"min(max(y - 3, 0), 5)", "select(y < 7, 2, 1)", "select(6 < y, 1, 2)", "max(y, 6)",
                            "max(6, y)", "min(y, 4)", "min(4, y)", "max(min(max(y, 3), 9), 4)"}) {
    Data data, expected;
    data.add("out", {3, 40});
    expected.add("out", {3, 40});
    const Program program = parsed(str("program @p() { output %out : i32 rank 2 for y in [0, 40) {"
                                       " call iota(out %out[0 +: 3, y +: 1]; ", value, ") } }"));
    BoundProgram bound = bound_to(program, data);
    const std::vector<std::string> bodies = loop_bodies(bound.disassembly());
    EXPECT_TRUE(std::ranges::any_of(bodies, [](const std::string& body) {
      return std::regex_match(body, std::regex(R"(\d+: call_plain [^\n]*\n)"));
    })) << value << "\n" << bound.disassembly();
    ASSERT_TRUE(bound.run(data.arguments()).ok());
    ASSERT_TRUE(interpret(program, expected.arguments(), {}).ok());
    EXPECT_EQ(data["out"], expected["out"]) << value;
  }
}

TEST(Steady, FewIterationsAndBodiesWithMemoryAreLeftWhole) {
  for (const char* text : {R"(program @few() { output %out : i32 rank 2
                               for y in [0, 3) { call iota(out %out[0 +: 3, y +: 1]; max(y, 1)) } })",
                           R"(program @memory() { output %out : i32 rank 2
                               for y in [0, 31) {
                                 allocate %t : i32[0 +: 3, y +: 1] {
                                   call iota(out %t; max(y, 2))
                                   call add1(in %t, out %out[0 +: 3, y +: 1])
                                 }
                               } })"}) {
    Data data;
    data.add("out", {3, 31});
    EXPECT_EQ(loop_bodies(bound_to(parsed(text), data).disassembly()).size(), 1u) << text;
  }
}

struct Calls final : KernelState {
  int64_t count = 0;
};

// The parts of a loop count as one call site of the program.
TEST(Steady, PartsOfALoopShareTheStateOfAKernel) {
  int64_t made = 0, most = 0;
  KernelTable table = kernels();
  auto kernel = std::make_shared<Kernel>(*table.at("iota"));
  kernel->make_state = [&] { return ++made, std::make_unique<Calls>(); };
  kernel->run = [&, inner = kernel->run](CallContext& call) -> Result<void> {
    most = std::max(most, ++static_cast<Calls*>(call.state)->count);
    return inner(call);
  };
  table["iota"] = kernel;
  const auto program = parse_program(kWindow, table);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data data;
  data.add("out", {3, 31});
  ASSERT_TRUE(bound_to(*program, data).run(data.arguments()).ok());
  EXPECT_EQ(made, 1);
  EXPECT_EQ(most, 16) << "two of eighteen boxes are empty";
}

TEST(Steady, ErrorsNameTheIterationInAnyPart) {
  KernelTable table = kernels();
  table["fails_at_20"] = make_kernel("fails_at_20", [](CallContext& c) -> Result<void> {
    if (c.operands[0].dims[0].min == 20) return error(Code::internal, "it failed");
    return {};
  });
  const auto program = parse_program(R"(program @fails() { output %out : i32 rank 1
    for y in [0, 31) { call fails_at_20(out %out[y +: min(y + 1, 30) - min(y, 29)]) } })", table);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data data;
  data.add("out", {40});
  const auto ran = bound_to(*program, data).run(data.arguments());
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error().to_string(), HasSubstr("loop y = 20"));
}

// Bodies with calls and hints only are run by special code.
TEST(Steady, ErrorsNameTheIterationBesideHints) {
  KernelTable table = kernels();
  table["fails_at_20"] = make_kernel("fails_at_20", [](CallContext& c) -> Result<void> {
    if (c.operands[1].dims[0].min == 20) return error(Code::internal, "it failed");
    return {};
  });
  const auto program = parse_program(R"(program @fails() { input %in : i32 rank 1 output %out : i32 rank 1
    for y in [0, 40) {
      prefetch in %in[y + 4 +: 1]
      call fails_at_20(in %in[y +: 1], out %out[y +: 1])
      prefetch in %in[y + 8 +: 1]
    } })", table);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data data;
  data.add("in", {50});
  data.add("out", {40});
  BoundProgram bound = bound_to(*program, data);
  EXPECT_THAT(bound.disassembly(), HasSubstr("read_soon")) << "the test looks at nothing else";
  const auto ran = bound.run(data.arguments());
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error().to_string(), HasSubstr("call 'fails_at_20'\n  in loop y = 20"));
}

// Adds rows y - 1 ... y + 1 of a ring up.
const char* const kRing = R"(program @ring() {
  input %in : i32 rank 2
  output %out : i32 rank 2
  allocate %rows : i32[0 +: 3, -1 +: 42 fold 3] {
    for y in [-2, 40) {
      call add1(in %in[0 +: 3, y + 1 +: 1], out %rows[0 +: 3, y + 1 +: 1])
      let from = max(y, 0) {
        call rows3(in %rows[0 +: 3, y - 1 +: 3], out %out[0 +: 3, from +: y + 1 - from])
      }
    }
  }
})";

KernelTable kernels_on_rings(int64_t fails_at = INT64_MAX) {
  KernelTable table = kernels();
  table["rows3"] = make_kernel("rows3", [fails_at](CallContext& c) -> Result<void> {
    const Elements<const int32_t> in = c.elements<const int32_t>(0);
    const Elements<int32_t> out = c.elements<int32_t>(1);
    if (out.min(1) == fails_at) return error(Code::internal, "it failed");
    for (int64_t y = out.min(1); y <= out.max(1); ++y)
      for (int64_t x = out.min(0); x <= out.max(0); ++x) out(x, y) = in(x, y - 1) + in(x, y) + in(x, y + 1);
    return {};
  }, true);
  return table;
}

TEST(Steady, PlacesInRingsAreConstantInCodeForAPeriod) {
  const auto program = parse_program(kRing, kernels_on_rings());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data compiled, interpreted;
  for (Data* data : {&compiled, &interpreted}) {
    data->add("in", {3, 42}, {0, -1});
    data->add("out", {3, 40});
  }
  BoundProgram bound = bound_to(*program, compiled);
  const std::vector<std::string> bodies = loop_bodies(bound.disassembly());
  ASSERT_EQ(bodies.size(), 2u) << bound.disassembly();
  EXPECT_TRUE(std::regex_match(bodies[1], std::regex(R"((\d+: call(_plain|_function) [^\n]*\n){6})")))
      << bound.disassembly();
  ASSERT_TRUE(bound.run(compiled.arguments()).ok());
  ASSERT_TRUE(interpret(*program, interpreted.arguments(), {}).ok());
  EXPECT_EQ(compiled["out"], interpreted["out"]);
}

// Bands of workers, each with a ring of `fold` positions of its own, which begin at any position.
std::string ring_in_bands(int64_t rows, int64_t band, int64_t fold) {
  return str("program @bands() { input %in : i32 rank 2 output %out : i32 rank 2 for b in [0, ", rows, ") step ", band,
             " parallel 8 { let end = min(b + ", band, ", ", rows, ") { allocate %rows : i32[0 +: 3, b - 1 +: ", band,
             " + 2 fold ", fold, R"(] {
    for y in [b - 2, end) {
      call add1(in %in[0 +: 3, y + 1 +: 1], out %rows[0 +: 3, y + 1 +: 1])
      let from = max(y, b) {
        call rows3(in %rows[0 +: 3, y - 1 +: 3], out %out[0 +: 3, from +: y + 1 - from])
      }
    }
  } } } })");
}

// Periods begin where positions are known: before the first one, some iterations pass because a worker's band may begin
// between two periods. The last band is shorter.
TEST(Steady, PlacesInRingsAreConstantWhereverABandBegins) {
  for (const int64_t fold : {3, 4, 5, 7})
    for (const int64_t band : {20, 21, 22, 24}) {
      const int64_t rows = 5 * band - 3;
      const auto program = parse_program(ring_in_bands(rows, band, fold), kernels_on_rings());
      ASSERT_TRUE(program.ok()) << program.error().to_string();
      Data compiled, interpreted;
      for (Data* data : {&compiled, &interpreted}) {
        data->add("in", {3, rows + 2}, {0, -1});
        data->add("out", {3, rows});
      }
      ThreadPool three(3);
      auto bound = BoundProgram::bind(*program, compiled.arguments(), {.pool = &three});
      ASSERT_TRUE(bound.ok()) << bound.error().to_string();
      const std::string code = bound->disassembly();
      const std::regex period(
          str(R"(: loop y [^\n]*\n(\d+: call(_plain|_function) [^\n]*\n){)", 2 * fold, "}\\d+: next"));
      const auto periods =
          std::distance(std::sregex_iterator(code.begin(), code.end(), period), std::sregex_iterator());
      EXPECT_EQ(periods, 2) << "bands of " << band << " rows, and one of less, " << fold << " places\n" << code;
      ASSERT_TRUE(interpret(*program, interpreted.arguments(), {}).ok());
      for (int run = 0; run < 3; ++run) {
        std::ranges::fill(compiled["out"], -1);
        ASSERT_TRUE(bound->run(compiled.arguments()).ok());
        ASSERT_EQ(compiled["out"], interpreted["out"]) << "bands of " << band << " rows, " << fold << " places\n"
                                                       << code;
      }
    }
}

TEST(Steady, ErrorsNameTheIterationWithinABand) {
  for (const int64_t y : {0, 20, 21, 30, 35, 39, 41, 50, 96}) {
    const auto program = parse_program(ring_in_bands(97, 20, 3), kernels_on_rings(y));
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    Data data;
    data.add("in", {3, 99}, {0, -1});
    data.add("out", {3, 97});
    ThreadPool three(3);
    auto bound = BoundProgram::bind(*program, data.arguments(), {.pool = &three});
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    const auto ran = bound->run(data.arguments());
    ASSERT_FALSE(ran.ok());
    EXPECT_THAT(ran.error().to_string(), HasSubstr(str("loop y = ", y, "\n  in loop b = ", y / 20 * 20, "\n")));
  }
}

TEST(Steady, ErrorsNameTheIterationWithinAPeriod) {
  for (const int64_t y : {0, 1, 14, 15, 16, 38, 39}) {
    const auto program = parse_program(kRing, kernels_on_rings(y));
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    Data data;
    data.add("in", {3, 42}, {0, -1});
    data.add("out", {3, 40});
    const auto ran = bound_to(*program, data).run(data.arguments());
    ASSERT_FALSE(ran.ok());
    EXPECT_THAT(ran.error().to_string(), HasSubstr("loop y = " + std::to_string(y) + "\n"));
  }
}

// A kernel that takes no rings gets an error where a box wraps around, in any iteration of a period.
TEST(Steady, BoxesThatWrapAroundAreRefusedByKernelsWithoutRings) {
  KernelTable table = kernels_on_rings();
  table["rows3"] = make_kernel("rows3", table["rows3"]->run);
  const auto program = parse_program(kRing, table);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data data;
  data.add("in", {3, 42}, {0, -1});
  data.add("out", {3, 40});
  const auto ran = bound_to(*program, data).run(data.arguments());
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error().to_string(), HasSubstr("takes no folded buffers"));
}

// Tiles, the last of which are cropped in both directions.
const char* const kTiles = R"(program @tiles() {
  output %out : i32 rank 2
  for y in [0, out.extent1) step 2 {
    let to = min(y + 2, out.extent1) {
      for x in [0, out.extent0) step 4 {
        let end = min(x + 4, out.extent0) {
          prefetch out %out[x + 4 +: 4, y +: to - y]
          call iota(out %out[x +: end - x, y +: to - y]; x)
        }
      }
    }
  }
})";

// Conditions on the symbol of an outer loop are also decided when its code is made, whatever the inner loops do; a few
// iterations within a loop have separate code.
TEST(Steady, LoopsAroundLoopsHaveSteadyParts) {
  const std::regex decided_in_a_run(R"(: (min|max|select|at_least_0|is_0|prefetch) )");
  for (const int64_t width : {0, 1, 3, 4, 5, 8, 11, 16, 17, 70})
    for (const int64_t height : {0, 1, 2, 3, 6, 7, 8, 9, 31}) {
      Data data, expected;
      data.add("out", {width, height});
      expected.add("out", {width, height});
      const Program program = parsed(kTiles);
      BoundProgram bound = bound_to(program, data);
      EXPECT_FALSE(std::regex_search(bound.disassembly(), decided_in_a_run))
          << width << " x " << height << "\n" << bound.disassembly();
      ASSERT_TRUE(bound.run(data.arguments()).ok());
      ASSERT_TRUE(interpret(program, expected.arguments(), {}).ok());
      EXPECT_EQ(data["out"], expected["out"]) << width << " x " << height;
    }
}

// Downsampling by two and upsampling again: a row of `half` is computed in every second iteration, with room for one.
const char* const kEverySecond = R"(program @second() {
  input %in : i32 rank 2
  output %out : i32 rank 2
  allocate %half : i32[0 +: 3, 0 +: 21 fold 1] {
    for y in [0, 41) {
      let from = (y + 1) floordiv 2 {
        call halve(in %in[0 +: 3, 2 * from +: 2 * (y floordiv 2 - from) + 1], out %half[0 +: 3, from +: y floordiv 2 - from + 1])
      }
      call double(in %half[0 +: 3, y floordiv 2 +: 1], out %out[0 +: 3, y +: 1])
    }
  }
})";

// out(x, y) = in(x, `row` of y).
KernelHandle rows_from(std::string name, int64_t (*row)(int64_t)) {
  return make_kernel(std::move(name), [row](CallContext& c) -> Result<void> {
    const Elements<const int32_t> in = c.elements<const int32_t>(0);
    const Elements<int32_t> out = c.elements<int32_t>(1);
    for (int64_t y = out.min(1); y <= out.max(1); ++y)
      for (int64_t x = out.min(0); x <= out.max(0); ++x) out(x, y) = in(x, row(y));
    return {};
  }, true);
}

TEST(Steady, WhatMovesEverySecondIterationHasCodeForBoth) {
  Data compiled, interpreted;
  for (Data* data : {&compiled, &interpreted}) {
    data->add("in", {3, 41});
    data->add("out", {3, 41});
  }
  KernelTable table = kernels();
  table["halve"] = rows_from("halve", [](int64_t y) { return 2 * y; });
  table["double"] = rows_from("double", [](int64_t y) { return y / 2; });
  const auto program = parse_program(kEverySecond, table);
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  BoundProgram bound = bound_to(*program, compiled);
  const std::vector<std::string> bodies = loop_bodies(bound.disassembly());
  ASSERT_EQ(bodies.size(), 1u) << bound.disassembly();
  EXPECT_TRUE(std::regex_match(bodies[0], std::regex(R"((\d+: call(_plain|_function) [^\n]*\n){3})")))
      << bound.disassembly();
  ASSERT_TRUE(bound.run(compiled.arguments()).ok());
  ASSERT_TRUE(interpret(*program, interpreted.arguments(), {}).ok());
  EXPECT_EQ(compiled["out"], interpreted["out"]);
}

// Rows in two pieces each, from a ring.
const char* const kPieces = R"(program @pieces() {
  input %in : i32 rank 2
  output %out : i32 rank 2
  allocate %rows : i32[0 +: 6, -1 +: 42 fold 3] {
    for y in [-2, 40) {
      for x in [0, 6) step 3 {
        call add1(in %in[x +: 3, y + 1 +: 1], out %rows[x +: 3, y + 1 +: 1])
        let from = max(y, 0) {
          call rows3(in %rows[x +: 3, y - 1 +: 3], out %out[x +: 3, from +: y + 1 - from])
        }
      }
    }
  }
})";

TEST(Steady, LoopsOfAFewIterationsAreWrittenOut) {
  const auto program = parse_program(kPieces, kernels_on_rings());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data compiled, interpreted;
  for (Data* data : {&compiled, &interpreted}) {
    data->add("in", {6, 42}, {0, -1});
    data->add("out", {6, 40});
  }
  BoundProgram bound = bound_to(*program, compiled);
  const std::vector<std::string> bodies = loop_bodies(bound.disassembly());
  EXPECT_TRUE(std::ranges::any_of(bodies, [](const std::string& body) {
    return std::regex_match(body, std::regex(R"((\d+: call(_plain|_function) [^\n]*\n){12})"));
  })) << bound.disassembly();
  ASSERT_TRUE(bound.run(compiled.arguments()).ok());
  ASSERT_TRUE(interpret(*program, interpreted.arguments(), {}).ok());
  EXPECT_EQ(compiled["out"], interpreted["out"]);
}

TEST(Steady, ErrorsNameIterationsThatAreWrittenOut) {
  for (const int64_t y : {0, 1, 14, 15, 16, 38, 39}) {
    const auto program = parse_program(kPieces, kernels_on_rings(y));
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    Data compiled, interpreted;
    for (Data* data : {&compiled, &interpreted}) {
      data->add("in", {6, 42}, {0, -1});
      data->add("out", {6, 40});
    }
    const auto ran = bound_to(*program, compiled).run(compiled.arguments());
    ASSERT_FALSE(ran.ok());
    EXPECT_THAT(ran.error().to_string(), HasSubstr("loop x = 0\n"));
    EXPECT_THAT(ran.error().to_string(), HasSubstr("loop y = " + std::to_string(y) + "\n"));
    const auto wanted = interpret(*program, interpreted.arguments(), {});
    ASSERT_FALSE(wanted.ok());
    EXPECT_EQ(ran.error().to_string(), wanted.error().to_string());
  }
}

// Nested conditions that change anywhere.
std::string condition(std::mt19937& random, int depth) {
  const auto number = [&](int from, int to) { return std::to_string(std::uniform_int_distribution(from, to)(random)); };
  const std::string line = "(" + number(-2, 3) + " * y + " + number(-40, 40) + ")";
  if (depth == 0)
    return random() % 3 > 0 ? line : "(" + line + (random() % 2 ? " floordiv " : " mod ") + number(2, 5) + ")";
  const std::string a = condition(random, depth - 1), b = condition(random, depth - 1);
  switch (std::uniform_int_distribution(0, 3)(random)) {
    case 0: return "min(" + a + ", " + b + ")";
    case 1: return "max(" + a + ", " + b + ")";
    case 2: return "select(" + a + " <= " + b + ", " + b + ", " + number(-9, 9) + ")";
    default: return "select(" + a + " == " + number(-9, 9) + ", " + number(-9, 9) + ", " + b + ")";
  }
}

TEST(Steady, AnyLoopGivesWhatTheInterpreterGives) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int begin = std::uniform_int_distribution(-9, 9)(random), step = std::uniform_int_distribution(1, 3)(random);
    const int end = begin + std::uniform_int_distribution(1, 40)(random);
    const std::string text = "program @any() { output %out : i32 rank 2 for y in [" + std::to_string(begin) + ", " +
                             std::to_string(end) + ") step " + std::to_string(step) +
                             " { let a = " + condition(random, 2) + " { call iota(out %out[0 +: min(3, max(0, " +
                             condition(random, 1) + ")), y +: 1]; a, 0) } } }";
    Data compiled, interpreted;
    for (Data* data : {&compiled, &interpreted}) data->add("out", {3, 60}, {0, -10});
    const Program program = parsed(text);
    ASSERT_TRUE(bound_to(program, compiled).run(compiled.arguments()).ok()) << "seed " << seed << "\n" << text;
    ASSERT_TRUE(interpret(program, interpreted.arguments(), {}).ok()) << "seed " << seed << "\n" << text;
    ASSERT_EQ(compiled["out"], interpreted["out"]) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace tenon::program
