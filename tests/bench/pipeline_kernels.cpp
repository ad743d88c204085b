#include "pipeline_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tenon::program::bench {

#define TENON_WIDE [[gnu::target_clones("avx512f", "avx2", "default")]]
TENON_WIDE void mean_row(float* __restrict to, const float* __restrict a, const float* __restrict b,
                         const float* __restrict c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = (a[i] + b[i] + c[i]) * (1.0f / 3);
}

namespace {

TENON_WIDE void scale_row(float* __restrict to, const float* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] * 1.0001f + 0.5f;
}
// Rows begin at the index before the first.
TENON_WIDE void box_row(float* __restrict to, const float* __restrict a, const float* __restrict b,
                        const float* __restrict c, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = (a[i] + a[i + 1] + a[i + 2] + b[i] + b[i + 1] + b[i + 2] + c[i] + c[i + 1] + c[i + 2]) * (1.0f / 9);
}
TENON_WIDE void halve_row(float* __restrict to, const float* __restrict a, const float* __restrict b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = (a[2 * i] + a[2 * i + 1] + b[2 * i] + b[2 * i + 1]) * 0.25f;
}
TENON_WIDE void combine_row(float* __restrict to, const float* __restrict a, const float* __restrict b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = a[i] - 0.25f * b[i];
}
#undef TENON_WIDE
void twice_row(float* __restrict to, const float* __restrict from, int64_t first, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[((first + i) >> 1) - (first >> 1)];
}

// Consecutive rows of a buffer, from index `first` of row `v` on. In a ring, only the first position needs a division.
class Rows {
 public:
  Rows(const BufferView& b, int64_t first, int64_t v)
      : at_(b.base + (first - b.dims[0].min) * b.dims[0].stride) {
    if (b.rank() == 1) return;
    const DimView& rows = b.dims[1];
    const int64_t place = rows.place(v);
    at_ += place * rows.stride;
    stride_ = rows.stride;
    if (rows.fold > 0) {
      until_end_ = rows.fold - place;
      back_ = rows.fold * rows.stride;
      places_ = rows.fold;
    }
  }
  float* next() {
    auto* const row = reinterpret_cast<float*>(at_);
    at_ += stride_;
    if (--until_end_ == 0) at_ -= back_, until_end_ = places_;
    return row;
  }

 private:
  std::byte* at_;
  int64_t stride_ = 0, until_end_ = INT64_MAX, back_ = 0, places_ = INT64_MAX;
};

Result<void> in_pieces(const CallContext& c) {
  for (const BufferView& b : c.operands)
    if (b.dims[0].fold > 0) return error(Code::unsupported, "a ring across rows");
  return {};
}

// The box of a call's result, the last operand. Rows must be contiguous.
struct ResultBox {
  explicit ResultBox(const CallContext& c) : ResultBox(c.operands.back()) {}
  explicit ResultBox(const BufferView& out)
      : first(out.dims[0].min),
        elements(out.dims[0].extent),
        row(out.rank() == 1 ? 0 : out.dims[1].min),
        rows(out.rank() == 1 ? 1 : out.dims[1].extent),
        to(out, first, row) {}

  int64_t first, elements;  // of a row
  int64_t row, rows;
  Rows to;
};

// f(row of the result, the rows of the first operand around it) for each row of the result, with `more` elements
// before.
template <class F>
Result<void> each_row_of_three(const CallContext& c, int64_t more, const F& f) {
  TENON_OK(in_pieces(c));
  ResultBox box(c);
  Rows in(c.operands[0], box.first - more, box.row - 1);
  float *above = in.next(), *at = in.next();
  for (int64_t i = 0; i < box.rows; ++i) {
    float* const below = in.next();
    f(box.to.next(), above, at, below, box.elements);
    above = at;
    at = below;
  }
  return {};
}

}  // namespace

KernelHandle scale() {
  return make_kernel(
      "scale",
      [](CallContext& c) -> Result<void> {
        TENON_OK(in_pieces(c));
        ResultBox box(c);
        Rows in(c.operands[0], box.first, box.row);
        for (int64_t i = 0; i < box.rows; ++i) scale_row(box.to.next(), in.next(), box.elements);
        return {};
      },
      true);
}

KernelHandle blur(bool rings) {
  return make_kernel(
      "blur", [](CallContext& c) { return each_row_of_three(c, 0, mean_row); }, rings);
}

KernelHandle box(bool rings) {
  return make_kernel(
      "box", [](CallContext& c) { return each_row_of_three(c, 1, box_row); }, rings);
}

KernelHandle halve() {
  return make_kernel(
      "halve",
      [](CallContext& c) -> Result<void> {
        TENON_OK(in_pieces(c));
        ResultBox box(c);
        Rows in(c.operands[0], 2 * box.first, 2 * box.row);
        for (int64_t i = 0; i < box.rows; ++i) {
          const float* const upper = in.next();
          halve_row(box.to.next(), upper, in.next(), box.elements);
        }
        return {};
      },
      true);
}

KernelHandle twice() {
  return make_kernel(
      "twice",
      [](CallContext& c) -> Result<void> {
        TENON_OK(in_pieces(c));
        ResultBox box(c);
        Rows in(c.operands[0], box.first >> 1, box.row >> 1);
        const float* from = in.next();
        for (int64_t i = 0; i < box.rows; ++i) {
          if (i > 0 && (box.row + i) % 2 == 0) from = in.next();
          twice_row(box.to.next(), from, box.first, box.elements);
        }
        return {};
      },
      true);
}

KernelHandle combine() {
  return make_kernel(
      "combine",
      [](CallContext& c) -> Result<void> {
        TENON_OK(in_pieces(c));
        ResultBox box(c);
        Rows a(c.operands[0], box.first, box.row), b(c.operands[1], box.first, box.row);
        for (int64_t i = 0; i < box.rows; ++i) combine_row(box.to.next(), a.next(), b.next(), box.elements);
        return {};
      },
      true);
}

KernelHandle move_bytes() {
  return make_kernel("move", [](CallContext& c) -> Result<void> {
    const BufferView &in = c.operands[0], &out = c.operands[1];
    std::memcpy(out.base, in.base, static_cast<size_t>(out.dims[0].extent));
    return {};
  });
}

AlignedFloats::AlignedFloats(int64_t count)
    : bytes_(allocate_aligned(static_cast<size_t>(count) * sizeof(float)).value()) {
  std::fill_n(data(), count, 1.0f);
}

Pair chain(int stages, const KernelHandle& kernel, ElementType element, int rank, const Windows& windows) {
  Pipeline p("chain");
  const std::vector<Expr> indices = rank == 1 ? std::vector<Expr>{x} : std::vector<Expr>{x, y};
  BufferRef source = p.buffer("source", element, rank), from = source;
  std::vector<StageRef> made;
  for (int s = 0; s < stages; ++s) {
    BufferRef to = p.buffer(s + 1 == stages ? "result" : "mid" + std::to_string(s), element, rank);
    made.push_back(p.stage("stage" + std::to_string(s), kernel).reads(from, windows).writes(to, indices));
    from = to;
  }
  return {std::move(p), source, from, made.back(), made};
}
Pair scales(int stages, int rank) { return chain(stages, scale(), kF32, rank, rank == 1 ? Windows{x} : Windows{x, y}); }
Pair blurs(int stages, bool rings) { return chain(stages, blur(rings), kF32, 2, {x, {y - 1, y + 1}}); }

}  // namespace tenon::program::bench
