// Copies in the compiled form: those with everything but the addresses known move boxes (exec/box_moves_internal.hpp),
// with the same result as the interpreter's element by element.
#include <gmock/gmock.h>

#include <random>

#include "program/as_interpreted.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Shapes {
  std::vector<int64_t> in, out, pad;
};

std::string code_of(const std::string& text, const Shapes& shapes) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> buffers = {{"in", shapes.in}, {"out", shapes.out}};
  if (text.find("%pad") != std::string::npos) buffers.emplace_back("pad", shapes.pad);
  return code_as_interpreted(text, kernels(), buffers);
}

std::string in_rows(const std::string& copy, const std::string& declared = {}) {
  return str("program @rows() { input %in : i32 rank 2 ", declared, "output %out : i32 rank 2 for y in [0, 40) {\n",
             copy, "\n} }");
}

TEST(BoxMoves, CopiesInLoopsAreCallsThatStepAddresses) {
  const std::string code = code_of(in_rows("copy %out[0 +: 8, y +: 1](a, b) = %in(a, b)"), {{8, 40}, {8, 40}, {}});
  EXPECT_THAT(code, ContainsRegex("loop y [^\n]*\n[0-9]+: call_plain copy->out\n[0-9]+: next [^\n]*; r[0-9]+ \\+= 32 "
                                  "r[0-9]+ \\+= 32\n"))
      << code;
}

TEST(BoxMoves, IndicesMayBeNamedAsLoopsAre) {
  const std::string code = code_of(in_rows("copy %out[0 +: 8, y +: 1](y, b) = %in(7 - y, b)"), {{8, 40}, {8, 40}, {}});
  EXPECT_THAT(code, HasSubstr(": call_plain copy->out"));
  code_of(in_rows("let z = y + 1 { copy %out[0 +: 8, y +: 1](y, b) = %in(y + 2, z) }"), {{10, 41}, {8, 40}, {}});
}

TEST(BoxMoves, WhatIsBeyondTheSourceIsPadded) {
  for (const char* padding : {"0x07000000", "%pad"}) {
    const std::string declared = *padding == '%' ? "input %pad : i32 rank 2 " : "";
    const std::string code =
        code_of(in_rows(str("copy %out[0 +: 10, y +: 1](a, b) = %in(a - 2, b) pad ", padding), declared),
                {{7, 40}, {10, 40}, {10, 40}});
    EXPECT_THAT(code, HasSubstr(": call_plain copy->out")) << code;
  }
}

// Rows beyond the source are separate code: except for these, no row is evaluated.
TEST(BoxMoves, WholeRowsBeyondTheSourceAreBesideTheLoop) {
  const std::string code =
      code_of(in_rows("copy %out[0 +: 8, y +: 1](a, b) = %in(a - 1, b - 2) pad 0x00000000"), {{6, 36}, {8, 40}, {}});
  EXPECT_THAT(code, ContainsRegex("loop y [^\n]* from 2 to 38 [^\n]*\n[0-9]+: call_plain copy->out\n[0-9]+: next "))
      << code;
}

// If they cannot be separated, each row is evaluated.
TEST(BoxMoves, WhatMayBeBeyondTheSourceIsLookedAtInTheRun) {
  const std::string code =
      code_of(in_rows("copy %out[0 +: 8, y +: 1](a, b) = %in(a, b * b - 5) pad 0x00000000"), {{8, 30}, {8, 40}, {}});
  EXPECT_THAT(code, Not(HasSubstr("call_plain"))) << code;

  const auto program = parse_program(in_rows("copy %out[0 +: 8, y +: 1](a, b) = %in(a + 1, b)"), kernels());
  ASSERT_TRUE(program.ok());
  Data data;
  data.add("in", {8, 40});
  data.add("out", {8, 40});
  auto bound = BoundProgram::bind(*program, data.arguments());
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  const auto ran = bound->run(data.arguments());
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error().to_string(), HasSubstr("reads outside of its source"));
}

TEST(BoxMoves, WhatIsDividedByNoNumberIsLookedAtInTheRun) {
  const std::string code = code_of(
      in_rows("copy %out[0 +: 8, y +: 1](a, b) = %in(a, min(max(9 floordiv (b - 50), 0), 9))"), {{8, 10}, {8, 40}, {}});
  EXPECT_THAT(code, Not(HasSubstr("call_plain")));
}

