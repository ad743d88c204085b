// Results with non-temporal stores: the stages that such loops are split into, and the kernel that moves lines.
#include <gmock/gmock.h>

#include <cstring>

#include <program/pipeline_support.hpp>

namespace tenon::program {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Expr x = var("x"), y = var("y");

struct Sums {
  Pipeline p{"sums"};
  BufferRef in = p.buffer("in", kI32, 2), mid = p.buffer("mid", kI32, 2), out = p.buffer("out", kI32, 2);
  StageRef first =
      p.stage("first", window_sum<int32_t>({0, -1}, {0, 1})).reads(in, {x, {y - 1, y + 1}}).writes(mid, {x, y});
  StageRef last =
      p.stage("last", window_sum<int32_t>({0, -1}, {0, 1})).reads(mid, {x, {y - 1, y + 1}}).writes(out, {x, y});

  Program built() const {
    auto program = p.build({in}, {out});
    EXPECT_TRUE(program.ok()) << program.error().to_string();
    return *std::move(program);
  }
};

LoopOver past(const Expr& index, int64_t step, int64_t workers = 1, int64_t ahead = 0) {
  return {index, step, workers, ahead, true};
}

// An iteration's results are computed in a buffer with this many rows, and their destination is not prefetched.
TEST(NonTemporal, ResultsAreMadeNearAndMovedByAStageOfTheirOwn) {
  Sums s;
  s.last.loops({past(y, 4, 1, 1)});
  const std::string text = print(s.built());
  EXPECT_THAT(text, HasSubstr("out %out_near"));
  EXPECT_THAT(text, HasSubstr("as \"last_out\""));
  EXPECT_THAT(text, HasSubstr("prefetch in %in"));
  EXPECT_THAT(text, Not(HasSubstr("prefetch out")));
  Array<int32_t> in({0, -2}, {16, 44}), out({16, 40});
  const Arguments arguments{{{"in", in.argument()}, {"out", out.argument()}}, {}};
  auto bound = BoundProgram::bind(s.built(), arguments);
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  EXPECT_LE(bound->arena_bytes().at("host"), (4 + 6) * 64 + 128) << "four rows, and a window of six";
  // The text reads back with the kernel in the table.
  const KernelHandle sum = window_sum<int32_t>({0, -1}, {0, 1});
  const auto read = parse_program(text, {{sum->name, sum}, {"copy_non_temporal", non_temporal_kernel()}});
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(print(*read), text);
}

// Strips that do not divide the rows, tiles, bands, several workers, rows below zero: the interpreter's results without
// a schedule. Contract mode checks the boxes.
TEST(NonTemporal, ChangesNoResult) {
  ThreadPool pool(2);
  for (const int64_t width : {0, 1, 15, 16, 17, 37, 64})
    for (const int64_t step : {1, 3, 8, 64})
      for (const int64_t workers : {1, 2}) {
        std::vector<std::vector<LoopOver>> schedules{{past(y, step, workers, workers == 1)},
                                                     {past(y, step), {x, 16, workers}},
                                                     {past(x, 8), {y, step, workers}},
                                                     {past(y, step), {y, 11, workers}}};
        for (const std::vector<LoopOver>& loops : schedules) {
          Sums s, plain;
          s.last.loops(loops);
          Array<int32_t> in({-3, -9}, {width, 33}), out({-3, -7}, {width, 29}), wanted({-3, -7}, {width, 29});
          in.fill_pattern();
          const Arguments arguments{{{"in", in.argument()}, {"out", out.argument()}}, {}};
          ASSERT_TRUE(interpret(plain.built(), {{{"in", in.argument()}, {"out", wanted.argument()}}, {}}).ok());
          auto bound = BoundProgram::bind(s.built(), arguments, {&pool, workers});
          ASSERT_TRUE(bound.ok()) << bound.error().to_string();
          const auto ran = bound->run(arguments);
          ASSERT_TRUE(ran.ok()) << ran.error().to_string();
          EXPECT_EQ(out.data(), wanted.data()) << width << " wide, steps of " << step << ", " << workers << " workers";
          out.fill([](const Index&) { return 0; });
          const auto watched = interpret(s.built(), arguments, {.contract = true});
          ASSERT_TRUE(watched.ok()) << watched.error().to_string();
          EXPECT_EQ(out.data(), wanted.data());
        }
      }
}

// Loops and memory that others name by the stage are now those of the stage that moves its results.
TEST(NonTemporal, WhatIsPlacedInTheLoopStaysThere) {
  Sums s, plain;
  s.last.loops({past(y, 4)});
  s.first.compute_at(s.last, y);
  s.mid.store_at(s.last, y);
  plain.last.loops({{y, 4}});
  plain.first.compute_at(plain.last, y);
  plain.mid.store_at(plain.last, y);
  const auto counts = [](const Sums& sums) {
    Array<int32_t> in({0, -2}, {16, 44}), out({16, 40});
    in.fill_pattern();
    const Arguments arguments{{{"in", in.argument()}, {"out", out.argument()}}, {}};
    RunStatistics statistics;
    EXPECT_TRUE(interpret(sums.built(), arguments, {}, &statistics).ok());
    std::vector<StageStatistics> of_first;
    for (const auto& [name, stage] : statistics.stages)
      if (name.starts_with("first->")) of_first.push_back(stage);
    return std::pair(of_first, out.data());
  };
  EXPECT_EQ(counts(plain).first.at(0).calls, 10);
  EXPECT_EQ(counts(s), counts(plain));
}

TEST(NonTemporal, IsForTheInnermostLoopOfAKernel) {
  Sums s;
  s.last.loops({{x, 8}, past(y, 4)});
  auto program = s.p.build({s.in}, {s.out});
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().to_string(),
              HasSubstr("its loop over y says non_temporal, which is for the innermost one, over x"));
  EXPECT_THAT(program.error().to_string(), HasSubstr("'last'"));
  Pipeline p("copies");
  const BufferRef in = p.buffer("in", kI32, 2), out = p.buffer("out", kI32, 2);
  p.copy(in, {x + 1, y}, out, {x, y}).loops({past(y, 4)});
  program = p.build({in}, {out});
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(program.error().to_string(), HasSubstr("it is a copy"));
}

