// Prefetch hints: their cache lines, their code, and the loops that emit them.
#include <tenon/program/exec/prefetch_internal.hpp>

#include <gmock/gmock.h>

#include <random>
#include <regex>
#include <set>

#include <support_lib/environment.hpp>
#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/program/pipeline/pipeline.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "program/kernels.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using detail::cropped;
using detail::kLineBytes;
using detail::LineDim;
using ::testing::HasSubstr;
using ::testing::Not;

// Lines -----------------------------------------------------------------------------------------------------------

std::vector<uint64_t> lines_of(uint64_t base, std::vector<LineDim> dims, uint64_t element, uint64_t part,
                               uint64_t parts) {
  std::vector<uint64_t> out;
  detail::for_each_line(base, dims, element, part, parts, [&](uint64_t line) { out.push_back(line); });
  return out;
}

std::set<uint64_t> lines_of_elements(uint64_t base, const std::vector<LineDim>& dims, uint64_t element, size_t d = 0) {
  if (d == dims.size()) return {base / kLineBytes * kLineBytes, (base + element - 1) / kLineBytes * kLineBytes};
  std::set<uint64_t> out;
  for (uint64_t i = 0; i < dims[d].extent; ++i)
    out.merge(lines_of_elements(base + i * static_cast<uint64_t>(dims[d].stride), dims, element, d + 1));
  return out;
}

// Rows with the same alignment that share no cache line: each line of an element is in exactly one portion.
TEST(LinesOfBoxes, PortionsHaveEachLineOnce) {
  std::mt19937_64 random(::tenon::testing::first_seed());
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    const auto element = static_cast<uint64_t>(int64_t{1} << pick(0, 3));
    const int64_t width = pick(1, 200), apart = (width * 16 / 64 + pick(2, 4)) * 64;
    const int64_t sign = pick(0, 1) * 2 - 1, tall = pick(0, 1) * 2 - 1;
    std::vector<LineDim> dims{{static_cast<uint64_t>(width), sign * static_cast<int64_t>(element) * pick(1, 2)},
                              {static_cast<uint64_t>(pick(1, 5)), tall * apart},
                              {static_cast<uint64_t>(pick(1, 3)), pick(0, 1) * 5 * apart}};
    std::ranges::shuffle(dims, random);
    const uint64_t base = (uint64_t{1} << 40) + static_cast<uint64_t>(pick(0, 15)) * 8,
                   parts = static_cast<uint64_t>(pick(1, 9));
    std::vector<uint64_t> all;
    size_t least = SIZE_MAX, most = 0;
    for (uint64_t part = 0; part < parts; ++part) {
      const auto found = lines_of(base, dims, element, part, parts);
      least = std::min(least, found.size());
      most = std::max(most, found.size());
      all.insert(all.end(), found.begin(), found.end());
    }
    EXPECT_LE(most, least + 1) << "case " << i;
    EXPECT_EQ(std::set(all.begin(), all.end()), lines_of_elements(base, dims, element)) << "case " << i;
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size()) << "case " << i;
  }
}

TEST(LinesOfBoxes, WidthsAroundALine) {
  for (const uint64_t width : {0, 1, 15, 16, 17, 31, 32, 33}) {
    EXPECT_EQ(lines_of(256, {{width, 4}}, 4, 0, 1).size(), (width + 15) / 16) << width;
    EXPECT_EQ(lines_of(256 + 60, {{width, 4}}, 4, 0, 1).size(), width == 0 ? 0 : (width + 30) / 16) << width;
  }
}

// Far beyond any address range: nothing overflows, and everything terminates.
TEST(LinesOfBoxes, AnyNumbersWillDo) {
  constexpr int64_t kLow = INT64_MIN, kHigh = INT64_MAX;
  for (const int64_t first : {kLow, int64_t{-1}, int64_t{0}, kHigh})
    for (const int64_t extent : {kLow, int64_t{0}, int64_t{5}, kHigh})
      for (const int64_t min : {kLow, int64_t{0}, kHigh})
        for (const int64_t stride : {kLow, int64_t{-4}, int64_t{0}, kHigh}) {
          const auto found = cropped(first, extent, min, 3, stride);
          EXPECT_LE(found.dim.extent, 3u);
          EXPECT_LE(lines_of(found.from_base, {found.dim}, 4, 1, 2).size(), 4u);
        }
}

