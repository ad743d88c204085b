// Pipelines: the costs of locality, overhead and building. docs/performance.md has the target figures.
//   build/release/tests/bench/pipeline_bench --benchmark_enable_random_interleaving=true --benchmark_repetitions=9
//   build/release/tests/bench/pipeline_bench --sweep [--curve] [--only "12 stages"]
//   [points|rows|stencils|boxes|pyramids|
//     sharpenings|drawn ...]
//   build/release/tests/bench/pipeline_bench --model: what the automatic schedule takes the machine for
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/program/pipeline/pipeline.hpp>
#include <tenon/program/schedule/adaptive_program.hpp>
#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/program/schedule/measured_schedule.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "blurs_by_hand.hpp"
#include "pipeline_kernels.hpp"
#include "schedule_sweep.hpp"

namespace {

using namespace tenon;
using namespace tenon::program;
using namespace tenon::program::bench;

enum class Scheduled : uint8_t { before, by_the_clock, by_its_runs };

// An adaptive program first runs for so long, as one that is in use has done.
constexpr double kAdaptSeconds = 3;

CostModel model_of(int64_t workers) {
  CostModel model = CostModel::of_machine();
  model.workers = workers;
  return model;
}

// The mean over all runs of the program, the slower ones of trials included.
template <class AnyProgram>
bool run(benchmark::State& state, AnyProgram& program, const Arguments& arguments, double seconds_before) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto once = [&] {
    const auto ran = program.run(arguments);
    if (!ran.ok()) state.SkipWithError(ran.error().to_string().c_str());
    return ran.ok();
  };
  // The first run touches the arena's pages, which takes longer than a run.
  do {
    if (!once()) return false;
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds_before);
  for (auto _ : state)
    if (!once()) return false;
  return true;
}

void run(benchmark::State& state, Pair& pair, BufferArgument source, BufferArgument result, int threads = 1,
         Scheduled scheduled = Scheduled::before) {
  const Arguments arguments{{{"source", source}, {"result", result}}, {}};
  ThreadPool pool(threads);
  if (scheduled == Scheduled::by_its_runs) {
    auto adaptive = AdaptiveProgram::bind(pair.pipeline, {pair.source}, {pair.result}, arguments, model_of(threads),
                                          {.bind = {&pool, threads}});
    if (!adaptive.ok()) return state.SkipWithError(adaptive.error().to_string().c_str());
    if (run(state, *adaptive, arguments, kAdaptSeconds))
      state.counters["arena_bytes"] = static_cast<double>(adaptive->lendable_bytes());
    return;
  }
  if (scheduled == Scheduled::by_the_clock) {
    MeasureOptions options;
    if (threads > 1) options.bind = {&pool, threads};
    const auto report =
        measured_schedule(pair.pipeline, {pair.source}, {pair.result}, arguments, model_of(threads), options);
    if (!report.ok()) return state.SkipWithError(report.error().to_string().c_str());
  }
  const auto built = pair.pipeline.build({pair.source}, {pair.result});
  if (!built.ok()) return state.SkipWithError(built.error().to_string().c_str());
  auto bound = BoundProgram::bind(built.value(), arguments, {&pool, threads});
  if (!bound.ok()) return state.SkipWithError(bound.error().to_string().c_str());
  if (!run(state, *bound, arguments, 0)) return;
  int64_t arena = 0;
  for (const auto& [space, bytes] : bound.value().arena_bytes()) arena += bytes;
  state.counters["arena_bytes"] = static_cast<double>(arena);
}

constexpr int64_t kFloats = int64_t{4} << 20, kSide = 2048;

// range(0): indices a step; 0: as a whole; -1: the automatic schedule; -2 and -3: the one by the clock, and the one
// that its runs choose, which run() makes.
constexpr int64_t kAutomatic = -1, kByTheClock = -2, kByItsRuns = -3;
Scheduled scheduled(const benchmark::State& state) {
  if (state.range(0) == kByItsRuns) return Scheduled::by_its_runs;
  return state.range(0) == kByTheClock ? Scheduled::by_the_clock : Scheduled::before;
}
void schedule(Pair& pair, int64_t step, const Expr& index, int64_t extent, int64_t workers = 1) {
  if (step > 0) pair.last.loops({{index, step, workers}});
  if (step == kAutomatic) {
    SymbolValues sizes{{"result.min0", 0}, {"result.extent0", extent}, {"result.min1", 0}, {"result.extent1", kSide}};
    const auto report = auto_schedule(pair.pipeline, {pair.source}, {pair.result}, sizes, model_of(workers));
    TENON_CHECK(report.ok(), report.error().to_string());
  }
}

