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
  for (int64_t i = 0; i < n; ++i) to[i] = from[(first + i) / 2 - first / 2];
}

// Where the row `v` is, from index `first` on.
float* row(const BufferView& b, int64_t first, int64_t v) {
  return reinterpret_cast<float*>(b.rank() == 1 ? b.address(std::array{first}) : b.address(std::array{first, v}));
}

// f(row of the result, first index, y, number of elements) for each row of the last operand. Rows must be in one piece.
template <class F>
Result<void> each_row(const CallContext& c, const F& f) {
  for (const BufferView& b : c.operands)
    if (b.dims[0].fold > 0) return error(Code::unsupported, "a ring across rows");
  const BufferView& out = c.operands.back();
  const int64_t first = out.dims[0].min, n = out.dims[0].extent;
  const int64_t from = out.rank() == 1 ? 0 : out.dims[1].min, to = out.rank() == 1 ? 0 : out.dims[1].max();
  for (int64_t v = from; v <= to; ++v) f(row(out, first, v), first, v, n);
  return {};
}

}  // namespace

KernelHandle scale() {
  return make_kernel(
      "scale",
      [](CallContext& c) -> Result<void> {
        const BufferView& in = c.operands[0];
        return each_row(c,
                        [&](float* to, int64_t first, int64_t v, int64_t n) { scale_row(to, row(in, first, v), n); });
      },
      true);
}

KernelHandle blur(bool rings) {
  return make_kernel(
      "blur",
      [](CallContext& c) -> Result<void> {
        const BufferView& in = c.operands[0];
        return each_row(c, [&](float* to, int64_t first, int64_t v, int64_t n) {
          mean_row(to, row(in, first, v - 1), row(in, first, v), row(in, first, v + 1), n);
        });
      },
      rings);
}

KernelHandle box(bool rings) {
  return make_kernel(
      "box",
      [](CallContext& c) -> Result<void> {
        const BufferView& in = c.operands[0];
        return each_row(c, [&](float* to, int64_t first, int64_t v, int64_t n) {
          box_row(to, row(in, first - 1, v - 1), row(in, first - 1, v), row(in, first - 1, v + 1), n);
        });
      },
      rings);
}

KernelHandle halve() {
  return make_kernel(
      "halve",
      [](CallContext& c) -> Result<void> {
        const BufferView& in = c.operands[0];
        return each_row(c, [&](float* to, int64_t first, int64_t v, int64_t n) {
          halve_row(to, row(in, 2 * first, 2 * v), row(in, 2 * first, 2 * v + 1), n);
        });
      },
      true);
}

KernelHandle twice() {
  return make_kernel(
      "twice",
      [](CallContext& c) -> Result<void> {
        const BufferView& in = c.operands[0];
        return each_row(c, [&](float* to, int64_t first, int64_t v, int64_t n) {
          twice_row(to, row(in, first / 2, v / 2), first, n);
        });
      },
      true);
}

KernelHandle combine() {
  return make_kernel(
      "combine",
      [](CallContext& c) -> Result<void> {
        const BufferView &a = c.operands[0], &b = c.operands[1];
        return each_row(c, [&](float* to, int64_t first, int64_t v, int64_t n) {
          combine_row(to, row(a, first, v), row(b, first, v), n);
        });
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
