#include <tenon/support/memory.hpp>

#include <sys/mman.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <tenon/support/sanitizer.h>
#include <tenon/support/log.hpp>

namespace tenon {
namespace {

// Padding of large blocks. The C library maps them contiguously, each preceded by a page of its own. AMD processors
// look up a line in L1 by a hash of its address: bits 12 and 27 in a pair, 13 and 26, and so on ("Take A Way", Lipp et
// al., 2020). Two lines with the same hash evict each other. That happens to half of the lines of two tensors of 128
// MB, which are 2^27 + 2^12 bytes apart: a layer norm of their sum took a quarter longer. With four more pages, no size
// that is a power of two has more than a twentieth, on average over the positions in memory.
constexpr size_t kLargeBytes = size_t{1} << 20;
// AddressSanitizer must see writes after the end of a block.
constexpr size_t kApartBytes = TENON_SANITIZER == TENON_SANITIZER_ADDRESS ? 0 : size_t{4} << 12;

// Pages of 2 MB instead of 4 KB, where the kernel gives them on request ("madvise", the default of distributions): main
// memory is read and written faster by a fifth to a third, because processors prefetch only within a page, and a
// virtual machine looks up each page in two tables (docs/performance/lessons/machines.md, Large pages). This is a
// request; the block works without.
constexpr size_t kLargePagesFrom = size_t{2} << 20;
void ask_for_large_pages(void* block, size_t bytes) {
  constexpr uintptr_t kSmallPage = 65'536;  // the largest of those in use
  const auto begin = reinterpret_cast<uintptr_t>(block);
  const uintptr_t first = (begin + kSmallPage - 1) / kSmallPage * kSmallPage,
                  end = (begin + bytes) / kSmallPage * kSmallPage;
  (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace

void AlignedFree::operator()(std::byte* p) const { std::free(p); }

Result<AlignedBytes> allocate_aligned(size_t size, size_t align) {
  TENON_CHECK(align != 0 && (align & (align - 1)) == 0, "alignment ", align, " is not a power of two");
  const size_t taken = size + (size >= kLargeBytes ? kApartBytes : 0);
  const size_t rounded = size == 0 ? align : (taken + align - 1) / align * align;
  void* p = rounded < size || rounded > PTRDIFF_MAX ? nullptr : std::aligned_alloc(align, rounded);
  if (!p) return error(Code::resource_exhausted, "the heap cannot give ", size, " bytes");
  if (rounded >= kLargePagesFrom) ask_for_large_pages(p, rounded);
  return AlignedBytes(static_cast<std::byte*>(p));
}

size_t tensor_bytes_limit() {
  static const size_t limit = [] {
    constexpr size_t kDefault = size_t{16} << 30;
    constexpr size_t kLeast = 4096;  // the default attributes of operators are tensors, too, and are always created
    const char* variable = std::getenv("TENON_TENSOR_LIMIT");
    if (!variable) return kDefault;
    const std::string_view text = variable;
    size_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem == std::errc() && end == text.data() + text.size() && value >= kLeast) return value;
    log(LogLevel::warning, "TENON_TENSOR_LIMIT=", quote(text), " is not a number of bytes from ", kLeast,
        " on; the limit stays at ", kDefault);
    return kDefault;
  }();
  return limit;
}

}  // namespace tenon
