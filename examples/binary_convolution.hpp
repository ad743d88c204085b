// Binary convolution: A and F hold single bits (0 means +1, 1 means -1), and products are exclusive ors.
//
//   B[n,c,h,w] = L - 2 * sum over rc, rh, rw of (A[n,rc,h+rh,w+rw] xor F[c,rc,rh,rw]),  L = ic * kh * kw
//
// The algorithm is written here once, on logical indices; a Layout determines the position of a bit in memory. Two
// kernels compute the same on packed words, in which one popcount replaces up to 64 products: see
// popcount_convolution().
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <tenon/tensor/layout.hpp>

namespace example {

// A: u1[bs, ic, ih, iw], F: u1[oc, ic, kh, kw], B: i32[bs, oc, oh, ow]. No padding, stride 1.
struct BinaryConvolution {
  int64_t bs = 1, ic = 1, ih = 1, iw = 1, oc = 1, kh = 1, kw = 1;
  int64_t oh() const { return ih - kh + 1; }
  int64_t ow() const { return iw - kw + 1; }
  int64_t length() const { return ic * kh * kw; }
  tenon::Dims a_shape() const { return {bs, ic, ih, iw}; }
  tenon::Dims f_shape() const { return {oc, ic, kh, kw}; }
  tenon::Dims b_shape() const { return {bs, oc, oh(), ow()}; }
};

// Calls f(n, c, h, w) for all indices of the result.
template <class F>
void for_each_output(const BinaryConvolution& p, const F& f) {
  for (int64_t n = 0; n < p.bs; ++n) {
    for (int64_t c = 0; c < p.oc; ++c) {
      for (int64_t h = 0; h < p.oh(); ++h) {
        for (int64_t w = 0; w < p.ow(); ++w) f(n, c, h, w);
      }
    }
  }
}

// The algorithm. `a` and `f` return the bit at four indices; `b` returns a reference to a result.
template <class A, class F, class B>
void binary_convolution(const BinaryConvolution& p, const A& a, const F& f, const B& b) {
  for_each_output(p, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    int64_t differ = 0;
    for (int64_t rc = 0; rc < p.ic; ++rc) {
      for (int64_t rh = 0; rh < p.kh; ++rh) {
        for (int64_t rw = 0; rw < p.kw; ++rw) differ += a(n, rc, h + rh, w + rw) ^ f(c, rc, rh, rw);
      }
    }
    b(n, c, h, w) = static_cast<int32_t>(p.length() - 2 * differ);
  });
}

// `count` bits from position `at` on, at most 64.
inline uint64_t read_bits(const std::byte* bytes, int64_t at, int64_t count) {
  uint64_t value = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bit = at + i;
    value |= (std::to_integer<uint64_t>(bytes[bit / 8]) >> (bit % 8) & 1) << i;
  }
  return value;
}

// The position of an element of a tensor, in bits from the start of its buffer.
template <class... Index>
int64_t bit_offset(const tenon::Layout& layout, Index... index) {
  const int64_t at[] = {index...};
  const tenon::LayoutPosition position = layout.apply(at);
  return position.bank * layout.bytes_per_bank() * 8 + position.bit;
}

// Elements of up to 64 bits in any layout, read by logical index.
class BitTensor {
 public:
  BitTensor(tenon::Layout layout, std::span<const std::byte> bytes) : layout_(std::move(layout)), bytes_(bytes) {}
  template <class... Index>
  uint64_t operator()(Index... index) const {
    return read_bits(bytes_.data(), bit_offset(layout_, index...), layout_.element_bits());
  }
  const tenon::Layout& layout() const { return layout_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  tenon::Layout layout_;
  std::span<const std::byte> bytes_;
};

// A layout in which the channels of a pixel share words, "NHWC<6c:8>": `lanes` channels form one group.
struct ChannelGroups {
  int64_t channels = 0, lanes = 1;
  static ChannelGroups of(const tenon::Layout& layout, int64_t channels) {
    return {channels, layout.lanes()};
  }
  int64_t count() const { return (channels + lanes - 1) / lanes; }
  // Has ones for the lanes of a group that hold a channel. The other bits of a word are padding, with arbitrary values.
  uint64_t mask(int64_t group) const {
    const int64_t held = channels - group * lanes < lanes ? channels - group * lanes : lanes;
    return held == 64 ? ~uint64_t{0} : (uint64_t{1} << held) - 1;
  }
};

// First implementation: a vector of 1-bit elements. A group is the word that contains its lanes, slack bits included.
class WordVectors {
 public:
  explicit WordVectors(const BitTensor& bits) : bits_(bits) {}
  uint64_t operator()(int64_t outer, int64_t group, int64_t h, int64_t w) const {
    const tenon::Layout& layout = bits_.layout();
    const int64_t index[] = {outer, group * layout.lanes(), h, w};
    const tenon::LayoutPosition first = layout.apply(index);
    const int64_t word = first.slot / layout.lanes() * layout.word_bits();
    return read_bits(bits_.bytes().data(), first.bank * layout.bytes_per_bank() * 8 + word, layout.word_bits());
  }

 private:
  const BitTensor& bits_;
};

// Second implementation: one large integer per group. The same bytes, seen as a tensor [outer, group, h, w] of integers
// with as many bits as there are lanes.
class GroupIntegers {
 public:
  static tenon::Result<GroupIntegers> view(const BitTensor& bits) {
    tenon::Layout::Parts parts = bits.layout().parts();
    const int64_t lanes = bits.layout().lanes();
    parts.shape[1] = ChannelGroups::of(bits.layout(), parts.shape[1]).count();
    parts.element_bits = lanes;
    // Lanes are removed, and a group replaces its channels; pitches, which count words, are unchanged.
    std::erase_if(parts.digits, [](const auto& digit) { return digit.space == tenon::LayoutSpace::lane; });
    for (tenon::LayoutDigit& digit : parts.digits) {
      const auto& variable = parts.variables[static_cast<size_t>(digit.variable)];
      if (variable.dims == std::vector<int>{1}) digit.place /= lanes;
    }
    parts.pitched = true;
    TENON_TRY(layout, tenon::Layout::make(std::move(parts)));
    return GroupIntegers(BitTensor(std::move(layout), bits.bytes()));
  }
  uint64_t operator()(int64_t outer, int64_t group, int64_t h, int64_t w) const {
    return integers_(outer, group, h, w);
  }

 private:
  explicit GroupIntegers(BitTensor integers) : integers_(std::move(integers)) {}
  BitTensor integers_;
};

// The same sums over groups: one exclusive or and one popcount for each. L counts channels, not lanes.
template <class A, class F, class B>
void popcount_convolution(const BinaryConvolution& p, ChannelGroups groups, const A& a, const F& f, const B& b) {
  for_each_output(p, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    int64_t differ = 0;
    for (int64_t group = 0; group < groups.count(); ++group) {
      const uint64_t mask = groups.mask(group);
      for (int64_t rh = 0; rh < p.kh; ++rh) {
        for (int64_t rw = 0; rw < p.kw; ++rw) {
          differ += std::popcount((a(n, group, h + rh, w + rw) ^ f(c, group, rh, rw)) & mask);
        }
      }
    }
    b(n, c, h, w) = static_cast<int32_t>(p.length() - 2 * differ);
  });
}

}  // namespace example
