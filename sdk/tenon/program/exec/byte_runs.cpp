#include <algorithm>

#include <tenon/program/exec/byte_runs_internal.hpp>

namespace tenon::program::detail {
namespace {

void sort_and_join(std::vector<ByteRun>& runs) {
  std::sort(runs.begin(), runs.end(), [](const ByteRun& a, const ByteRun& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const ByteRun& r : runs) {
    if (kept > 0 && r.begin <= runs[kept - 1].end)
      runs[kept - 1].end = std::max(runs[kept - 1].end, r.end);
    else
      runs[kept++] = r;
  }
  runs.resize(kept);
}

}  // namespace

std::vector<ByteRun> runs_of(const BoundBuffer& box) {
  const BufferView view = box.view();
  if (view.empty()) return {};
  const int64_t base = box.base - box.memory->begin;
  std::vector<ByteRun> runs{{base, base + view.element_bytes()}};
  // Dim by dim, the smallest strides first, so that rows become one run before they are repeated.
  std::vector<DimView> dims = box.dims;
  std::sort(dims.begin(), dims.end(),
            [](const DimView& a, const DimView& b) { return std::abs(a.stride) < std::abs(b.stride); });
  for (const DimView& d : dims) {
    const int64_t count = d.fold > 0 ? std::min(d.extent, d.fold) : d.extent;
    std::vector<ByteRun> next;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t shift = d.place(d.min + i) * d.stride;
      for (const ByteRun& r : runs) next.push_back({r.begin + shift, r.end + shift});
    }
    sort_and_join(next);
    runs = std::move(next);
  }
  return runs;
}

bool overlap(const std::vector<ByteRun>& a, const std::vector<ByteRun>& b) {
  auto x = a.begin(), y = b.begin();
  while (x != a.end() && y != b.end()) {
    if (x->end <= y->begin)
      ++x;
    else if (y->end <= x->begin)
      ++y;
    else
      return true;
  }
  return false;
}

}  // namespace tenon::program::detail
