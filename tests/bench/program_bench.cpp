// Speed of bound programs, in a release build:
//   build/release/tests/bench/program_bench
//
// Overhead: what a stage costs in an iteration of a loop, beside its kernel. Copies: two copies through an intermediate
// buffer, as a whole and in chunks; the ratio of the two is what a loop costs where everything is in cache, and what it
// gains where it is not.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/text.hpp>
#include <tenon/program/verify.hpp>

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

// `stages` calls an iteration, each with an input and an output that move with the loop.
void overhead(benchmark::State& state) {
  const int64_t stages = state.range(0);
  constexpr int64_t kIterations = 10000;
  std::string text = "program @overhead() { input %in : u8 rank 2 output %out : u8 rank 2 for y in [0, 10000) {\n";
  for (int64_t s = 0; s < stages; ++s) text += "call nothing(in %in[0 +: 16, y +: 1], out %out[0 +: 16, y +: 1])\n";
  std::vector<std::byte> in(16 * kIterations), out(16 * kIterations);
  Arguments arguments;
  arguments.buffers["in"] = BufferArgument::dense(in.data(), kU8, {16, kIterations});
  arguments.buffers["out"] = BufferArgument::dense(out.data(), kU8, {16, kIterations});
  BoundProgram program = bound(text + "} }", arguments);
  for (auto _ : state) TENON_CHECK(program.run(arguments).ok(), "run");
  state.SetItemsProcessed(state.iterations() * stages * kIterations);  // stages times iterations a second
}
BENCHMARK(overhead)->Arg(1)->Arg(2)->Arg(8);

// range(0): bytes in all, range(1): bytes of a chunk; 0: the whole at once.
void two_copies(benchmark::State& state) {
  const int64_t total = state.range(0), chunk = state.range(1);
  std::string text = "program @copies() { input %in : u8 rank 1 output %out : u8 rank 1\n";
  if (chunk == 0)
    text += str("allocate %tmp : u8[0 +: ", total,
                "] {\n call copy_bytes(in %in, out %tmp) call copy_bytes(in %tmp, out %out)\n} }");
  else
    text += str("allocate %tmp : u8[0 +: ", total, " fold ", chunk, "] {\n for x in [0, ", total, ") step ", chunk,
                " {\n call copy_bytes(in %in[x +: ", chunk, "], out %tmp[x +: ", chunk,
                "])\n call copy_bytes(in %tmp[x +: ", chunk, "], out %out[x +: ", chunk, "])\n} } }");
  std::vector<std::byte> in(static_cast<size_t>(total), std::byte{7}), out(static_cast<size_t>(total));
  Arguments arguments;
  arguments.buffers["in"] = BufferArgument::dense(in.data(), kU8, {total});
  arguments.buffers["out"] = BufferArgument::dense(out.data(), kU8, {total});
  BoundProgram program = bound(text, arguments);
  for (auto _ : state) TENON_CHECK(program.run(arguments).ok(), "run");
  TENON_CHECK(in == out, "the bytes have arrived");
  state.SetBytesProcessed(state.iterations() * total * 2);
}

// The same calls without a program.
void two_copies_by_hand(benchmark::State& state) {
  const int64_t total = state.range(0), chunk = state.range(1);
  std::vector<std::byte> in(static_cast<size_t>(total), std::byte{7}), tmp(static_cast<size_t>(chunk)),
      out(static_cast<size_t>(total));
  for (auto _ : state)
    for (int64_t x = 0; x < total; x += chunk) {
      std::memcpy(tmp.data(), in.data() + x, static_cast<size_t>(chunk));
      benchmark::ClobberMemory();
      std::memcpy(out.data() + x, tmp.data(), static_cast<size_t>(chunk));
      benchmark::ClobberMemory();
    }
  state.SetBytesProcessed(state.iterations() * total * 2);
}

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
