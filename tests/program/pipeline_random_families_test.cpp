// Families of pipelines with random sizes, radii, steps, workers and options: compared with plain C++, with the minimal
// work (nothing is computed twice), and with the memory that a manual calculation gives. TENON_FUZZ_SEEDS and
// TENON_FUZZ_FIRST select the seeds.
#include <random>

#include <program/pipeline_support.hpp>
#include <support_lib/environment.hpp>

namespace tenon::program {

namespace {

const Expr x = var("x"), y = var("y");

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t operator()(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t percent) { return (*this)(1, 100) <= percent; }

 private:
  std::mt19937_64 random_;
};

constexpr int64_t kThreads = 2;

// The same for whole rows only.
KernelHandle without_rings(const KernelHandle& k) { return make_kernel(k->name, k->run, false); }

struct Ran {
  RunStatistics statistics;
  std::string program;
  int64_t elements() const {
    int64_t sum = 0;
    for (const auto& [name, s] : statistics.stages) sum += s.elements;
    return sum;
  }
  int64_t copy_calls() const {
    int64_t sum = 0;
    for (const auto& [name, s] : statistics.copies) sum += s.calls;
    return sum;
  }
};

// Runs on the interpreter in two orders, in compiled form and with the race verifier.
Ran run(const Pipeline& p, const std::vector<BufferRef>& inputs, const std::vector<BufferRef>& outputs,
        const std::map<std::string, BufferArgument, std::less<>>& buffers, const SymbolValues& scalars = {},
        const BuildOptions& options = {}) {
  Ran ran;
  const auto program = p.build(inputs, outputs, {}, options);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return ran;
  ran.program = print(program.value());
  EXPECT_TRUE(verify(program.value()).ok()) << verify(program.value()).error().to_string() << "\n" << ran.program;
  for (const uint64_t seed : {5, 0}) {
    const auto result = interpret(program.value(), {buffers, scalars}, {kThreads, 0, seed, false}, &ran.statistics);
    EXPECT_TRUE(result.ok()) << result.error().to_string() << "\n" << ran.program;
    if (!result.ok()) return ran;
  }
  const auto races = check_races(program.value(), {buffers, scalars}, {kThreads});
  EXPECT_TRUE(races.ok()) << races.error().to_string() << "\n" << ran.program;
  expect_same_compiled(program.value(), {buffers, scalars}, static_cast<int>(kThreads), 0);
  return ran;
}

template <class T, class F>
void expect_elements(const Array<T>& array, const Ran& ran, const F& f) {
  int64_t wrong = 0;
  for_each_index(array.mins(), array.extents(), [&](const Index& i) { wrong += array.at(i) != static_cast<T>(f(i)); });
  EXPECT_EQ(wrong, 0) << ran.program;
}

// The rows that a window of `radius` around each row of steps takes, of `all` rows: one window that advances by a step
// per worker, or as many windows as workers if nothing is carried over.
int64_t ring_rows(int64_t step, int64_t radius, int64_t all, bool parallel) {
  const int64_t workers = parallel ? kThreads : 1;
  return radius == 0 ? workers * std::min(step, all) : std::min(all, step + 2 * radius + (workers - 1) * step);
}
// The same as a contiguous window: a period of whole steps, followed by what its last iterations read.
int64_t rows_in_one_piece(int64_t step, int64_t radius, int64_t all, bool parallel) {
  if (radius == 0) return ring_rows(step, radius, all, parallel);
  const int64_t workers = parallel ? kThreads : 1, window = std::min(all, step + 2 * radius);
  return std::min(all, step * ((window + step - 1) / step + workers - 1) + window - 1);
}

class RandomFamilies : public ::testing::TestWithParam<uint64_t> {};

int32_t sum_around(const Array<int32_t>& a, const Index& at, int64_t rx, int64_t ry) {
  int32_t sum = 0;
  for (int64_t dy = -ry; dy <= ry; ++dy)
    for (int64_t dx = -rx; dx <= rx; ++dx) sum += a.at({at[0] + dx, at[1] + dy});
  return sum;
}

// A chain of stencils; the last one's rows in steps. `rings`: whether kernels take ring buffers.
void stencil_chain(Draw& draw, bool rings) {
  const int64_t width = draw(1, 12), height = draw(1, 24), stages = draw(1, 4);
  const int64_t step = draw.chance(10) ? 1000 : draw(1, 6);
  const bool loop = draw.chance(85), parallel = loop && draw.chance(35);
  std::vector<int64_t> rx, ry;
  for (int64_t s = 0; s < stages; ++s) rx.push_back(draw(0, 2)), ry.push_back(draw(0, 2));
  Pipeline p("stencil_chain");
  std::vector<BufferRef> buffers{p.buffer("src", kI32, 2)};
  const auto plain = [&](const KernelHandle& k) { return rings ? k : without_rings(k); };
  buffers.push_back(p.buffer("b0", kI32, 2));
  p.stage("add", plain(add_constant<int32_t>(1))).reads(buffers[0], {x, y}).writes(buffers[1], {x, y});
  for (size_t s = 0; s < rx.size(); ++s) {
    buffers.push_back(p.buffer("b" + std::to_string(s + 1), kI32, 2));
    StageRef stage =
        p.stage("stencil" + std::to_string(s), plain(window_sum<int32_t>({-rx[s], -ry[s]}, {rx[s], ry[s]})))
            .reads(buffers[s + 1], {{x - rx[s], x + rx[s]}, {y - ry[s], y + ry[s]}})
            .writes(buffers[s + 2], {x, y});
    if (loop && s + 1 == rx.size()) stage.loops({{y, step, parallel ? kAllWorkers : 1}});
  }
  // Plain C++, and what each buffer takes.
  std::vector<Array<int32_t>> arrays;
  int64_t wide = std::accumulate(rx.begin(), rx.end(), int64_t{0}),
          high = std::accumulate(ry.begin(), ry.end(), int64_t{0});
  Array<int32_t> source({-wide, -high}, {width + 2 * wide, height + 2 * high});
  arrays.push_back(source.fill_pattern());
  arrays[0].fill([&](const Index& at) { return source.at(at) + 1; });
  int64_t bytes = 0, in_pieces = 0, work = 0;
  for (size_t s = 0; s < rx.size(); ++s) {
    const int64_t w = width + 2 * wide, h = height + 2 * high;
    bytes += 4 * w * (loop ? ring_rows(step, ry[s], h, parallel) : h);
    in_pieces += 4 * w * (loop ? rows_in_one_piece(step, ry[s], h, parallel) : h);
    work += w * h;
    wide -= rx[s], high -= ry[s];
    Array<int32_t> next({-wide, -high}, {width + 2 * wide, height + 2 * high});
    arrays.push_back(next.fill([&](const Index& at) { return sum_around(arrays[s], at, rx[s], ry[s]); }));
  }
  work += width * height;
  Array<int32_t> out({width, height});
  const Ran ran =
      run(p, {buffers[0]}, {buffers.back()}, {{"src", source.argument()}, {buffers.back().name(), out.argument()}});
  expect_elements(out, ran, [&](const Index& at) { return arrays.back().at(at); });
  EXPECT_EQ(ran.elements(), work) << ran.program;
  EXPECT_LE(ran.statistics.heap_peak, rings ? bytes : in_pieces) << ran.program;
}

TEST_P(RandomFamilies, StencilChainsKeepWindows) {
  Draw draw(GetParam());
  stencil_chain(draw, true);
}

// The same with kernels that take no ring buffers: contiguous windows.
TEST_P(RandomFamilies, KernelsWithoutRingsGetWindowsInOnePiece) {
  Draw draw(GetParam() + 1'000'000);
  stencil_chain(draw, false);
}

// Two chains that join: windows of different heights in one loop.
TEST_P(RandomFamilies, ParallelStencilsKeepBothWindows) {
  Draw draw(GetParam() + 2'000'000);
  const int64_t width = draw(1, 12), height = draw(1, 24), step = draw.chance(20) ? 1234567 : draw(1, 5);
  const int64_t r1 = draw(0, 2), r2 = draw(0, 3), schedule = draw(0, 3);
  Pipeline p("parallel_stencils");
  BufferRef src1 = p.buffer("src1", kI32, 2), src2 = p.buffer("src2", kI32, 2), m1 = p.buffer("m1", kI32, 2),
            m2 = p.buffer("m2", kI32, 2), m3 = p.buffer("m3", kI32, 2), m4 = p.buffer("m4", kI32, 2),
            dst = p.buffer("dst", kI32, 2);
  p.stage("add", add_constant<int32_t>(1)).reads(src1, {x, y}).writes(m1, {x, y});
  p.stage("mul", times_constant<int32_t>(2)).reads(src2, {x, y}).writes(m2, {x, y});
  StageRef s1 = p.stage("stencil1", window_sum<int32_t>({-r1, -r1}, {r1, r1}))
                    .reads(m1, {{x - r1, x + r1}, {y - r1, y + r1}})
                    .writes(m3, {x, y});
  StageRef s2 = p.stage("stencil2", window_sum<int32_t>({-r2, -r2}, {r2, r2}))
                    .reads(m2, {{x - r2, x + r2}, {y - r2, y + r2}})
                    .writes(m4, {x, y});
  StageRef diff = p.stage("diff", pointwise2<int32_t>("sub", [](int32_t a, int32_t b) { return a - b; }))
                      .reads(m3, {x, y})
                      .reads(m4, {x, y})
                      .writes(dst, {x, y});
  const bool parallel = schedule == 2;
  if (schedule > 0) diff.loops({{y, step, parallel ? kAllWorkers : 1}});
  if (schedule == 3) s1.loops({{y, draw(1, 3)}}), s2.loops({{y, draw(1, 3)}});
  Array<int32_t> a({-r1, -r1}, {width + 2 * r1, height + 2 * r1}), b({-r2, -r2}, {width + 2 * r2, height + 2 * r2}),
      out({width, height});
  a.fill_pattern(1), b.fill_pattern(2);
  const Ran ran =
      run(p, {src1, src2}, {dst}, {{"src1", a.argument()}, {"src2", b.argument()}, {"dst", out.argument()}});
  expect_elements(out, ran, [&](const Index& at) {
    return sum_around(a, at, r1, r1) + static_cast<int32_t>((2 * r1 + 1) * (2 * r1 + 1)) -
           2 * sum_around(b, at, r2, r2);
  });
  const auto rows = [&](int64_t radius) {
    const int64_t all = height + 2 * radius;
    return schedule == 0 ? all : ring_rows(step, radius, all, parallel);
  };
  int64_t bytes = 4 * 2 * width * rows(0);
  for (const int64_t r : {r1, r2}) bytes += 4 * (width + 2 * r) * rows(r);
  EXPECT_LE(ran.statistics.heap_peak, bytes) << ran.program;
  EXPECT_EQ(ran.elements(),
            3 * width * height + (width + 2 * r1) * (height + 2 * r1) + (width + 2 * r2) * (height + 2 * r2))
      << ran.program;
}

// Tiles with a given number of elements, whose sides follow from the size of the result: at most a tile is kept.
TEST_P(RandomFamilies, TilesOfAnAreaTakeThatArea) {
  Draw draw(GetParam() + 3'000'000);
  const int64_t width = draw(1, 20), height = draw(1, 20), area = draw(1, 80);
  Pipeline p("tile_area");
  const Expr tile = p.scalar("area");
  BufferRef src = p.buffer("src", kI32, 2), mid = p.buffer("mid", kI32, 2), dst = p.buffer("dst", kI32, 2);
  p.stage("mul", times_constant<int32_t>(2)).reads(src, {x, y}).writes(mid, {x, y});
  const Expr tile_width = max(min(dst.extent(0), tile), Expr(1));
  p.stage("add", add_constant<int32_t>(1))
      .reads(mid, {x, y})
      .writes(dst, {x, y})
      .loops({{x, tile_width}, {y, max(floordiv(tile, tile_width), Expr(1))}});
  Array<int32_t> a({width, height}), out({width, height});
  a.fill_pattern();
  const Ran ran = run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", out.argument()}}, {{"area", area}});
  expect_elements(out, ran, [&](const Index& at) { return 2 * a.at(at) + 1; });
  EXPECT_LE(ran.statistics.heap_peak, 4 * std::min(area, width * height)) << ran.program;
}

// Sources are computed in their part of the result: no copy, no memory, whatever the loops.
TEST_P(RandomFamilies, ConcatenatedOutputsTakeNoMemory) {
  Draw draw(GetParam() + 4'000'000);
  const int64_t sources = draw(2, 4), dim = draw(0, 1), across = draw(1, 9), step = draw(1, 4);
  const bool alias = draw.chance(70), loops = draw.chance(50);
  Pipeline p("concatenated_output");
  std::vector<BufferRef> from, mid;
  std::vector<Array<int32_t>> arrays;
  std::vector<Expr> offsets{0};
  std::vector<int64_t> begins{0};
  arrays.reserve(static_cast<size_t>(sources));
  std::map<std::string, BufferArgument, std::less<>> arguments;
  for (int64_t s = 0; s < sources; ++s) {
    const std::string number = std::to_string(s);
    const int64_t length = draw(1, 7);
    from.push_back(p.buffer("src" + number, kI32, 2));
    mid.push_back(p.buffer("mid" + number, kI32, 2));
    p.stage("add" + number, add_constant<int32_t>(s + 1)).reads(from.back(), {x, y}).writes(mid.back(), {x, y});
    offsets.push_back(offsets.back() + from.back().extent(static_cast<int>(dim)));
    begins.push_back(begins.back() + length);
    arrays.emplace_back(dim == 0 ? Index{length, across} : Index{across, length});
    arrays.back().fill_pattern(s + 1);
    arguments["src" + number] = arrays.back().argument();
  }
  BufferRef dst = p.buffer("dst", kI32, 2);
  StageRef all = p.concatenate(mid, dst, {x, y}, static_cast<int>(dim), offsets);
  if (loops) all.loops({{y, step}});
  Array<int32_t> out(dim == 0 ? Index{begins.back(), across} : Index{across, begins.back()});
  arguments["dst"] = out.argument();
  const Ran ran = run(p, from, {dst}, arguments, {}, {alias, true, true});
  expect_elements(out, ran, [&](Index at) {
    size_t s = 0;
    while (at[static_cast<size_t>(dim)] >= begins[s + 1]) ++s;
    at[static_cast<size_t>(dim)] -= begins[s];
    return arrays[s].at(at) + static_cast<int32_t>(s) + 1;
  });
  EXPECT_EQ(ran.elements(), across * begins.back()) << ran.program;
  EXPECT_LE(ran.statistics.heap_peak, alias ? 0 : 4 * across * begins.back()) << ran.program;
  EXPECT_TRUE(!alias || ran.copy_calls() == 0) << ran.program;
}

// Halves and doubles in alternation.
TEST_P(RandomFamilies, ResamplingComputesNothingTwice) {
  Draw draw(GetParam() + 5'000'000);
  const int64_t width = draw(1, 10), height = 2 * draw(1, 12), factor = draw(2, 3), step = draw(1, 5);
  const bool parallel = draw.chance(30);
  Pipeline p("resampling");
  BufferRef src = p.buffer("src", kI32, 2), low = p.buffer("low", kI32, 2), smooth = p.buffer("smooth", kI32, 2),
            dst = p.buffer("dst", kI32, 2);
  const auto down = kernel<int32_t>("down", [factor](const CallContext& c, const Index& at) {
    int32_t sum = 0;
    for (int64_t k = 0; k < factor; ++k) sum += c.elements<const int32_t>(0)(at[0], at[1] * factor + k);
    return sum;
  });
  p.stage("down", down).reads(src, {x, {factor * y, factor * y + factor - 1}}).writes(low, {x, y});
  p.stage("smooth", window_sum<int32_t>({0, -1}, {0, 1})).reads(low, {x, {y - 1, y + 1}}).writes(smooth, {x, y});
  const auto up = kernel<int32_t>("up", [factor](const CallContext& c, const Index& at) {
    return c.elements<const int32_t>(0).at(at) + c.elements<const int32_t>(1)(at[0], at[1] / factor);
  });
  p.stage("up", up)
      .reads(src, {x, y})
      .reads(smooth, {x, floordiv(y, factor)})
      .writes(dst, {x, y})
      .loops({{y, step, parallel ? kAllWorkers : 1}});
  const int64_t lows = (height - 1) / factor + 1;
  Array<int32_t> a({0, -factor}, {width, factor * (lows + 2)}), out({width, height});
  a.fill_pattern();
  const Ran ran = run(p, {src}, {dst}, {{"src", a.argument()}, {"dst", out.argument()}});
  const auto at_low = [&](int64_t u, int64_t v) {
    int32_t sum = 0;
    for (int64_t k = 0; k < factor; ++k) sum += a(u, v * factor + k);
    return sum;
  };
  expect_elements(out, ran, [&](const Index& at) {
    const int64_t v = at[1] / factor;
    return a.at(at) + at_low(at[0], v - 1) + at_low(at[0], v) + at_low(at[0], v + 1);
  });
  EXPECT_EQ(ran.elements(), width * (height + lows + lows + 2)) << ran.program;
}

INSTANTIATE_TEST_SUITE_P(
    Seeds, RandomFamilies,
    ::testing::Range(static_cast<uint64_t>(tenon::testing::number_from_environment("TENON_FUZZ_FIRST", 0)),
                     static_cast<uint64_t>(tenon::testing::number_from_environment("TENON_FUZZ_FIRST", 0) +
                                           tenon::testing::number_from_environment("TENON_FUZZ_SEEDS", 60))),
    [](const auto& info) { return "seed" + std::to_string(info.param); });

}  // namespace
}  // namespace tenon::program
