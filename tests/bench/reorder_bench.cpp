// Reorders compared with memcpy, alternating on one thread. of_memcpy is the ratio of the median rates in bytes read
// plus bytes written (including padding): runs of at least 64 bytes should reach 0.8, NCHW <-> NCHW{16c} 0.6.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <tenon/support/median.hpp>
#include <tenon/support/memory.hpp>
#include <tenon/tensor/reorder.hpp>


namespace tenon::bench {
namespace {

// Of this thread only, so that other load on the machine does not count.
double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class F>
double seconds(const F& f) {
  const double start = processor_seconds();
  f();
  return processor_seconds() - start;
}

struct Case {
  std::string name, from, to;
  Dims shape;
  int64_t bits;
};

void reorder(benchmark::State& state, const Case& c) {
  const auto from = Layout::parse(c.from, "NCHW", c.shape, c.bits), to = Layout::parse(c.to, "NCHW", c.shape, c.bits);
  TENON_CHECK(from.ok() && to.ok(), c.from, " -> ", c.to);
  const auto plan = plan_reorder(*from, *to);
  TENON_CHECK(plan.ok(), plan.error().to_string());
  // As tensors are: aligned to cache lines.
  const auto from_bytes = static_cast<size_t>(from->bytes()), to_bytes = static_cast<size_t>(to->bytes());
  const AlignedBytes from_memory = allocate_aligned(from_bytes).value(), to_memory = allocate_aligned(to_bytes).value();
  const std::span source(from_memory.get(), from_bytes), destination(to_memory.get(), to_bytes);
  std::ranges::fill(source, std::byte{1});
  std::ranges::fill(destination, std::byte{0});
  const size_t moved = std::min(source.size(), destination.size());
  const double more = static_cast<double>(source.size() + destination.size()) / (2 * static_cast<double>(moved));
  // Small ones are repeated: reading the clock takes as long as copying 10 KB.
  const size_t times = std::max<size_t>((size_t{1} << 20) / (source.size() + destination.size()), 1);
  const auto each = [&](const auto& f) {
    return seconds([&] {
             for (size_t i = 0; i < times; ++i) {
               f();
               benchmark::ClobberMemory();
             }
           }) /
           static_cast<double>(times);
  };
  std::vector<double> copies, reorders;
  for (auto _ : state) {
    copies.push_back(each([&] { std::memcpy(destination.data(), source.data(), moved); }));
    reorders.push_back(each([&] { TENON_CHECK(plan->run(source, destination).ok(), plan->to_string()); }));
    state.SetIterationTime(reorders.back());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(source.size() + destination.size()));
  state.counters["of_memcpy"] = more * median(copies) / median(reorders);
  state.SetLabel(std::string(reorder_kind_name(plan->kind())));
}

const Case kCases[] = {
    {"run_64B", "NHWC{16c}", "NCHW{16c}", {8, 64, 56, 56}, 32},
    {"run_64B_small", "NHWC{16c}", "NCHW{16c}", {1, 64, 28, 28}, 32},
    {"run_96B", "NHWC{24c}", "NCHW{24c}", {8, 96, 56, 56}, 32},
    {"run_256B", "NHWC{64c}", "NCHW{64c}", {8, 256, 28, 28}, 32},
    {"run_64B_back", "NCHW{16c}", "NHWC{16c}", {8, 64, 56, 56}, 32},
    {"run_96B_back", "NCHW{24c}", "NHWC{24c}", {8, 96, 56, 56}, 32},
    {"run_80B_17", "NHWC{20c}", "NCHW{20c}", {8, 340, 28, 28}, 32},
    {"run_1KB", "NHWC", "HNWC", {64, 256, 28, 2}, 32},
    {"run_12KB", "NCHW", "CNHW", {8, 64, 56, 56}, 32},
    {"nchw_to_16c", "NCHW", "NCHW{16c}", {8, 64, 56, 56}, 32},
    {"16c_to_nchw", "NCHW{16c}", "NCHW", {8, 64, 56, 56}, 32},
    {"nchw_to_16c_small", "NCHW", "NCHW{16c}", {1, 64, 28, 28}, 32},
    {"16c_to_nchw_small", "NCHW{16c}", "NCHW", {1, 64, 28, 28}, 32},
    {"nchw_to_16c_tail_60", "NCHW", "NCHW{16c}", {8, 60, 56, 56}, 32},
    {"16c_to_nchw_tail_60", "NCHW{16c}", "NCHW", {8, 60, 56, 56}, 32},
    {"nchw_to_16c_tail_17", "NCHW", "NCHW{16c}", {8, 17, 56, 56}, 32},
    {"16c_to_nchw_tail_17", "NCHW{16c}", "NCHW", {8, 17, 56, 56}, 32},
    {"nchw_to_16c_tail_3", "NCHW", "NCHW{16c}", {8, 3, 224, 224}, 32},
    {"nchw_to_8c_tail_17", "NCHW", "NCHW{8c}", {8, 17, 56, 56}, 32},
    {"nchw_to_16c_power_of_2", "NCHW", "NCHW{16c}", {8, 64, 64, 64}, 32},
    {"nchw_to_16c_f16", "NCHW", "NCHW{16c}", {8, 64, 56, 56}, 16},
    {"16c_to_nchw_f16", "NCHW{16c}", "NCHW", {8, 64, 56, 56}, 16},
    {"nchw_to_16c_u8", "NCHW", "NCHW{16c}", {8, 64, 56, 56}, 8},
    {"16c_to_nchw_u8", "NCHW{16c}", "NCHW", {8, 64, 56, 56}, 8},
    {"nchw_to_16c_small_f16", "NCHW", "NCHW{16c}", {1, 64, 28, 28}, 16},
    {"16c_to_nchw_small_f16", "NCHW{16c}", "NCHW", {1, 64, 28, 28}, 16},
    {"nchw_to_16c_small_u8", "NCHW", "NCHW{16c}", {1, 64, 28, 28}, 8},
    {"16c_to_nchw_small_u8", "NCHW{16c}", "NCHW", {1, 64, 28, 28}, 8},
    {"nchw_to_16c_f64", "NCHW", "NCHW{16c}", {4, 64, 56, 56}, 64},
    {"16c_to_nchw_f64", "NCHW{16c}", "NCHW", {4, 64, 56, 56}, 64},
    {"nchw_to_16c_7x7", "NCHW", "NCHW{16c}", {8, 512, 7, 7}, 32},
    {"16c_to_nchw_7x7", "NCHW{16c}", "NCHW", {8, 512, 7, 7}, 32},
    {"nchw_to_nhwc", "NCHW", "NHWC", {8, 64, 56, 56}, 32},
    {"nhwc_to_nchw", "NHWC", "NCHW", {8, 64, 56, 56}, 32},
    {"nchw_to_nhwc_f16", "NCHW", "NHWC", {8, 64, 56, 56}, 16},
    {"nhwc_to_nchw_f16", "NHWC", "NCHW", {8, 64, 56, 56}, 16},
    {"nchw_to_nhwc_u8", "NCHW", "NHWC", {8, 64, 56, 56}, 8},
    {"nhwc_to_nchw_u8", "NHWC", "NCHW", {8, 64, 56, 56}, 8},
    {"nhwc_to_nchw_u8_c12", "NHWC", "NCHW", {8, 12, 112, 112}, 8},
    {"nchw_to_nhwc_u8_c12", "NCHW", "NHWC", {8, 12, 112, 112}, 8},
    {"2_to_planes_f32", "NHWC", "NCHW", {8, 2, 224, 224}, 32},
    {"planes_to_2_f32", "NCHW", "NHWC", {8, 2, 224, 224}, 32},
    {"rgb_to_planes_u8", "NHWC", "NCHW", {8, 3, 224, 224}, 8},
    {"planes_to_rgb_u8", "NCHW", "NHWC", {8, 3, 224, 224}, 8},
    {"rgb_to_planes_f16", "NHWC", "NCHW", {8, 3, 224, 224}, 16},
    {"planes_to_rgb_f16", "NCHW", "NHWC", {8, 3, 224, 224}, 16},
    {"rgb_to_planes_f32", "NHWC", "NCHW", {8, 3, 224, 224}, 32},
    {"planes_to_rgb_f32", "NCHW", "NHWC", {8, 3, 224, 224}, 32},
    {"rgba_to_planes_u8", "NHWC", "NCHW", {8, 4, 224, 224}, 8},
    {"planes_to_rgba_u8", "NCHW", "NHWC", {8, 4, 224, 224}, 8},
    {"6c_to_4c", "NCHW{6c}", "NCHW{4c}", {8, 48, 56, 56}, 32},
    {"swizzled", "NCHW", "NCHW{8w4w};xor(W@4)=H", {8, 64, 64, 64}, 32},
    {"swizzled_back", "NCHW{8w4w};xor(W@4)=H", "NCHW", {8, 64, 64, 64}, 32},
    {"swizzled_u8", "NCHW", "NCHW{8w4w};xor(W@4)=H", {8, 64, 64, 64}, 8},
    {"ragged", "NCHW", "NCHW{16c~}", {8, 60, 56, 56}, 32},
    {"ragged_back", "NCHW{16c~}", "NCHW", {8, 60, 56, 56}, 32},
    {"ragged_u8", "NCHW", "NCHW{16c~}", {8, 60, 56, 56}, 8},
    {"ragged_weight_f16", "NCHW", "NCHW{16n~64c~};size=128B", {100, 300, 3, 3}, 16},
    {"ragged_to_6c_u8", "NCHW{16c~}", "NCHW{6c}", {8, 60, 56, 56}, 8},
    {"offset", "NCHW", "NCHW{16c};off(H)=1;off(W)=1", {8, 64, 56, 56}, 32},
    {"offset_u8_7c_to_9c", "NCHW{7c};off(C)=2", "NCHW{9c}", {8, 64, 56, 56}, 8},
    {"ring_of_rows", "NCHW;fold(H)=20", "NCHW", {8, 64, 56, 56}, 32},
    {"map", "NCHW", "(n, c, h, w) -> (n, c, h, w + h)", {1, 16, 256, 256}, 32},
    {"map_u8", "NCHW", "(n, c, h, w) -> (n, c, h, w + h)", {1, 16, 256, 256}, 8},
    {"map_across_u8", "NHWC", "(n, c, h, w) -> (n, c, w + h, h)", {1, 16, 256, 256}, 8},
    {"words_of_4_bytes_from_the_last", "NHWC", "NHWC<4c:32>;lane=msb", {8, 64, 56, 56}, 8},
    {"24_bits_to_nhwc", "NCHW", "NHWC", {1, 64, 112, 112}, 24},
    {"bits_to_words", "NCHW", "NHWC<6c:8>", {1, 48, 56, 56}, 1},
    {"words_to_bits", "NHWC<6c:8>", "NCHW", {1, 48, 56, 56}, 1},
    {"nibbles", "NCHW", "NHWC", {1, 64, 56, 56}, 4},
    {"nibbles_to_bytes", "NCHW", "NCHW<:8>", {1, 64, 56, 56}, 4},
    {"bytes_to_nibbles", "NCHW<:8>", "NCHW", {1, 64, 56, 56}, 4},
    {"elements_of_12_bits", "NCHW", "NHWC", {1, 64, 56, 56}, 12},
};

// To blocked channels and back, for all common sizes: block sizes, bits of an element, width and height.
std::vector<Case> sweep() {
  std::vector<Case> cases;
  for (const int64_t block : {4, 8, 16, 32}) {
    for (const int64_t bits : {8, 16, 32, 64}) {
      for (const int64_t side : {7, 14, 28, 56, 112}) {
        const int64_t channels = side < 28 ? 256 : 64, images = side < 14 ? 4 : 1;
        const std::string blocked = "NCHW{" + std::to_string(block) + "c}",
                          name = std::to_string(block) + "c/" + std::to_string(bits) + "_bits/" + std::to_string(side);
        cases.push_back({"sweep/to_" + name, "NCHW", blocked, {images, channels, side, side}, bits});
        cases.push_back({"sweep/from_" + name, blocked, "NCHW", {images, channels, side, side}, bits});
      }
    }
  }
  return cases;
}

const int kRegistered = [] {
  const auto add = [](const Case& c) {
    benchmark::RegisterBenchmark(c.name.c_str(), [c](benchmark::State& state) { reorder(state, c); })->UseManualTime();
  };
  std::ranges::for_each(kCases, add);
  std::ranges::for_each(sweep(), add);
  return 0;
}();

}  // namespace
}  // namespace tenon::bench
