#include <tenon/program/exec/buffers_internal.hpp>

#include <algorithm>

namespace tenon::program::detail {
namespace {

Error too_large() { return error(Code::resource_exhausted, "its size in bytes is outside of int64"); }

int64_t places(const DimView& d) { return d.fold > 0 ? d.fold : d.extent; }

// The range of places of a box along a folded dim, which it may wrap around.
RangeNumbers places_of_box(const DimView& d) {
  if (d.fold <= 0) return {0, d.extent};
  const int64_t first = d.place(d.min);
  return first + d.extent <= d.fold ? RangeNumbers{first, d.extent} : RangeNumbers{0, d.fold};
}

int64_t saturating_add(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_add_overflow(a, b, &result) ? (b < 0 ? INT64_MIN : INT64_MAX) : result;
}

void extend(Spread& spread, int64_t first_byte, int64_t last_byte) {
  spread.low += std::min(first_byte, last_byte);
  spread.high += std::max(first_byte, last_byte);
}

}  // namespace

Result<std::vector<DimView>> make_dims(const std::vector<DimNumbers>& numbers, ElementType element) {
  std::vector<DimView> dims;
  int64_t dense = element.bits() / 8;
  for (size_t d = 0; d < numbers.size(); ++d) {
    const DimNumbers& n = numbers[d];
    if (n.extent < 0) return error(Code::invalid_argument, "dim ", d, " has extent ", n.extent, ", which is negative");
    DimView dim{n.min, n.extent, n.stride.value_or(dense), n.fold > 0 && n.fold < n.extent ? n.fold : 0};
    int64_t last;
    if (__builtin_add_overflow(dim.min, std::max<int64_t>(dim.extent, 1) - 1, &last) || dim.stride == INT64_MIN ||
        __builtin_mul_overflow(std::abs(dim.stride), std::max<int64_t>(places(dim), 1), &dense))
      return too_large();
    dims.push_back(dim);
  }
  return dims;
}

Result<Spread> spread_of(const std::vector<DimView>& dims, ElementType element) {
  Spread spread{0, element.bits() / 8};
  for (const DimView& d : dims)
    if (d.extent == 0) return Spread{};
  for (const DimView& d : dims) {
    const int64_t reach = (places(d) - 1) * d.stride;  // make_dims has checked for overflow
    int64_t& end = reach < 0 ? spread.low : spread.high;
    if (__builtin_add_overflow(end, reach, &end)) return too_large();
  }
  int64_t bytes;
  if (__builtin_sub_overflow(spread.high, spread.low, &bytes)) return too_large();
  return spread;
}

Spread spread_of_box(const BufferView& view) {
  if (view.empty()) return {};
  Spread spread{0, view.element_bytes()};
  for (const DimView& d : view.dims) {
    const RangeNumbers range = places_of_box(d);
    extend(spread, range.min * d.stride, (range.min + range.extent - 1) * d.stride);
  }
  return spread;
}

void crop_dim(BoundBuffer& buffer, size_t d, RangeNumbers range) {
  DimView& dim = buffer.dims[d];
  const int64_t min = std::max(dim.min, range.min);
  const int64_t end = std::min(dim.min + dim.extent, saturating_add(range.min, std::max<int64_t>(range.extent, 0)));
  if (dim.fold <= 0 && min < end) buffer.base += (min - dim.min) * dim.stride;
  dim.min = min;
  dim.extent = end > min ? end - min : 0;
}

void slice_dim(BoundBuffer& buffer, size_t d, int64_t index) {
  buffer.base += buffer.dims[d].place(index) * buffer.dims[d].stride;
  buffer.dims.erase(buffer.dims.begin() + static_cast<ptrdiff_t>(d));
}

void make_linear(BoundBuffer& buffer) {
  for (DimView& d : buffer.dims) {
    if (d.fold <= 0) continue;
    const int64_t first = d.place(d.min);
    if (first + d.extent > d.fold) continue;
    buffer.base += first * d.stride;
    d.fold = 0;
  }
}

}  // namespace tenon::program::detail
