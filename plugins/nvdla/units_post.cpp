#include "nvdla/units.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::nvdla {

Result<void> Units::check_pool(const Command& c, int64_t height) const {
  TENON_OK(check_extents({{"pool_kernel_height", c.pool_kernel_height},
                          {"pool_kernel_width", c.pool_kernel_width},
                          {"pool_stride_y", c.pool_stride_y},
                          {"pool_stride_x", c.pool_stride_x},
                          {"pool_rows", c.pool_rows},
                          {"pool_width", c.pool_width}}));
  if (c.pool_first > kMostExtent || c.pool_pad_top > kMostExtent || c.pool_pad_left > kMostExtent)
    return error(Code::invalid_argument, "pool_first or a pad of the pool exceeds ", kMostExtent);
  const int64_t top = int64_t{c.pool_first} * c.pool_stride_y - c.pool_pad_top;
  const int64_t bottom =
      (int64_t{c.pool_first} + c.pool_rows - 1) * c.pool_stride_y - c.pool_pad_top + c.pool_kernel_height;
  if (c.kind != Kind::convolve) return {};
  const int64_t begin = std::clamp<int64_t>(top, 0, height), end = std::clamp<int64_t>(bottom, 0, height);
  if (begin < end && (begin < c.out_first || end > int64_t{c.out_first} + c.out_rows))
    return error(Code::invalid_argument, "the pool reads rows [", begin, ", ", end, "), the convolution makes [",
                 c.out_first, ", ", int64_t{c.out_first} + c.out_rows, ")");
  return {};
}

Result<void> Units::check_sdp(const Command& c) const {
  if (h_.half()) return {};
  const auto low = static_cast<int32_t>(c.low), high = static_cast<int32_t>(c.high);
  if (c.shift > 30 || c.operand_shift > 23 || c.src_shift > 23)
    return error(Code::invalid_argument, "shifts ", c.shift, ", ", c.operand_shift, " and ", c.src_shift,
                 " are not within 30, 23 and 23");
  if (low >= -128 && high <= 127 && low <= high) return {};
  return error(Code::invalid_argument, "bounds ", low, " and ", high, " are not within i8");
}

std::byte* Units::place(const DramImage& image, int64_t channel, int64_t row, int64_t column) const {
  return dram_.data() + image.at(channel / h_.atom_channels, row, column, h_.atom_bytes) +
         channel % h_.atom_channels * h_.element_bytes;
}
float Units::element(const DramImage& image, int64_t channel, int64_t row, int64_t column) const {
  return load_element(place(image, channel, row, column), h_.half());
}

Result<void> Units::elementwise(const Command& c) {
  const DramImage from{c.src_address, c.src_line, c.src_surface, c.surfaces, c.height, c.width};
  DramImage operand = from, to = from;
  operand.address = c.operand_address, operand.line = c.operand_line, operand.surface = c.operand_surface;
  to.address = c.dst_address, to.line = c.dst_line, to.surface = c.dst_surface;
  const bool two = c.operand_line != 0;
  TENON_OK(check_image("the image", from, dram_bytes(), h_));
  TENON_OK(check_image("the result", to, dram_bytes(), h_));
  if (two) TENON_OK(check_image("the operand", operand, dram_bytes(), h_));
  TENON_OK(check_sdp(c));
  const Sdp16 half = sdp16(c);
  const Sdp8 integer = sdp8(c);
  const int64_t channels = c.surfaces * h_.atom_channels;
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t row = 0; row < c.height; ++row)
      for (int64_t column = 0; column < c.width; ++column) {
        const float a = element(from, channel, row, column), b = two ? element(operand, channel, row, column) : 0;
        const float value = h_.half() ? half(a, two, b)
                                      : integer(static_cast<uint32_t>(static_cast<int32_t>(a)) << c.src_shift, two, b);
        store_element(place(to, channel, row, column), value, h_.half());
      }
  const int64_t elements = channels * c.height * c.width, bytes = elements * h_.element_bytes;
  account(at_rate(elements, h_.sdp_lanes), two ? 2 * bytes : bytes, bytes);
  return {};
}

Result<void> Units::pool(const Command& c) {
  const DramImage from{c.src_address, c.src_line, c.src_surface, c.surfaces, c.height, c.width};
  TENON_OK(check_image("the image", from, dram_bytes(), h_));
  TENON_OK(check_pool(c, c.height));
  TENON_OK(check_sdp(c));
  const DramImage to{c.dst_address, c.dst_line, c.dst_surface, c.surfaces, c.pool_rows, c.pool_width};
  TENON_OK(check_image("the result", to, dram_bytes(), h_));
  const int64_t channels = c.surfaces * h_.atom_channels;
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t row = 0; row < to.rows; ++row)
      for (int64_t column = 0; column < to.width; ++column) {
        const float value = pool_window(c, h_, c.height, c.width, c.pool_first + row, column,
                                        [&](int64_t y, int64_t x) { return element(from, channel, y, x); });
        store_element(place(to, channel, row, column), value, h_.half());
      }
  const int64_t read = channels * c.height * c.width, made = channels * to.rows * to.width;
  account(at_rate(read, h_.pdp_lanes), read * h_.element_bytes, made * h_.element_bytes);
  return {};
}

void Units::account(int64_t cycles, int64_t read, int64_t stored) {
  counters_.operand_bytes += read;
  counters_.stored_bytes += stored;
  clock_.compute(cycles, read + stored);
}

}  // namespace tenon::nvdla