TEST(LinesOfBoxes, AreCroppedToTheBuffer) {
  const auto expect = [](const detail::CroppedDim& found, uint64_t extent, int64_t from_base) {
    EXPECT_EQ(found.dim.extent, extent);
    EXPECT_EQ(static_cast<int64_t>(found.from_base), from_base);
  };
  expect(cropped(-2, 4, 0, 10, 8), 2, 0);
  expect(cropped(8, 4, 0, 10, 8), 2, 64);
  expect(cropped(3, 4, 1, 10, -8), 4, -16);
  expect(cropped(10, 4, 0, 10, 8), 0, 0);
  expect(cropped(-4, 4, 0, 10, 8), 0, 0);
}

// Code ------------------------------------------------------------------------------------------------------------

BoundProgram bound_to(const Program& program, Data& data, ParallelFor* pool = nullptr, int threads = 1) {
  EXPECT_TRUE(verify(program).ok());
  auto bound = BoundProgram::bind(program, data.arguments(), {pool, threads});
  EXPECT_TRUE(bound.ok()) << bound.error().to_string();
  return *std::move(bound);
}

const char* const kRows = R"(program @rows() {
  input %in : i32 rank 2
  output %out : i32 rank 2
  for y in [0, 40) step 2 {
    prefetch in %in[0 +: 32, y + 2 +: 2] part 1 of 2
    call add1(in %in[0 +: 32, y +: 2], out %out[0 +: 32, y +: 2])
  }
}
)";

// In the steady part of the loop a hint is an address that is incremented; in the last iteration there is none.
TEST(PrefetchCode, IsAStretchOfLinesInSteadyLoops) {
  Data data;
  data.add("in", {32, 40});
  data.add("out", {32, 40});
  const BoundProgram bound = bound_to(parsed(kRows), data);
  EXPECT_THAT(bound.disassembly(), HasSubstr("read_soon 2 lines from"));
  EXPECT_THAT(bound.disassembly(), Not(HasSubstr("prefetch")));
}

// Boxes whose rows are not contiguous in the buffer, and one that is whole only in a run.
TEST(PrefetchCode, HasAStretchForEachRowOrIsCroppedInARun) {
  Data data;
  data.add("in", {64, 40});
  data.add("out", {64, 40});
  data.scalar("n", 3);
  const BoundProgram bound = bound_to(parsed(R"(program @pieces(n) {
    input %in : i32 rank 2
    output %out : i32 rank 2
    prefetch out %out[16 +: 32, 3 +: 2]
    for y in [0, 40) step 2 { for x in [0, y) {
      prefetch in %in[x * y +: 16, 0 +: 1]
      call add1(in %in[x +: 1, y +: 1], out %out[x +: 1, y +: 1])
    } }
  })"),
                                      data);
  const std::regex two_rows(R"(write_soon 2 lines from r\d+ \+ 0, 2 rows by 256\n)");
  EXPECT_TRUE(std::regex_search(bound.disassembly(), two_rows)) << bound.disassembly();
  EXPECT_THAT(bound.disassembly(), HasSubstr(": prefetch in "));
}

// Five rows of three lines in three portions: the middle one is the end of a row, the next one, and the beginning of a
// third.
TEST(PrefetchCode, APortionMayBeSeveralStretches) {
  Data data;
  data.add("in", {64, 40});
  data.add("out", {64, 40});
  const BoundProgram bound = bound_to(parsed(R"(program @portions() {
    input %in : i32 rank 2
    output %out : i32 rank 2
    prefetch in %in[0 +: 48, 3 +: 5] part 1 of 3
    call add1(in %in[0 +: 64, 0 +: 1], out %out[0 +: 64, 0 +: 1])
  })"),
                                      data);
  for (const char* stretch : {"read_soon 1 lines from r16 + 384\n", "read_soon 3 lines from r16 + 512\n",
                              "read_soon 1 lines from r16 + 768\n"})
    EXPECT_THAT(bound.disassembly(), HasSubstr(stretch));
}

