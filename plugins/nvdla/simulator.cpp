#include "nvdla/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nvdla/arithmetic.hpp"
#include "nvdla/checks.hpp"

namespace tenon::nvdla {
namespace {

enum Role : uint8_t { kEmpty, kData, kWeights };

// When units are free, and who uses which entry until when.
class Clock {
 public:
  explicit Clock(const Hardware& hardware)
      : h_(hardware),
        loaded_at_(static_cast<size_t>(hardware.entries())),
        read_until_(static_cast<size_t>(hardware.entries())) {}

  void wait_for_all() { load_ = compute_ = dram_ = end(); }
  int64_t end() const { return std::max({load_, compute_, dram_}); }

  void load(int64_t first, int64_t count, int64_t bytes) {
    int64_t start = std::max(load_, dram_);
    for (int64_t i = first; i < first + count; ++i) start = std::max(start, read_until_[static_cast<size_t>(i)]);
    load_ = dram_ = start + transfer(bytes);
    std::fill_n(loaded_at_.begin() + first, count, load_);
  }
  void uses(int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) ready_ = std::max(ready_, loaded_at_[static_cast<size_t>(i)]);
    used_.emplace_back(first, count);
  }
  void compute(int64_t cycles, int64_t dram_bytes) {
    const int64_t start = std::max(compute_, ready_), transferred = transfer(dram_bytes);
    compute_ = start + std::max(cycles, transferred);
    dram_ = std::max(dram_, start) + transferred;
    for (const auto& [first, count] : used_) std::fill_n(read_until_.begin() + first, count, compute_);
    used_.clear();
    ready_ = 0;
  }

 private:
  int64_t transfer(int64_t bytes) const {
    if (h_.dram_bytes_per_cycle <= 0) return 0;
    return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / h_.dram_bytes_per_cycle));
  }
  const Hardware& h_;
  int64_t load_ = 0, compute_ = 0, dram_ = 0, ready_ = 0;
  std::vector<int64_t> loaded_at_, read_until_;
  std::vector<std::pair<int64_t, int64_t>> used_;
};

int64_t at_rate(int64_t elements, int64_t lanes) { return lanes == 0 ? 0 : ceil_div(elements, lanes); }

// ---- One run ----

class Run {
 public:
  Run(const Hardware& hardware, std::vector<std::byte>& buffer, std::vector<bool>& loaded, std::vector<uint8_t>& roles,
      std::span<std::byte> dram, ParallelFor& parallel)
      : h_(hardware),
        buffer_(buffer),
        loaded_(loaded),
        roles_(roles),
        dram_(dram),
        parallel_(parallel),
        clock_(hardware) {}

  Result<void> step(const Words& words) {
    TENON_TRY(command, decode(words));
    ++counters_.commands;
    switch (command.kind) {
      case Kind::begin: return begin();
      case Kind::load_data: return load_data(command);
      case Kind::load_weights: return load_weights(command);
      case Kind::convolve: return h_.half() ? convolve<float>(command) : convolve<uint32_t>(command);
      case Kind::elementwise: return elementwise(command);
      case Kind::pool: return pool(command);
    }
    return {};
  }
  Counters counters() const {
    Counters all = counters_;
    all.cycles = clock_.end();
    return all;
  }

 private:
  int64_t dram_bytes() const { return static_cast<int64_t>(dram_.size()); }

  Result<void> begin() {
    std::fill(loaded_.begin(), loaded_.end(), false);
    std::fill(roles_.begin(), roles_.end(), kEmpty);
    clock_.wait_for_all();
    return {};
  }

  // ---- Loads ----

  Result<void> take(std::string_view what, int64_t first, int64_t count, Role role) {
    TENON_OK(check_entries(what, first, count, h_));
    for (int64_t i = first; i < first + count; ++i) {
      uint8_t& bank = roles_[static_cast<size_t>(i / h_.bank_entries)];
      if (bank != kEmpty && bank != role)
        return error(Code::invalid_argument, what, ": bank ", i / h_.bank_entries, " holds ",
                     bank == kData ? "data" : "weights", " already");
      bank = role;
      loaded_[static_cast<size_t>(i)] = true;
    }
    return {};
  }

