// Speed of bound programs, in a release build:
//   build/release/tests/bench/program_bench
//
// Overhead: the cost of a stage in an iteration of a loop, in addition to its kernel. Copies: two copies through an
// intermediate buffer, as a whole and in chunks; the ratio of the two is the cost of a loop if everything is in cache,
// and its gain if not.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/program/pipeline/pipeline.hpp>
#include <tenon/support/median.hpp>
#include <tenon/support/memory.hpp>

namespace tenon::program {
namespace {

Result<void> nothing(CallContext& c) {
  benchmark::DoNotOptimize(c.operands[0].base);
  return {};
}

Result<void> copy_bytes(CallContext& c) {
  const BufferView &from = c.operands[0], &to = c.operands[1];
  std::memcpy(to.base, from.base, static_cast<size_t>(to.dims[0].extent));
  return {};
}

KernelTable kernels() {
  return {{"nothing", make_kernel("nothing", &nothing)}, {"copy_bytes", make_kernel("copy_bytes", &copy_bytes)}};
}

BoundProgram bound(const std::string& text, const Arguments& shapes) {
  const auto program = parse_program(text, kernels());
  TENON_CHECK(program.ok(), program.error().to_string());
  TENON_CHECK(verify(*program).ok(), verify(*program).error().to_string());
  auto result = BoundProgram::bind(*program, shapes);
  TENON_CHECK(result.ok(), result.error().to_string());
  return *std::move(result);
}

// With the alignment of arenas: copies with other alignments take up to a third longer, whoever makes them.
class LineBytes {
 public:
  LineBytes(size_t count, std::byte value) : bytes_(allocate_aligned(count).value()), count_(count) {
    std::fill_n(data(), count, value);
  }
  explicit LineBytes(size_t count) : LineBytes(count, std::byte{}) {}
  std::byte* data() const { return bytes_.get(); }
  size_t size() const { return count_; }
  bool operator==(const LineBytes& other) const { return std::equal(data(), data() + count_, other.data()); }