// Rings are not prefetched, whatever the hint.
TEST(PrefetchCode, RingsAreNotFetched) {
  Data data;
  data.add("in", {32, 40});
  data.add("out", {32, 40});
  const BoundProgram bound = bound_to(parsed(R"(program @ring() {
    input %in : i32 rank 2
    output %out : i32 rank 2
    allocate %ring : i32[0 +: 32, 0 +: 40 fold 4] {
      for y in [0, 40) step 2 {
        prefetch in %ring[0 +: 32, y + 2 +: 2]
        call add1(in %in[0 +: 32, y +: 2], out %ring[0 +: 32, y +: 2])
        call add1(in %ring[0 +: 32, y +: 2], out %out[0 +: 32, y +: 2])
      }
    }
  })"),
                                      data);
  EXPECT_THAT(bound.disassembly(), Not(HasSubstr("soon")));
  EXPECT_THAT(bound.disassembly(), Not(HasSubstr("prefetch")));
}

// Rows for which no code for a period is made otherwise: the hint advances only every second iteration, but is still
// determined before the run.
TEST(PrefetchCode, IsMadeForSeveralIterationsOfLongRows) {
  Data data;
  data.add("in", {9000, 40});
  data.add("out", {9000, 40});
  const BoundProgram bound = bound_to(parsed(R"(program @halves() {
    input %in : i32 rank 2
    output %out : i32 rank 2
    for y in [0, 40) {
      prefetch in %in[0 +: 9000, (y + 2) floordiv 2 +: 1] part 0 of 4
      call add1(in %in[0 +: 9000, y +: 1], out %out[0 +: 9000, y +: 1])
    }
  })"),
                                      data);
  EXPECT_THAT(bound.disassembly(), Not(HasSubstr(": prefetch in "))) << bound.disassembly();
}

TEST(PrefetchCode, ChangesNoResult) {
  Data data, reference;
  for (Data* d : {&data, &reference}) {
    d->add("in", {32, 40});
    d->add("out", {32, 40});
  }
  const Program program = parsed(kRows);
  ASSERT_TRUE(interpret(program, reference.arguments()).ok());
  BoundProgram bound = bound_to(program, data);
  ASSERT_TRUE(bound.run(data.arguments()).ok());
  EXPECT_EQ(data["out"], reference["out"]);
}

// Pipelines -------------------------------------------------------------------------------------------------------

struct Blurred {
  Pipeline p{"blurred"};
  BufferRef in = p.buffer("in", kI32, 2), mid = p.buffer("mid", kI32, 2), out = p.buffer("out", kI32, 2);
  Expr x = Expr::symbol("x"), y = Expr::symbol("y");
  StageRef first =
      p.stage("first", kernels().at("sum3")).reads(in, {{x - 1, x + 1}, {y - 1, y + 1}}).writes(mid, {x, y});
  StageRef last =
      p.stage("last", kernels().at("sum3")).reads(mid, {{x - 1, x + 1}, {y - 1, y + 1}}).writes(out, {x, y});

  Program built() const {
    auto program = p.build({in}, {out});
    EXPECT_TRUE(program.ok()) << program.error().to_string();
    return *std::move(program);
  }
};

std::vector<std::string> hints(const Program& program) {
  const std::string text = print(program);
  const std::regex hint("prefetch [^\n]*");
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), hint), end; it != end; ++it) out.push_back(it->str());
  return out;
}

