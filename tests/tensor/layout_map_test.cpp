// Index maps: text, lambdas, which maps become digits and which do not; symbolic extents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/support/str.hpp>
#include <tenon/tensor/layout.hpp>

#include "layout_testing.hpp"

namespace tenon {
namespace {

using testing::HasSubstr;

TEST(LayoutMap, LongFormIsTheShortForm) {
  struct Row {
    const char* map;
    const char* text;
  };
  const Row rows[] = {
      {"(n,c,h,w) -> (n, h, w, c floordiv 6 | c mod 6 : 8)", "NHWC<6c:8>"},
      {"(n,c,h,w) -> (n, h, w, c)", "NHWC"},
      {"(b, k, y, x) -> (b, y, x, k)", "NHWC"},
      {"(w, h, c, n) -> (w, h, c, n)", "NCHW"},
      {"(n,c,h,w) -> ([h mod 4] n, c, h floordiv 4, w)", "[4h]NCHW"},
      {"(n,c,h,w) -> ([n | h mod 4] c, h floordiv 4, w)", "[N|4h]CHW"},
      {"(n,c,h,w) -> (n, c floordiv 4, h, w, c mod 4)", "NCHW{4c}"},
      {"(n,c,h,w) -> (n, (c + 2) floordiv 4, h, w, (c + 2) mod 4)", "NCHW{4c};off(C)=2"},
      {"(n,c,h,w) -> (n, c floordiv 8, h, w, (c floordiv 2) mod 4, c mod 2)", "NCHW{4c2c}"},
      {"(n,c,h,w) -> (n, c, h, w);stride(H)=8", "NCHW;stride(H)=8"},
      {"(n,c,h,w) -> (n*600 + c*48 + h*8 + w)", "NCHW;stride(H)=8;stride(N)=600"},
      {"(n,c,h,w) -> (n, (h*5 + w) floordiv 15, c, (h*5 + w) mod 15)", "NPC{15p};fuse(P)=HW"},
      {"(n,c,h,w) -> (n, c, h, w);fold(N)=1", "NCHW;fold(N)=1"},
      {"(n,c,h,w) -> (n, c, h, w | : 64);lane=msb;fill=undef;size=7B", ""},
      {"(n,c,h,w) -> (n, c, h, w : 64);lane=msb;fill=undef;size=7B", "NCHW<:64>;lane=msb;fill=undef;size=7B"},
  };
  for (const Row& row : rows) {
    const auto layout = Layout::parse(row.map, "NCHW", {2, 12, 6, 5}, 1);
    if (!*row.text) {
      EXPECT_EQ(code_of(layout), "E_SYNTAX") << row.map;
      continue;
    }
    ASSERT_TRUE(layout.ok()) << row.map << ": " << layout.error().to_string();
    EXPECT_TRUE(layout->has_digits()) << row.map;
    EXPECT_EQ(*layout, parse_layout(row.text, "NCHW", {2, 12, 6, 5}, 1)) << row.map << " is " << layout->to_string();
    const auto map = layout->to_map_string();
    ASSERT_TRUE(map.ok()) << map.error().to_string();
    EXPECT_TRUE(parse_layout(*map, "NCHW", {2, 12, 6, 5}, 1).same_function(*layout)) << *map;
  }
}

TEST(LayoutMap, Lambda) {
  const auto packed = Layout::from_map("NCHW", {4, 6, 8, 8}, 1, [](Expr n, Expr c, Expr h, Expr w) {
    return LayoutMap{
        .devices = {}, .banks = {}, .address = {n, h, w, floordiv(c, 6)}, .lanes = {mod(c, 6)}, .word_bits = 8};
  });
  ASSERT_TRUE(packed.ok()) << packed.error().to_string();
  EXPECT_EQ(*packed, parse_layout("NHWC<6c:8>", "NCHW", {4, 6, 8, 8}, 1));
  const auto any_rank = Layout::from_function("AB", {3, 4}, 8, [](std::span<const Expr> index) {
    LayoutMap map;
    map.address = {index[1], index[0]};
    return map;
  });
  ASSERT_TRUE(any_rank.ok());
  EXPECT_EQ(any_rank->to_string(), "BA");
  EXPECT_EQ(code_of(Layout::from_map("AB", {3, 4}, 8, [](Expr) { return LayoutMap(); })), "E_RANK");
}

// TVM accepted [i % 2, j].
TEST(LayoutMap, NotInvertible) {
  const auto lossy = Layout::parse("(i, j) -> (i mod 2, j)", "IJ", {4, 3}, 32);
  ASSERT_EQ(code_of(lossy), "E_NOT_INVERTIBLE");
  EXPECT_THAT(lossy.error().message(), HasSubstr("indices [0, 0] and [2, 0] both lie in bank 0, slot 0"));
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i mod 2, j)", "IJ", {4000, 3000}, 32)), "E_NOT_INVERTIBLE")
      << "a part of a large tensor is enough to tell";
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i)", "IJ", {4, 3}, 32)), "E_NOT_INVERTIBLE");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i + j)", "IJ", {4, 3}, 32)), "E_NOT_INVERTIBLE");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i floordiv 2, j)", "IJ", {4, 3}, 32)), "E_NOT_INVERTIBLE");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i mod 2, j)", "IJ", {2, 3}, 32)), "ok") << "i has no other values";
}

