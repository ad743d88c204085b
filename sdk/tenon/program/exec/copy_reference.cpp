#include <tenon/program/exec/copy_reference_internal.hpp>

#include <cstring>

namespace tenon::program::detail {
namespace {

bool is_inside(std::span<const DimView> dims, std::span<const int64_t> index) {
  for (size_t d = 0; d < dims.size(); ++d)
    if (index[d] < dims[d].min || index[d] > dims[d].max()) return false;
  return true;
}

// The element to use for an index outside of the source.
Result<const std::byte*> padding_at(const Copy& copy, const BufferView* padding, std::span<const int64_t> index,
                                    std::span<const int64_t> source_index) {
  if (const auto* element = std::get_if<Copy::Element>(&copy.padding)) return element->data();
  if (padding == nullptr)
    return error(Code::invalid_argument, "index ", index, " of the destination comes from index ", source_index,
                 " of the source, which is outside of it: give a padding, or a smaller destination");
  if (padding->rank() == 0) return padding->base;
  if (!is_inside(padding->dims, index))
    return error(Code::invalid_argument, "index ", index, " of the destination is outside of the padding's box");
  return padding->address(index);
}

}  // namespace

Result<void> for_each_index(std::span<const DimView> dims,
                            const std::function<Result<void>(std::span<const int64_t>)>& visit) {
  std::vector<int64_t> index;
  for (const DimView& d : dims) {
    if (d.extent <= 0) return {};
    index.push_back(d.min);
  }
  for (;;) {
    TENON_OK(visit(index));
    size_t d = 0;
    for (; d < dims.size() && ++index[d] > dims[d].max(); ++d) index[d] = dims[d].min;
    if (d == dims.size()) return {};
  }
}

Result<void> copy_reference(const Copy& copy, const BufferView& destination, const BufferView& source,
                            const BufferView* padding, SymbolValues symbols) {
  const auto bytes = static_cast<size_t>(destination.element_bytes());
  std::vector<int64_t> source_index(copy.map.size());
  return for_each_index(destination.dims, [&](std::span<const int64_t> index) -> Result<void> {
    for (size_t d = 0; d < index.size(); ++d) symbols[copy.indices[d]] = index[d];
    for (size_t d = 0; d < copy.map.size(); ++d) {
      TENON_TRY(at, copy.map[d].evaluate(symbols), "the index of dim ", d, " of the source");
      source_index[d] = at;
    }
    const std::byte* from = nullptr;
    if (is_inside(source.dims, source_index)) {
      from = source.address(source_index);
    } else {
      TENON_TRY(outside, padding_at(copy, padding, index, source_index));
      from = outside;
    }
    std::memmove(destination.address(index), from, bytes);
    return {};
  });
}

}  // namespace tenon::program::detail
