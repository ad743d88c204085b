// Hand-written convolutions and pools.
#include <algorithm>
#include <string_view>

#include "opencl_by_hand.hpp"
#include "opencl_hand_text.hpp"

namespace tenon::opencl {
namespace {

using namespace by_hand;

// The padded image is in local memory with all channels, split by the phases of the stride: a vector of outputs then
// reads one vector for every tap, whatever rows it spans; the last outputs of each row are discarded. A job has
// `out_rows` rows of outputs and a part of the output channels, and keeps a tile's sums until its rows are complete.
std::string image_conv(const HandConv& c, Tile tile, int64_t out_rows, int64_t output_blocks) {
  const int64_t reach = (c.kernel - 1) / c.stride, pitch = c.out() + reach, plane = (out_rows + reach) * pitch;
  const int64_t positions = out_rows * pitch, vectors = tile.vectors, columns = vectors * kLanes;
  const int64_t row_blocks = (c.out() + out_rows - 1) / out_rows;
  const int64_t line = (positions + columns - 1) / columns * columns;
  return str(defines({{"CHANNELS", c.channels},
                      {"SIZE", c.size},
                      {"OUTPUTS", c.outputs},
                      {"KERNEL", c.kernel},
                      {"STRIDE", c.stride},
                      {"PAD", c.kernel / 2},
                      {"OUT", c.out()},
                      {"PITCH", pitch},
                      {"PLANE", plane},
                      {"OUT_ROWS", out_rows},
                      {"IN_ROWS", out_rows + reach},
                      {"ROWS", tile.rows},
                      {"COLUMNS", columns},
                      {"POSITIONS", positions},
                      {"LINE", line},
                      {"ROW_BLOCKS", row_blocks},
                      {"OUTPUT_BLOCKS", output_blocks},
                      {"BLOCK_OUTPUTS", c.outputs / output_blocks}}),
             "#define A(r) weights[r * CHANNELS * KERNEL * KERNEL]\n", kHead, R"(
void by_hand(__global float* restrict a, __global float* restrict b, __global float* restrict c) {
  __local float image[CHANNELS * STRIDE * STRIDE * PLANE + KERNEL * PITCH + COLUMNS];
  __local float sums[ROWS * LINE];
  for (long job = get_global_id(0); job < ROW_BLOCKS * OUTPUT_BLOCKS; job += get_global_size(0)) {
    const long y0 = job % ROW_BLOCKS * OUT_ROWS, rows = min(OUT_ROWS, OUT - y0);
    const long o0 = job / ROW_BLOCKS * BLOCK_OUTPUTS;
    for (long ch = 0; ch < CHANNELS; ++ch)
      for (long py = 0; py < STRIDE; ++py)
        for (long px = 0; px < STRIDE; ++px)
          for (long y = 0; y < IN_ROWS; ++y) {
            __local float* to = image + ((ch * STRIDE + py) * STRIDE + px) * PLANE + y * PITCH;
            const long from = (y0 + y) * STRIDE + py - PAD;
            __global float* row = a + (ch * SIZE + from) * SIZE + px - PAD;
            const long inside = from >= 0 && from < SIZE;
            const long begin = (PAD - px + STRIDE - 1) / STRIDE;
            const long end = inside ? min(PITCH, (SIZE + PAD - px + STRIDE - 1) / STRIDE) : begin;
            for (long x = 0; x < begin; ++x) to[x] = 0;
            for (long x = begin; x < end; ++x) to[x] = row[x * STRIDE];
            for (long x = end; x < PITCH; ++x) to[x] = 0;
          }
    for (long o = o0; o < o0 + BLOCK_OUTPUTS; o += ROWS) {
      for (long p = 0; p < POSITIONS; p += COLUMNS) {
)",
             each_sum(tile.rows, vectors, "float16 ", [](int64_t, int64_t) { return " = 0; "; }), R"(
        __global float* weights = b + o * CHANNELS * KERNEL * KERNEL;
        for (long ch = 0; ch < CHANNELS; ++ch)
          for (int ky = 0; ky < KERNEL; ++ky)
            for (int kx = 0; kx < KERNEL; ++kx, ++weights) {
              __local float* at = image + ((ch * STRIDE + ky % STRIDE) * STRIDE + kx % STRIDE) * PLANE +
                                  ky / STRIDE * PITCH + kx / STRIDE + p;
)",
             each(vectors, [](int64_t v) { return str("const float16 b", v, " = NEAR_LOCAL(at + ", 16 * v, ");\n"); }),
             step_of(tile.rows, vectors), "}\n",
             each_place(tile.rows, vectors,
                        [&](int64_t r, int64_t v) {
                          const std::string sum = str("s", r, "_", v);
                          return str("NEAR_LOCAL(sums + ", r, " * LINE + p + ", 16 * v,
                                     ") = ", c.relu ? str("fmax(", sum, ", 0.0f)") : sum, ";\n");
                        }),
             R"(
      }
      for (int r = 0; r < ROWS; ++r)
        for (long y = 0; y < rows; ++y) {
          __local float* from = sums + r * LINE + y * PITCH;
          __global float* to = c + ((o + r) * OUT + y0 + y) * OUT;
          if (OUT >= 16)
            for (long x = 0; x < OUT; x += 16) NEAR(to + min(x, OUT - 16)) = NEAR_LOCAL(from + min(x, OUT - 16));
          else
            for (long x = 0; x < OUT; ++x) to[x] = from[x];
        }
    }
  }
}
)");
}

// A padded image of one channel at a time, split by the phases of the stride; `wide` outputs of a row at once, where
// the last vector overlaps the previous one.
std::string image_depthwise(const HandConv& c, int64_t wide) {
  const int64_t reach = (c.kernel - 1) / c.stride, pitch = c.out() + reach + 16, in_rows = c.out() + reach;
  const std::string vector = str("float", wide), local = wide == 16 ? "NEAR_LOCAL" : "NEAR_LOCAL8";
  std::string steps;
  for (int64_t ky = 0; ky < c.kernel; ++ky)
    for (int64_t kx = 0; kx < c.kernel; ++kx)
      steps += str("s = fma((", vector, ")w", ky * c.kernel + kx, ", ", local, "(at + ",
                   (ky % c.stride * c.stride + kx % c.stride) * in_rows * pitch + ky / c.stride * pitch + kx / c.stride,
                   "), s);\n");
  return str(
      defines({{"CHANNELS", c.channels},
               {"SIZE", c.size},
               {"KERNEL", c.kernel},
               {"STRIDE", c.stride},
               {"PAD", c.kernel / 2},
               {"OUT", c.out()},
               {"PITCH", pitch},
               {"IN_ROWS", in_rows},
               {"WIDE", wide}}),
      kHead, R"(
void by_hand(__global float* restrict a, __global float* restrict b, __global float* restrict c) {
  __local float image[STRIDE * STRIDE * IN_ROWS * PITCH];
  const long share = (CHANNELS + get_global_size(0) - 1) / get_global_size(0);
  const long first = get_global_id(0) * share, last = min(CHANNELS, first + share);
  for (long ch = first; ch < last; ++ch) {
    for (long py = 0; py < STRIDE; ++py)
      for (long px = 0; px < STRIDE; ++px)
        for (long y = 0; y < IN_ROWS; ++y) {
          __local float* to = image + ((py * STRIDE + px) * IN_ROWS + y) * PITCH;
          const long from = y * STRIDE + py - PAD;
          __global float* row = a + (ch * SIZE + from) * SIZE + px - PAD;
          const long begin = (PAD - px + STRIDE - 1) / STRIDE;
          const long end = from >= 0 && from < SIZE ? (SIZE + PAD - px + STRIDE - 1) / STRIDE : begin;
          for (long x = 0; x < begin; ++x) to[x] = 0;
          for (long x = begin; x < end; ++x) to[x] = row[x * STRIDE];
          for (long x = end; x < PITCH - 16; ++x) to[x] = 0;
        }
)",
      each(c.kernel * c.kernel,
           [](int64_t i) { return str("const float w", i, " = b[ch * KERNEL * KERNEL + ", i, "];\n"); }),
      "    for (long y = 0; y < OUT; ++y)\n      for (long x0 = 0; x0 < OUT; x0 += WIDE) {\n"
      "        const long x = min(x0, OUT - WIDE);\n        __local float* at = image + y * PITCH + x;\n        ",
      vector, " s = 0;\n", steps, c.relu ? "s = fmax(s, 0.0f);\n" : "", wide == 16 ? "NEAR" : "NEAR8",
      "(c + (ch * OUT + y) * OUT + x) = s;\n      }\n  }\n}\n");
}

constexpr std::string_view kMaxPool = R"(
void by_hand(__global float* restrict a, __global float* restrict c) {
  __local float even[SIZE / 2 + 17], odd[SIZE / 2 + 17];
  const long share = (CHANNELS + get_global_size(0) - 1) / get_global_size(0);
  const long first = get_global_id(0) * share, last = min(CHANNELS, first + share);
  odd[0] = -INFINITY;
  for (long ch = first; ch < last; ++ch)
    for (long y = 0; y < OUT; ++y) {
      __global float* at = a + (ch * SIZE + 2 * y) * SIZE;
      __global float* above = y > 0 ? at - SIZE : at;
      for (long x0 = 0; x0 < SIZE; x0 += 32) {
        const long x = min(x0, SIZE - 32);
        const float16 low = fmax(fmax(NEAR(above + x), NEAR(at + x)), NEAR(at + SIZE + x));
        const float16 high = fmax(fmax(NEAR(above + x + 16), NEAR(at + x + 16)), NEAR(at + SIZE + x + 16));
        NEAR_LOCAL(even + x / 2) = (float16)(low.even, high.even);
        NEAR_LOCAL(odd + 1 + x / 2) = (float16)(low.odd, high.odd);
      }
      for (long x0 = 0; x0 < OUT; x0 += 16) {
        const long x = min(x0, OUT - 16);
        NEAR(c + (ch * OUT + y) * OUT + x) =
            fmax(fmax(NEAR_LOCAL(odd + x), NEAR_LOCAL(even + x)), NEAR_LOCAL(odd + x + 1));
      }
    }
}
)";

}  // namespace