TEST(LayoutMap, Refused) {
  EXPECT_EQ(code_of(Layout::parse("(i) -> (i, j)", "I", {4}, 32)), "E_UNKNOWN_DIM");
  EXPECT_EQ(code_of(Layout::parse("(i) -> (i)", "IJ", {4, 3}, 32)), "E_RANK");
  EXPECT_EQ(code_of(Layout::parse("(i, i) -> (i)", "IJ", {4, 3}, 32)), "E_DUP_DIM");
  EXPECT_EQ(code_of(Layout::parse("(i, 2) -> (i)", "IJ", {4, 3}, 32)), "E_SYNTAX");
  EXPECT_EQ(code_of(Layout::parse("(i, j) - (i, j)", "IJ", {4, 3}, 32)), "E_SYNTAX");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i, )", "IJ", {4, 3}, 32)), "E_SYNTAX");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i, j", "IJ", {4, 3}, 32)), "E_SYNTAX");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i, j $ 2)", "IJ", {4, 3}, 32)), "E_SYNTAX");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i, j);off(I)=1", "IJ", {4, 3}, 32)), "E_SYNTAX");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i - 1, j)", "IJ", {4, 3}, 32)), "E_BAD_EXTENT");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i floordiv (j - 1), j)", "IJ", {4, 3}, 32)), "E_BAD_EXTENT");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (i * 9223372036854775807, j)", "IJ", {4, 3}, 32)), "E_BAD_EXTENT");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (j | i : 8)", "IJ", {4, 3}, 32)), "E_WORD_OVERFLOW");
  EXPECT_EQ(code_of(Layout::parse("(i, j) -> (3 - i, j);fold(I)=2", "IJ", {4, 3}, 32)), "E_UNSUPPORTED");
}