  Result<void> load_data(const Command& c) {
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
    TENON_OK(take("load_data", c.data_entry, entries, kData));
    for (int64_t y = 0; y < c.rows; ++y)
      for (int64_t s = 0; s < c.surfaces; ++s)
        std::memcpy(buffer_.data() + c.data_entry * h_.entry_bytes + y * row + s * line,
                    dram_.data() + image.at(s, c.first_row + y, 0, h_.atom_bytes), static_cast<size_t>(line));
    const int64_t bytes = c.rows * c.surfaces * line;
    counters_.data_bytes += bytes;
    clock_.load(c.data_entry, entries, bytes);
    return {};
  }

  Result<void> load_weights(const Command& c) {
    TENON_OK(check_range("weights", c.weight_address, c.weight_bytes, dram_bytes(), h_.dram_alignment));
    const int64_t entries = ceil_div(c.weight_bytes, h_.entry_bytes);
    TENON_OK(take("load_weights", c.weight_entry, entries, kWeights));
    std::memcpy(buffer_.data() + c.weight_entry * h_.entry_bytes, dram_.data() + c.weight_address, c.weight_bytes);
    counters_.weight_bytes += c.weight_bytes;
    clock_.load(c.weight_entry, entries, c.weight_bytes);
    return {};
  }

  // ---- CONV ----

  Result<void> uses(std::string_view what, int64_t first, int64_t count, Role role) {
    TENON_OK(check_entries(what, first, count, h_));
    for (int64_t i = first; i < first + count; ++i)
      if (!loaded_[static_cast<size_t>(i)] || roles_[static_cast<size_t>(i / h_.bank_entries)] != role)
        return error(Code::invalid_argument, what, ": entry ", i, " (bank ", i / h_.bank_entries, ") is not loaded");
    clock_.uses(first, count);
    return {};
  }

  Result<void> check_conv(const Command& c) const {
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
    if (int64_t{c.out_rows} * c.out_width > dram_bytes())
      return error(Code::invalid_argument, int64_t{c.out_rows} * c.out_width, " pixels are more than DRAM has bytes");
    return {};
  }

  // The buffer has what the convolution reads.
  Result<void> check_held(const Command& c) {
    TENON_OK(check_rows(c));
    if (c.rows > 0) {
      TENON_OK(check_extents({{"rows", c.rows}, {"row_entries", c.row_entries}}));
      if (c.row_entries * h_.entry_bytes < int64_t{c.surfaces} * c.width * h_.atom_bytes)
        return error(Code::invalid_argument, "a row of ", int64_t{c.surfaces} * c.width, " atoms in ", c.row_entries,
                     " entries");
      TENON_OK(uses("data", c.data_entry, int64_t{c.rows} * c.row_entries, kData));
    }
    return check_weights(c);
  }

