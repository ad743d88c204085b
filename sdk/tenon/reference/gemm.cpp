#include <tenon/reference/gemm.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <tenon/support/log.hpp>

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
  GemmPanel panel;
  KernelFn<T> run;
};

// A register tile: rows x vectors accumulators of so many bytes each.
struct TileSize {
  int bytes, rows, vectors;
  template <class T>
  constexpr GemmPanel panel() const {
    return {rows, bytes / static_cast<int64_t>(sizeof(T)) * vectors};
  }
};
// Register budget (SSE2 and AVX2 have 16, AVX-512 has 32):
//                                                accumulators   B   A and the product
constexpr TileSize kBaselineTile = {16, 6, 2};  // 12             2   2
constexpr TileSize kAvx2Tile = {32, 6, 2};      // 12             2   2
constexpr TileSize kAvx512Tile = {64, 12, 2};   // 24             2   2

template <class T, TileSize kSize>
[[gnu::always_inline]] inline void multiply_panels(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride,
                                                   int64_t rows, int64_t columns, bool add) {
  typedef T Vector __attribute__((vector_size(kSize.bytes)));
  constexpr int kLanes = kSize.bytes / sizeof(T), kRows = kSize.rows, kVectors = kSize.vectors;
  constexpr int kColumns = kLanes * kVectors;
  Vector sum[kRows][kVectors] = {};
  for (int64_t d = 0; d < depths; ++d, a += kRows, b += kColumns) {
    Vector line[kVectors];
    std::memcpy(line, b, sizeof line);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] += a[i] * line[v];
    }
  }
  if (rows == kRows && columns == kColumns) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      T* row = c + i * c_stride;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
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
  T tile[kRows][kColumns];
  std::memcpy(tile, sum, sizeof tile);
  for (int64_t i = 0; i < rows; ++i) {
    T* row = c + i * c_stride;
    for (int64_t j = 0; j < columns; ++j) row[j] = add ? static_cast<T>(row[j] + tile[i][j]) : tile[i][j];
  }
}