// Not representable in digits, but every index has its own slot.
TEST(LayoutMap, KeepsTheMap) {
  for (const char* text : {"(i, j) -> (3 - i, j)", "(i, j) -> (i, (i + j) mod 3)", "(i, j) -> (i*i, j)",
                           "(i, j) -> ([(i + j) mod 3] i, j)", "(i, j) -> (i | 2 - j : 128);fill=7;lane=msb",
                           "(i, j) -> (max(i, j), min(i, j), select(i < j, 1, 0))"}) {
    SCOPED_TRACE(text);
    const Layout layout = parse_layout(text, "IJ", {4, 3});
    EXPECT_FALSE(layout.has_digits());
    EXPECT_TRUE(layout.verify().ok()) << layout.verify().error().to_string();
    EXPECT_EQ(layout, parse_layout(layout.to_string(), "IJ", {4, 3})) << layout.to_string();
    int64_t held = 0;
    Dims index(2);
    for (int64_t bank = 0; bank < layout.banks(); ++bank) {
      for (int64_t slot = 0; slot < layout.words_per_bank() * layout.lanes(); ++slot) {
        if (!layout.inverse(bank, slot, index)) continue;
        ++held;
        const LayoutPosition at = layout.apply(index);
        EXPECT_TRUE(at.bank == bank && at.slot == slot);
        SymbolValues values{{"i", index[0]}, {"j", index[1]}};
        EXPECT_EQ(*layout.bank_expr().evaluate(values), bank);
        EXPECT_EQ(*layout.word_expr().evaluate(values) * layout.lanes() + *layout.lane_expr().evaluate(values), slot);
      }
    }
    EXPECT_EQ(held, 12);
    EXPECT_EQ(layout.physical_elements() - layout.padding(), 12);
    EXPECT_EQ(layout_error_code(layout.refine(0, 2).error()), "E_UNSUPPORTED");
  }
  EXPECT_EQ(parse_layout("(i, j) -> (i, 2 - j)", "IJ", {4, 3}).run().length, 1);
  EXPECT_EQ(parse_layout("(i, j) -> (3 - i, j)", "IJ", {4, 3}).run().length, 3);
}

TEST(SymbolicLayout, BindsToTheSameFunction) {
  const Expr n = Expr::symbol("N"), c = Expr::symbol("C");
  for (const char* text : {"NCHW", "NCHW{8c}", "NHWC<6c:8>", "[4h]NCHW", "[C/4]NcHW", "NPC{4p};fuse(P)=HW", "NCHW{4c~}",
                           "CNHW{4n2c~};off(C)=1", "NCHW;fold(N)=2", "NCHW{4c};align(H)=4B"}) {
    SCOPED_TRACE(text);
    const auto symbolic = SymbolicLayout::parse(text, "NCHW", {n, c, 6, 5}, 1);
    ASSERT_TRUE(symbolic.ok()) << symbolic.error().to_string();
    for (const int64_t channels : {3, 8, 17}) {
      const auto layout = symbolic->bind({{"N", 2}, {"C", channels}});
      if (!layout.ok() && layout_error_code(layout.error()) == "E_ALIGN") continue;
      ASSERT_TRUE(layout.ok()) << layout.error().to_string();
      SymbolValues values{{"N", 2}, {"C", channels}, {"n", 1}, {"c", 2}, {"h", 4}, {"w", 3}};
      const LayoutPosition at = layout->apply(Dims{1, 2, 4, 3});
      EXPECT_EQ(*symbolic->bank().evaluate(values), at.bank);
      EXPECT_EQ(*symbolic->word().evaluate(values), at.slot / layout->lanes());
      EXPECT_EQ(*symbolic->lane().evaluate(values), at.slot % layout->lanes());
      EXPECT_EQ(*symbolic->words_per_bank().evaluate(values), layout->words_per_bank());
      EXPECT_EQ(*symbolic->banks().evaluate(values), layout->banks());
    }
  }
  const auto blocked = SymbolicLayout::parse("NCHW{?c}", "NCHW", {n, c, 6, 5}, 1, std::vector<int64_t>{16});
  ASSERT_TRUE(blocked.ok());
  EXPECT_EQ(blocked->text(), "NCHW{16c}");
  EXPECT_EQ(blocked->words_per_bank(), n * ceildiv(c, 16) * 480);
  EXPECT_FALSE(SymbolicLayout::parse("(n,c,h,w) -> (n,c,h,w)", "NCHW", {n, c, 6, 5}, 1).ok());
}

}  // namespace
}  // namespace tenon
