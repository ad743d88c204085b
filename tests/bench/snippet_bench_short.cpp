// Short rows, as in windowed attention, and few elements.
#include "bench/snippet_bench_cases.hpp"

#include <tenon/support/str.hpp>

namespace tenon::bench {
namespace {

Case rms_norm_case(int64_t rows, int64_t n) {
  return {str("RMS norm ", rows, "x", n),
          str("graph @g(%x: f32[", rows, ",", n, "], %s: f32[", n, R"(]) -> %y {
%y = RMSNormalization %x, %s {axis = -1, epsilon = 1e-5}
})"),
          rms_norm,
          move_one_to_one(),
          {rows, n}};
}

}  // namespace

std::vector<Case> short_cases() {
  // What x has: with y it lies in L2, and twice beyond the last-level one.
  constexpr int64_t kNear = 200 << 10, kFar = 64 << 20;
  std::vector<Case> all;
  for (const int64_t bytes : {kNear, kFar}) {
    for (const int64_t n : {7, 20, 49, 64, 96, 100, 197, 384}) {
      const int64_t rows = bytes / 4 / n;
      for (const auto make : {layer_norm_case, skip_layer_norm_case, rms_norm_case, softmax_case, sum_of_rows_case})
        all.push_back(make(rows, n));
    }
  }
  for (const int64_t n : {1, 15, 17, 33, 101, 399, 999})
    for (const auto make : {add_relu_case, diamond_case, several_outputs_case}) all.push_back(make(n));
  return all;
}

}  // namespace tenon::bench
