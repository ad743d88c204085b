#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <tenon/program/pipeline/non_temporal_internal.hpp>
#include <tenon/program/pipeline/pipeline.hpp>

namespace tenon::program {

using detail::MoveRow;

namespace {

void move_row(std::byte* to, const std::byte* from, size_t bytes) { std::memcpy(to, from, bytes); }

#if defined(__x86_64__)
constexpr size_t kLine = 64;

// Copies the bytes before the first whole line of the destination, and those after the last one. Returns the lines in
// between.
struct Lines {
  std::byte* to;
  const std::byte* from;
  size_t count;
};
Lines lines_within(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  const size_t tail = (bytes - head) % kLine;
  if (head > 0) move_row(to, from, head);
  if (tail > 0) move_row(to + bytes - tail, from + bytes - tail, tail);
  return {to + head, from + head, (bytes - head) / kLine};
}

[[gnu::target("avx512f")]] void move_row_avx512(std::byte* to, const std::byte* from, size_t bytes) {
  Lines lines = lines_within(to, from, bytes);
  for (; lines.count > 0; --lines.count, lines.to += kLine, lines.from += kLine)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(lines.to), _mm512_loadu_si512(lines.from));
}
void move_row_sse2(std::byte* to, const std::byte* from, size_t bytes) {
  Lines lines = lines_within(to, from, bytes);
  for (; lines.count > 0; --lines.count, lines.to += kLine, lines.from += kLine)
    for (size_t i = 0; i < kLine; i += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(lines.to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(lines.from + i)));
}
MoveRow widest() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") ? move_row_avx512 : move_row_sse2;
}
#else
MoveRow widest() { return move_row; }
#endif

// f(address in `to`, address in `from`) for each index of the dims from `first` on, in the intersection of both boxes.
template <class F>
void for_each_row(const BufferView& to, const BufferView& from, size_t first, const F& f) {
  std::array<int64_t, kMaxRank> index;
  const size_t rank = to.dims.size();
  for (size_t d = 0; d < rank; ++d) index[d] = to.dims[d].min;
  const std::span<const int64_t> at(index.data(), rank);
  while (true) {
    f(to.address(at), from.address(at));
    size_t d = first;
    for (; d < rank; ++d) {
      if (++index[d] <= to.dims[d].max()) break;
      index[d] = to.dims[d].min;
    }
    if (d == rank) return;
  }
}

void copy_box(const BufferView& to, const BufferView& from, MoveRow widest_row) {
  const auto element = static_cast<size_t>(to.element_bytes());
  const auto is_row = [&](const BufferView& b) {
    return !b.dims.empty() && b.dims[0].stride == b.element_bytes() && b.dims[0].fold <= 0;
  };
  if (!is_row(to) || !is_row(from)) {
    for_each_row(to, from, 0, [&](std::byte* t, const std::byte* f) { move_row(t, f, element); });
    return;
  }
  const size_t bytes = element * static_cast<size_t>(to.dims[0].extent);
  if (to.dims.size() == 2 && to.dims[1].fold <= 0 && from.dims[1].fold <= 0) {  // the most frequent case
    for (int64_t y = 0; y < to.dims[1].extent; ++y)
      widest_row(to.base + y * to.dims[1].stride, from.base + y * from.dims[1].stride, bytes);
    return;
  }
  for_each_row(to, from, 1, [&](std::byte* t, const std::byte* f) { widest_row(t, f, bytes); });
}

// Operands: the sources, then as many results.
Result<void> copy_boxes(CallContext& c) {
  const MoveRow row = detail::non_temporal_row();
  const size_t results = c.operands.size() / 2;
  for (size_t i = 0; i < results; ++i) copy_box(c.operands[results + i], c.operands[i], row);
  return {};
}

}  // namespace

MoveRow detail::non_temporal_row() {
  static const MoveRow row = widest();
  return row;
}

// A thread that is notified afterwards must see such stores completed. It takes 0.1 us where there are any.
void detail::end_of_lines() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

KernelHandle non_temporal_kernel() {
  auto kernel = std::make_shared<Kernel>();
  kernel->name = "copy_non_temporal";
  kernel->takes_folded = true;
  kernel->run_unfinished = copy_boxes;
  kernel->finish = detail::end_of_lines;
  kernel->run = [](CallContext& c) -> Result<void> {
    TENON_OK(copy_boxes(c));
    detail::end_of_lines();
    return {};
  };
  return kernel;
}

}  // namespace tenon::program