// The log of a kernel whose results are visible to others only after `finish`: u and f, or r for `run`. One thread.
std::string& done() {
  static std::string log;
  return log;
}
KernelHandle unfinished_kernel() {
  auto kernel = std::make_shared<Kernel>();
  kernel->name = "unfinished";
  kernel->takes_folded = true;
  kernel->run = [](CallContext&) -> Result<void> { return done() += 'r', Result<void>(); };
  kernel->run_unfinished = [](CallContext&) -> Result<void> { return done() += 'u', Result<void>(); };
  kernel->finish = [] { done() += 'f'; };
  return kernel;
}
std::string done_in(const std::vector<LoopOver>& loops, const BindOptions& options = {}, int64_t height = 5) {
  Pipeline p("open");
  const BufferRef in = p.buffer("in", kI32, 2), mid = p.buffer("mid", kI32, 2), out = p.buffer("out", kI32, 2);
  p.stage("before", window_sum<int32_t>({0, 0}, {0, 0})).reads(in, {x, y}).writes(mid, {x, y});
  StageRef stage = p.stage("stage", unfinished_kernel()).reads(mid, {x, y}).writes(out, {x, y});
  if (!loops.empty()) stage.loops(loops);
  const auto program = p.build({in}, {out});
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  Array<int32_t> from({8, height}), to({8, height});
  const Arguments arguments{{{"in", from.argument()}, {"out", to.argument()}}, {}};
  auto bound = BoundProgram::bind(*program, arguments, options);
  EXPECT_TRUE(bound.ok()) << bound.error().to_string();
  done().clear();
  EXPECT_TRUE(bound->run(arguments).ok());
  return done();
}