std::vector<HandKernel> conv_by_hand(const HandConv& c) {
  std::vector<HandKernel> made;
  for (const Tile tile : {Tile{8, 3}, Tile{4, 5}, Tile{8, 2}})
    for (const int64_t out_rows : {c.out(), (c.out() + 1) / 2, int64_t{4}}) {
      const int64_t row_blocks = (c.out() + out_rows - 1) / out_rows, output_blocks = row_blocks % 2 ? 2 : 1;
      const int64_t bytes = 4 * c.channels * c.stride * c.stride * (out_rows + c.kernel) * (c.out() + c.kernel);
      const bool repeated = out_rows == 4 && c.out() <= 14;
      if (bytes > 900 << 10 || repeated || c.outputs / output_blocks % tile.rows != 0) continue;
      made.push_back({str(tile_name(tile), " rows ", out_rows), image_conv(c, tile, out_rows, output_blocks)});
    }
  return made;
}

std::vector<HandKernel> depthwise_by_hand(const HandConv& c) {
  const int64_t wide = c.out() >= 16 ? 16 : 8;
  return {{"of 2", image_depthwise(c, wide), 2}, {"of 8", image_depthwise(c, wide), 8}};
}

std::vector<HandKernel> max_pool_by_hand(const HandConv& pool) {
  const std::string source =
      str(defines({{"CHANNELS", pool.channels}, {"SIZE", pool.size}, {"OUT", pool.size / 2}}), kHead, kMaxPool);
  return {{"of 2", source, 2}, {"of 8", source, 8}};
}

}  // namespace tenon::opencl
