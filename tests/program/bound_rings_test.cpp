// Rings in the compiled form: how kernels see them, and what a loop increments for them (exec/binder_operands.cpp,
// exec/registers.cpp).
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <regex>

#include <tenon/runtime/thread_pool.hpp>

#include "program/as_interpreted.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// out(x, y) = sum of n * in(x, row n) over the rows of the box of `in`, whichever these are. Fails at row 777.
Result<void> sum_rows(CallContext& c) {
  const Elements<const int32_t> in = c.elements<const int32_t>(0);
  const Elements<int32_t> out = c.elements<int32_t>(1);
  if (out.min(1) <= 777 && 777 <= out.max(1)) return error(Code::internal, "it failed");
  for (int64_t y = out.min(1); y <= out.max(1); ++y)
    for (int64_t x = out.min(0); x <= out.max(0); ++x) {
      uint32_t sum = static_cast<uint32_t>(y);
      for (int64_t row = in.min(1); row <= in.max(1); ++row)
        sum += static_cast<uint32_t>(row - in.min(1) + 1) * static_cast<uint32_t>(in(x, row));
      out(x, y) = static_cast<int32_t>(sum);
    }
  return {};
}

KernelTable kernels_of_rows(bool takes_rings = true) {
  KernelTable table = kernels();
  table["sum_rows"] = make_kernel("sum_rows", &sum_rows, takes_rings);
  return table;
}

// A ring that a stage writes, and from which the next one reads `window` rows.
struct Ring {
  int64_t window, places;
};

// Each stage reads a window of the previous ring, the first one of `in`, and writes as many rows as the loop's step.
// `hint`: a statement before them.
std::string chain_text(const std::vector<Ring>& rings, int64_t rows, int64_t step, const std::string& hint = {}) {
  std::string text = "program @chain() { input %in : i32 rank 2 output %out : i32 rank 2\n", end = " } }", from = "%in",
              calls;
  int64_t window = step;
  for (size_t i = 0; i < rings.size(); ++i) {
    const std::string to = str("%r", i);
    const int64_t before = rings[i].window - step;  // rows that are there before the loop
    text += str("allocate ", to, " : i32[0 +: 3, 0 +: ", rows + before, " fold ", rings[i].places, "] {\n");
    if (before > 0) text += str("call iota(out ", to, "[0 +: 3, 0 +: ", before, "]; ", i, ")\n");
    calls += str("call sum_rows(in ", from, "[0 +: 3, y +: ", window, "], out ", to, "[0 +: 3, y + ", before,
                 " +: ", step, "])\n");
    window = rings[i].window;
    from = to;
    end += " }";
  }
  return str(text, "for y in [0, ", rows, ") step ", step, " {\n", hint, calls, "call sum_rows(in ", from,
             "[0 +: 3, y +: ", window, "], out %out[0 +: 3, y +: ", step, "])\n", end);
}

std::string code_of(const std::string& text, int64_t rows, int threads = 1) {
  ThreadPool pool(threads);
  return code_as_interpreted(text, kernels_of_rows(), {{"in", {3, rows + 40}}, {"out", {3, rows}}}, {.pool = &pool});
}

int64_t steps_of_last_loop(const std::string& code) {
  const size_t next = code.rfind(": next ");
  return std::ranges::count(code.substr(next, code.find('\n', next) - next), '=');
}

// Eight stages with a period of three have 24 calls. Row y of one stage's result is seen like row y of any other's, so
// about as many registers are incremented for the boxes as there are rows, in addition to six addresses.
TEST(BoundRings, BoxesThatAreSeenAlikeAreSteppedOnce) {
  const std::string code = code_of(chain_text(std::vector<Ring>(7, {3, 3}), 300, 1), 300);
  EXPECT_THAT(code, Not(HasSubstr(": ring "))) << code;
  EXPECT_LE(steps_of_last_loop(code), 32) << code;
}

// A period is too long for code of its own: corrections to the increments at the turns of a cycle are known when
// binding. An address of the ring goes back by 33 rows of 12 bytes after the last one, and in all but one iteration of
// a cycle the box that is read wraps around. Of the positions themselves, nothing is left.
const char* const kTurns =
    R"(; first turn after 1: r[0-9]+ \+= -396 r([0-9]+) \+= 33, next after 32: r\1 \+= -33, next after 1\n)";

TEST(BoundRings, LongRingsAreSteppedWithTurns) {
  const std::string code = code_of(chain_text({{33, 33}}, 300, 1), 300);
  EXPECT_TRUE(std::regex_search(code, std::regex("loop y [^\n]*\n[0-9]+: call_plain [^\n]*\n[0-9]+: call_plain [^\n]*\n"
                                                 "[0-9]+: next [^;]*;[^;]*" +
                                                 std::string(kTurns))))
      << code;
  EXPECT_THAT(code, Not(HasSubstr(" mod "))) << code;
}

