// The one matrix product of the reference: C = A * B, or C += A * B, with C of m x n, A of m x k, B of k x n.
//
// Used by matrix products, convolutions (which pass their image as a matrix that is never stored: see PanelSource),
// recurrent layers and attention.
//
// Arithmetic. Element types float, double, uint32_t and uint64_t; signed integers are passed as unsigned ones of the
// same width, whose sums and products have the same bits. Integers are exact modulo 2^width. Floats are multiplied and
// added in their own type: a chain of at most 256 products, then one addition to C per chain, so that the error grows
// with k / 256 instead of k. Whether a product and a sum are fused depends on the machine, so low bits may differ
// between machines, but not between runs or thread counts. The summation order of an element does not depend on what
// else is computed: rows and columns of C that are computed on their own have the same bits as in the whole.
//
// Speed. C is divided into tiles, one task each; a task packs its part of A and B into panels that fit the L2 cache and
// multiplies them in registers. The register kernel is compiled for several instruction sets: see GemmIsa.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>

namespace tenon {

// The instruction sets that the register kernel is compiled for, narrowest first: the machine's baseline, AVX2 with
// FMA, AVX-512 (F and DQ). On machines other than x86-64, only the first exists.
enum class GemmIsa : uint8_t { baseline, avx2, avx512 };
TENON_API std::string_view gemm_isa_name(GemmIsa isa);  // "baseline" ...
// Those that this machine supports, narrowest first; never empty.
TENON_API std::vector<GemmIsa> gemm_isas();
// The widest of them, or the one named by the environment variable TENON_REFERENCE_ISA, which is read once, and not by
// programs with raised privileges. A name that is unknown or not supported by the machine is ignored with a warning.
TENON_API GemmIsa gemm_isa();

// A matrix seen as panels: the rows of A, or the columns of B, in groups of `width`, each stored k by k.
template <class T>
class PanelSource {
 public:
  virtual ~PanelSource() = default;
  // Writes lines [x, x + count) at depths [depth, depth + depths): element (d, i) goes to
  // out[i / width * depths * width + d * width + i % width]; missing lines of the last panel become zero. Any thread,
  // several at once.
  virtual void pack(int64_t depth, int64_t depths, int64_t x, int64_t count, int64_t width, T* out) const = 0;
};

// Element (line x, depth d) is data[x * line_stride + d * depth_stride].
template <class T>
class TENON_API StridedPanels final : public PanelSource<T> {
 public:
  StridedPanels(const T* data, int64_t line_stride, int64_t depth_stride)
      : data_(data), line_stride_(line_stride), depth_stride_(depth_stride) {}
  void pack(int64_t depth, int64_t depths, int64_t x, int64_t count, int64_t width, T* out) const override;

 private:
  const T* data_;
  int64_t line_stride_, depth_stride_;
};

enum class Store : uint8_t { overwrite, add };

// Row i of C starts at c + i * c_stride; its elements are contiguous. C must not overlap A or B. Any sizes, 0 included.
// `isa` is one of gemm_isas().
template <class T>
TENON_API void gemm(int64_t m, int64_t n, int64_t k, const PanelSource<T>& a, const PanelSource<T>& b, T* c,
                    int64_t c_stride, Store store, ParallelFor& parallel, GemmIsa isa = gemm_isa());

// A matrix in memory: element (i, j) is data[i * row_stride + j * column_stride].
template <class T>
struct MatrixView {
  const T* data = nullptr;
  int64_t row_stride = 0, column_stride = 1;
};
// The same for matrices in memory; products with few rows are computed without packing.
template <class T>
TENON_API void gemm(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t c_stride,
                    Store store, ParallelFor& parallel, GemmIsa isa = gemm_isa());

// The number of lines of A and of B in one panel, and hence the size of a register tile: tests should use sizes around
// multiples of these.
struct GemmPanel {
  int64_t rows, columns;
};
template <class T>
TENON_API GemmPanel gemm_panel(GemmIsa isa);

}  // namespace tenon
