#include "nvdla/units.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::nvdla {

Result<void> Units::check_conv(const Command& c) const {
  TENON_OK(check_extents({{"width", c.width},
                          {"height", c.height},
                          {"surfaces", c.surfaces},
                          {"channels", c.channels},
                          {"kernels", c.kernels},
                          {"kernel_height", c.kernel_height},
                          {"kernel_width", c.kernel_width},
                          {"stride_y", c.stride_y},
                          {"stride_x", c.stride_x},
                          {"dilation_y", c.dilation_y},
                          {"dilation_x", c.dilation_x},
                          {"out_rows", c.out_rows},
                          {"out_height", c.out_height},
                          {"out_width", c.out_width}}));
  if (ceil_div(c.channels, h_.atom_channels) != c.surfaces)
    return error(Code::invalid_argument, c.channels, " channels are not ", c.surfaces, " surfaces");
  if (int64_t{c.out_first} + c.out_rows > c.out_height)
    return error(Code::invalid_argument, "rows [", c.out_first, ", ", int64_t{c.out_first} + c.out_rows,
                 ") are not in a result of ", c.out_height);
  // Before a pool these are not bounded otherwise. Extents are at most 2^20, so the first product is exact.
  const int64_t pixels = int64_t{c.out_rows} * c.out_width, most = h_.dram_bytes / static_cast<int64_t>(sizeof(float));
  if (pixels > most || round_up(c.kernels, ConvSums<float>::kLanes) > most / pixels)
    return error(Code::invalid_argument, pixels, " pixels of ", c.kernels,
                 " kernels are more than DRAM would hold as f32");
  return {};
}

// Checks that the buffer holds what the convolution reads.
Result<void> Units::check_held(const Command& c) {
  TENON_OK(check_rows(c));
  if (c.rows > 0) {
    TENON_OK(check_extents({{"rows", c.rows}, {"row_entries", c.row_entries}}));
    if (c.row_entries * h_.entry_bytes < int64_t{c.surfaces} * c.width * h_.atom_bytes)
      return error(Code::invalid_argument, "a row of ", int64_t{c.surfaces} * c.width, " atoms in ", c.row_entries,
                   " entries");
    TENON_OK(uses("data", c.data_entry, int64_t{c.rows} * c.row_entries, Role::data));
  }
  return check_weights(c);
}

Result<void> Units::check_rows(const Command& c) const {
  const int64_t held = int64_t{c.first_row} + c.rows, last_tap = c.kernel_height - 1;
  for (int64_t row = c.out_first; row < int64_t{c.out_first} + c.out_rows; ++row) {
    // The first and the last tap inside the image.
    const int64_t top = row * c.stride_y - c.pad_top, dilation = c.dilation_y;
    const int64_t first = top < 0 ? ceil_div(-top, dilation) : 0;
    const int64_t last = top < c.height ? std::min(last_tap, (c.height - 1 - top) / dilation) : -1;
    if (first > last) continue;
    for (const int64_t y : {top + first * dilation, top + last * dilation})
      if (y < c.first_row || y >= held)
        return error(Code::invalid_argument, "row ", y, " of the image is not in the buffer, which holds [",
                     c.first_row, ", ", held, ")");
  }
  return {};
}

Result<void> Units::check_weights(const Command& c) {
  TENON_OK(check_entries("weights", c.weight_entry, 0, h_));
  const int64_t taps = int64_t{c.kernel_height} * c.kernel_width;
  if (taps > kMostExtent || taps * c.channels > kMostExtent * h_.entry_bytes)
    return error(Code::invalid_argument, "a kernel of ", c.kernel_height, " x ", c.kernel_width, " x ", c.channels,
                 " is more than the buffer");
  for (int64_t first = 0, entry = c.weight_entry; first < c.kernels; first += h_.atomic_k, entry += c.group_entries) {
    const int64_t kernels = std::min<int64_t>(h_.atomic_k, c.kernels - first);
    const int64_t bytes = kernels * taps * c.channels * h_.element_bytes;
    TENON_OK(uses("weights", entry, ceil_div(bytes, h_.entry_bytes), Role::weights));
  }
  return {};
}

DramImage Units::result_image(const Command& c, int64_t rows, int64_t width) const {
  const int64_t last = int64_t{c.first_kernel} + c.kernels;
  return {c.dst_address, c.dst_line, c.dst_surface, ceil_div(last, h_.atom_channels), rows, width};
}
DramImage Units::operand_image(const Command& c, const DramImage& result, int64_t rows, int64_t width) const {
  return {c.operand_address, c.operand_line, c.operand_surface, result.surfaces, rows, width};
}

