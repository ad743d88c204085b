// What the device can do, as plain OpenCL C written by hand for CPUs with vectors of 16 floats: the yardstick of
// opencl_bench. Arguments of each: three buffers of floats. Global size: work groups of one item, which share the work.
#pragma once
#include <string_view>

namespace tenon::opencl {

// Multiply-adds that wait for nothing: 24 sums in registers, PEAK_STEPS each.
inline constexpr std::string_view kPeakByHand = R"(
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void by_hand(__global const float* a, __global const float* b, __global float* c) {
  const float16 x = vload16(0, a), y = vload16(0, b);
  float16 s[24];
  for (int i = 0; i < 24; ++i) s[i] = (float16)a[i];
  for (long k = 0; k < PEAK_STEPS; ++k)
#pragma unroll
    for (int i = 0; i < 24; ++i) s[i] = fma(x, y, s[i]);
  for (int i = 1; i < 24; ++i) s[0] += s[i];
  vstore16(s[0], get_global_id(0), c);
}
)";

// Before each of those below.
inline constexpr std::string_view kHandHead = R"(
#pragma OPENCL FP_CONTRACT OFF
#define NEAR(p) (((__global struct __attribute__((packed)) { float16 v; }*)(p))->v)
#define NEAR_LOCAL(p) (((__local struct __attribute__((packed)) { float16 v; }*)(p))->v)
)";

// c[M][N] = a[M][K] * b[K][N], N a multiple of 64: 64 columns of b packed into local memory, 6 rows by 64 columns in
// registers, the last rows once more where 6 does not divide M.
inline constexpr std::string_view kGemmByHand = R"(
#define ZERO(r) float16 s##r##0 = 0, s##r##1 = 0, s##r##2 = 0, s##r##3 = 0
#define STEP(r) { const float16 w = (float16)(a[(i + r) * K + k]); \
  s##r##0 = fma(w, b0, s##r##0); s##r##1 = fma(w, b1, s##r##1); s##r##2 = fma(w, b2, s##r##2); s##r##3 = fma(w, b3, s##r##3); }
#define STORE(r) { __global float* to = c + (i + r) * N + j; \
  NEAR(to) = s##r##0; NEAR(to + 16) = s##r##1; NEAR(to + 32) = s##r##2; NEAR(to + 48) = s##r##3; }
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void by_hand(__global float* restrict a, __global float* restrict b, __global float* restrict c) {
  __local float16 panel[K * 4];
  for (long j = get_global_id(0) * 64; j < N; j += get_global_size(0) * 64) {
    for (long k = 0; k < K; ++k)
      for (int v = 0; v < 4; ++v) panel[k * 4 + v] = NEAR(b + k * N + j + 16 * v);
    for (long row = 0; row < M; row += 6) {
      const long i = min(row, (long)M - 6);
      ZERO(0); ZERO(1); ZERO(2); ZERO(3); ZERO(4); ZERO(5);
      for (long k = 0; k < K; ++k) {
        const float16 b0 = panel[4 * k], b1 = panel[4 * k + 1], b2 = panel[4 * k + 2], b3 = panel[4 * k + 3];
        STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5)
      }
      STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5)
    }
  }
}
)";

// c[64][56][56]: a[64][56][56] with weights b[64][64][3][3], padded by one. Four rows of the padded image, 58 columns
// each, lie in local memory one behind the other, so that a vector of outputs reads a vector for every tap, whatever
// rows it spans; two outputs of each row are of no use.
inline constexpr std::string_view kConvByHand = R"(
#define PITCH 58
#define ZERO(r) float16 s##r##0 = 0, s##r##1 = 0, s##r##2 = 0
#define STEP(r) { const float16 w = (float16)(b[((i + r) * 64 + ch) * 9 + tap]); \
  s##r##0 = fma(w, b0, s##r##0); s##r##1 = fma(w, b1, s##r##1); s##r##2 = fma(w, b2, s##r##2); }
#define KEEP(r) vstore16(s##r##0, 0, sums + r * 48); vstore16(s##r##1, 1, sums + r * 48); vstore16(s##r##2, 2, sums + r * 48)
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void by_hand(__global float* restrict a, __global float* restrict b, __global float* restrict c) {
  __local float image[64 * 6 * PITCH + 64];
  for (long block = get_global_id(0); block < 14; block += get_global_size(0)) {
    for (int ch = 0; ch < 64; ++ch)
      for (int y = 0; y < 6; ++y)
        for (int x = 0; x < PITCH; ++x) {
          const int from = block * 4 + y - 1;
          image[(ch * 6 + y) * PITCH + x] =
              from >= 0 && from < 56 && x >= 1 && x < 57 ? a[(ch * 56 + from) * 56 + x - 1] : 0;
        }
    for (int p = 0; p < 240; p += 48)
      for (int i = 0; i < 64; i += 8) {
        ZERO(0); ZERO(1); ZERO(2); ZERO(3); ZERO(4); ZERO(5); ZERO(6); ZERO(7);
        for (int ch = 0; ch < 64; ++ch)
          for (int tap = 0; tap < 9; ++tap) {
            __local float* at = image + ch * 6 * PITCH + tap / 3 * PITCH + tap % 3 + p;
            const float16 b0 = NEAR_LOCAL(at), b1 = NEAR_LOCAL(at + 16), b2 = NEAR_LOCAL(at + 32);
            STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
          }
        float sums[8 * 48];
        KEEP(0); KEEP(1); KEEP(2); KEEP(3); KEEP(4); KEEP(5); KEEP(6); KEEP(7);
        for (int r = 0; r < 8; ++r)
          for (int t = 0; t < 48; ++t) {
            const int y = (p + t) / PITCH, x = (p + t) % PITCH;
            if (y < 4 && x < 56) c[((i + r) * 56 + block * 4 + y) * 56 + x] = sums[r * 48 + t];
          }
      }
  }
}
)";

}  // namespace tenon::opencl
