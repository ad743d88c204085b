#include <tenon/reference/gemm.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace tenon {
namespace {

constexpr int64_t kDepth = 256;  // products in one run of additions
constexpr int64_t kTile = 384;   // lines of A and of B in one task, about: both panels together take 768 KiB of f32
constexpr int64_t kFewRows = 3;  // up to here packing B costs more than it saves
constexpr int64_t kTaskWork = 1 << 18;  // products that are worth a task

// Multiplies one panel of A (rows x depths) with one of B, and stores or adds the rows x columns elements that exist.
template <class T>
using KernelFn = void (*)(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride, int64_t rows, int64_t columns,
                          bool add);

template <class T>
struct Kernel {
  int64_t rows, columns;  // of a register tile
  KernelFn<T> run;
};

// Rows * Vectors accumulators of Bytes each. Register budget (SSE2 and AVX2 have 16, AVX-512 has 32):
//   rows x vectors   accumulators   B   A and the product
//   6 x 2            12             2   2
//   12 x 2           24             2   2
template <class T, int Bytes, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_panels(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride,
                                                   int64_t rows, int64_t columns, bool add) {
  typedef T Vector __attribute__((vector_size(Bytes)));
  constexpr int kLanes = Bytes / sizeof(T);
  constexpr int kColumns = kLanes * Vectors;
  Vector sum[Rows][Vectors] = {};
  for (int64_t d = 0; d < depths; ++d, a += Rows, b += kColumns) {
    Vector line[Vectors];
    std::memcpy(line, b, sizeof line);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[i][v] += a[i] * line[v];
    }
  }
  if (rows == Rows && columns == kColumns) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      T* row = c + i * c_stride;
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        if (add) {
          Vector old;
          std::memcpy(&old, row + v * kLanes, sizeof old);
          sum[i][v] += old;
        }
        std::memcpy(row + v * kLanes, &sum[i][v], sizeof(Vector));
      }
    }
    return;
  }
  T tile[Rows][kColumns];
  std::memcpy(tile, sum, sizeof tile);
  for (int64_t i = 0; i < rows; ++i) {
    T* row = c + i * c_stride;
    for (int64_t j = 0; j < columns; ++j) row[j] = add ? static_cast<T>(row[j] + tile[i][j]) : tile[i][j];
  }
}

template <class T>
void multiply_baseline(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride, int64_t rows, int64_t columns,
                       bool add) {
  multiply_panels<T, 16, 6, 2>(depths, a, b, c, c_stride, rows, columns, add);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void multiply_avx2(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride,
                                               int64_t rows, int64_t columns, bool add) {
  multiply_panels<T, 32, 6, 2>(depths, a, b, c, c_stride, rows, columns, add);
}

template <class T>
[[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]] void multiply_avx512(int64_t depths, const T* a, const T* b,
                                                                                 T* c, int64_t c_stride, int64_t rows,
                                                                                 int64_t columns, bool add) {
  multiply_panels<T, 64, 12, 2>(depths, a, b, c, c_stride, rows, columns, add);
}
#endif

// Chosen by hand and not by target_clones: no resolver that runs while the library is being loaded, before a sanitizer
// is ready.
template <class T>
Kernel<T> choose_kernel() {
  constexpr int64_t kPerVector = 16 / sizeof(T);
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return {12, 8 * kPerVector, multiply_avx512<T>};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {6, 4 * kPerVector, multiply_avx2<T>};
#endif
  return {6, 2 * kPerVector, multiply_baseline<T>};
}

template <class T>
const Kernel<T>& kernel() {
  static const Kernel<T> chosen = choose_kernel<T>();
  return chosen;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Lines per task: equal parts of at most `most`, whole panels.
int64_t tile_lines(int64_t lines, int64_t most, int64_t panel) {
  return round_up(ceil_div(lines, ceil_div(lines, most)), panel);
}

// One task's buffers, kept by its thread: they are as large as the L2 cache, and made thousands of times otherwise.
template <class T>
std::vector<T>& scratch(int which) {
  thread_local std::vector<T> buffers[2];
  return buffers[which];
}

template <class T>
struct Tile {
  int64_t row, rows, column, columns;
};

template <class T>
void multiply_tile(const Tile<T>& tile, int64_t k, const PanelSource<T>& a, const PanelSource<T>& b, T* c,
                   int64_t c_stride, Store store) {
  const Kernel<T>& inner = kernel<T>();
  const int64_t depth = std::min(k, kDepth);
  auto& panels_a = scratch<T>(0);
  auto& panels_b = scratch<T>(1);
  panels_a.resize(std::max<size_t>(panels_a.size(), round_up(tile.rows, inner.rows) * depth));
  panels_b.resize(std::max<size_t>(panels_b.size(), round_up(tile.columns, inner.columns) * depth));
  for (int64_t d = 0; d < k; d += depth) {
    const int64_t depths = std::min(depth, k - d);
    const bool add = d > 0 || store == Store::add;
    a.pack(d, depths, tile.row, tile.rows, inner.rows, panels_a.data());
    b.pack(d, depths, tile.column, tile.columns, inner.columns, panels_b.data());
    for (int64_t j = 0; j < tile.columns; j += inner.columns) {
      const int64_t columns = std::min(inner.columns, tile.columns - j);
      for (int64_t i = 0; i < tile.rows; i += inner.rows) {
        inner.run(depths, panels_a.data() + i * depths, panels_b.data() + j * depths,
                  c + (tile.row + i) * c_stride + tile.column + j, c_stride, std::min(inner.rows, tile.rows - i),
                  columns, add);
      }
    }
  }
}

template <class T>
void fill_zero(int64_t m, int64_t n, T* c, int64_t c_stride) {
  for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_stride, n, T(0));
}

// c[0, n) (+)= a row times columns [0, n) of B whose rows are contiguous.
template <class T>
void row_times_rows(int64_t n, int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_stride, T* c,
                    Store store) {
  constexpr int64_t kBlock = 512;
  T sum[kBlock];
  for (int64_t j = 0; j < n; j += kBlock) {
    const int64_t count = std::min(kBlock, n - j);
    if (store == Store::overwrite) std::fill_n(c + j, count, T(0));
    for (int64_t d = 0; d < k; d += kDepth) {
      std::fill_n(sum, count, T(0));
      for (int64_t p = d; p < std::min(k, d + kDepth); ++p) {
        const T factor = a[p * a_stride];
        const T* row = b + p * b_stride + j;
        for (int64_t i = 0; i < count; ++i) sum[i] += factor * row[i];
      }
      for (int64_t i = 0; i < count; ++i) c[j + i] += sum[i];
    }
  }
}

// c[0, n) (+)= a row times columns of B, each column anywhere.
template <class T>
void row_times_columns(int64_t n, int64_t k, const T* a, int64_t a_stride, MatrixView<T> b, T* c, Store store) {
  constexpr int64_t kLanes = 16;
  for (int64_t j = 0; j < n; ++j) {
    const T* column = b.data + j * b.column_stride;
    T sums[kLanes] = {};
    int64_t p = 0;
    if (a_stride == 1 && b.row_stride == 1) {
      for (; p + kLanes <= k; p += kLanes) {
        for (int64_t i = 0; i < kLanes; ++i) sums[i] += a[p + i] * column[p + i];
      }
    }
    for (; p < k; ++p) sums[p % kLanes] += a[p * a_stride] * column[p * b.row_stride];
    T sum = 0;
    for (T part : sums) sum += part;
    c[j] = store == Store::add ? c[j] + sum : sum;
  }
}

}  // namespace

