#include "nvdla/checks.hpp"

namespace tenon::nvdla {

Result<void> check_extents(std::initializer_list<Extent> extents) {
  for (const Extent& extent : extents)
    if (extent.value < 1 || extent.value > kMostExtent)
      return error(Code::invalid_argument, extent.name, " ", extent.value, " is not in 1 to ", kMostExtent);
  return {};
}

Result<void> check_range(std::string_view what, int64_t address, int64_t bytes, int64_t dram_bytes, int64_t alignment) {
  if (address % alignment != 0)
    return error(Code::invalid_argument, what, " at ", address, " is not aligned to ", alignment, " bytes");
  if (address < 0 || bytes < 0 || address > dram_bytes || bytes > dram_bytes - address)
    return error(Code::invalid_argument, what, " [", address, ", ", address + bytes, ") leaves DRAM of ", dram_bytes,
                 " bytes");
  return {};
}

Result<void> check_image(std::string_view what, const DramImage& image, int64_t dram_bytes, const Hardware& hardware) {
  TENON_OK(check_extents({{"surfaces", image.surfaces}, {"rows", image.rows}, {"width", image.width}}), what);
  const int64_t line = image.width * hardware.atom_bytes;
  if ((image.rows > 1 && image.line < line) || image.line % hardware.dram_alignment != 0)
    return error(Code::invalid_argument, what, ": lines of ", line, " bytes lie ", image.line, " apart");
  const int64_t rows = (image.rows - 1) * image.line + line;
  if ((image.surfaces > 1 && image.surface < rows) || image.surface % hardware.dram_alignment != 0)
    return error(Code::invalid_argument, what, ": surfaces of ", rows, " bytes lie ", image.surface, " apart");
  return check_range(what, image.address, (image.surfaces - 1) * image.surface + rows, dram_bytes,
                     hardware.dram_alignment);
}

Result<void> check_entries(std::string_view what, int64_t first, int64_t count, const Hardware& hardware) {
  if (first <= hardware.entries() && count <= hardware.entries() - first) return {};
  return error(Code::invalid_argument, what, ": entries [", first, ", ", first + count, ") leave the buffer of ",
               hardware.entries());
}

}  // namespace tenon::nvdla