std::string padded(const std::string& map) {
  return in_rows(str("copy %out[0 +: 8, y +: 1](a, b) = %in(", map, ") pad 0x00000000"));
}

// The error with which both forms of the program refuse a run, which must be the same.
std::string refused(const std::string& text) {
  const auto program = parse_program(text, kernels());
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  Data data;
  data.add("in", {8, 41});
  data.add("out", {8, 40});
  const auto interpreted = interpret(*program, data.arguments());
  auto bound = BoundProgram::bind(*program, data.arguments());
  EXPECT_TRUE(bound.ok()) << bound.error().to_string();
  const auto ran = bound->run(data.arguments());
  EXPECT_FALSE(interpreted.ok());
  EXPECT_FALSE(ran.ok());
  if (interpreted.ok() || ran.ok()) return {};
  EXPECT_EQ(ran.error().message(), interpreted.error().message());
  EXPECT_THAT(ran.error().to_string(), HasSubstr("of the source, in 'copy'"));
  return ran.error().message();
}

// The operand that a select does not choose is not evaluated.
TEST(BoxMoves, NothingIsDividedByZero) {
  for (const char* map : {"40 floordiv b, 0", "a, 40 floordiv y", "a + 40 mod y, 0", "a * (40 floordiv y), b",
                          "0, 40 mod (b mod 2)", "100, 40 floordiv b", "min(a, 1 floordiv (a - 5)), b",
                          "select(a < 9, 40 floordiv b, select(b, 41 floordiv b, 7)), b"}) {
    SCOPED_TRACE(map);
    EXPECT_THAT(refused(padded(map)), HasSubstr("division by zero"));
  }
  code_of(in_rows("copy %out[0 +: 8, y +: 1](a, b) = %in(a, select(b, 40 floordiv b, a mod b * 0 + 7))"),
          {{8, 41}, {8, 40}, {}});
}

// An index is an exact number: intermediate values may exceed int64, the index may not. None wraps around into the
// source.
TEST(BoxMoves, NoIndexWrapsAround) {
  const std::string half = "4611686018427387904";  // 2^62
  for (const std::string& map : std::vector<std::string>{
           "a * 4 * " + half + " + a, b", "a, b * " + half, "a + " + half + " + (y + 1) * " + half + ", b",
           "a - " + half + " * y, b", "-1 - (a + y) * " + half + ", b", "a, (b + 1) * (b + 1) * " + half,
           "a, (0 - 2 * " + half + " - a) floordiv -1", "9223372036854775800 + a + b, b", "a, 7 - b * " + half}) {
    SCOPED_TRACE(map);
    EXPECT_THAT(refused(padded(map)), HasSubstr("is outside the range of a 64-bit integer"));
  }
  for (const std::string& map :
       std::vector<std::string>{"(a * 4 * " + half + ") floordiv (4 * " + half + "), b", "min(a * " + half + ", 7), b",
                                "a, max(0 - b * " + half + ", b mod 7)", "a, select(1 <= a * 4 * " + half + ", 5, 6)",
                                "(a * " + half + " + 3) mod 8, b",
                                "a - (y floordiv 39) * 2 * " + half + " + (b floordiv 39) * 2 * " + half + ", b"}) {
    SCOPED_TRACE(map);
    code_of(padded(map), {{8, 41}, {8, 40}, {}});
  }
}

// Each select within another is two more numbers that wait.
TEST(BoxMoves, IndicesNestedTooDeepAreRefused) {
  const auto nested = [](int selects) {
    std::string map = "a";
    for (int i = 0; i < selects; ++i) map = str("select(b == ", i, ", ", i % 8, ", ", map, ")");
    return padded(map + ", b");
  };
  code_of(nested(20), {{8, 41}, {8, 40}, {}});
  const auto program = parse_program(nested(70), kernels());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data data;
  data.add("in", {8, 41});
  data.add("out", {8, 40});
  const auto bound = BoundProgram::bind(*program, data.arguments());
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Code::resource_exhausted);
  EXPECT_THAT(bound.error().message(), HasSubstr("an index is nested 14"));
}

