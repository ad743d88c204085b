#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tensor/layout.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "layout_testing.hpp"

namespace tenon {
namespace {

using testing::HasSubstr;

bool advance(Dims& index, const Dims& shape) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

// Every slot and every index is looked up: an element is in one slot, every other slot is padding.
void expect_total_inverse(const Layout& layout) {
  std::map<std::pair<int64_t, int64_t>, Dims> owners;
  Dims index(layout.shape().size());
  int64_t last_word = 0, elements = 0;
  do {
    const LayoutPosition at = layout.apply(index);
    const int64_t word = at.slot / layout.lanes(), lane = at.slot % layout.lanes();
    ASSERT_TRUE(at.bank >= 0 && at.bank < layout.banks());
    ASSERT_TRUE(at.slot >= 0 && word < layout.words_per_bank());
    const int64_t w = layout.element_bits(), W = layout.word_bits();
    ASSERT_EQ(at.bit, word * W + (layout.lane_msb() ? W - w - lane * w : lane * w));
    const bool fresh = owners.emplace(std::pair(at.bank, at.slot), index).second;
    ASSERT_TRUE(fresh || !layout.injective()) << "two elements in bank " << at.bank << ", slot " << at.slot;
    last_word = std::max(last_word, word);
    ++elements;
  } while (advance(index, layout.shape()));
  EXPECT_EQ(elements, layout.valid_elements());
  EXPECT_EQ(last_word + 1, layout.span_words());
  EXPECT_EQ(static_cast<int64_t>(owners.size()) == elements, layout.injective());
  EXPECT_EQ(layout.padding(), layout.physical_elements() - static_cast<int64_t>(owners.size()));
  EXPECT_EQ(layout.physical_elements(), layout.banks() * layout.words_per_bank() * layout.lanes());
  for (int64_t bank = 0; bank < layout.banks(); ++bank) {
    for (int64_t slot = 0; slot < layout.words_per_bank() * layout.lanes(); ++slot) {
      const auto owner = owners.find({bank, slot});
      ASSERT_EQ(layout.inverse(bank, slot, index), owner != owners.end()) << "bank " << bank << ", slot " << slot;
      if (owner == owners.end()) continue;
      ASSERT_EQ(index, owner->second) << "bank " << bank << ", slot " << slot;
    }
  }
}

void expect_expressions(const Layout& layout, const Dims& index) {
  SymbolValues values;
  for (size_t d = 0; d < index.size(); ++d) values[std::string(1, static_cast<char>(layout.dims()[d] + 32))] = index[d];
  const LayoutPosition at = layout.apply(index);
  EXPECT_EQ(*layout.bank_expr().evaluate(values), at.bank);
  EXPECT_EQ(*layout.word_expr().evaluate(values), at.slot / layout.lanes());
  EXPECT_EQ(*layout.lane_expr().evaluate(values), at.slot % layout.lanes());
}

void expect_round_trip(const Layout& layout) {
  const auto again = Layout::parse(layout.to_string(), layout.dims(), layout.shape(), layout.element_bits());
  ASSERT_TRUE(again.ok()) << layout.to_string() << ": " << again.error().to_string();
  EXPECT_EQ(*again, layout) << layout.to_string() << " read back as " << again->to_string();
  EXPECT_EQ(again->hash(), layout.hash());
  const auto map = layout.to_map_string();
  if (!map.ok()) return;
  const auto read = Layout::parse(*map, layout.dims(), layout.shape(), layout.element_bits());
  ASSERT_TRUE(read.ok()) << *map << ": " << read.error().to_string();
  EXPECT_TRUE(read->same_function(layout)) << *map << " is not " << layout.to_string();
}

// Digits of stride 0: several values share a slot, elements as well as padding.
bool repeats(const Layout& layout) {
  return !layout.injective() ||
         (!layout.is_ragged() && std::ranges::any_of(layout.digits(), [](const LayoutDigit& digit) {
           return digit.space == LayoutSpace::address && digit.stride == 0 && digit.extent > 1;
         }));
}

// The padding given by boxes: each slot once, and nothing else.
void expect_pad_boxes(const Layout& layout) {
  std::set<std::pair<int64_t, int64_t>> seen;
  Dims index(layout.shape().size());
  for (const LayoutBox& box : layout.pad_boxes()) {
    Dims z = box.begin;
    for (bool more = true; more;) {
      const LayoutPosition at = layout.apply_padded(z);
      EXPECT_FALSE(layout.inverse(at.bank, at.slot, index)) << testing::PrintToString(z);
      EXPECT_TRUE(seen.emplace(at.bank, at.slot).second || repeats(layout)) << testing::PrintToString(z);
      more = false;
      for (size_t v = z.size(); v-- > 0 && !more;) {
        more = ++z[v] < box.end[v];
        if (!more) z[v] = box.begin[v];
      }
    }
  }
  int64_t reached = 1;
  for (size_t v = 0; v < layout.variables().size(); ++v) reached *= layout.padded_extent(static_cast<int>(v));
  if (!repeats(layout)) {
    EXPECT_EQ(static_cast<int64_t>(seen.size()), reached - layout.valid_elements());
  }
}

constexpr std::string_view kFeatures[] = {"[",    "|",      "{",       "<",    ":",     "/",      "~",
                                          "off(", "fold(",  "fuse(",   "xor(", "size=", "align(", "stride(",
                                          "fill", "lane=msb"};
constexpr std::string_view kRefusals[] = {"E_ALIGN", "E_BAD_EXTENT", "E_NOT_INVERTIBLE"};

TEST(Layout, RandomInverse) {
  LayoutGenerator generator(4);
  int parsed = 0;
  std::map<std::string, int, std::less<>> refused;
  std::map<std::string_view, int> held;
  for (int tries = 0; parsed < 10000 && tries < 40000 && !testing::Test::HasFailure(); ++tries) {
    const RandomLayout random = generator.next();
    SCOPED_TRACE(random.to_string());
    const auto layout = random.parse();
    if (!layout.ok()) {
      const std::string_view code = layout_error_code(layout.error());
      ASSERT_NE(code, "") << layout.error().to_string();
      ++refused[std::string(code)];
      continue;
    }
    if (layout->physical_elements() > 20000) continue;
    ++parsed;
    for (const std::string_view feature : kFeatures) held[feature] += random.text.find(feature) != std::string::npos;
    expect_total_inverse(*layout);
    const auto verified = layout->verify();
    EXPECT_TRUE(verified.ok()) << verified.error().to_string();
    EXPECT_TRUE(layout->verify(0).ok());
    expect_round_trip(*layout);
    expect_pad_boxes(*layout);
    Dims index;
    for (const int64_t extent : layout->shape()) index.push_back(generator.below(extent));
    if (parsed % 8 == 0) expect_expressions(*layout, index);
  }
  EXPECT_EQ(parsed, 10000);
  // Of everything that a layout may have there are enough, and broken ones are refused.
  for (const std::string_view feature : kFeatures) EXPECT_GT(held[feature], 30) << feature;
  for (const std::string_view code : kRefusals) EXPECT_GT(refused[std::string(code)], 3) << code;
}

// The longest unit-stride run along `dim`, found by iteration.
int64_t walked_run(const Layout& layout, size_t dim) {
  int64_t best = 1;
  Dims index(layout.shape().size());
  do {
    if (index[dim] != 0) continue;
    Dims at = index;
    int64_t length = 1;
    for (LayoutPosition last = layout.apply(at); ++at[dim] < layout.shape()[dim];) {
      const LayoutPosition next = layout.apply(at);
      length = next.bank == last.bank && next.bit == last.bit + layout.element_bits() ? length + 1 : 1;
      best = std::max(best, length);
      last = next;
    }
  } while (advance(index, layout.shape()));
  return best;
}

bool walked_shares_word(const Layout& layout, size_t dim, int64_t step, int64_t unit) {
  std::map<std::pair<int64_t, int64_t>, int64_t> owner;
  Dims index(layout.shape().size());
  do {
    const LayoutPosition at = layout.apply(index);
    for (int64_t bit = at.bit; bit < at.bit + layout.element_bits(); ++bit) {
      if (owner.emplace(std::pair(at.bank, bit / unit), index[dim] / step).first->second != index[dim] / step)
        return true;
    }
  } while (advance(index, layout.shape()));
  return false;
}

TEST(Layout, RandomQueriesAndOperations) {
  LayoutGenerator generator(5);
  int operations = 0;
  for (int tries = 0; tries < 3000 && !testing::Test::HasFailure(); ++tries) {
    const RandomLayout random = generator.next();
    SCOPED_TRACE(random.to_string());
    const auto parsed = random.parse();
    if (!parsed.ok() || parsed->physical_elements() > 5000 || parsed->shape().empty()) continue;
    const Layout& layout = *parsed;
    const Layout normal = layout.normal();
    EXPECT_EQ(normal.fnv1a64(), layout.fnv1a64()) << normal.to_string();
    EXPECT_TRUE(normal.same_sizes(layout)) << normal.to_string();
    EXPECT_EQ(normal.normal(), normal) << normal.to_string() << " -> " << normal.normal().to_string();
    const Layout::Run run = layout.run();
    const size_t dim = layout.dims().find(run.variable);
    if (run.variable.size() == 1 && dim != std::string::npos && layout.injective()) {
      EXPECT_LE(run.length, walked_run(layout, dim)) << run.variable;
    }
    const auto d = static_cast<size_t>(generator.below(static_cast<int64_t>(layout.dims().size())));
    const auto j = static_cast<size_t>(generator.below(static_cast<int64_t>(layout.digits().size())));
    for (int64_t inner = 1; inner <= layout.digits()[j].extent; ++inner) {
      const auto refined = layout.refine(j, inner);
      if (layout.digits()[j].extent % inner != 0) {
        EXPECT_EQ(layout_error_code(refined.error()), "E_NOT_DIVISIBLE");
      } else if (refined.ok()) {
        EXPECT_EQ(refined->fnv1a64(), layout.fnv1a64()) << refined->to_string();
        EXPECT_TRUE(refined->same_function(layout)) << refined->to_string();
        expect_round_trip(*refined);
        ++operations;
      } else {
        EXPECT_EQ(layout_error_code(refined.error()), "E_UNSUPPORTED") << refined.error().to_string();
      }
    }
    const auto retagged = layout.retag(j, static_cast<LayoutSpace>(generator.below(4)));
    if (retagged.ok() && retagged->physical_elements() < 20000) {
      expect_total_inverse(*retagged);
      expect_round_trip(*retagged);
      ++operations;
    }
    std::vector<size_t> order(layout.digits().size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = (i + j) % order.size();
    const auto permuted = layout.permute(order);
    if (permuted.ok() && permuted->physical_elements() < 20000) {
      expect_total_inverse(*permuted);
      expect_round_trip(*permuted);
      ++operations;
    }
    const auto padded = layout.pad(layout.variables()[0].name, generator.below(3), 1 + generator.below(4));
    if (padded.ok() && padded->physical_elements() < 20000) {
      expect_total_inverse(*padded);
      expect_round_trip(*padded);
      ++operations;
    }
    Dims begin, end;
    for (const int64_t extent : layout.shape()) {
      begin.push_back(generator.chance(2) ? 0 : generator.below(extent));
      end.push_back(generator.chance(2) ? extent : begin.back() + 1 + generator.below(extent - begin.back()));
    }
    const auto part = layout.slice(begin, end);
    if (part.ok()) {
      Dims index(begin.size());
      do {
        Dims whole = begin;
        for (size_t i = 0; i < index.size(); ++i) whole[i] += index[i];
        ASSERT_EQ(part->apply(index), layout.apply(whole)) << part->to_string();
      } while (advance(index, part->shape()));
      expect_total_inverse(*part);
      expect_round_trip(*part);
      ++operations;
    } else {
      EXPECT_THAT(std::string(layout_error_code(part.error())), testing::AnyOf("E_UNALIGNED", "E_UNSUPPORTED"))
          << part.error().to_string();
    }
    const char name = layout.dims()[d];
    if (std::ranges::any_of(layout.variables(), [&](const LayoutVariable& v) { return v.name == name; })) {
      const int64_t step = 1 + generator.below(3), unit = generator.chance(2) ? 8 : layout.word_bits();
      EXPECT_EQ(layout.shares_word(name, step, unit), walked_shares_word(layout, d, step, unit)) << name << step;
    }
  }
  EXPECT_GT(operations, 5000);
}

// Every width in every word, also dense.
TEST(Layout, WidthsAndWords) {
  for (int64_t bits = 1; bits <= 64; ++bits) {
    for (const int64_t word : {0, 8, 16, 32, 64, 128}) {
      for (const bool msb : {false, true}) {
        const int64_t lanes = word == 0 ? 5 : word / bits;
        const std::string text = str("NC<", lanes, "c", word ? str(":", word) : "", ">", msb ? ";lane=msb" : "");
        SCOPED_TRACE(str(text, " of ", bits, " bits"));
        if (lanes == 0) {
          EXPECT_EQ(code_of(str("NC<1c:", word, ">"), "NC", {3, 11}, bits), "E_WORD_OVERFLOW");
          continue;
        }
        const Layout layout = parse_layout(text, "NC", {3, 11}, bits);
        expect_total_inverse(layout);
        expect_round_trip(layout);
        EXPECT_EQ(layout.word_bits(), word ? word : 5 * bits);
        EXPECT_EQ(layout.lanes_along('C'), lanes);
        EXPECT_EQ(layout.lanes_along('N'), 1);
        const int64_t words = 3 * ((11 + lanes - 1) / lanes);
        EXPECT_EQ(layout.bytes(), (words * layout.word_bits() + 7) / 8);
      }
    }
  }
}

TEST(Layout, Compose) {
  const Layout inner = parse_layout("NCHW{8c}", "NCHW", {2, 24, 3, 5});  // digits N C H W c: 2 3 3 5 8
  const auto swapped = compose(parse_layout("ABDCE{4e}", "ABCDE", {2, 3, 3, 5, 8}), inner);
  ASSERT_TRUE(swapped.ok()) << swapped.error().to_string();
  EXPECT_TRUE(swapped->has_digits());
  EXPECT_EQ(swapped->to_string(), "NCWH{2c4c}");
  // 5 does not split into threes: the map stays, and says the same as both one after the other.
  const Layout outer = parse_layout("ABCDE{3d}", "ABCDE", {2, 3, 3, 5, 8});
  const auto odd = compose(outer, inner);
  ASSERT_TRUE(odd.ok()) << odd.error().to_string();
  EXPECT_TRUE(odd->verify().ok());
  Dims index(4);
  do {
    const Dims digits{index[0], index[1] / 8, index[2], index[3], index[1] % 8};
    ASSERT_EQ(odd->apply(index).bit, outer.apply(digits).bit);
  } while (advance(index, inner.shape()));
  expect_round_trip(*odd);
  EXPECT_EQ(layout_error_code(compose(inner, inner).error()), "E_RANK");
}

TEST(Layout, SliceNeverSilent) {
  const Layout layout = parse_layout("NCHW{16c}", "NCHW", {2, 40, 3, 5});
  const auto blocks = layout.slice({0, 16, 0, 0}, {2, 40, 3, 5});
  ASSERT_TRUE(blocks.ok()) << blocks.error().to_string();
  EXPECT_TRUE(blocks->is_view());
  EXPECT_EQ(blocks->apply(Dims{1, 0, 2, 4}).slot, layout.apply(Dims{1, 16, 2, 4}).slot);
  EXPECT_TRUE(layout.slice({0, 4, 0, 0}, {2, 12, 3, 5}).ok()) << "inside of one block";
  const auto crossing = layout.slice({0, 8, 0, 0}, {2, 24, 3, 5});
  ASSERT_FALSE(crossing.ok());
  EXPECT_EQ(layout_error_code(crossing.error()), "E_UNALIGNED");
  EXPECT_EQ(layout_error_code(layout.slice({0, 0}, {1, 1}).error()), "E_RANK");
  EXPECT_EQ(layout_error_code(layout.slice({0, 0, 0, 0}, {3, 1, 1, 1}).error()), "E_BAD_EXTENT");
  EXPECT_EQ(layout_error_code(blocks->permute(std::vector<size_t>{0, 1, 2, 3, 4}).error()), "E_UNSUPPORTED");
}

TEST(Layout, Alignment) {
  const Layout feature = parse_layout("NCHW{32c};align(H)=64B", "NCHW", {1, 35, 3, 5}, 8);
  EXPECT_EQ(feature.alignment('H') % 512, 0);
  EXPECT_EQ(feature.alignment('W'), 256);
  EXPECT_EQ(parse_layout("NCHW", "NCHW", {1, 1, 1, 7}).alignment('H'), 0 + 32) << "no row but the first: its element";
  EXPECT_TRUE(parse_layout("NHWC", "NCHW", {2, 3, 4, 5}).is_dense());
  EXPECT_FALSE(feature.is_dense());
  EXPECT_FALSE(parse_layout("NHWC<6c:8>", "NCHW", {4, 6, 8, 8}, 1).is_dense()) << "slack bits";
}

TEST(Layout, BankConflicts) {
  const std::vector<Dims> row{{0, 0}, {0, 1}, {0, 2}, {0, 3}}, column{{0, 0}, {1, 0}, {2, 0}, {3, 0}};
  const Layout plain = parse_layout("[4w]HW", "HW", {8, 8});
  EXPECT_EQ(plain.bank_conflicts(row), 1);
  EXPECT_EQ(plain.bank_conflicts(column), 4);
  const Layout swizzled = parse_layout("[4w]HW;xor(W@1)=H", "HW", {8, 8});
  EXPECT_EQ(swizzled.bank_conflicts(column), 1) << "a swizzle spreads columns over the banks";
  EXPECT_EQ(swizzled.bank_conflicts(std::vector<Dims>{{0, 0}, {0, 4}}), 2);
  EXPECT_EQ(swizzled.bank_conflicts(std::vector<Dims>{{0, 0}, {0, 0}}), 1) << "the same word, once";
}

TEST(Layout, SharesWordOfLargeTensors) {
  const Layout packed = parse_layout("NHWC<8c:8>", "NCHW", {16, 64, 64, 64}, 1);
  EXPECT_FALSE(packed.shares_word('W'));
  EXPECT_TRUE(packed.shares_word('C'));
  EXPECT_FALSE(packed.shares_word('C', 8));
  EXPECT_TRUE(packed.shares_word('W', 1, 32)) << "rows of 64 bits, pixels of 64 bits: but the unit holds words";
}

TEST(Layout, FingerprintsAndHash) {
  const Layout a = parse_layout("NCHW{16c}", "NCHW", {8, 64, 56, 56}),
               b = parse_layout("NHWC", "NCHW", {8, 64, 56, 56});
  EXPECT_NE(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.fingerprint(), parse_layout("NCHW16c", "NCHW", {8, 64, 56, 56}).fingerprint());
  EXPECT_EQ(a, parse_layout("NCHW16c", "NCHW", {8, 64, 56, 56})) << "braces say nothing to the function";
  EXPECT_NE(a.fingerprint(), parse_layout("NCHW{16c}", "NCHW", {8, 64, 56, 56}, 16).fingerprint());
  EXPECT_EQ(std::hash<Layout>()(a), a.hash());
  EXPECT_TRUE(
      parse_layout("NHWC", "NCHW", {8, 1, 560, 560}).same_function(parse_layout("NCHW", "NCHW", {8, 1, 560, 560})));
  EXPECT_FALSE(a.same_function(b));
}

TEST(Layout, Default) {
  EXPECT_EQ(Layout(), parse_layout("", "", {}, 1));
  EXPECT_EQ(Layout().apply({}).bit, 0);
  EXPECT_EQ(*Layout::row_major({2, 3}, 8), parse_layout("AB", "AB", {2, 3}, 8));
}

TEST(Layout, LargeExtentsDoNotWrap) {
  EXPECT_EQ(code_of("NC", "NC", {int64_t{1} << 40, int64_t{1} << 40}), "E_BAD_EXTENT");
  EXPECT_EQ(code_of("N", "N", {INT64_MAX}, 1), "E_BAD_EXTENT");
  EXPECT_EQ(code_of("N;off(N)=9223372036854775807", "N", {5}), "E_BAD_EXTENT");
  EXPECT_EQ(code_of("NC;stride(N)=4611686018427387904", "NC", {5, 2}), "E_BAD_EXTENT");
  EXPECT_EQ(code_of("N<4611686018427387904n>", "N", {5}), "E_BAD_EXTENT");
  EXPECT_EQ(code_of("N;size=9223372036854775807B", "N", {5}), "E_BAD_EXTENT");
  const Layout large = parse_layout("NCHW{16c}", "NCHW", {1 << 10, 1 << 10, 1 << 10, 1 << 10}, 1);
  EXPECT_EQ(large.bytes(), int64_t{1} << 37);
  EXPECT_TRUE(large.verify().ok());
}

}  // namespace
}  // namespace tenon