template <class T>
void multiply_baseline(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride, int64_t rows, int64_t columns,
                       bool add) {
  multiply_panels<T, kBaselineTile>(depths, a, b, c, c_stride, rows, columns, add);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void multiply_avx2(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride,
                                               int64_t rows, int64_t columns, bool add) {
  multiply_panels<T, kAvx2Tile>(depths, a, b, c, c_stride, rows, columns, add);
}

template <class T>
[[gnu::target("avx512f,avx512dq,prefer-vector-width=512")]] void multiply_avx512(int64_t depths, const T* a, const T* b,
                                                                                 T* c, int64_t c_stride, int64_t rows,
                                                                                 int64_t columns, bool add) {
  multiply_panels<T, kAvx512Tile>(depths, a, b, c, c_stride, rows, columns, add);
}
#endif

template <class T>
Kernel<T> kernel_for([[maybe_unused]] GemmIsa isa) {
#if defined(__x86_64__)
  if (isa == GemmIsa::avx512) return {kAvx512Tile.panel<T>(), multiply_avx512<T>};
  if (isa == GemmIsa::avx2) return {kAvx2Tile.panel<T>(), multiply_avx2<T>};
#endif
  return {kBaselineTile.panel<T>(), multiply_baseline<T>};
}

// Asked by hand and not by target_clones: no resolver that runs while the library is being loaded, before a sanitizer
// is ready.
bool machine_runs(GemmIsa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == GemmIsa::avx512) return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  if (isa == GemmIsa::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return isa == GemmIsa::baseline;
}

constexpr GemmIsa kIsas[] = {GemmIsa::baseline, GemmIsa::avx2, GemmIsa::avx512};

GemmIsa choose_isa() {
  const std::vector<GemmIsa> known = gemm_isas();
  const char* wanted = ::secure_getenv("TENON_REFERENCE_ISA");
  if (!wanted) return known.back();
  for (const GemmIsa isa : known) {
    if (gemm_isa_name(isa) == wanted) return isa;
  }
  std::string names;
  for (const GemmIsa isa : known) names += str(names.empty() ? "" : ", ", gemm_isa_name(isa));
  log(LogLevel::warning, "TENON_REFERENCE_ISA=", quote(wanted), " is none of those that this machine runs (", names,
      "); ", gemm_isa_name(known.back()), " is used");
  return known.back();
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
                   int64_t c_stride, Store store, GemmIsa isa) {
  const auto [panel, multiply] = kernel_for<T>(isa);
  const int64_t depth = std::min(k, kDepth);
  auto& panels_a = scratch<T>(0);
  auto& panels_b = scratch<T>(1);
  panels_a.resize(std::max<size_t>(panels_a.size(), round_up(tile.rows, panel.rows) * depth));
  panels_b.resize(std::max<size_t>(panels_b.size(), round_up(tile.columns, panel.columns) * depth));
  for (int64_t d = 0; d < k; d += depth) {
    const int64_t depths = std::min(depth, k - d);
    const bool add = d > 0 || store == Store::add;
    a.pack(d, depths, tile.row, tile.rows, panel.rows, panels_a.data());
    b.pack(d, depths, tile.column, tile.columns, panel.columns, panels_b.data());
    for (int64_t j = 0; j < tile.columns; j += panel.columns) {
      const int64_t columns = std::min(panel.columns, tile.columns - j);
      for (int64_t i = 0; i < tile.rows; i += panel.rows) {
        multiply(depths, panels_a.data() + i * depths, panels_b.data() + j * depths,
                 c + (tile.row + i) * c_stride + tile.column + j, c_stride, std::min(panel.rows, tile.rows - i),
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

std::string_view gemm_isa_name(GemmIsa isa) {
  constexpr std::string_view kNames[] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<size_t>(isa)];
}

std::vector<GemmIsa> gemm_isas() {
  std::vector<GemmIsa> known;
  std::ranges::copy_if(kIsas, std::back_inserter(known), machine_runs);
  return known;
}

GemmIsa gemm_isa() {
  static const GemmIsa chosen = choose_isa();
  return chosen;
}

template <class T>
GemmPanel gemm_panel(GemmIsa isa) {
  return kernel_for<T>(isa).panel;
}

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
          Store store, ParallelFor& parallel, GemmIsa isa) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (store == Store::overwrite) fill_zero(m, n, c, c_stride);
    return;
  }
  const GemmPanel panel = gemm_panel<T>(isa);
  const int64_t rows = tile_lines(m, kTile, panel.rows);
  int64_t columns = tile_lines(n, kTile, panel.columns);
  // Narrower tiles when there would be too few to share out: four a thread even out unequal speeds.
  const int64_t wanted = std::min<int64_t>(4 * parallel.threads(), m * n * k / kTaskWork);
  if (parallel.threads() > 1 && ceil_div(m, rows) * ceil_div(n, columns) < wanted) {
    const int64_t parts = ceil_div(wanted, ceil_div(m, rows));
    columns = std::min(columns, round_up(ceil_div(n, parts), panel.columns));
  }
  const int64_t tiles_down = ceil_div(m, rows), tiles_across = ceil_div(n, columns);
  parallel.run(tiles_down * tiles_across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / tiles_across * rows, column = t % tiles_across * columns;
      multiply_tile<T>({row, std::min(rows, m - row), column, std::min(columns, n - column)}, k, a, b, c, c_stride,
                       store, isa);
    }
  });
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t c_stride, Store store,
          ParallelFor& parallel, GemmIsa isa) {
  if (m > kFewRows) {
    gemm<T>(m, n, k, StridedPanels<T>(a.data, a.row_stride, a.column_stride),
            StridedPanels<T>(b.data, b.column_stride, b.row_stride), c, c_stride, store, parallel, isa);
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
  template GemmPanel gemm_panel<T>(GemmIsa);                                                                         \
  template void gemm<T>(int64_t, int64_t, int64_t, const PanelSource<T>&, const PanelSource<T>&, T*, int64_t, Store, \
                        ParallelFor&, GemmIsa);                                                                      \
  template void gemm<T>(int64_t, int64_t, int64_t, MatrixView<T>, MatrixView<T>, T*, int64_t, Store, ParallelFor&,   \
                        GemmIsa);
TENON_INSTANTIATE_GEMM(float)
TENON_INSTANTIATE_GEMM(double)
TENON_INSTANTIATE_GEMM(uint32_t)
TENON_INSTANTIATE_GEMM(uint64_t)
#undef TENON_INSTANTIATE_GEMM

}  // namespace tenon