 private:
  AlignedBytes bytes_;
  size_t count_;
};

// `stage`, repeated in an iteration, with an input and an output that advance with the loop.
void repeated(benchmark::State& state, const char* stage) {
  const int64_t stages = state.range(0);
  constexpr int64_t kIterations = 10000;
  std::string text = "program @overhead() { input %in : u8 rank 2 output %out : u8 rank 2 for y in [0, 10000) {\n";
  for (int64_t s = 0; s < stages; ++s) text += stage;
  // Half a page apart, modulo pages: loads do not wait for stores that may be to the same place.
  LineBytes bytes(2 * 16 * kIterations + 4096 * 3 / 2);
  std::byte *const in = bytes.data(), *const out = in + (16 * kIterations + 4095) / 4096 * 4096 + 2048;
  Arguments arguments;
  arguments.buffers["in"] = BufferArgument::dense(in, kU8, {16, kIterations});
  arguments.buffers["out"] = BufferArgument::dense(out, kU8, {16, kIterations});
  BoundProgram program = bound(text + "} }", arguments);
  for (auto _ : state) TENON_CHECK(program.run(arguments).ok(), "run");
  state.SetItemsProcessed(state.iterations() * stages * kIterations);  // stages times iterations a second
}
void overhead(benchmark::State& state) {
  repeated(state, "call nothing(in %in[0 +: 16, y +: 1], out %out[0 +: 16, y +: 1])\n");
}
BENCHMARK(overhead)->Arg(1)->Arg(2)->Arg(8);
// Copies of 16 bytes, including the move: in order, and with rows reversed.
void overhead_of_copies(benchmark::State& state) { repeated(state, "copy %out[0 +: 16, y +: 1](x, z) = %in(x, z)\n"); }
BENCHMARK(overhead_of_copies)->Arg(1)->Arg(2)->Arg(8);
void overhead_of_flips(benchmark::State& state) {
  repeated(state, "copy %out[0 +: 16, y +: 1](x, z) = %in(15 - x, z)\n");
}
BENCHMARK(overhead_of_flips)->Arg(1)->Arg(8);

// The same with rings: each of `stages` reads some rows of the previous one.
void rings(benchmark::State& state, int64_t stages, int64_t window) {
  constexpr int64_t kIterations = 10000;
  const Expr x = Expr::symbol("x"), y = Expr::symbol("y");
  Pipeline p("rings");
  BufferRef source = p.buffer("in", kU8, 2), from = source;
  const KernelHandle kernel = make_kernel("nothing", &nothing, true);
  for (int64_t s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "out" : str("mid", s), kU8, 2);
    StageRef stage = p.stage(str("stage", s), kernel).reads(from, {x, {y - 1, y + window - 2}}).writes(to, {x, y});
    if (s + 1 == stages) stage.loops({{y, 1}});
    from = to;
  }
  const int64_t rows = kIterations + (window - 1) * stages;
  std::vector<std::byte> in(static_cast<size_t>(16 * rows)), out(16 * kIterations);
  Arguments arguments;
  arguments.buffers["in"] = BufferArgument::dense(in.data(), kU8, {16, rows}, {0, -stages});
  arguments.buffers["out"] = BufferArgument::dense(out.data(), kU8, {16, kIterations});
  const auto built = p.build({source}, {from});
  TENON_CHECK(built.ok(), built.error().to_string());
  auto program = BoundProgram::bind(*built, arguments);
  TENON_CHECK(program.ok(), program.error().to_string());
  for (auto _ : state) TENON_CHECK(program->run(arguments).ok(), "run");
  state.SetItemsProcessed(state.iterations() * stages * kIterations);
}
void overhead_of_rings(benchmark::State& state) { rings(state, state.range(0), 3); }
BENCHMARK(overhead_of_rings)->Arg(2)->Arg(4)->Arg(8)->Arg(16);
// With so many rows that a period is too long for separate code.
void overhead_of_long_rings(benchmark::State& state) { rings(state, state.range(0), 33); }
BENCHMARK(overhead_of_long_rings)->Arg(2)->Arg(8);

// The lower bound: the same kernel called through a pointer in a loop.
void indirect_calls(benchmark::State& state) {
  constexpr int64_t kCalls = 10000;
  Result<void> (*volatile kernel)(CallContext&) = &nothing;
  const BufferView view;
  CallContext context;
  context.operands = {&view, 1};
  for (auto _ : state) {
    Result<void> (*const call)(CallContext&) = kernel;
    for (int64_t i = 0; i < kCalls; ++i) TENON_CHECK(call(context).ok(), "run");
  }
  state.SetItemsProcessed(state.iterations() * kCalls);
}
BENCHMARK(indirect_calls);

// `total` bytes, `chunk` at a time; 0: the whole at once.
std::string copies_text(int64_t total, int64_t chunk) {
  const std::string begin = "program @copies() { input %in : u8 rank 1 output %out : u8 rank 1\n";
  if (chunk == 0)
    return begin + str("allocate %tmp : u8[0 +: ", total,
                       "] {\n call copy_bytes(in %in, out %tmp) call copy_bytes(in %tmp, out %out)\n} }");
  return begin + str("allocate %tmp : u8[0 +: ", total, " fold ", chunk, "] {\n for x in [0, ", total, ") step ", chunk,
                     " {\n call copy_bytes(in %in[x +: ", chunk, "], out %tmp[x +: ", chunk,
                     "])\n call copy_bytes(in %tmp[x +: ", chunk, "], out %out[x +: ", chunk, "])\n} } }");
}

// range(0): bytes in all, range(1): bytes per chunk; 0: the whole at once.
void two_copies(benchmark::State& state) {
  const int64_t total = state.range(0);
  LineBytes in(static_cast<size_t>(total), std::byte{7}), out(static_cast<size_t>(total));
  Arguments arguments;
  arguments.buffers["in"] = BufferArgument::dense(in.data(), kU8, {total});
  arguments.buffers["out"] = BufferArgument::dense(out.data(), kU8, {total});
  BoundProgram program = bound(copies_text(total, state.range(1)), arguments);
  for (auto _ : state) TENON_CHECK(program.run(arguments).ok(), "run");
  TENON_CHECK(in == out, "the bytes have arrived");
  state.SetBytesProcessed(state.iterations() * total * 2);
}

// The same calls without a program.
void copy_by_hand(const LineBytes& in, LineBytes& tmp, LineBytes& out) {
  for (size_t x = 0; x < in.size(); x += tmp.size()) {
    std::memcpy(tmp.data(), in.data() + x, tmp.size());
    benchmark::ClobberMemory();
    std::memcpy(out.data() + x, tmp.data(), tmp.size());
    benchmark::ClobberMemory();
  }
}
void two_copies_by_hand(benchmark::State& state) {
  const auto total = static_cast<size_t>(state.range(0)), chunk = static_cast<size_t>(state.range(1));
  LineBytes in(total, std::byte{7}), tmp(chunk), out(total);
  for (auto _ : state) copy_by_hand(in, tmp, out);
  state.SetBytesProcessed(state.iterations() * state.range(0) * 2);
}

// The same in alternation: the counter is the median of the hand-written loop's time / the program's time, so that load
// affects both.
void loop_against_hand(benchmark::State& state) {
  constexpr int64_t kTotal = 32 << 10;
  constexpr int kRuns = 16;
  const int64_t chunk = state.range(0);
  LineBytes in(kTotal, std::byte{7}), tmp(static_cast<size_t>(chunk)), out(kTotal);
  Arguments arguments;
  arguments.buffers["in"] = BufferArgument::dense(in.data(), kU8, {kTotal});
  arguments.buffers["out"] = BufferArgument::dense(out.data(), kU8, {kTotal});
  BoundProgram program = bound(copies_text(kTotal, chunk), arguments);
  const std::vector<std::byte*> buffers{in.data(), out.data()};
  const auto seconds = [](const auto& run) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRuns; ++i) run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<double> ratios;
  for (auto _ : state) {
    const double looped = seconds([&] { TENON_CHECK(program.run(buffers).ok(), "run"); });
    ratios.push_back(seconds([&] { copy_by_hand(in, tmp, out); }) / looped);
  }
  state.counters["ratio"] = median(ratios);
}
BENCHMARK(loop_against_hand)->Arg(1 << 10)->Arg(4 << 10)->Arg(32 << 10);

void sizes(benchmark::internal::Benchmark* b) {
  for (const int64_t total : {32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20})
    for (const int64_t chunk : {0, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10}) b->Args({total, chunk});
}
void chunks_in_cache(benchmark::internal::Benchmark* b) {
  for (const int64_t chunk : {1 << 10, 4 << 10, 32 << 10}) b->Args({32 << 10, chunk});
}
BENCHMARK(two_copies)->Apply(sizes);
BENCHMARK(two_copies_by_hand)->Apply(chunks_in_cache);

}  // namespace
}  // namespace tenon::program