TEST(BoxMoves, ObserversSeeThem) {
  struct Observer final : StageObserver {
    void ran(std::string_view stage, double, bool) override { stages.emplace_back(stage); }
    std::vector<std::string> stages;
  } observer;
  const auto program = parse_program(
      "program @one() { input %in : i32 rank 1 output %out : i32 rank 1 copy %out(x) = "
      "%in(3 - x) }",
      kernels());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  Data data;
  data.add("in", {4});
  data.add("out", {4});
  auto bound = BoundProgram::bind(*program, data.arguments());
  ASSERT_TRUE(bound.ok());
  const std::vector<std::byte*> buffers = {data.view("in").base, data.view("out").base};
  ASSERT_TRUE(bound->run(buffers, {.observer = &observer}).ok());
  EXPECT_THAT(observer.stages, ::testing::ElementsAre("copy"));
  EXPECT_EQ(data["out"][0], data["in"][3]);
}

// Copies with any shapes, steps and orders of dims, within their source or padded, whole, by rows, and through a ring.
class RandomCopy {
 public:
  explicit RandomCopy(uint64_t seed) : random_(static_cast<std::mt19937::result_type>(seed)) {}

  std::pair<std::string, Shapes> draw() {
    const auto rank = static_cast<size_t>(draw(1, 4));
    const bool pads = draw(0, 1) == 1, by_rows = draw(0, 2) > 0;
    for (size_t d = 0; d < rank; ++d) shapes_.out.push_back(draw(1, 6));
    shapes_.pad = shapes_.out;
    const auto source_rank = static_cast<size_t>(draw(0, 4));
    std::string map;
    for (size_t j = 0; j < source_rank; ++j) map += str(j ? ", " : "", index(pads));
    std::string padding;
    if (pads) padding = draw(0, 1) == 1 ? " pad %pad" : " pad 0x2a000000";
    const bool through_ring = by_rows && draw(0, 1) == 1;
    std::string box, ring_box, indices, same, extents;
    for (size_t d = 0; d < rank; ++d) {
      const bool row = by_rows && d + 1 == rank;
      const std::string comma = d ? ", " : "", all = str(comma, "0 +: ", shapes_.out[d]);
      box += row ? str(comma, "y +: 1") : all;
      extents += row ? str(all, " fold ", draw(1, 3)) : all;
      indices += str(comma, "i", d);
      same += str(comma, draw(0, 4) == 0 && !row ? str(shapes_.out[d] - 1, " - i", d) : str("i", d));
    }
    std::string text = str("program @copies() { input %in : i32 rank ", source_rank, " ",
                           pads ? str("input %pad : i32 rank ", rank, " ") : "", "output %out : i32 rank ", rank, "\n");
    const std::string from = str("(", indices, ") = %in(", map, ")", padding, "\n");
    std::string body = str("copy %out[", box, "]", from);
    if (by_rows && draw(0, 5) == 0) body = str(body.substr(0, body.size() - 1), " if y mod 3\n");
    if (through_ring)
      body = str("copy %r[", box, "]", from, "copy %out[", box, "](", indices, ") = %r[", box, "](", same, ")\n");
    if (by_rows) body = str("for y in [0, ", shapes_.out.back(), ") {\n", body, "}");
    if (through_ring) body = str("allocate %r : i32[", extents, "] {\n", body, " }");
    return {text + body + " }", shapes_};
  }

 private:
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution(low, high)(random_); }

  // A sum of indices, and a source's dim that contains it, fully or not.
  std::string index(bool pads) {
    std::string e = str(draw(-3, 3));
    int64_t low = std::stoll(e), high = low;
    for (int64_t n = draw(0, 2); n > 0; --n) {
      const auto d = static_cast<size_t>(draw(0, static_cast<int64_t>(shapes_.out.size()) - 1));
      const int64_t step = draw(-2, 2);
      e += str(" + ", step, " * i", d);
      (step < 0 ? low : high) += step * (shapes_.out[d] - 1);
    }
    if (pads) {
      shapes_.in.push_back(draw(1, 7));
      return e;
    }
    shapes_.in.push_back(high - low + 1 + draw(0, 2));
    return str(e, " + ", -low);
  }

  std::mt19937 random_;
  Shapes shapes_;
};

TEST(BoxMoves, RandomCopiesAreThoseOfTheInterpreter) {
  int moved = 0;
  for (uint64_t seed = 0; seed < 2000 && !HasFailure(); ++seed) {
    const auto [text, shapes] = RandomCopy(seed).draw();
    SCOPED_TRACE(str("seed ", seed));
    moved += code_of(text, shapes).find("call_plain") != std::string::npos;
  }
  EXPECT_GT(moved, 1000);
}

}  // namespace
}  // namespace tenon::program
