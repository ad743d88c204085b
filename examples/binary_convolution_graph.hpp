// The binary convolution on packed words as a graph of generic operators. Nothing in it is specific to a target, so any
// target runs it: the reference directly, and a target that makes snippets as a few generated kernels.
//
//   A[n,c,h,w] and F[c,rc,rh,rw] as u32[.., groups, .., ..]: the layout NCHW<32c:32>, 32 channels per word
//   for each position (rh, rw) in the window:  popcount((A[:, :, rh:, rw:] xor F[:, :, rh, rw]) and mask), summed over
//   groups
#pragma once
#include <algorithm>
#include <string>

#include <tenon/support/str.hpp>
#include <tenon/tensor/reorder.hpp>
#include <tenon/tensor/tensor.hpp>

#include "binary_convolution.hpp"

namespace example {

inline constexpr int64_t kWordLanes = 32;

// A tensor of bits as words of 32 channels, u32[outer, groups, h, w]. Slack bits may have any value; here they have
// that of `slack`.
inline tenon::Result<tenon::Tensor> channel_words(const BitTensor& bits, const std::string& dims,
                                                  std::byte slack = std::byte{0}) {
  const tenon::Dims& shape = bits.layout().shape();
  const auto channel = static_cast<char>(dims[1] | 0x20);
  const std::string text = tenon::str(dims, "<32", std::string(1, channel), ":32>;fill=undef");
  TENON_TRY(packed, tenon::Layout::parse(text, dims, shape, 1));
  const int64_t groups = (shape[1] + kWordLanes - 1) / kWordLanes;
  TENON_TRY(words, tenon::Tensor::zeros(tenon::kU32, {shape[0], groups, shape[2], shape[3]}));
  std::fill_n(words.mutable_data(), words.bytes(), slack);
  TENON_TRY(plan, tenon::plan_reorder(bits.layout(), packed));
  TENON_OK(plan.run(bits.bytes(), {words.mutable_data(), words.bytes()}));
  return words;
}

// Lines of the text form that count the ones in each u32 of `%x`: in pairs of bits, then in four, then in eight; the
// product adds up the four bytes.
inline std::string popcount_lines(const std::string& x) {
  const auto line = [&](int step, auto... words) { return tenon::str("  %", x, ".", step, " = ", words..., "\n"); };
  const auto at = [&](int step) { return tenon::str("%", x, ".", step); };
  return line(0, "BitShift %", x, ", %one {direction = \"RIGHT\"}") + line(1, "BitwiseAnd ", at(0), ", %pairs") +
         line(2, "Sub %", x, ", ", at(1)) +  // counts of 2 bits
         line(3, "BitwiseAnd ", at(2), ", %fours") + line(4, "BitShift ", at(2), ", %two {direction = \"RIGHT\"}") +
         line(5, "BitwiseAnd ", at(4), ", %fours") + line(6, "Add ", at(3), ", ", at(5)) +  // of 4
         line(7, "BitShift ", at(6), ", %four {direction = \"RIGHT\"}") + line(8, "Add ", at(6), ", ", at(7)) +
         line(9, "BitwiseAnd ", at(8), ", %bytes") +  // of 8
         line(10, "Mul ", at(9), ", %ones") + line(11, "BitShift ", at(10), ", %top {direction = \"RIGHT\"}");
}

inline std::string scalar_line(const char* name, uint32_t value) {
  return tenon::str("  %", name, " = Constant {value = dense<u32[]: ", value, ">}\n");
}

inline std::string indices_line(const std::string& name, const std::vector<int64_t>& values) {
  std::string text = tenon::str("  %", name, " = Constant {value = dense<i64[", values.size(), "]: ");
  for (size_t i = 0; i < values.size(); ++i) text += tenon::str(i == 0 ? "" : ", ", values[i]);
  return text + ">}\n";
}

inline std::string constant_lines(const BinaryConvolution& p, const ChannelGroups& groups) {
  std::string text = scalar_line("one", 1) + scalar_line("two", 2) + scalar_line("four", 4) + scalar_line("top", 24) +
                     scalar_line("pairs", 0x55555555) + scalar_line("fours", 0x33333333) +
                     scalar_line("bytes", 0x0f0f0f0f) + scalar_line("ones", 0x01010101);
  text += tenon::str("  %mask = Constant {value = dense<u32[", groups.count(), ",1,1]: ");
  for (int64_t g = 0; g < groups.count(); ++g) text += tenon::str(g == 0 ? "" : ", ", groups.mask(g));
  text += ">}\n" + indices_line("hw", {2, 3}) + indices_line("outer", {1}) + indices_line("inner", {0}) +
          indices_line("groups", {2});
  return text + tenon::str("  %length = Constant {value = dense<i32[]: ", p.length(),
                           ">}\n  %minus2 = Constant {value = dense<i32[]: -2>}\n");
}

// The contribution of one position in the window: %sumN, the number of differing bits, u32[bs, oc, oh, ow].
inline std::string place_lines(const BinaryConvolution& p, int64_t rh, int64_t rw) {
  const std::string n = std::to_string(rh * p.kw + rw), x = "x" + n;
  return indices_line("from" + n, {rh, rw}) + indices_line("to_a" + n, {rh + p.oh(), rw + p.ow()}) +
         indices_line("to_f" + n, {rh + 1, rw + 1}) +
         tenon::str("  %a", n, " = Slice %A, %from", n, ", %to_a", n, ", %hw\n", "  %f", n, " = Slice %F, %from", n,
                    ", %to_f", n, ", %hw\n", "  %aa", n, " = Unsqueeze %a", n, ", %outer\n", "  %ff", n,
                    " = Unsqueeze %f", n, ", %inner\n", "  %d", n, " = BitwiseXor %aa", n, ", %ff", n, "\n", "  %", x,
                    " = BitwiseAnd %d", n, ", %mask\n") +
         popcount_lines(x) + tenon::str("  %sum", n, " = ReduceSum %", x, ".11, %groups {keepdims = 0}\n");
}

inline std::string popcount_graph(const BinaryConvolution& p) {
  const ChannelGroups groups{p.ic, kWordLanes};
  const auto type = [&](const tenon::Dims& d) {
    return tenon::str("u32[", d[0], ",", groups.count(), ",", d[2], ",", d[3], "]");
  };
  std::string text = tenon::str("graph @binary(%A: ", type(p.a_shape()), ", %F: ", type(p.f_shape()), ") -> %B {\n") +
                     constant_lines(p, groups);
  std::string total = "sum0";
  for (int64_t place = 0; place < p.kh * p.kw; ++place) {
    text += place_lines(p, place / p.kw, place % p.kw);
    if (place == 0) continue;
    const std::string next = tenon::str("total", place);
    text += tenon::str("  %", next, " = Add %", total, ", %sum", place, "\n");
    total = next;
  }
  return text + tenon::str("  %differ = Cast %", total, " {to = type<i32[]>}\n  %twice = Mul %differ, %minus2\n",
                           "  %B = Add %twice, %length\n}\n");
}

}  // namespace example
