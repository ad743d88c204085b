// What a reorder reaches of memcpy, measured in turn over the same bytes on one thread. of_memcpy is the ratio of the
// best times: runs of 64 bytes or more are to reach 0.8, NCHW <-> NCHW{16c} 0.6.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include <tenon/tensor/reorder.hpp>

namespace tenon::bench {
namespace {

template <class F>
double seconds(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Case {
  const char *name, *from, *to;
  Dims shape;
  int64_t bits;
};

void reorder(benchmark::State& state, const Case& c) {
  const auto from = Layout::parse(c.from, "NCHW", c.shape, c.bits), to = Layout::parse(c.to, "NCHW", c.shape, c.bits);
  TENON_CHECK(from.ok() && to.ok(), c.from, " -> ", c.to);
  const auto plan = plan_reorder(*from, *to);
  TENON_CHECK(plan.ok(), plan.error().to_string());
  std::vector<std::byte> source(static_cast<size_t>(from->bytes()), std::byte{1}),
      destination(static_cast<size_t>(to->bytes()));
  const size_t moved = std::min(source.size(), destination.size());
  double best_copy = 1e9, best_reorder = 1e9;
  for (auto _ : state) {
    best_copy = std::min(best_copy, seconds([&] { std::memcpy(destination.data(), source.data(), moved); }));
    benchmark::ClobberMemory();
    const double time = seconds([&] { TENON_CHECK(plan->run(source, destination).ok(), plan->to_string()); });
    benchmark::ClobberMemory();
    best_reorder = std::min(best_reorder, time);
    state.SetIterationTime(time);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(moved));
  state.counters["of_memcpy"] = best_copy / best_reorder;
}

const Case kCases[] = {
    {"run_64B", "NHWC{16c}", "NCHW{16c}", {8, 64, 56, 56}, 32},
    {"run_64B_small", "NHWC{16c}", "NCHW{16c}", {1, 64, 28, 28}, 32},
    {"run_96B", "NHWC{24c}", "NCHW{24c}", {8, 96, 56, 56}, 32},
    {"run_256B", "NHWC{64c}", "NCHW{64c}", {8, 256, 28, 28}, 32},
    {"run_1KB", "NHWC", "HNWC", {64, 256, 28, 2}, 32},
    {"run_12KB", "NCHW", "CNHW", {8, 64, 56, 56}, 32},
    {"nchw_to_16c", "NCHW", "NCHW{16c}", {8, 64, 56, 56}, 32},
    {"16c_to_nchw", "NCHW{16c}", "NCHW", {8, 64, 56, 56}, 32},
    {"nchw_to_16c_small", "NCHW", "NCHW{16c}", {1, 64, 28, 28}, 32},
    {"16c_to_nchw_small", "NCHW{16c}", "NCHW", {1, 64, 28, 28}, 32},
    {"nchw_to_16c_tail", "NCHW", "NCHW{16c}", {8, 60, 56, 56}, 32},
    {"16c_to_nchw_tail", "NCHW{16c}", "NCHW", {8, 60, 56, 56}, 32},
    {"nchw_to_16c_power_of_2", "NCHW", "NCHW{16c}", {8, 64, 64, 64}, 32},
    {"nchw_to_16c_f16", "NCHW", "NCHW{16c}", {8, 64, 56, 56}, 16},
    {"nchw_to_16c_u8", "NCHW", "NCHW{16c}", {8, 64, 56, 56}, 8},
    {"nchw_to_nhwc", "NCHW", "NHWC", {8, 64, 56, 56}, 32},
    {"nhwc_to_nchw", "NHWC", "NCHW", {8, 64, 56, 56}, 32},
    {"rgb_to_planes_u8", "NHWC", "NCHW", {8, 3, 224, 224}, 8},
    {"6c_to_4c", "NCHW{6c}", "NCHW{4c}", {8, 48, 56, 56}, 32},
    {"bits_to_words", "NCHW", "NHWC<6c:8>", {1, 48, 56, 56}, 1},
    {"nibbles", "NCHW", "NHWC", {1, 64, 56, 56}, 4},
};

const int kRegistered = [] {
  for (const Case& c : kCases) {
    benchmark::RegisterBenchmark(c.name, [&c](benchmark::State& state) { reorder(state, c); })->UseManualTime();
  }
  return 0;
}();

}  // namespace
}  // namespace tenon::bench