template <class T>
void StridedPanels<T>::pack(int64_t depth, int64_t depths, int64_t x, int64_t count, int64_t width, T* out) const {
  for (int64_t first = 0; first < count; first += width, out += depths * width) {
    const int64_t lines = std::min(width, count - first);
    const T* from = data_ + (x + first) * line_stride_ + depth * depth_stride_;
    if (lines < width) std::fill_n(out, depths * width, T(0));
    if (line_stride_ == 1) {
      for (int64_t d = 0; d < depths; ++d) std::copy_n(from + d * depth_stride_, lines, out + d * width);
    } else {
      for (int64_t i = 0; i < lines; ++i) {
        const T* line = from + i * line_stride_;
        for (int64_t d = 0; d < depths; ++d) out[d * width + i] = line[d * depth_stride_];
      }
    }
  }
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, const PanelSource<T>& a, const PanelSource<T>& b, T* c, int64_t c_stride,
          Store store, ParallelFor& parallel) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (store == Store::overwrite) fill_zero(m, n, c, c_stride);
    return;
  }
  const Kernel<T>& inner = kernel<T>();
  const int64_t rows = tile_lines(m, kTile, inner.rows);
  int64_t columns = tile_lines(n, kTile, inner.columns);
  // Narrower tiles when there would be too few to share out: four a thread even out unequal speeds.
  const int64_t wanted = std::min<int64_t>(4 * parallel.threads(), m * n * k / kTaskWork);
  if (parallel.threads() > 1 && ceil_div(m, rows) * ceil_div(n, columns) < wanted) {
    const int64_t parts = ceil_div(wanted, ceil_div(m, rows));
    columns = std::min(columns, round_up(ceil_div(n, parts), inner.columns));
  }
  const int64_t tiles_down = ceil_div(m, rows), tiles_across = ceil_div(n, columns);
  parallel.run(tiles_down * tiles_across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / tiles_across * rows, column = t % tiles_across * columns;
      multiply_tile<T>({row, std::min(rows, m - row), column, std::min(columns, n - column)}, k, a, b, c, c_stride,
                       store);
    }
  });
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t c_stride, Store store,
          ParallelFor& parallel) {
  if (m > kFewRows) {
    gemm<T>(m, n, k, StridedPanels<T>(a.data, a.row_stride, a.column_stride),
            StridedPanels<T>(b.data, b.column_stride, b.row_stride), c, c_stride, store, parallel);
    return;
  }
  const int64_t grain = std::max<int64_t>(16, kTaskWork / std::max<int64_t>(1, m * k));
  parallel.run(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < m; ++i) {
      const T* row = a.data + i * a.row_stride;
      T* out = c + i * c_stride + begin;
      const T* from = b.data + begin * b.column_stride;
      if (b.column_stride == 1) {
        row_times_rows<T>(end - begin, k, row, a.column_stride, from, b.row_stride, out, store);
      } else {
        row_times_columns<T>(end - begin, k, row, a.column_stride, {from, b.row_stride, b.column_stride}, out, store);
      }
    }
  });
}

#define TENON_INSTANTIATE_GEMM(T)                                                                                    \
  template class StridedPanels<T>;                                                                                   \
  template void gemm<T>(int64_t, int64_t, int64_t, const PanelSource<T>&, const PanelSource<T>&, T*, int64_t, Store, \
                        ParallelFor&);                                                                               \
  template void gemm<T>(int64_t, int64_t, int64_t, MatrixView<T>, MatrixView<T>, T*, int64_t, Store, ParallelFor&);
TENON_INSTANTIATE_GEMM(float)
TENON_INSTANTIATE_GEMM(double)
TENON_INSTANTIATE_GEMM(uint32_t)
TENON_INSTANTIATE_GEMM(uint64_t)
#undef TENON_INSTANTIATE_GEMM

}  // namespace tenon
