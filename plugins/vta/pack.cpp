#include "vta/pack.hpp"

#include <algorithm>
#include <numeric>

#include "vta/dram.hpp"
#include "vta/ranges.hpp"

namespace tenon::vta {
namespace {

// Calls visit(offset in the tensor, offset in the blocks) for each value.
template <class Visit>
void for_each_value(const Dims& dims, const Hardware& hardware, Visit visit) {
  const int64_t channels = dims[1], block = hardware.block, batch = hardware.batch;
  const int64_t plane = std::accumulate(dims.begin() + 2, dims.end(), int64_t{1}, std::multiplies<>());
  const int64_t blocks = ceil_div(channels, block);
  for (int64_t n = 0; n < dims[0]; ++n)
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t from = (n * channels + c) * plane;
      const int64_t to = ((n / batch * blocks + c / block) * plane * batch + n % batch) * block + c % block;
      for (int64_t p = 0; p < plane; ++p) visit(from + p, to + p * batch * block);
    }
}

std::byte byte_of(int8_t value) { return static_cast<std::byte>(value); }

}  // namespace

int64_t dram_alignment(const Hardware& hardware) {
  int64_t most = 64;
  for (const Memory memory : {Memory::uop, Memory::wgt, Memory::inp, Memory::acc})
    most = std::max(most, hardware.element_bytes(memory));
  return most;
}

// Leaves space for aligning the first byte.
int64_t dram_window_bytes(const Hardware& hardware) {
  return static_cast<int64_t>(Dram::kMaxBufferBytes) - dram_alignment(hardware);
}

Result<Image> image_of(const Dims& dims, const Hardware& hardware) {
  if (dims.size() < 2 || dims.size() > 4)
    return error(Code::unsupported, "rank ", dims.size(), " is not among 2, 3 and 4, which target '", hardware.name,
                 "' takes");
  Image image{ceil_div(dims[0], hardware.batch), ceil_div(dims[1], hardware.block), 1, 1};
  if (dims.size() > 2) image.width = dims.back();
  if (dims.size() > 3) image.height = dims[2];
  if (image.elements() <= 0)
    return error(Code::unsupported, "a tensor without elements is not for target '", hardware.name, "'");
  return image;
}

void pack_activation(const Tensor& x, const Hardware& hardware, std::span<std::byte> to) {
  std::fill(to.begin(), to.end(), std::byte{0});
  const int8_t* from = x.as<int8_t>().data();
  for_each_value(x.dims(), hardware,
                 [&](int64_t at, int64_t place) { to[static_cast<size_t>(place)] = byte_of(from[at]); });
}

void unpack_activation(std::span<const std::byte> from, const Hardware& hardware, Tensor& y) {
  int8_t* to = y.mutable_as<int8_t>().data();
  for_each_value(y.dims(), hardware,
                 [&](int64_t at, int64_t place) { to[at] = static_cast<int8_t>(from[static_cast<size_t>(place)]); });
}

GroupBlocks GroupBlocks::of(int64_t inputs, int64_t outputs, int64_t group, const Hardware& hardware) {
  const int64_t block = hardware.block, in = inputs / group, out = outputs / group;
  if (group > 1 && in == out && block % in == 0) return {.diagonal = true, .groups = 1, .reduce = 1};
  // Merges the fewest groups that fill blocks of both input and output.
  const int64_t together = std::lcm(block / std::gcd(block, in), block / std::gcd(block, out));
  if (group % together == 0 && group > together)
    return {.diagonal = false, .groups = group / together, .reduce = together * in / block};
  return {.diagonal = false, .groups = 1, .reduce = ceil_div(inputs, block)};
}

Result<Tensor> pack_weights(const Tensor& w, int64_t group, const GroupBlocks& blocks, const Hardware& hardware) {
  const int64_t block = hardware.block, outputs = w.dim(0), in = w.dim(1), out = outputs / group;
  const int64_t taps = w.size() / (outputs * in), out_blocks = ceil_div(outputs, block);
  const int64_t blocks_per_part = out_blocks / blocks.groups;
  const int64_t cols = w.rank() > 2 ? w.dims().back() : 1;
  TENON_TRY(packed, Tensor::zeros(kI8, {out_blocks, blocks.reduce, taps / cols, cols, block, block}));
  const int8_t* from = w.as<int8_t>().data();
  int8_t* into = packed.mutable_as<int8_t>().data();
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < in; ++i) {
      const int64_t ob = o / block, channel = o / out * in + i;
      const int64_t first = blocks.diagonal ? ob : ob / blocks_per_part * blocks.reduce;
      const int64_t ib = channel / block - first;
      const int64_t to = ((ob * blocks.reduce + ib) * taps * block + o % block) * block + channel % block;
      for (int64_t t = 0; t < taps; ++t) into[to + t * block * block] = from[(o * in + i) * taps + t];
    }
  return packed;
}

Result<Tensor> diagonal_element(int8_t value, const Hardware& hardware) {
  const int64_t block = hardware.block;
  TENON_TRY(element, Tensor::zeros(kI8, {1, 1, 1, 1, block, block}));
  int8_t* into = element.mutable_as<int8_t>().data();
  for (int64_t i = 0; i < block; ++i) into[i * block + i] = value;
  return element;
}

Result<Tensor> pack_bias(const Tensor& bias, int64_t channels, int64_t rounding, const Hardware& hardware) {
  const int64_t blocks = ceil_div(channels, hardware.block);
  TENON_TRY(packed, Tensor::zeros(kI32, {blocks, hardware.batch, hardware.block}));
  int32_t* into = packed.mutable_as<int32_t>().data();
  for (int64_t c = 0; c < blocks * hardware.block; ++c) {
    const int32_t value = bias.valid() && c < channels ? bias.as<int32_t>()[static_cast<size_t>(c)] : 0;
    for (int64_t n = 0; n < hardware.batch; ++n)
      into[(c / hardware.block * hardware.batch + n) * hardware.block + c % hardware.block] =
          static_cast<int32_t>(static_cast<uint32_t>(value) + static_cast<uint32_t>(rounding));
  }
  return packed;
}

}  // namespace tenon::vta
