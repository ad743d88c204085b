#include <tenon/tensor/reorder.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include <tenon/support/memory.hpp>

#include "reorder_testing.hpp"

namespace tenon {
namespace {

using ::testing::HasSubstr;

TEST(Reorder, Kinds) {
  const Dims shape{2, 17, 4, 5};
  const auto kind = [&](std::string_view from, std::string_view to, int64_t bits) {
    return plan(layout(from, "NCHW", shape, bits), layout(to, "NCHW", shape, bits)).kind();
  };
  EXPECT_EQ(kind("NCHW", "NCHW", 32), ReorderKind::no_op);
  EXPECT_EQ(kind("NCHW", "NCHW;size=4096B", 32), ReorderKind::copy);
  EXPECT_EQ(kind("NCHW", "CNHW", 32), ReorderKind::runs);
  EXPECT_EQ(kind("NCHW", "NHWC", 16), ReorderKind::transpose);
  EXPECT_EQ(kind("NCHW", "NHWC", 24), ReorderKind::runs);
  EXPECT_EQ(kind("NCHW", "NHWC", 4), ReorderKind::bits);
  EXPECT_EQ(kind("NCHW", "NHWC<6c:8>", 1), ReorderKind::bits);
  EXPECT_EQ(kind("NCHW;off(C)=1", "NCHW{3c}", 32), ReorderKind::pieces);
  EXPECT_EQ(kind("NKW;fuse(K)=CH", "NCHW", 32), ReorderKind::no_op);
  EXPECT_EQ(kind("NKW{7k};fuse(K)=CH", "NCHW", 32), ReorderKind::pieces);
  EXPECT_EQ(kind("NCHW", "NCHW{4c~}", 32), ReorderKind::transpose);
  EXPECT_EQ(kind("NCHW{4c~}", "NCHW{3c~}", 32), ReorderKind::runs);
  EXPECT_EQ(kind("NCHW", "NCHW{2w2w};xor(W@2)=H", 32), ReorderKind::runs);
  EXPECT_EQ(kind("NCHW", "(n, c, h, w) -> (n, c, h, w + c)", 32), ReorderKind::elements);
}

TEST(Reorder, WholeWordsOfBitsAreBytes) {
  const auto kind = [&](const Dims& shape, std::string_view to) {
    return plan(layout("NHWC<8c:8>", "NCHW", shape, 1), layout(to, "NCHW", shape, 1)).kind();
  };
  EXPECT_EQ(kind({2, 16, 4, 5}, "NCHW<8c:8>"), ReorderKind::transpose);
  EXPECT_EQ(kind({2, 24, 4, 5}, "HWNC<8c:8>"), ReorderKind::runs);
  EXPECT_EQ(kind({2, 17, 4, 5}, "HWNC<8c:8>"), ReorderKind::bits);
}

TEST(Reorder, RefusesOtherTensorsAndSmallBuffers) {
  const Layout a = layout("NC", "NC", {2, 3}, 32), padded = layout("NC{4c}", "NC", {2, 3}, 32);
  const auto other_shape = plan_reorder(a, layout("NC", "NC", {3, 2}, 32));
  ASSERT_FALSE(other_shape.ok());
  EXPECT_THAT(other_shape.error().message(), HasSubstr("shape [3, 2]"));
  const auto other_bits = plan_reorder(a, layout("NC", "NC", {2, 3}, 16));
  ASSERT_FALSE(other_bits.ok());
  EXPECT_THAT(other_bits.error().message(), HasSubstr("elements of 16 bits"));
  std::vector<std::byte> small(23), source(24), large(32);
  EXPECT_THAT(plan(a, padded).run(small, large).error().message(), HasSubstr("has 23 bytes"));
  EXPECT_THAT(plan(a, padded).run(source, source).error().message(), HasSubstr("needs 32"));
  EXPECT_THAT(plan(padded, a).run(large, std::span(large).first(24)).error().message(), HasSubstr("overlap"));
  EXPECT_TRUE(plan(a, a).run(source, source).ok());
}

TEST(Reorder, CostCountsBytesAndRuns) {
  const Dims shape{1, 3, 4, 4};
  const Layout nchw = layout("NCHW", "NCHW", shape, 32), blocked = layout("NCHW{16c}", "NCHW", shape, 32);
  EXPECT_EQ(reorder_cost(nchw, blocked, {}).value(), 192 + 1024);
  EXPECT_EQ(reorder_cost(nchw, nchw, {{{1, 1}}, 5}).value(), 0);
  // Runs: all 192 bytes of NCHW, 3 channels of the blocked one.
  const BandwidthTable table{{{1, 1}, {8, 2}, {16, 4}, {192, 8}}, 5};
  EXPECT_EQ(reorder_cost(nchw, blocked, table).value(), 192 / 8.0 * (nchw.run().length == 48 ? 1 : 2) + 1024 / 2.0 + 5);
  EXPECT_FALSE(reorder_cost(nchw, layout("N", "N", {48}, 32), table).ok());
}

TEST(Reorder, EveryWidth) {
  std::mt19937_64 random(4);
  for (int64_t bits = 1; bits <= 64; ++bits) {
    const Dims shape{2, 19, 3, 5};
    const std::string_view texts[] = {"NCHW", "NHWC", "NCHW{8c}", "NCHW<2w:128>", "[3h]NCHW{4c}", "HWNC;fill=1"};
    for (const std::string_view from : texts) {
      for (const std::string_view to : texts) {
        ASSERT_TRUE(moves_right(layout(from, "NCHW", shape, bits), layout(to, "NCHW", shape, bits), random));
      }
    }
  }
}

// Every width in every word that can hold it, also dense, in both orders of lanes.
TEST(Reorder, WidthsAndWords) {
  std::mt19937_64 random(8);
  const Dims shape{3, 11};
  for (int64_t bits = 1; bits <= 64; ++bits) {
    const Layout plain = layout("CN", "NC", shape, bits), dense = layout("NC<4c>", "NC", shape, bits);
    for (const int64_t word : {0, 8, 16, 32, 64, 128}) {
      const int64_t lanes = word == 0 ? 5 : word / bits;
      if (lanes == 0) continue;
      for (const std::string_view order : {"", ";lane=msb"}) {
        const Layout packed = layout(str("NC<", lanes, "c", word ? str(":", word) : "", ">", order), "NC", shape, bits);
        ASSERT_TRUE(moves_right(plain, packed, random));
        ASSERT_TRUE(moves_right(packed, plain, random));
        ASSERT_TRUE(moves_right(packed, dense, random));
      }
    }
  }
}

// Padding is written together with the elements, separately, or with everything: whichever is cheapest.
TEST(Reorder, TailsOfEverySize) {
  std::mt19937_64 random(9);
  const std::string_view texts[] = {"NCHW",
                                    "NHWC",
                                    "NCHW{8c}",
                                    "NCHW{16c}",
                                    "NCHW{16c};align(W)=128B",
                                    "NCHW{4n16c}",
                                    "CNHW{4c4w};size=4096B",
                                    "NCHW{16c};off(H)=1"};
  for (const int64_t bits : {8, 16, 32, 64, 128}) {
    for (const int64_t channels : {1, 2, 3, 5, 8, 12, 15, 16, 17, 31, 33, 60}) {
      const Dims shape{2, channels, 3, 21};
      for (const std::string_view from : texts) {
        const auto to = layout(texts[random() % std::size(texts)], "NCHW", shape, bits);
        ASSERT_TRUE(moves_right(layout(from, "NCHW", shape, bits), to, random));
        ASSERT_TRUE(moves_right(layout("NCHW", "NCHW", shape, bits), layout(from, "NCHW", shape, bits), random));
      }
    }
  }
}

// Sizes around those of the vectors, tiles and tasks.
TEST(Reorder, TilesAndTheirBorders) {
  std::mt19937_64 random(5);
  for (const int64_t bits : {8, 16, 32, 64}) {
    for (const int64_t rows : {1, 3, 15, 16, 17, 33, 64, 67}) {
      for (const int64_t columns : {2, 7, 16, 31, 65, 130}) {
        const Dims shape{rows, columns};
        ASSERT_TRUE(moves_right(layout("AB", "AB", shape, bits), layout("BA", "AB", shape, bits), random));
        ASSERT_TRUE(moves_right(layout("AB", "AB", shape, bits), layout("AB{16a}", "AB", shape, bits), random));
        ASSERT_TRUE(
            moves_right(layout("AB{16a}", "AB", shape, bits), layout("AB;align(A)=64B", "AB", shape, bits), random));
      }
    }
  }
}

// Ragged, swizzled, shifted and folded layouts have nests, or rows if elements are whole bytes; maps have rows.
TEST(Reorder, LayoutsWithoutStrides) {
  std::mt19937_64 random(10);
  const Dims shape{3, 35, 6, 24};
  const std::string_view hard[] = {"NCHW{16c~}",
                                   "NCHW{2n~16c~};size=128B",
                                   "NHWC{16c~8w~}",
                                   "NCHW{8w2w};xor(W@2)=H",
                                   "CHWN{8c};xor(C@1)=W@4",
                                   "NCHW{4w};off(W)=3;fold(H)=4",
                                   "NCHW;stride(N)=0",
                                   "HNWC{8c4w3n~};fold(W)=5",
                                   "(n, c, h, w) -> (n, c, h, w + c)"};
  const std::string_view others[] = {
      "NCHW", "NHWC{8c}", "NCHW{6c}", "NCHW;off(C)=3", "NKW{7k};fuse(K)=CH", "NCHW{4c~};fill=3", "[4h]NCHW"};
  for (const int64_t bits : {3, 8, 12, 16, 24, 32}) {
    for (const std::string_view text : hard) {
      for (const std::string_view other : others) {
        const Layout a = layout(text, "NCHW", shape, bits), b = layout(other, "NCHW", shape, bits);
        ASSERT_TRUE(moves_right(a, b, random));
        ASSERT_TRUE(moves_right(b, a, random));
        if (text[0] == '(') continue;
        EXPECT_NE(plan(a, b).kind(), ReorderKind::elements) << text << " -> " << other;
      }
    }
  }
}

// Random layouts with everything that the text form can express.
class RandomLayouts {
 public:
  RandomLayouts(std::mt19937_64& random, std::string dims, int64_t bits)
      : random_(random), dims_(std::move(dims)), fill_mask_(bits < 64 ? (uint64_t{1} << bits) - 1 : ~uint64_t{0}) {}