// The part of `in` that the next iteration reads and this one does not, and the part of `out` that it writes; not the
// window.
TEST(LoopsThatFetchAhead, FetchAPortionBeforeEachStage) {
  Blurred b;
  b.last.loops({{b.y, 4, 1, 1}});
  const std::vector<std::string> found = hints(b.built());
  ASSERT_EQ(found.size(), 4u);
  EXPECT_THAT(found[0], HasSubstr("prefetch in %in[out.min0 - 2 +: out.extent0 + 4, "));
  EXPECT_THAT(found[0], HasSubstr("part 0 of 2"));
  EXPECT_EQ(found[1], "prefetch out %out[out.min0 +: out.extent0, y_0 + 4 +: 4] part 0 of 2");
  EXPECT_EQ(found[3], "prefetch out %out[out.min0 +: out.extent0, y_0 + 4 +: 4] part 1 of 2");
  const std::string text = print(b.built());
  std::vector<std::string> order;
  const std::regex statement("(prefetch|call) ");
  for (std::sregex_iterator it(text.begin(), text.end(), statement), end; it != end; ++it) order.push_back((*it)[1]);
  EXPECT_EQ(order, (std::vector<std::string>{"prefetch", "prefetch", "call", "prefetch", "prefetch", "call"}));
}

TEST(LoopsThatFetchAhead, FetchWhatIterationsFurtherOnTouchFirst) {
  Blurred b;
  b.last.loops({{b.y, 4, 1, 3}});
  EXPECT_THAT(hints(b.built()), ::testing::Contains(HasSubstr("y_0 + 12 +: 4]")));
}

// How often the hints of a run cover each element of a buffer of rank 2.
class Hinted {
 public:
  Hinted(const Program& program, SymbolValues sizes) : program_(program), values_(std::move(sizes)) {
    go(program.body);
  }
  std::map<std::pair<std::string, Access>, std::map<std::pair<int64_t, int64_t>, int>> times;

 private:
  int64_t value(const Expr& e) const { return e.evaluate(values_).value(); }
  void go(const Statement& s) {
    if (const auto* block = s.as<Block>())
      for (const Statement& inner : block->statements) go(inner);
    if (const auto* let = s.as<Let>()) {
      values_[let->symbol] = value(let->value);
      go(let->body);
    }
    if (const auto* made = s.as<Allocate>()) go(made->body);
    if (const auto* view = s.as<View>()) go(view->body);
    if (const auto* loop = s.as<Loop>())
      for (int64_t i = value(loop->begin); i < value(loop->end); i += value(loop->step)) {
        values_[loop->symbol] = i;
        go(loop->body);
      }
    const auto* hint = s.as<Prefetch>();
    if (hint == nullptr || hint->part > 0) return;
    const Box& box = hint->region.box;
    for (int64_t y = 0; y < value(box[1].extent); ++y)
      for (int64_t x = 0; x < value(box[0].extent); ++x)
        ++times[{program_.buffer(hint->region.buffer).name, hint->access}]
               [{value(box[0].min) + x, value(box[1].min) + y}];
  }

  const Program& program_;
  SymbolValues values_;
};

// Each element that tiles read and write is prefetched once: the last tile of a row prefetches for the first one of the
// next.
TEST(LoopsThatFetchAhead, LastTilesFetchForTheNextRow) {
  for (const int64_t width : {64, 80, 16 * 40})  // 4, 5 and 40 tiles: written out, cut, and a loop
    for (const int64_t ahead : {1, 2}) {
      Pipeline p("tiles");
      const Expr x = Expr::symbol("x"), y = Expr::symbol("y");
      const BufferRef in = p.buffer("in", kI32, 2), mid = p.buffer("mid", kI32, 2), out = p.buffer("out", kI32, 2);
      p.stage("first", kernels().at("add1")).reads(in, {x, y}).writes(mid, {x, y});
      p.stage("last", kernels().at("add1")).reads(mid, {x, y}).writes(out, {x, y}).loops({{x, 16, 1, ahead}, {y, 4}});
      const auto program = p.build({in}, {out});
      ASSERT_TRUE(program.ok()) << program.error().to_string();
      Data data;
      data.add("in", {width, 20});
      data.add("out", {width, 20});
      const std::string code = bound_to(*program, data).disassembly();
      EXPECT_THAT(code, Not(HasSubstr(": prefetch "))) << code;
      SymbolValues sizes;
      for (const char* buffer : {"in", "out"})
        for (const auto& [bound, number] :
             {std::pair<const char*, int64_t>{".min0", 0}, {".min1", 0}, {".extent0", width}, {".extent1", 20}})
          sizes[std::string(buffer) + bound] = number;
      const Hinted hinted(*program, sizes);
      for (const auto& which : {std::pair{std::string("in"), Access::in}, std::pair{std::string("out"), Access::out}})
        for (int64_t row = 0; row < 20; ++row)
          for (int64_t at = 0; at < width; ++at) {
            const auto& times = hinted.times.at(which);
            const auto found = times.find({at, row});
            EXPECT_EQ(found == times.end() ? 0 : found->second, row < 4 && at < 16 * ahead ? 0 : 1)
                << which.first << " of " << width << ", " << ahead << " ahead, at " << at << ", " << row;
          }
    }
}

