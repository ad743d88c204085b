#include "nvdla/units.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::nvdla {

Result<void> Units::begin() {
  std::fill(buffer_.loaded.begin(), buffer_.loaded.end(), false);
  std::fill(buffer_.roles.begin(), buffer_.roles.end(), Role::empty);
  clock_.wait_for_all();
  return {};
}

Result<void> Units::take(std::string_view what, int64_t first, int64_t count, Role role) {
  TENON_OK(check_entries(what, first, count, h_));
  for (int64_t i = first; i < first + count; ++i) {
    Role& bank = buffer_.roles[static_cast<size_t>(i / h_.bank_entries)];
    if (bank != Role::empty && bank != role)
      return error(Code::invalid_argument, what, ": bank ", i / h_.bank_entries, " holds ",
                   bank == Role::data ? "data" : "weights", " already");
    bank = role;
    buffer_.loaded[static_cast<size_t>(i)] = true;
  }
  return {};
}

Result<void> Units::load_data(const Command& c) {
  const DramImage image{c.src_address, c.src_line, c.src_surface, c.surfaces, c.height, c.width};
  TENON_OK(check_image("the image", image, dram_bytes(), h_));
  TENON_OK(check_extents({{"rows", c.rows}, {"row_entries", c.row_entries}}));
  if (int64_t{c.first_row} + c.rows > c.height)
    return error(Code::invalid_argument, "rows [", c.first_row, ", ", int64_t{c.first_row} + c.rows,
                 ") are not in an image of ", c.height);
  const int64_t line = c.width * h_.atom_bytes, row = c.row_entries * h_.entry_bytes;
  if (row < c.surfaces * line)
    return error(Code::invalid_argument, "a row of ", c.surfaces * line, " bytes in ", c.row_entries, " entries");
  const int64_t entries = int64_t{c.rows} * c.row_entries;
  TENON_OK(take("load_data", c.data_entry, entries, Role::data));
  for (int64_t y = 0; y < c.rows; ++y)
    for (int64_t s = 0; s < c.surfaces; ++s)
      std::memcpy(buffer_.bytes.data() + c.data_entry * h_.entry_bytes + y * row + s * line,
                  dram_.data() + image.at(s, c.first_row + y, 0, h_.atom_bytes), static_cast<size_t>(line));
  const int64_t bytes = c.rows * c.surfaces * line;
  counters_.data_bytes += bytes;
  clock_.load(c.data_entry, entries, bytes);
  return {};
}

Result<void> Units::load_weights(const Command& c) {
  TENON_OK(check_range("weights", c.weight_address, c.weight_bytes, dram_bytes(), h_.dram_alignment));
  const int64_t entries = ceil_div(c.weight_bytes, h_.entry_bytes);
  TENON_OK(take("load_weights", c.weight_entry, entries, Role::weights));
  std::memcpy(buffer_.bytes.data() + c.weight_entry * h_.entry_bytes, dram_.data() + c.weight_address, c.weight_bytes);
  counters_.weight_bytes += c.weight_bytes;
  clock_.load(c.weight_entry, entries, c.weight_bytes);
  return {};
}

Result<void> Units::uses(std::string_view what, int64_t first, int64_t count, Role role) {
  TENON_OK(check_entries(what, first, count, h_));
  for (int64_t i = first; i < first + count; ++i)
    if (!buffer_.loaded[static_cast<size_t>(i)] || buffer_.roles[static_cast<size_t>(i / h_.bank_entries)] != role)
      return error(Code::invalid_argument, what, ": entry ", i, " (bank ", i / h_.bank_entries, ") is not loaded");
  clock_.uses(first, count);
  return {};
}

}  // namespace tenon::nvdla
