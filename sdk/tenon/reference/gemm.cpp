#include <tenon/reference/gemm.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include <tenon/support/log.hpp>

namespace tenon {
namespace {

constexpr int64_t kDepth = 256;  // products in one chain of additions
constexpr int64_t kTile = 384;   // approximate lines of A and of B per task: both panels together take 768 KiB of f32
constexpr int64_t kFewRows = 3;  // up to this number, packing B costs more than it saves
constexpr int64_t kFewColumns = 512;    // columns of B that few rows are multiplied with at a time
constexpr int64_t kTaskWork = 1 << 18;  // products that are worth a task

// Multiplies one panel of A (rows x depths) with one of B, and stores or adds the rows x columns elements that exist.
template <class T>
using KernelFn = void (*)(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride, int64_t rows, int64_t columns,
                          bool add);

// Few rows of A times B in its original layout: sums[i * kFewColumns + j] of one chain of additions.
template <class T>
struct FewRows {
  int64_t rows, columns, depths;
  MatrixView<T> a, b;
};
template <class T>
using FewRowsFn = void (*)(const FewRows<T>& of, T* sums);

template <class T>
struct Kernel {
  GemmPanel panel;
  KernelFn<T> run;
  FewRowsFn<T> few;
};

// A register tile: rows x vectors accumulators of `bytes` bytes each.
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

// For B with contiguous lines: each is read once.
template <class T>
[[gnu::always_inline]] inline void multiply_lines(const FewRows<T>& of, T* sums) {
  for (int64_t i = 0; i < of.rows; ++i) std::fill_n(sums + i * kFewColumns, of.columns, T(0));
  for (int64_t d = 0; d < of.depths; ++d) {
    const T* line = of.b.data + d * of.b.row_stride;
    for (int64_t i = 0; i < of.rows; ++i) {
      const T factor = of.a.data[i * of.a.row_stride + d * of.a.column_stride];
      T* __restrict sum = sums + i * kFewColumns;
      for (int64_t j = 0; j < of.columns; ++j) sum[j] += factor * line[j];
    }
  }
}

// Blocks of B transposed from columns to lines: within groups of 16 bytes, because shuffles across these are slow.
template <class T, int kBytes>
struct Block {
  typedef T Vector __attribute__((vector_size(kBytes)));
  static constexpr int kLines = 16 / sizeof(T), kColumns = kBytes / sizeof(T);
  Vector v[kLines];

  // v[x][j] becomes element x of the column at from + j * column_stride.
  [[gnu::always_inline]] inline void transpose(const T* from, int64_t column_stride) {
#pragma GCC unroll 4
    for (int i = 0; i < kLines; ++i) gather(from + i * column_stride, kLines * column_stride, v[i]);
    constexpr auto kEach = std::make_integer_sequence<int, kColumns>();
    if constexpr (kLines == 2) {
      interleave<1>(v[0], v[1], kEach);
    } else {
      interleave<1>(v[0], v[1], kEach);
      interleave<1>(v[2], v[3], kEach);
      interleave<2>(v[0], v[2], kEach);
      interleave<2>(v[1], v[3], kEach);
      std::swap(v[1], v[2]);
    }
  }

 private:
  // Loads one group from each of kBytes / 16 positions. Wide vectors are passed by reference: by value they would
  // change the ABI of functions that are not compiled for them.
  [[gnu::always_inline]] static inline void gather(const T* from, int64_t stride, Vector& out) {
    if constexpr (kBytes == 16) {
      std::memcpy(&out, from, sizeof out);
    } else {
      using Half = Block<T, kBytes / 2>;
      typename Half::Vector low, high;
      Half::gather(from, stride, low);
      Half::gather(from + kBytes / 32 * stride, stride, high);
      join(low, high, out, std::make_integer_sequence<int, kColumns>());
    }
  }
  template <class Half, int... I>
  [[gnu::always_inline]] static inline void join(const Half& low, const Half& high, Vector& out,
                                                 std::integer_sequence<int, I...>) {
    out = __builtin_shufflevector(low, high, I...);
  }
  // In each group, interleaves pieces of kPiece elements of both: those of the first half of the group, of the second.
  template <int kPiece, int... I>
  [[gnu::always_inline]] static inline void interleave(Vector& a, Vector& b, std::integer_sequence<int, I...>) {
    const Vector low = __builtin_shufflevector(a, b, place<kPiece>(I, 0)...);
    b = __builtin_shufflevector(a, b, place<kPiece>(I, kLines / 2)...);
    a = low;
  }
  template <int kPiece>
  static constexpr int place(int i, int first) {
    const int in_group = i % kLines, piece = in_group / kPiece;
    return i - in_group + first + piece / 2 * kPiece + in_group % kPiece + piece % 2 * kColumns;
  }