// range(1): stages. range(2): floats.
void scale_chain(benchmark::State& state) {
  const int64_t floats = state.range(2);
  AlignedFloats a(floats), b(floats);
  Pair pair = scales(static_cast<int>(state.range(1)));
  schedule(pair, state.range(0), x, floats);
  run(state, pair, BufferArgument::dense(a.data(), kF32, {floats}), BufferArgument::dense(b.data(), kF32, {floats}), 1,
      scheduled(state));
}
BENCHMARK(scale_chain)
    ->ArgsProduct({{0, -1, kByTheClock, kByItsRuns, 512, 1024, 2048, 4096, 16384, 65536}, {8}, {kFloats}})
    ->ArgsProduct({{-1, 512, 1024, 2048, 4096, 16384}, {3, 16}, {1 << 18, kFloats}})
    // 64 MB: more than the last cache of most machines.
    ->ArgsProduct({{0, -1, kByTheClock, kByItsRuns, 1024}, {8}, {4 * kFloats}})
    ->Unit(benchmark::kMillisecond);

// The same with range(3) workers, in wall-clock time.
void scale_chain_shared(benchmark::State& state) {
  const int64_t floats = state.range(2), workers = state.range(3);
  AlignedFloats a(floats), b(floats);
  Pair pair = scales(static_cast<int>(state.range(1)));
  schedule(pair, state.range(0), x, floats, workers);
  run(state, pair, BufferArgument::dense(a.data(), kF32, {floats}), BufferArgument::dense(b.data(), kF32, {floats}),
      static_cast<int>(workers), scheduled(state));
}
BENCHMARK(scale_chain_shared)
    ->ArgsProduct({{-1, kByTheClock, kByItsRuns}, {8}, {1 << 14, 1 << 18, kFloats, 4 * kFloats}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Stencils with other widths and numbers of stages. range(1): stages, range(2): floats per row; there are kSide rows.
void stencil_chain(benchmark::State& state) {
  const int64_t stages = state.range(1), width = state.range(2), rows = kSide + 2 * stages;
  AlignedFloats a(width * rows), b(width * kSide);
  Pair pair = blurs(static_cast<int>(stages));
  schedule(pair, state.range(0), y, width);
  run(state, pair, BufferArgument::dense(a.data(), kF32, {width, rows}, {0, -stages}),
      BufferArgument::dense(b.data(), kF32, {width, kSide}));
}
BENCHMARK(stencil_chain)
    ->ArgsProduct({{-1, 1, 2, 4, 8, 16, 32, 64}, {3, 12}, {500, 2048, 8192}})
    ->Unit(benchmark::kMillisecond);

// range(1): workers. range(2): whether kernels take ring buffers. range(3): floats per row.
void blur_chain(benchmark::State& state) {
  const int64_t rows = kSide + 12, width = state.range(3);
  AlignedFloats a(width * rows), b(width * kSide);
  Pair pair = blurs(6, state.range(2) != 0);
  schedule(pair, state.range(0), y, width, state.range(1));
  run(state, pair, BufferArgument::dense(a.data(), kF32, {width, rows}, {0, -6}),
      BufferArgument::dense(b.data(), kF32, {width, kSide}), static_cast<int>(state.range(1)), scheduled(state));
}
BENCHMARK(blur_chain)
    ->Args({0, 1, 1, kSide})
    ->Args({-1, 1, 1, kSide})
    ->Args({kByTheClock, 1, 1, kSide})
    ->Args({kByItsRuns, 1, 1, kSide})
    ->Args({1, 1, 1, kSide})
    ->Args({2, 1, 1, kSide})
    ->Args({4, 1, 1, kSide})
    ->Args({8, 1, 1, kSide})
    ->Args({16, 1, 1, kSide})
    ->Args({64, 1, 1, kSide})
    ->Args({4, 1, 0, kSide})
    ->Args({8, 1, 0, kSide})
    ->Args({16, 1, 0, kSide})
    ->Args({8, 2, 1, kSide})
    ->Args({16, 2, 1, kSide})
    ->Args({32, 2, 1, kSide})
    ->Args({-1, 2, 1, kSide})
    ->Args({kByTheClock, 2, 1, kSide})
    ->Args({kByItsRuns, 2, 1, kSide})
    // 64 MB: more than the last cache of most machines.
    ->Args({0, 1, 1, 4 * kSide})
    ->Args({-1, 1, 1, 4 * kSide})
    ->Args({kByTheClock, 1, 1, 4 * kSide})
    ->Args({kByItsRuns, 1, 1, 4 * kSide})
    ->Args({8, 1, 1, 4 * kSide})
    ->Args({-1, 2, 1, 4 * kSide})
    ->Args({kByTheClock, 2, 1, 4 * kSide})
    ->Args({kByItsRuns, 2, 1, 4 * kSide})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// A band of rows per worker, in strips of range(0) rows: windows begin anew in each band. range(1): workers.
void blur_bands(benchmark::State& state) {
  const int64_t rows = kSide + 12, workers = state.range(1);
  AlignedFloats a(kSide * rows), b(kSide * kSide);
  Pair pair = blurs(6);
  pair.last.loops({{y, state.range(0)}, {y, ceildiv(pair.result.extent(1), workers), workers}});
  run(state, pair, BufferArgument::dense(a.data(), kF32, {kSide, rows}, {0, -6}),
      BufferArgument::dense(b.data(), kF32, {kSide, kSide}), static_cast<int>(workers));
}
BENCHMARK(blur_bands)->ArgsProduct({{4, 8, 16}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);

// The same without the runtime. range(0): rows per strip, 0: stage by stage; range(1): threads.
void blurs_by_hand(benchmark::State& state) {
  const int64_t rows = kSide + 12;
  AlignedFloats a(kSide * rows), b(kSide * kSide);
  BlursByHand blurs(6, kSide, kSide, state.range(0), static_cast<int>(state.range(1)));
  for (auto _ : state) blurs.run(a.data(), b.data());
  state.counters["arena_bytes"] = static_cast<double>(blurs.memory_bytes());
}
BENCHMARK(blurs_by_hand)->ArgsProduct({{0, 8, 16}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);

// Two copies through an intermediate buffer, range(0) bytes in all, range(1) bytes at a time; range(2): 0 hand-written,
// 1 a pipeline in a loop, 2 a pipeline without one (the intermediate buffer then has all bytes).
void copies(benchmark::State& state) {
  const int64_t bytes = state.range(0), chunk = state.range(1);
  std::vector<std::byte> a(static_cast<size_t>(bytes)), b(static_cast<size_t>(bytes));
  if (state.range(2) > 0) {
    Pair pair = chain(2, move_bytes(), kU8, 1, {x});
    if (state.range(2) == 1) pair.last.loops({{x, chunk}});
    return run(state, pair, BufferArgument::dense(a.data(), kU8, {bytes}),
               BufferArgument::dense(b.data(), kU8, {bytes}));
  }
  std::vector<std::byte> mid(static_cast<size_t>(chunk));
  for (auto _ : state)
    for (int64_t i = 0; i < bytes; i += chunk) {
      std::memcpy(mid.data(), a.data() + i, static_cast<size_t>(chunk));
      benchmark::DoNotOptimize(mid.data());
      std::memcpy(b.data() + i, mid.data(), static_cast<size_t>(chunk));
      benchmark::ClobberMemory();
    }
}
BENCHMARK(copies)->ArgsProduct({{32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20},
                                {1 << 10, 4 << 10, 16 << 10, 32 << 10},
                                {0, 1, 2}});

// range(0): stages. Cost must grow linearly with their number.
void build_stages(benchmark::State& state) {
  Pair pair = blurs(static_cast<int>(state.range(0)));
  pair.last.loops({{y, 16}});
  for (auto _ : state) {
    auto built = pair.pipeline.build({pair.source}, {pair.result});
    if (!built.ok()) return state.SkipWithError(built.error().to_string().c_str());
    benchmark::DoNotOptimize(built);
  }
}
BENCHMARK(build_stages)->Arg(32)->Arg(128)->Arg(512)->Unit(benchmark::kMillisecond);

void schedule_stages(benchmark::State& state) {
  Pair pair = blurs(static_cast<int>(state.range(0)));
  for (auto _ : state) schedule(pair, -1, y, kSide);
}
BENCHMARK(schedule_stages)->Arg(32)->Arg(128)->Arg(512)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--sweep") return sweep_schedules({argv + 2, argv + argc});
  if (argc > 1 && std::string_view(argv[1]) == "--model") {
    std::fputs(CostModel::of_machine().to_string().c_str(), stdout);
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
