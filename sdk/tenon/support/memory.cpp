#include <tenon/support/memory.hpp>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <tenon/support/log.hpp>

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
    const char* variable = std::getenv("TENON_TENSOR_LIMIT");
    if (!variable) return kDefault;
    const std::string_view text = variable;
    size_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem == std::errc() && end == text.data() + text.size()) return value;
    log(LogLevel::warning, "TENON_TENSOR_LIMIT=", quote(text), " is not a number of bytes; the limit stays at ",
        kDefault);
    return kDefault;
  }();
  return limit;
}

}  // namespace tenon