  friend struct Block<T, 2 * kBytes>;
};
// Columns that few rows are multiplied with at a time: the widest vector. Each is a stream of its own.
template <class T>
constexpr int64_t kColumnsAtOnce = 64 / static_cast<int64_t>(sizeof(T));

// Transposes a vector of columns of B, which are contiguous, to lines in registers; summed in the order of lines.
template <class T, int kBytes, int kRows>
[[gnu::always_inline]] inline void multiply_column_block(const FewRows<T>& of, int64_t first, T* sums) {
  using Columns = Block<T, kBytes>;
  constexpr int kLines = Columns::kLines;
  const int64_t stride = of.b.column_stride;
  const T* columns = of.b.data + first * stride;
  typename Columns::Vector sum[kRows] = {};
  int64_t d = 0;
  for (; d + kLines <= of.depths; d += kLines) {
    Columns lines;
    lines.transpose(columns + d, stride);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const T* row = of.a.data + i * of.a.row_stride + d * of.a.column_stride;
#pragma GCC unroll 4
      for (int x = 0; x < kLines; ++x) sum[i] += row[x * of.a.column_stride] * lines.v[x];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    T* out = sums + i * kFewColumns + first;
    std::memcpy(out, &sum[i], sizeof sum[i]);
    for (int64_t rest = d; rest < of.depths; ++rest) {
      const T factor = of.a.data[i * of.a.row_stride + rest * of.a.column_stride];
      for (int64_t j = 0; j < Columns::kColumns; ++j) out[j] += factor * columns[j * stride + rest];
    }
  }
}

template <class T, int kBytes>
[[gnu::always_inline]] inline void multiply_columns(const FewRows<T>& of, T* sums) {
  constexpr int64_t kWide = Block<T, kBytes>::kColumns;
  int64_t first = 0;
  for (; of.b.row_stride == 1 && first + kWide <= of.columns; first += kWide) {
    static_assert(kFewRows == 3);
    if (of.rows == 1) multiply_column_block<T, kBytes, 1>(of, first, sums);
    if (of.rows == 2) multiply_column_block<T, kBytes, 2>(of, first, sums);
    if (of.rows == 3) multiply_column_block<T, kBytes, 3>(of, first, sums);
  }
  // Several sums at a time: with a single one, products would be rounded before they are added.
  for (int64_t i = 0; i < of.rows; ++i) {
    T* __restrict sum = sums + i * kFewColumns;
    std::fill(sum + first, sum + of.columns, T(0));
    for (int64_t d = 0; d < of.depths; ++d) {
      const T factor = of.a.data[i * of.a.row_stride + d * of.a.column_stride];
      const T* line = of.b.data + d * of.b.row_stride;
      for (int64_t j = first; j < of.columns; ++j) sum[j] += factor * line[j * of.b.column_stride];
    }
  }
}

template <class T, int kBytes>
[[gnu::always_inline]] inline void multiply_few(const FewRows<T>& of, T* sums) {
  if (of.b.column_stride == 1)
    multiply_lines(of, sums);
  else
    multiply_columns<T, kBytes>(of, sums);
}

template <class T>
void multiply_baseline(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride, int64_t rows, int64_t columns,
                       bool add) {
  multiply_panels<T, kBaselineTile>(depths, a, b, c, c_stride, rows, columns, add);
}
template <class T>
void multiply_few_baseline(const FewRows<T>& of, T* sums) {
  multiply_few<T, kBaselineTile.bytes>(of, sums);
}

#if defined(__x86_64__)
#define TENON_AVX2 gnu::target("avx2,fma")
// With FMA of shorter vectors, too: the ends of lines are summed like everything else.
#define TENON_AVX512 gnu::target("avx512f,avx512dq,fma,prefer-vector-width=512")

template <class T>
[[TENON_AVX2]] void multiply_avx2(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride, int64_t rows,
                                  int64_t columns, bool add) {
  multiply_panels<T, kAvx2Tile>(depths, a, b, c, c_stride, rows, columns, add);
}
template <class T>
[[TENON_AVX2]] void multiply_few_avx2(const FewRows<T>& of, T* sums) {
  multiply_few<T, kAvx2Tile.bytes>(of, sums);
}

template <class T>
[[TENON_AVX512]] void multiply_avx512(int64_t depths, const T* a, const T* b, T* c, int64_t c_stride, int64_t rows,
                                      int64_t columns, bool add) {
  multiply_panels<T, kAvx512Tile>(depths, a, b, c, c_stride, rows, columns, add);
}
template <class T>
[[TENON_AVX512]] void multiply_few_avx512(const FewRows<T>& of, T* sums) {
  multiply_few<T, kAvx512Tile.bytes>(of, sums);
}

#undef TENON_AVX2
#undef TENON_AVX512
#endif

template <class T>
Kernel<T> kernel_for([[maybe_unused]] GemmIsa isa) {
#if defined(__x86_64__)
  if (isa == GemmIsa::avx512) return {kAvx512Tile.panel<T>(), multiply_avx512<T>, multiply_few_avx512<T>};
  if (isa == GemmIsa::avx2) return {kAvx2Tile.panel<T>(), multiply_avx2<T>, multiply_few_avx2<T>};
#endif
  return {kBaselineTile.panel<T>(), multiply_baseline<T>, multiply_few_baseline<T>};
}

// Explicit tests instead of target_clones, whose resolver would run while the library is being loaded, before a
// sanitizer is ready.
bool machine_runs(GemmIsa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == GemmIsa::avx512) return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("fma");
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

// Lines per task: equal parts of at most `most`, in whole panels.
int64_t tile_lines(int64_t lines, int64_t most, int64_t panel) {
  return round_up(ceil_div(lines, ceil_div(lines, most)), panel);
}

// One task's buffers, kept by its thread: they are as large as the L2 cache, and would be allocated thousands of times.
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
                   int64_t c_stride, Store store, const Kernel<T>& kernel) {
  const GemmPanel panel = kernel.panel;
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
        kernel.run(depths, panels_a.data() + i * depths, panels_b.data() + j * depths,
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

// m <= kFewRows rows and n columns of C: in the same chains of additions as tiles.
template <class T>
void multiply_few_rows(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t c_stride,
                       Store store, const Kernel<T>& kernel) {
  T sums[kFewRows * kFewColumns];
  const int64_t at_once = b.column_stride == 1 ? kFewColumns : kColumnsAtOnce<T>;
  for (int64_t j = 0; j < n; j += at_once) {
    const int64_t columns = std::min(at_once, n - j);
    for (int64_t d = 0; d < k; d += kDepth) {
      const MatrixView<T> rows{a.data + d * a.column_stride, a.row_stride, a.column_stride},
          lines{b.data + d * b.row_stride + j * b.column_stride, b.row_stride, b.column_stride};
      kernel.few({m, columns, std::min(kDepth, k - d), rows, lines}, sums);
      const bool add = d > 0 || store == Store::add;
      for (int64_t i = 0; i < m; ++i) {
        T* out = c + i * c_stride + j;
        const T* sum = sums + i * kFewColumns;
        for (int64_t x = 0; x < columns; ++x) out[x] = add ? static_cast<T>(out[x] + sum[x]) : sum[x];
      }
    }
  }
}

// Transposes adjacent lines to the columns of a panel.
template <class T>
void transpose_lines(const T* from, int64_t line_stride, int64_t lines, int64_t depths, int64_t width, T* out) {
  using Columns = Block<T, 16>;
  constexpr int64_t kBlock = Columns::kLines;
  int64_t i = 0;
  for (; i + kBlock <= lines; i += kBlock) {
    const T* line = from + i * line_stride;
    int64_t d = 0;
    for (; d + kBlock <= depths; d += kBlock) {
      Columns columns;
      columns.transpose(line + d, line_stride);
      for (int64_t x = 0; x < kBlock; ++x)
        std::memcpy(out + (d + x) * width + i, &columns.v[x], sizeof columns.v[x]);
    }
    for (; d < depths; ++d) {
      for (int64_t x = 0; x < kBlock; ++x) out[d * width + i + x] = line[x * line_stride + d];
    }
  }
  for (; i < lines; ++i) {
    for (int64_t d = 0; d < depths; ++d) out[d * width + i] = from[i * line_stride + d];
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
    } else if (depth_stride_ == 1) {
      transpose_lines(from, line_stride_, lines, depths, width, out);
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
  const Kernel<T> kernel = kernel_for<T>(isa);
  const GemmPanel panel = kernel.panel;
  const int64_t rows = tile_lines(m, kTile, panel.rows);
  int64_t columns = tile_lines(n, kTile, panel.columns);
  // Narrower tiles if there would be too few to distribute: four per thread compensate for unequal speeds.
  const int64_t wanted = std::min<int64_t>(4 * parallel.threads(), m * n * k / kTaskWork);
  if (parallel.threads() > 1 && ceil_div(m, rows) * ceil_div(n, columns) < wanted) {
    const int64_t parts = ceil_div(wanted, ceil_div(m, rows));
    columns = std::min(columns, round_up(ceil_div(n, parts), panel.columns));
  }
  const int64_t tiles_down = ceil_div(m, rows), tiles_across = ceil_div(n, columns);
  parallel.run(tiles_down * tiles_across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / tiles_across * rows, column = t % tiles_across * columns;
      const Tile<T> tile{row, std::min(rows, m - row), column, std::min(columns, n - column)};
      multiply_tile<T>(tile, k, a, b, c, c_stride, store, kernel);
    }
  });
}

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t c_stride, Store store,
          ParallelFor& parallel, GemmIsa isa) {
  if (m > kFewRows || m == 0 || k == 0) {
    gemm<T>(m, n, k, StridedPanels<T>(a.data, a.row_stride, a.column_stride),
            StridedPanels<T>(b.data, b.column_stride, b.row_stride), c, c_stride, store, parallel, isa);
    return;
  }
  const Kernel<T> kernel = kernel_for<T>(isa);
  const int64_t grain = std::max<int64_t>(16, kTaskWork / std::max<int64_t>(1, m * k));
  parallel.run(n, grain, [&](int64_t begin, int64_t end) {
    const MatrixView<T> columns{b.data + begin * b.column_stride, b.row_stride, b.column_stride};
    multiply_few_rows<T>(m, end - begin, k, a, columns, c + begin, c_stride, store, kernel);
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