  Result<void> check_rows(const Command& c) const {
    const int64_t held = int64_t{c.first_row} + c.rows, last_tap = c.kernel_height - 1;
    for (int64_t row = c.out_first; row < int64_t{c.out_first} + c.out_rows; ++row) {
      // The first and the last tap inside of the image.
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

  Result<void> check_weights(const Command& c) {
    TENON_OK(check_entries("weights", c.weight_entry, 0, h_));
    const int64_t taps = int64_t{c.kernel_height} * c.kernel_width;
    if (taps > kMostExtent || taps * c.channels > kMostExtent * h_.entry_bytes)
      return error(Code::invalid_argument, "a kernel of ", c.kernel_height, " x ", c.kernel_width, " x ", c.channels,
                   " is more than the buffer");
    for (int64_t first = 0, entry = c.weight_entry; first < c.kernels; first += h_.atomic_k, entry += c.group_entries) {
      const int64_t kernels = std::min<int64_t>(h_.atomic_k, c.kernels - first);
      const int64_t bytes = kernels * taps * c.channels * h_.element_bytes;
      TENON_OK(uses("weights", entry, ceil_div(bytes, h_.entry_bytes), kWeights));
    }
    return {};
  }

  DramImage result_image(const Command& c, int64_t rows, int64_t width) const {
    const int64_t last = int64_t{c.first_kernel} + c.kernels;
    return {c.dst_address, c.dst_line, c.dst_surface, ceil_div(last, h_.atom_channels), rows, width};
  }
  DramImage operand_image(const Command& c, DramImage result, int64_t rows, int64_t width) const {
    return {c.operand_address, c.operand_line, c.operand_surface, result.surfaces, rows, width};
  }

  Result<void> check_pool(const Command& c, int64_t height) const {
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

  template <class T>
  Result<void> convolve(const Command& c) {
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

  Result<void> check_sdp(const Command& c) const {
    if (h_.half()) return {};
    const auto low = static_cast<int32_t>(c.low), high = static_cast<int32_t>(c.high);
    if (c.shift > 30 || c.operand_shift > 23 || c.src_shift > 23)
      return error(Code::invalid_argument, "shifts ", c.shift, ", ", c.operand_shift, " and ", c.src_shift,
                   " are not within 30, 23 and 23");
    if (low >= -128 && high <= 127 && low <= high) return {};
    return error(Code::invalid_argument, "bounds ", low, " and ", high, " are not within i8");
  }

  template <class T>
  T bias_at(const Command& c, int64_t kernel) const {
    if (c.bias == 0) return T{0};
    const std::byte* from = dram_.data() + c.bias_address + kernel * h_.bias_bytes();
    if constexpr (std::is_same_v<T, float>) return load_element(from, true);
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  // [row][column][kernel], lanes rounded up: behind SDP.
  template <class T>
  std::vector<float> conv_values(const Command& c, const DramImage& operand) {
    const auto bytes = [&](int64_t entry) {
      return std::span<const std::byte>(buffer_).subspan(static_cast<size_t>(entry * h_.entry_bytes));
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
  void finish_row(const Command& c, const DramImage& operand, int64_t row, int64_t lanes, const T* sums,
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

  std::byte* place(const DramImage& image, int64_t channel, int64_t row, int64_t column) const {
    return dram_.data() + image.at(channel / h_.atom_channels, row, column, h_.atom_bytes) +
           channel % h_.atom_channels * h_.element_bytes;
  }
  float element(const DramImage& image, int64_t channel, int64_t row, int64_t column) const {
    return load_element(place(image, channel, row, column), h_.half());
  }

  void write_results(const Command& c, const std::vector<float>& values, const DramImage& result) const {
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

  void count(const Command& c, const DramImage& result) {
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

  // ---- SDP and PDP alone ----

  Result<void> elementwise(const Command& c) {
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
          const float value = h_.half()
                                  ? half(a, two, b)
                                  : integer(static_cast<uint32_t>(static_cast<int32_t>(a)) << c.src_shift, two, b);
          store_element(place(to, channel, row, column), value, h_.half());
        }
    const int64_t elements = channels * c.height * c.width, bytes = elements * h_.element_bytes;
    account(at_rate(elements, h_.sdp_lanes), two ? 2 * bytes : bytes, bytes);
    return {};
  }

  Result<void> pool(const Command& c) {
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

  void account(int64_t cycles, int64_t read, int64_t stored) {
    counters_.operand_bytes += read;
    counters_.stored_bytes += stored;
    clock_.compute(cycles, read + stored);
  }

  const Hardware& h_;
  std::vector<std::byte>& buffer_;
  std::vector<bool>& loaded_;
  std::vector<uint8_t>& roles_;
  std::span<std::byte> dram_;
  ParallelFor& parallel_;
  Clock clock_;
  Counters counters_;
};

}  // namespace

void Counters::add(const Counters& other) {
  commands += other.commands, cycles += other.cycles, mac_cycles += other.mac_cycles, macs += other.macs;
  data_bytes += other.data_bytes, weight_bytes += other.weight_bytes, operand_bytes += other.operand_bytes;
  stored_bytes += other.stored_bytes, buffer_bytes += other.buffer_bytes;
}

Simulator::Simulator(const Hardware& hardware)
    : hardware_(hardware),
      buffer_(static_cast<size_t>(hardware.entries() * hardware.entry_bytes)),
      loaded_(static_cast<size_t>(hardware.entries())),
      bank_roles_(static_cast<size_t>(hardware.banks)) {}

Result<Counters> Simulator::run(std::span<const Words> commands, std::span<std::byte> dram, ParallelFor& parallel) {
  Run run(hardware_, buffer_, loaded_, bank_roles_, dram, parallel);
  for (size_t i = 0; i < commands.size(); ++i) {
    const uint32_t kind = commands[i][0];
    TENON_OK(run.step(commands[i]), "command ", i, kind < kKinds ? str(", ", kind_name(static_cast<Kind>(kind))) : "");
  }
  return run.counters();
}

}  // namespace tenon::nvdla