template <class T>
Result<void> Units::convolve(const Command& c) {
  TENON_OK(check_conv(c));
  TENON_OK(check_held(c));
  if (c.pools()) TENON_OK(check_pool(c, c.out_height));
  const DramImage result =
      c.pools() ? result_image(c, c.pool_rows, c.pool_width) : result_image(c, c.out_rows, c.out_width);
  TENON_OK(check_image("the result", result, dram_bytes(), h_));
  const DramImage operand = operand_image(c, result, c.out_rows, c.out_width);
  if (c.operand_line != 0) TENON_OK(check_image("the operand", operand, dram_bytes(), h_));
  if (c.bias != 0)
    TENON_OK(check_range("the bias", c.bias_address, c.kernels * h_.bias_bytes(), dram_bytes(), h_.bias_bytes()));
  TENON_OK(check_sdp(c));
  const std::vector<float> values = conv_values<T>(c, operand);
  write_results(c, values, result);
  count(c, result);
  return {};
}

template <class T>
T Units::bias_at(const Command& c, int64_t kernel) const {
  if (c.bias == 0) return T{0};
  const std::byte* from = dram_.data() + c.bias_address + kernel * h_.bias_bytes();
  if constexpr (std::is_same_v<T, float>) return load_element(from, true);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// [row][column][kernel], lanes rounded up; results of SDP.
template <class T>
std::vector<float> Units::conv_values(const Command& c, const DramImage& operand) {
  const auto bytes = [&](int64_t entry) {
    return std::span<const std::byte>(buffer_.bytes).subspan(static_cast<size_t>(entry * h_.entry_bytes));
  };
  const ConvSums<T> conv(c, h_, bytes(c.rows > 0 ? c.data_entry : 0), bytes(c.weight_entry));
  const int64_t row_values = c.out_width * conv.lanes();
  std::vector<float> values(static_cast<size_t>(c.out_rows * row_values));
  std::vector<T> bias;
  for (int64_t k = 0; k < c.kernels; ++k) bias.push_back(bias_at<T>(c, k));
  parallel_.run(c.out_rows, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> sums(static_cast<size_t>(row_values));
    for (int64_t row = begin; row < end; ++row) {
      conv.row(c.out_first + row, sums.data());
      finish_row(c, operand, row, conv.lanes(), sums.data(), bias, values.data() + row * row_values);
    }
  });
  return values;
}

template <class T>
void Units::finish_row(const Command& c, const DramImage& operand, int64_t row, int64_t lanes, const T* sums,
                       const std::vector<T>& bias, float* values) const {
  const Sdp16 half = sdp16(c);
  const Sdp8 integer = sdp8(c);
  const bool two = c.operand_line != 0;
  for (int64_t column = 0; column < c.out_width; ++column)
    for (int64_t k = 0; k < c.kernels; ++k) {
      const int64_t i = column * lanes + k;
      T sum = sums[i];
      if (c.bias != 0) sum += bias[static_cast<size_t>(k)];
      const float other = two ? element(operand, c.first_kernel + k, row, column) : 0;
      if constexpr (std::is_same_v<T, float>)
        values[i] = half(sum, two, other);
      else
        values[i] = integer(sum, two, other);
    }
}

void Units::write_results(const Command& c, const std::vector<float>& values, const DramImage& result) const {
  const int64_t lanes = round_up(c.kernels, ConvSums<float>::kLanes);
  const auto value = [&](int64_t k, int64_t row, int64_t column) {
    return values[static_cast<size_t>(((row - c.out_first) * c.out_width + column) * lanes + k)];
  };
  for (int64_t k = 0; k < c.kernels; ++k)
    for (int64_t row = 0; row < result.rows; ++row)
      for (int64_t column = 0; column < result.width; ++column) {
        const float v = c.pools() ? pool_window(c, h_, c.out_height, c.out_width, c.pool_first + row, column,
                                                [&](int64_t y, int64_t x) { return value(k, y, x); })
                                  : value(k, c.out_first + row, column);
        store_element(place(result, c.first_kernel + k, row, column), v, h_.half());
      }
}

void Units::count(const Command& c, const DramImage& result) {
  const int64_t pixels = int64_t{c.out_rows} * c.out_width, taps = int64_t{c.kernel_height} * c.kernel_width;
  const int64_t groups = ceil_div(c.kernels, h_.atomic_k);
  const int64_t cycles = pixels * taps * ceil_div(c.channels, h_.atomic_c) * groups;
  const int64_t results = pixels * c.kernels, stored = result.rows * result.width * c.kernels;
  const int64_t operands =
      (c.operand_line != 0 ? results * h_.element_bytes : 0) + (c.bias != 0 ? c.kernels * h_.bias_bytes() : 0);
  counters_.mac_cycles += cycles;
  counters_.macs += pixels * taps * c.channels * c.kernels;
  counters_.buffer_bytes +=
      pixels * taps * c.surfaces * h_.atom_bytes * groups + taps * c.channels * c.kernels * h_.element_bytes;
  counters_.operand_bytes += operands;
  counters_.stored_bytes += stored * h_.element_bytes;
  const int64_t pooling = c.pools() ? at_rate(results, h_.pdp_lanes) : 0;
  clock_.compute(std::max({cycles, at_rate(results, h_.sdp_lanes), pooling}), operands + stored * h_.element_bytes);
}

template Result<void> Units::convolve<float>(const Command&);
template Result<void> Units::convolve<uint32_t>(const Command&);

}  // namespace tenon::nvdla