  std::string text() {
    if (one_in(12)) return map();
    std::vector<std::string> bank, outer, inner, lane;
    std::string names = dims_, keys;
    if (names.size() > 1 && one_in(6)) {
      const size_t at = below(names.size() - 1);
      keys += ";fuse(K)=" + names.substr(at, 2);
      names.replace(at, 2, "K");
    }
    for (const char name : names) {
      const char low = static_cast<char>(name - 'A' + 'a');
      for (uint64_t more = below(3); more > 0; --more) {
        std::string digit = std::to_string(1 + below(9)) + low;
        if (one_in(40)) digit += '~';
        (one_in(2) ? inner : one_in(2) ? lane : one_in(2) ? outer : bank).push_back(std::move(digit));
      }
      outer.push_back(std::string(1, name));
      if (one_in(8)) keys += str(";off(", name_of(name), ")=", 1 + below(5));
      if (one_in(16)) keys += str(";fold(", name_of(name), ")=", 1 + below(20));
      if (one_in(12)) keys += str(";align(", name_of(name), ")=", 1 << below(6), "B");
    }
    for (auto* list : {&bank, &outer, &inner, &lane}) std::ranges::shuffle(*list, random_);
    if (!inner.empty() && one_in(20)) keys += str(";xor(", name_of(names[0]), ")=", name_of(names.back()));
    if (one_in(3)) keys += one_in(4) ? std::string(";fill=undef") : str(";fill=", random_() & fill_mask_ >> 1);
    if (one_in(6)) keys += str(";size=", 1 + below(64), "B");
    if (!lane.empty() && one_in(3)) keys += ";lane=msb";
    std::string out = bank.empty() ? "" : "[" + join(bank) + "]";
    out += join(outer);
    if (!inner.empty()) out += "{" + join(inner) + "}";
    if (!lane.empty()) out += "<" + join(lane) + (one_in(3) ? ":" + std::to_string(8 << below(7)) : "") + ">";
    return out + keys;
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  static std::string_view name_of(const char& name) { return {&name, 1}; }
  static std::string join(const std::vector<std::string>& parts) {
    std::string out;
    for (const std::string& part : parts) out += part;
    return out;
  }
  // A sheared map, which has no digits.
  std::string map() {
    std::string index, last;
    for (const char name : dims_) {
      if (!index.empty()) index += ", ";
      last = std::string(1, static_cast<char>(name - 'A' + 'a'));
      index += last;
    }
    const std::string first = index.substr(0, 1);
    return dims_.size() < 2 ? dims_ : "(" + index + ") -> (" + index + " + " + first + ")";
  }

  std::mt19937_64& random_;
  std::string dims_;
  uint64_t fill_mask_;
};

TEST(Reorder, RandomPairsMatchTheOracle) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(str("seed ", seed));
  std::mt19937_64 random(seed);
  std::map<ReorderKind, int> kinds;
  for (int pairs = 0; pairs < 3000;) {
    Dims shape;
    for (uint64_t rank = 1 + random() % 4; rank > 0; --rank) shape.push_back(static_cast<int64_t>(1 + random() % 13));
    if (random() % 100 == 0) shape[0] = 0;
    const std::string dims = std::string("NCHW").substr(0, shape.size());
    const int64_t bits = random() % 2 ? int64_t{8} << random() % 4 : static_cast<int64_t>(1 + random() % 64);
    RandomLayouts layouts(random, dims, bits);
    const auto from = Layout::parse(random() % 8 ? layouts.text() : dims, dims, shape, bits);
    const auto to = Layout::parse(random() % 8 ? layouts.text() : dims, dims, shape, bits);
    if (!from.ok() || !to.ok() || from->bytes() > 1 << 16 || to->bytes() > 1 << 16) continue;
    ++pairs;
    ++kinds[plan(*from, *to).kind()];
    ASSERT_TRUE(moves_right(*from, *to, random));
  }
  for (const ReorderKind kind :
       {ReorderKind::runs, ReorderKind::transpose, ReorderKind::bits, ReorderKind::pieces, ReorderKind::elements}) {
    EXPECT_GT(kinds[kind], 20) << reorder_kind_name(kind);
  }
}

TEST(Reorder, PartsOfALargerBuffer) {
  std::mt19937_64 random(6);
  for (const int64_t bits : {1, 4, 12, 32}) {
    const Layout whole = layout("NCHW{8c}", "NCHW", {2, 40, 3, 5}, bits);
    const Layout part = whole.slice({1, 8, 0, 0}, {2, 27, 3, 5}).value();
    const Layout plain = layout("NHWC", "NCHW", part.shape(), bits);
    EXPECT_TRUE(moves_right(part, plain, random));
    EXPECT_TRUE(moves_right(plain, part, random)) << "and keeps what is not its own";
  }
}

// More than the caches hold: aligned lines are stored non-temporally. In both directions, as one task and as many;
// padding is zeros.
TEST(Reorder, BeyondTheCaches) {
  const Dims shape{6, 3, 224, 231};
  const Layout plain = *Layout::parse("NCHW", "NCHW", shape, 32),
               blocks = *Layout::parse("NCHW{16c}", "NCHW", shape, 32);
  std::vector<uint32_t> from(static_cast<size_t>(plain.bytes() / 4)), back(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint32_t>(i * 2654435761u) | 1;
  AlignedBytes memory = *allocate_aligned(static_cast<size_t>(blocks.bytes()) + 4);
  for (const auto& [offset, task_bytes] : {std::pair(0, 64 << 20), std::pair(0, 1 << 20), std::pair(4, 64 << 20)}) {
    const std::span<std::byte> to(memory.get() + offset, static_cast<size_t>(blocks.bytes()));
    std::fill(to.begin(), to.end(), std::byte{0xff});
    ASSERT_TRUE(plan_reorder(plain, blocks)->run(std::as_bytes(std::span(from)), to, serial(), task_bytes).ok());
    ASSERT_TRUE(plan_reorder(blocks, plain)->run(to, std::as_writable_bytes(std::span(back))).ok());
    EXPECT_EQ(from, back);
    size_t zeros = 0;
    for (size_t i = 0; i < to.size(); i += 4)
      zeros += std::all_of(&to[i], &to[i] + 4, [](std::byte b) { return b == std::byte{0}; });
    EXPECT_EQ(zeros, from.size() / 3 * 13);
  }
}

}  // namespace
}  // namespace tenon
