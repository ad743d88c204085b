#include <tenon/program/exec/prefetch_internal.hpp>

namespace tenon::program::detail {

namespace {

// The processor ignores addresses that are not mapped. GCC treats functions that consist only of the builtin as having
// no effect and removes their calls: hence the asm.
[[gnu::always_inline]] inline void read_soon(uint64_t address) {
  __builtin_prefetch(reinterpret_cast<const void*>(address));
  asm volatile("");
}
// With intent to write, so that a line that another core holds is not fetched twice. Processors without the instruction
// treat it as a no-op.
#if defined(__x86_64__)
[[gnu::always_inline]] inline void write_soon(uint64_t address) { asm volatile("prefetchw (%0)" : : "r"(address)); }
#else
[[gnu::always_inline]] inline void write_soon(uint64_t address) {
  __builtin_prefetch(reinterpret_cast<const void*>(address), 1);
  asm volatile("");
}
#endif

template <class F>
[[gnu::always_inline]] inline void for_each_line_of(uint64_t address, int32_t lines, int32_t rows, int64_t stride,
                                                    const F& f) {
  for (; rows > 0; --rows, address += static_cast<uint64_t>(stride)) {
    uint64_t line = address;
    for (int32_t left = lines; left > 0; --left, line += kLineBytes) f(line);
  }
}

}  // namespace

void read_lines_soon(uint64_t address, int32_t lines, int32_t rows, int64_t stride) {
  for_each_line_of(address, lines, rows, stride, read_soon);
}
void write_lines_soon(uint64_t address, int32_t lines, int32_t rows, int64_t stride) {
  for_each_line_of(address, lines, rows, stride, write_soon);
}

void prefetch(Frame& frame, const PrefetchCode& code) {
  std::array<LineDim, kMaxRank> dims;
  auto base = static_cast<uint64_t>(frame.get(code.base));
  for (size_t d = 0; d < code.dims.size(); ++d) {
    const PrefetchCode::Dim& dim = code.dims[d];
    const CroppedDim found = cropped(frame.get(dim.first), frame.get(dim.extent), frame.get(dim.min),
                                     frame.get(dim.has_extent), frame.get(dim.stride));
    dims[d] = found.dim;
    base += found.from_base;
  }
  const std::span<LineDim> box = std::span(dims).first(code.dims.size());
  const auto element = static_cast<uint64_t>(code.element_bytes);
  const auto part = static_cast<uint64_t>(code.part), parts = static_cast<uint64_t>(code.parts);
  if (code.writes)
    for_each_line(base, box, element, part, parts, write_soon);
  else
    for_each_line(base, box, element, part, parts, read_soon);
}

}  // namespace tenon::program::detail
