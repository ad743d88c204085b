// Hand-written products, and the peak of multiply-adds.
#include <algorithm>
#include <string_view>

#include "opencl_by_hand.hpp"
#include "opencl_hand_text.hpp"

namespace tenon::opencl {
namespace {

using namespace by_hand;

// Columns of b are packed into local memory, `depth` steps at a time; rows of a are read in place or packed. The last
// rows and columns are computed twice if tiles do not fit: a tile's sums are stored by its number.
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

// One row times a matrix: the matrix is read once, in place. Transposed: `rows` of its rows at a time.
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

}  // namespace tenon::opencl
