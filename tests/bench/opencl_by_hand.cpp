#include "opencl_by_hand.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <tenon/support/str.hpp>

namespace tenon::opencl {
namespace {

constexpr int64_t kLanes = 16;

constexpr std::string_view kHead = R"(
#pragma OPENCL FP_CONTRACT OFF
#define NEAR(p) (((__global struct __attribute__((packed)) { float16 v; }*)(p))->v)
#define NEAR_LOCAL(p) (((__local struct __attribute__((packed)) { float16 v; }*)(p))->v)
#define NEAR8(p) (((__global struct __attribute__((packed)) { float8 v; }*)(p))->v)
#define NEAR_LOCAL8(p) (((__local struct __attribute__((packed)) { float8 v; }*)(p))->v)
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
)";

template <class Text>
std::string each(int64_t count, const Text& text) {
  std::string all;
  for (int64_t i = 0; i < count; ++i) all += text(i);
  return all;
}

// One step of rows by vectors of sums: s0_0 += a(0) * b0 ...
std::string step_of(int64_t rows, int64_t vectors) {
  return each(rows, [&](int64_t r) {
    return str("{ const float16 w = (float16)A(", r, "); ",
               each(vectors, [&](int64_t v) { return str("s", r, "_", v, " = fma(w, b", v, ", s", r, "_", v, "); "); }),
               "}\n");
  });
}

std::string each_place(int64_t rows, int64_t vectors, const auto& text) {
  return each(rows, [&](int64_t r) { return each(vectors, [&](int64_t v) { return text(r, v); }); });
}
std::string each_sum(int64_t rows, int64_t vectors, const std::string& before, const auto& text) {
  return each_place(rows, vectors, [&](int64_t r, int64_t v) { return str(before, "s", r, "_", v, text(r, v)); });
}

std::string defines(const std::vector<std::pair<std::string_view, int64_t>>& numbers) {
  std::string text;
  for (const auto& [name, value] : numbers) text += str("#define ", name, " ", value, "l\n");
  return text;
}

struct Tile {
  int64_t rows, vectors;
};

// Columns of b packed into local memory, `depth` steps at a time; rows of a either where they lie or side by side. The
// last rows and columns are done once more where tiles do not fit: a tile's sums wait by its number.
std::string packed_product(const HandProduct& p, Tile tile, int64_t depth, bool copies_a, int64_t row_blocks) {
  const int64_t rows = std::min(tile.rows, p.m), vectors = tile.vectors, columns = vectors * kLanes;
  const int64_t tiles = (p.m + rows - 1) / rows, tiles_of_block = (tiles + row_blocks - 1) / row_blocks;
  const std::string pack = p.transposed ? "for (int v = 0; v < COLUMNS; ++v) for (long k = 0; k < depth; ++k) "
                                          "((__local float*)panel)[k * COLUMNS + v] = b[(j + v) * K + k0 + k];\n"
                                        : str("for (long k = 0; k < depth; ++k) {\n",
                                              each(vectors,
                                                   [](int64_t v) {
                                                     return str("panel[k * VECTORS + ", v,
                                                                "] = NEAR(b + (k0 + k) * N + j + ", 16 * v, ");\n");
                                                   }),
                                              "}\n");
  const std::string finish = each_place(rows, vectors, [&](int64_t r, int64_t v) {
    const std::string sum = str("s", r, "_", v);
    return str(p.bias ? str(sum, " += NEAR(bias + j + ", 16 * v, ");") : "",
               p.relu ? str(sum, " = fmax(", sum, ", 0.0f);") : "", " NEAR(to + ", r, " * N + ", 16 * v, ") = ", sum,
               ";\n");
  });
  return str(
      defines({{"M", p.m},
               {"N", p.n},
               {"K", p.k},
               {"BATCH", p.batch},
               {"DEPTH", depth},
               {"ROWS", rows},
               {"VECTORS", vectors},
               {"COLUMNS", columns},
               {"TILES", tiles},
               {"TILES_OF_BLOCK", tiles_of_block},
               {"ROW_BLOCKS", row_blocks},
               {"COLUMN_BLOCKS", (p.n + columns - 1) / columns},
               {"PITCH", depth + 16}}),
      copies_a ? "#define A(r) near_a[r * PITCH + k]\n" : "#define A(r) rows[r * K + k]\n", kHead,
      p.swapped ? "void by_hand(__global float* restrict b, __global float* restrict a, "
                : "void by_hand(__global float* restrict a, __global float* restrict b, ",
      p.bias ? "__global float* restrict bias, " : "", R"(__global float* restrict c) {
  __local float16 panel[DEPTH * VECTORS];
)",
      depth < p.k ? "  __local float16 waiting[TILES_OF_BLOCK * ROWS * VECTORS];\n" : "",
      copies_a ? "  __local float near_a[ROWS * PITCH];\n" : "", R"(
  for (long job = get_global_id(0); job < BATCH * COLUMN_BLOCKS * ROW_BLOCKS; job += get_global_size(0)) {
    const long first = job % ROW_BLOCKS * TILES_OF_BLOCK, last = min(TILES, first + TILES_OF_BLOCK);
    const long j = min(job / ROW_BLOCKS % COLUMN_BLOCKS * COLUMNS, N - COLUMNS);
    const long batch = job / ROW_BLOCKS / COLUMN_BLOCKS;
    for (long k0 = 0; k0 < K; k0 += DEPTH) {
      const long depth = min(DEPTH, K - k0);
      )",
      p.batch > 1 ? "__global float* const whole_b = b; __global float* const b = whole_b + batch * K * N;\n" : "",
      pack, R"(
      for (long tile = first; tile < last; ++tile) {
        const long i = min(tile * ROWS, M - ROWS);
        __global float* rows = a + (batch * M + i) * K + k0;
)",
      copies_a ? "        for (int r = 0; r < ROWS; ++r) for (long k = 0; k < depth; k += 16) "
                 "NEAR_LOCAL(near_a + r * PITCH + k) = NEAR(rows + r * K + k);\n"
               : "",
      each_sum(rows, vectors, "float16 ", [](int64_t, int64_t) { return "; "; }),
      depth < p.k ? str("\nif (k0 > 0) {\n",
                        each_sum(rows, vectors, "",
                                 [&](int64_t r, int64_t v) {
                                   return str(" = waiting[(tile - first) * ROWS * VECTORS + ", r * vectors + v, "];\n");
                                 }),
                        "} else {\n")
                  : "\n{\n",
      each_sum(rows, vectors, "", [](int64_t, int64_t) { return " = 0; "; }), "\n}\n",
      "for (long k = 0; k < depth; ++k) {\n",
      each(vectors, [](int64_t v) { return str("const float16 b", v, " = panel[k * VECTORS + ", v, "];\n"); }),
      step_of(rows, vectors), "}\n",
      depth < p.k ? str("if (k0 + depth < K) {\n",
                        each(rows * vectors,
                             [&](int64_t i) {
                               return str("waiting[(tile - first) * ROWS * VECTORS + ", i, "] = s", i / vectors, "_",
                                          i % vectors, ";\n");
                             }),
                        "continue;\n}\n")
                  : "",
      "__global float* to = c + (batch * M + i) * N + j;\n", finish, "}\n}\n}\n}\n");
}

// One row by a matrix: the matrix is read once, where it lies. Transposed: `rows` of its rows at a time.
std::string row_by_transposed(const HandProduct& p, int64_t rows) {
  const auto fold = [](int64_t r) {
    const std::string s = str("s", r);
    return str("{ const float8 h = ", s, ".lo + ", s,
               ".hi; const float4 q = h.lo + h.hi; const float2 d = q.lo + q.hi; ", "c[j + ", r, "] = d.x + d.y",
               "; }\n");
  };
  return str(
      defines({{"N", p.n}, {"K", p.k}, {"ROWS", rows}}), kHead,
      "void by_hand(__global float* restrict a, __global float* restrict b, __global float* restrict c) {\n"
      "  const long share = (N / ROWS + get_global_size(0) - 1) / get_global_size(0) * ROWS;\n"
      "  const long begin = get_global_id(0) * share, end = min(N, begin + share);\n"
      "  for (long j = begin; j < end; j += ROWS) {\n",
      each(rows, [](int64_t r) { return str("float16 s", r, " = 0;\n"); }),
      "    for (long k = 0; k < K; k += 16) {\n      const float16 x = NEAR(a + k);\n",
      each(rows, [](int64_t r) { return str("s", r, " = fma(x, NEAR(b + (j + ", r, ") * K + k), s", r, ");\n"); }),
      "    }\n", each(rows, fold), "  }\n}\n");
}

std::string row_by_matrix(const HandProduct& p, int64_t vectors) {
  return str(defines({{"N", p.n}, {"K", p.k}, {"COLUMNS", vectors * kLanes}}), kHead,
             "void by_hand(__global float* restrict a, __global float* restrict b, __global float* restrict c) {\n"
             "  for (long j = get_global_id(0) * COLUMNS; j < N; j += get_global_size(0) * COLUMNS) {\n",
             each(vectors, [](int64_t v) { return str("float16 s", v, " = 0;\n"); }),
             "    for (long k = 0; k < K; ++k) {\n      const float16 x = (float16)a[k];\n",
             each(vectors,
                  [](int64_t v) { return str("s", v, " = fma(x, NEAR(b + k * N + j + ", 16 * v, "), s", v, ");\n"); }),
             "    }\n", each(vectors, [](int64_t v) { return str("NEAR(c + j + ", 16 * v, ") = s", v, ";\n"); }),
             "  }\n}\n");
}

// The padded image lies in local memory, split by the phases of the stride, all channels: a vector of outputs then
// reads a vector for every tap, whatever rows it spans; the last outputs of each row are of no use. A job has
// `out_rows` rows of outputs and a part of the output channels, and keeps a tile's sums until its rows are whole.
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
          if (OUT >= 16) for (long x = 0; x < OUT; x += 16) NEAR(to + min(x, OUT - 16)) = NEAR_LOCAL(from + min(x, OUT - 16));
          else for (long x = 0; x < OUT; ++x) to[x] = from[x];
        }
    }
  }
}
)");
}