// Loops of few iterations are unrolled; a worker that runs one iteration signals the others when it is done.
TEST(NonTemporal, ResultsOfALoopAreFinishedBehindIt) {
  EXPECT_EQ(done_in({}), "r");
  EXPECT_EQ(done_in({{y, 1}}), "uuuuuf");
  EXPECT_EQ(done_in({{y, 1}}, {.statistics = true}), "uuuuuf");
  EXPECT_EQ(done_in({{y, 1}, {x, 2}}), "uuuuufuuuuufuuuuufuuuuuf");
  ThreadPool pool(2);
  EXPECT_EQ(done_in({{y, 1, 2}}, {&pool, 2}).find_first_not_of('r'), std::string::npos);
  EXPECT_EQ(done_in({{y, 1, 2}}, {.threads = 1}), "uuuuuf");
}

// Moves `from` to memory that begins `shift` bytes into a cache line, between bytes that must not change.
void expect_moved(const std::vector<DimView>& to_dims, const std::vector<DimView>& from_dims, int bytes, size_t shift) {
  constexpr size_t kBytes = 1 << 15, kMiddle = kBytes / 2;
  const ElementType element{ElementKind::uint, static_cast<uint8_t>(bytes * 8)};
  std::vector<std::byte> from(kBytes), to(kBytes + 64), wanted;
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 251);
  std::byte* const line = to.data() + (64 - reinterpret_cast<uintptr_t>(to.data()) % 64) % 64;
  const size_t begin = static_cast<size_t>(line - to.data()) + kMiddle + shift;
  const auto view = [&](std::vector<std::byte>& memory, size_t at, const std::vector<DimView>& dims) {
    return BufferView{memory.data() + at, dims, element};
  };
  const BufferView source = view(from, kMiddle, from_dims), result = view(to, begin, to_dims);
  wanted = to;
  const BufferView expected = view(wanted, begin, to_dims);
  Index mins, extents;
  for (const DimView& d : to_dims) mins.push_back(d.min), extents.push_back(d.extent);
  for_each_index(mins, extents, [&](const Index& i) {
    std::memcpy(expected.address(i), source.address(i), static_cast<size_t>(bytes));
  });
  const BufferView operands[] = {source, result};
  CallContext call{.operands = operands, .scalars = {}, .stage = "move"};
  const auto ran = non_temporal_kernel()->run(call);
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(to, wanted) << extents[0] << " of " << bytes << " bytes, " << shift << " into a line";
}

TEST(NonTemporalKernel, MovesBoxesOfAnyWidthToAnyAddress) {
  for (const int bytes : {1, 2, 4, 8})
    for (const int64_t elements : {0, 1, 7, 63, 64, 65, 129, 200})
      for (const size_t shift : {0, 1, 4, 31, 63}) {
        const int64_t row = elements * bytes;
        if (elements > 0)
          expect_moved({{-1, elements, bytes}, {2, 3, row + 24}}, {{-1, elements, bytes}, {2, 3, row}}, bytes, shift);
        if (elements > 0) expect_moved({{0, elements, bytes}}, {{0, elements, bytes}}, bytes, shift);
      }
}

// Backwards, with gaps, broadcast, from a ring of rows and from one across them.
TEST(NonTemporalKernel, MovesBoxesOfAnyStrides) {
  expect_moved({{0, 70, 4}, {0, 5, -400}}, {{0, 70, 4}, {0, 5, 280}}, 4, 12);
  expect_moved({{0, 70, 8}, {0, 5, 600}}, {{0, 70, 4}, {0, 5, 280}}, 4, 0);
  expect_moved({{0, 70, 4}, {0, 5, 280}}, {{0, 70, 20}, {0, 5, 4}}, 4, 0);
  expect_moved({{0, 70, 4}, {0, 5, 280}}, {{0, 70, 0}, {0, 5, 4}}, 4, 4);
  expect_moved({{0, 70, 4}, {7, 5, 280}}, {{0, 70, 4}, {7, 5, 280, 6}}, 4, 4);
  expect_moved({{5, 70, 4}, {0, 5, 280}}, {{5, 70, 4, 72}, {0, 5, 288}}, 4, 4);
  expect_moved({{0, 33, 4}, {0, 3, 132}, {0, 2, 396}}, {{0, 33, 4}, {0, 3, 140}, {0, 2, 500}}, 4, 8);
}

}  // namespace
}  // namespace tenon::program
