#include <tenon/support/memory.hpp>

#include <cstdlib>
#include <new>

namespace tenon {

void AlignedFree::operator()(std::byte* p) const { std::free(p); }

Result<AlignedBytes> allocate_aligned(size_t size, size_t align) {
  TENON_CHECK(align != 0 && (align & (align - 1)) == 0, "alignment ", align, " is not a power of two");
  const size_t rounded = size == 0 ? align : (size + align - 1) / align * align;
  void* p = rounded < size || rounded > PTRDIFF_MAX ? nullptr : std::aligned_alloc(align, rounded);
  if (!p) return error(Code::resource_exhausted, "the heap cannot give ", size, " bytes");
  return AlignedBytes(static_cast<std::byte*>(p));
}

size_t tensor_bytes_limit() {
  static const size_t limit = [] {
    constexpr size_t kDefault = size_t{16} << 30;
    const char* text = std::getenv("TENON_TENSOR_LIMIT");
    if (!text) return kDefault;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    return *text != '\0' && *end == '\0' ? static_cast<size_t>(value) : kDefault;
  }();
  return limit;
}

}  // namespace tenon