// A padded image of one channel at a time, split by the phases of the stride; `wide` outputs of a row at once, the last
// ones once more.
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
        NEAR(c + (ch * OUT + y) * OUT + x) = fmax(fmax(NEAR_LOCAL(odd + x), NEAR_LOCAL(even + x)), NEAR_LOCAL(odd + x + 1));
      }
    }
}
)";

std::string tile_name(Tile tile) { return str(tile.rows, "x", tile.vectors); }

}  // namespace

HandKernel peak_by_hand(int64_t steps) {
  return {"peak", str(defines({{"STEPS", steps}}), kHead, R"(
void by_hand(__global const float* a, __global const float* b, __global float* c) {
  const float16 x = vload16(0, a), y = vload16(0, b);
  float16 s[24];
  for (int i = 0; i < 24; ++i) s[i] = (float16)a[i];
  for (long k = 0; k < STEPS; ++k)
#pragma unroll
    for (int i = 0; i < 24; ++i) s[i] = fma(x, y, s[i]);
  for (int i = 1; i < 24; ++i) s[0] += s[i];
  vstore16(s[0], get_global_id(0), c);
}
)"),
          4};
}

std::vector<HandKernel> product_by_hand(const HandProduct& p) {
  std::vector<HandKernel> made;
  if (p.m == 1) {
    for (const int64_t wide : {4, 8, 16})
      for (const size_t groups : {size_t{2}, size_t{8}})
        made.push_back(
            {str(wide, " of ", groups), p.transposed ? row_by_transposed(p, wide) : row_by_matrix(p, wide), groups});
    return made;
  }
  for (const Tile tile : {Tile{6, 4}, Tile{8, 3}, Tile{12, 2}}) {
    if (tile.vectors * kLanes > p.n) continue;
    const int64_t jobs = p.batch * ((p.n + tile.vectors * kLanes - 1) / (tile.vectors * kLanes));
    for (const int64_t depth : p.k > 256 ? std::vector<int64_t>{256, p.k} : std::vector<int64_t>{p.k})
      for (const bool copies_a : {false, true}) {
        if (copies_a && (p.k % 16 != 0 || p.k < 256)) continue;
        const int64_t row_blocks = jobs < 8 || jobs % 2 == 1 ? 2 : 1;
        made.push_back({str(tile_name(tile), " depth ", depth, copies_a ? " copies" : ""),
                        packed_product(p, tile, depth, copies_a, row_blocks)});
      }
  }
  return made;
}

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
