#include "nvdla/arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon/tensor/numeric.hpp>

namespace tenon::nvdla {
namespace {

// The number of i8 products whose sum a float holds exactly: 128 * 128 * 1024 = 2^24.
constexpr int64_t kExactProducts = 1024;

// Adds partial sums of integers to the totals, and clears them.
template <size_t kCount>
void flush(float (&sums)[kCount], uint32_t (&totals)[kCount]) {
  for (size_t i = 0; i < kCount; ++i) {
    totals[i] += static_cast<uint32_t>(static_cast<int32_t>(sums[i]));
    sums[i] = 0;
  }
}

}  // namespace

float load_element(const std::byte* from, bool half) {
  if (!half) return static_cast<float>(static_cast<int8_t>(*from));
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return static_cast<float>(f16::from_bits(bits));
}

void store_element(std::byte* to, float value, bool half) {
  if (!half) {
    *to = static_cast<std::byte>(static_cast<int8_t>(value));
    return;
  }
  const uint16_t bits = f16(value).bits;
  std::memcpy(to, &bits, sizeof bits);
}

template <class T>
ConvSums<T>::ConvSums(const Command& command, const Hardware& hardware, std::span<const std::byte> data,
                      std::span<const std::byte> weights)
    : c_(command),
      h_(hardware),
      chunks_(ceil_div(command.kernels, kLanes)),
      taps_(int64_t{command.kernel_height} * command.kernel_width),
      zeros_(static_cast<size_t>(hardware.atom_channels)) {
  read_data(data);
  read_weights(weights);
}

template <class T>
void ConvSums<T>::read_data(std::span<const std::byte> data) {
  const int64_t row_elements = int64_t{c_.surfaces} * c_.width * h_.atom_channels;
  data_.resize(static_cast<size_t>(c_.rows * row_elements));
  float* to = data_.data();
  for (int64_t row = 0; row < c_.rows; ++row) {
    const std::byte* from = data.data() + row * c_.row_entries * h_.entry_bytes;
    for (int64_t i = 0; i < row_elements; ++i, from += h_.element_bytes) *to++ = load_element(from, h_.half());
  }
}

// A group is stored in the weight layout: blocks of channels, taps, kernels, channels of the block.
template <class T>
void ConvSums<T>::read_weights(std::span<const std::byte> weights) {
  const int64_t chunk_elements = taps_ * c_.channels * kLanes;
  weights_.resize(static_cast<size_t>(chunks_ * chunk_elements));
  for (int64_t kernel = 0; kernel < c_.kernels; ++kernel) {
    const int64_t group = kernel / h_.atomic_k, in_group = kernel % h_.atomic_k;
    const int64_t kernels = std::min<int64_t>(h_.atomic_k, c_.kernels - group * h_.atomic_k);
    const std::byte* from = weights.data() + group * c_.group_entries * h_.entry_bytes;
    float* to = weights_.data() + kernel / kLanes * chunk_elements + kernel % kLanes;
    for (int64_t first = 0; first < c_.channels; first += h_.atomic_c) {
      const int64_t channels = std::min<int64_t>(h_.atomic_c, c_.channels - first);
      for (int64_t tap = 0; tap < taps_; ++tap) {
        // Earlier blocks have taps_ * first elements of each kernel of the group.
        const int64_t line = (first * taps_ + tap * channels) * kernels + in_group * channels;
        for (int64_t i = 0; i < channels; ++i, to += kLanes)
          *to = load_element(from + (line + i) * h_.element_bytes, h_.half());
      }
    }
  }
}

template <class T>
const float* ConvSums<T>::atom(int64_t row, int64_t column, int64_t surface) const {
  if (row < 0 || row >= c_.height || column < 0 || column >= c_.width) return zeros_.data();
  return data_.data() + (((row - c_.first_row) * c_.surfaces + surface) * c_.width + column) * h_.atom_channels;
}

template <class T>
void ConvSums<T>::pixel(int64_t row, int64_t column, int64_t chunk, T* sums) const {
  float acc[kLanes] = {};
  [[maybe_unused]] uint32_t totals[kLanes] = {};
  [[maybe_unused]] int64_t products = 0;
  const float* w = weights_.data() + chunk * taps_ * c_.channels * kLanes;
  const auto run = [&](const float* from, int64_t count) {
    if constexpr (!std::is_same_v<T, float>) {
      if (products + count > kExactProducts) flush(acc, totals), products = 0;
      products += count;
    }
    for (int64_t i = 0; i < count; ++i, w += kLanes)
      for (int64_t lane = 0; lane < kLanes; ++lane) acc[lane] += from[i] * w[lane];
  };
  for (int64_t first = 0; first < c_.channels; first += h_.atomic_c) {
    const int64_t end = std::min<int64_t>(first + h_.atomic_c, c_.channels);
    for (int64_t r = 0; r < c_.kernel_height; ++r)
      for (int64_t s = 0; s < c_.kernel_width; ++s) {
        const int64_t y = row * c_.stride_y - c_.pad_top + r * c_.dilation_y;
        const int64_t x = column * c_.stride_x - c_.pad_left + s * c_.dilation_x;
        for (int64_t channel = first; channel < end;) {
          const int64_t in_atom = channel % h_.atom_channels;
          const int64_t count = std::min({end - channel, h_.atom_channels - in_atom, kExactProducts});
          run(atom(y, x, channel / h_.atom_channels) + in_atom, count);
          channel += count;
        }
      }
  }
  if constexpr (std::is_same_v<T, float>) {
    std::copy_n(acc, kLanes, sums);
  } else {
    flush(acc, totals);
    std::copy_n(totals, kLanes, sums);
  }
}

template <class T>
void ConvSums<T>::row(int64_t row, T* sums) const {
  for (int64_t chunk = 0; chunk < chunks_; ++chunk)
    for (int64_t column = 0; column < c_.out_width; ++column)
      pixel(row, column, chunk, sums + column * lanes() + chunk * kLanes);
}

template class ConvSums<float>;
template class ConvSums<uint32_t>;

Sdp16 sdp16(const Command& command) { return {std::bit_cast<float>(command.low), std::bit_cast<float>(command.high)}; }
Sdp8 sdp8(const Command& command) {
  return {command.shift, command.operand_shift, static_cast<int32_t>(command.low), static_cast<int32_t>(command.high)};
}

float Sdp16::operator()(float sum, bool has_operand, float operand) const {
  auto value = static_cast<float>(f16(sum));
  if (has_operand) value = static_cast<float>(f16(value + operand));
  if (value < low) value = low;
  return value > high ? high : value;
}

float Sdp8::operator()(uint32_t sum, bool has_operand, float operand) const {
  if (has_operand) sum += static_cast<uint32_t>(static_cast<int32_t>(operand)) << operand_shift;
  const fused::Epilogue epilogue{.shift = shift, .clip_min = low, .clip_max = high};
  return static_cast<float>(epilogue(sum));
}

}  // namespace tenon::nvdla