// With windows of three rows in steps of four, four rows are new.
TEST(LoopsThatFetchAhead, FetchNothingTwice) {
  Pipeline p("windows");
  const Expr x = Expr::symbol("x"), y = Expr::symbol("y");
  const BufferRef in = p.buffer("in", kI32, 2), mid = p.buffer("mid", kI32, 2), out = p.buffer("out", kI32, 2);
  p.stage("first", kernels().at("add1")).reads(in, {x, {y - 1, y + 1}}).writes(mid, {x, y});
  p.stage("last", kernels().at("add1")).reads(mid, {x, y}).writes(out, {x, y}).loops({{y, 4, 1, 1}});
  const auto program = p.build({in}, {out});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_EQ(hints(*program)[0], "prefetch in %in[out.min0 +: out.extent0, y_0 + 5 +: 4] part 0 of 2");
}

// A result of an outer loop does not count as an array for the loop that reads it, nor does what only this loop reads.
TEST(LoopsThatFetchAhead, FetchArraysBetweenLoopsAndNoWindows) {
  Blurred b;
  const BufferRef end = b.p.buffer("end", kI32, 2), half = b.p.buffer("half", kI32, 2);
  b.p.stage("half", kernels().at("add1")).reads(b.out, {b.x, b.y}).writes(half, {b.x, b.y});
  StageRef stage = b.p.stage("end", kernels().at("add1")).reads(half, {b.x, b.y}).writes(end, {b.x, b.y});
  b.last.loops({{b.y, 4, 1, 1}}).compute_root();
  stage.loops({{b.y, 2, 1, 1}});
  const auto program = b.p.build({b.in}, {end});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  for (const char* far : {"in %in", "out %out", "in %out", "out %end"})
    EXPECT_THAT(hints(*program), ::testing::Contains(HasSubstr(std::string("prefetch ") + far))) << print(*program);
  for (const char* near : {"%mid", "%half"}) EXPECT_THAT(hints(*program), Not(::testing::Contains(HasSubstr(near))));
}

TEST(LoopsThatFetchAhead, FetchNothingUnlessTheyAreToldTo) {
  Blurred b;
  b.last.loops({{b.y, 4}});
  EXPECT_TRUE(hints(b.built()).empty());
  b.last.loops({{b.y, 4, 2, 1}});  // iterations of other workers are next
  EXPECT_TRUE(hints(b.built()).empty());
}

// Bands of two workers, strips that do not divide them, rows below zero, and inputs larger than what is read.
TEST(LoopsThatFetchAhead, ChangeNoResult) {
  ThreadPool pool(2);
  for (const int64_t step : {1, 3, 4, 64})
    for (const int64_t workers : {1, 2})
      for (const int64_t ahead : {0, 1, 2, 100}) {
        Blurred b;
        b.last.loops({{b.y, step, 1, ahead}, {b.y, ceildiv(b.out.extent(1), workers), workers}});
        Data data;
        data.add("in", {30, 60}, {-5, -7});
        data.add("out", {17, 43}, {-1, -3});
        BoundProgram bound = bound_to(b.built(), data, &pool, 2);
        ASSERT_TRUE(bound.run(data.arguments()).ok());
        Data reference;
        reference.add("in", {30, 60}, {-5, -7});
        reference.add("out", {17, 43}, {-1, -3});
        ASSERT_TRUE(interpret(Blurred().built(), reference.arguments()).ok());
        EXPECT_EQ(data["out"], reference["out"]) << step << ", " << workers << " workers, " << ahead << " ahead";
      }
}

}  // namespace
}  // namespace tenon::program