const char* const kHint = "prefetch in %in[0 +: 3, y + 40 +: 1]\n";

TEST(BoundRings, LongRingsAreSteppedBesideHints) {
  const std::string code = code_of(chain_text({{33, 33}}, 300, 1, kHint), 300);
  EXPECT_THAT(code, ContainsRegex("loop y [^\n]*\n[0-9]+: read_soon [^\n]*\n[0-9]+: call_plain ")) << code;
  EXPECT_THAT(code, HasSubstr("first turn after 1:"));
}

// The positions of 16 rings do not repeat within 700 iterations, too many to precompute for each register.
TEST(BoundRings, RingsOfLongCyclesArePlacedAtTheBeginOfAnIteration) {
  std::vector<Ring> rings;
  for (int64_t places = 33; places < 65; places += 2) rings.push_back({33, places});
  const std::string code = code_of(chain_text(rings, 700, 1), 700);
  EXPECT_THAT(code, AllOf(ContainsRegex("loop y [^\n]*\n[0-9]+: ring [^\n]*\n[0-9]+: ring "),
                          ContainsRegex(R"( r[0-9]+ \+= 1 mod 35 )"),
                          ContainsRegex(R"( r[0-9]+ \+= 12 - 420 where r[0-9]+ < 1)")))
      << code;
}

// Bands of workers, whose rings begin at any position.
TEST(BoundRings, LongRingsArePlacedWhereverABandBegins) {
  const std::string code = code_of(R"(program @bands() { input %in : i32 rank 2 output %out : i32 rank 2
    for b in [0, 600) step 50 parallel 4 {
      allocate %rows : i32[0 +: 3, b +: 82 fold 33] {
        call sum_rows(in %in[0 +: 3, b +: 1], out %rows[0 +: 3, b +: 32])
        for y in [b, b + 50) {
          call sum_rows(in %in[0 +: 3, y +: 1], out %rows[0 +: 3, y + 32 +: 1])
          call sum_rows(in %rows[0 +: 3, y +: 33], out %out[0 +: 3, y +: 1])
        }
      }
    } })",
                                   600, 3);
  EXPECT_THAT(code, ContainsRegex("loop y [^\n]*\n[0-9]+: ring [^\n]*\n[0-9]+: call_plain ")) << code;
}

TEST(BoundRings, ErrorsNameTheIterationWhereViewsArePlacedInEach) {
  for (const char* hint : {"", kHint}) {
    const auto program = parse_program(chain_text({{33, 33}}, 900, 1, hint), kernels_of_rows());
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    Data data;
    data.add("in", {3, 1000});
    data.add("out", {3, 900});
    auto bound = BoundProgram::bind(*program, data.arguments());
    ASSERT_TRUE(bound.ok()) << bound.error().to_string();
    const auto ran = bound->run(data.arguments());
    ASSERT_FALSE(ran.ok());
    EXPECT_THAT(ran.error().to_string(), HasSubstr("loop y = 745\n")) << "row 777 is made 32 rows ahead";
  }
}

TEST(BoundRings, KernelsWithoutRingsRefuseBoxesOfLongOnesThatWrapAround) {
  const auto program = parse_program(chain_text({{33, 40}}, 100, 1), kernels_of_rows(false));
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data data;
  data.add("in", {3, 100});
  data.add("out", {3, 100});
  auto bound = BoundProgram::bind(*program, data.arguments());
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  const auto ran = bound->run(data.arguments());
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error().to_string(), AllOf(HasSubstr("indices 8 .. 40 wrap around a ring of 40"),
                                             HasSubstr("takes no folded buffers"), HasSubstr("loop y = 8\n")));
}

TEST(BoundRings, ChainsOfAnyRingsRunAsInterpreted) {
  std::mt19937 random(20261128);
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution(low, high)(random); };
  for (int n = 0; n < 300; ++n) {
    const int64_t step = draw(1, 4), rows = step * draw(1, 60);
    std::vector<Ring> rings(static_cast<size_t>(draw(1, 5)));
    for (Ring& ring : rings) {
      ring.window = step + draw(0, 3) * draw(0, 12);
      ring.places = ring.window + draw(0, 2) * draw(0, 9);
    }
    code_of(chain_text(rings, rows, step), rows);
    ASSERT_FALSE(HasFailure()) << "number " << n;
  }
}

}  // namespace
}  // namespace tenon::program
