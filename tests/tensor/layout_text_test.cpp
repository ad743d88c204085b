// Refused texts and their error codes; hostile texts; '?'.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tensor/layout.hpp>

#include "layout_testing.hpp"

namespace tenon {
namespace {

using testing::HasSubstr;

TEST(LayoutText, ErrorCodes) {
  struct Row {
    const char* text;
    const char* code;
  };
  const Row rows[] = {
      {"NCHW", "ok"},
      {" N C HW { 8 c } ; size = 64 B ", "ok"},
      {"NCHW{8c", "E_SYNTAX"},
      {"NCHW}", "E_SYNTAX"},
      {"NCHW{}", "E_SYNTAX"},
      {"[]NCHW", "E_SYNTAX"},
      {"[4h", "E_SYNTAX"},
      {"[4h|]NCHW", "ok"},
      {"[|4h]NCHW", "ok"},
      {"[|]NCHW", "E_SYNTAX"},
      {"NCHW<8c:>", "E_SYNTAX"},
      {"NCHW<8c", "E_SYNTAX"},
      {"NCHW{8}", "E_SYNTAX"},
      {"NCHW{8C}", "E_SYNTAX"},
      {"NCHW{-8c}", "E_SYNTAX"},
      {"NCHW;", "E_SYNTAX"},
      {"NCHW;size", "E_SYNTAX"},
      {"NCHW;size=64", "E_SYNTAX"},
      {"NCHW;size=64B;size=64B", "E_SYNTAX"},
      {"NCHW;lane=top", "E_SYNTAX"},
      {"NCHW;colour=red", "E_SYNTAX"},
      {"NCHW;stride(H@)=5", "E_SYNTAX"},
      {"NCHW;off(H@1)=5", "E_SYNTAX"},
      {"NCHW;fill=none", "E_SYNTAX"},
      {"NCHW;fill=0x", "E_SYNTAX"},
      {"NCHW{8c*}", "E_SYNTAX"},
      {"NCHW{8c~!}", "E_SYNTAX"},
      {"NCHWX", "E_UNKNOWN_DIM"},
      {"NCHW{4x}", "E_UNKNOWN_DIM"},
      {"NCHW;off(X)=1", "E_UNKNOWN_DIM"},
      {"NCHW;fold(X)=1", "E_UNKNOWN_DIM"},
      {"NCHW;stride(X)=1", "E_UNKNOWN_DIM"},
      {"NCHW;stride(C@7)=1", "E_UNKNOWN_DIM"},
      {"NCHW;align(X)=1B", "E_UNKNOWN_DIM"},
      {"NCHW;xor(C)=X", "E_UNKNOWN_DIM"},
      {"NCP;fuse(P)=HX", "E_UNKNOWN_DIM"},
      {"NCPH;fuse(P)=HW", "E_UNKNOWN_DIM"},
      {"NCHWC", "E_DUP_DIM"},
      {"[C/2]NCHWc", "E_DUP_DIM"},
      {"NCC/2ccHW", "E_DUP_DIM"},
      {"NCN;fuse(N)=HW", "E_DUP_DIM"},
      {"NP;fuse(P)=CHC;fuse(Q)=W", "E_DUP_DIM"},
      {"NCHW;off(C)=1;off(C)=2", "E_DUP_DIM"},
      {"NCHW;stride(H)=20;stride(H)=20", "E_DUP_DIM"},
      {"", "E_MISSING_DIM"},
      {"NHW", "E_MISSING_DIM"},
      {"nchw", "E_MISSING_DIM"},
      {"NHW{16c}", "E_MISSING_DIM"},
      {"NHW{17c}", "ok"},
      {"NCHW{0c}", "E_BAD_EXTENT"},
      {"NC/0HW", "E_BAD_EXTENT"},
      {"NCHW{99999999999999999999c}", "E_BAD_EXTENT"},
      {"NCHW{9223372036854775807c9223372036854775807c}", "E_BAD_EXTENT"},
      {"NCHW{?c}", "E_BAD_EXTENT"},
      {"N/?nCHW", "E_BAD_EXTENT"},
      {"NCHW{4c@3}", "E_BAD_EXTENT"},
      {"NCHW<8c:0>", "E_BAD_EXTENT"},
      {"NCHW;fold(C)=0", "E_BAD_EXTENT"},
      {"NCHW;fill=4294967296", "E_BAD_EXTENT"},
      {"NCHW;fill=0xffffffff", "ok"},
      {"NCHW;fill=99999999999999999999", "E_BAD_EXTENT"},
      {"NCHW;xor(W)=C", "E_BAD_EXTENT"},
      {"NCHW{8c!}", "E_NOT_DIVISIBLE"},
      {"NCHW{17c!}", "ok"},
      {"NCHW<2c:32>", "E_WORD_OVERFLOW"},
      {"NCHW;align(H)=3B", "E_ALIGN"},
      {"NCHW;stride(H)=5;align(H)=16B", "E_ALIGN"},
      {"NCHW<4c>;stride(H)=18", "E_ALIGN"},
      {"NCHW;stride(W)=2;stride(H)=3", "E_NOT_INVERTIBLE"},
      {"NCHW{4c~};stride(H)=99", "E_UNSUPPORTED"},
      {"[2h]NCHW{4c~}", "E_UNSUPPORTED"},
      {"{4c~}NCHW", "E_SYNTAX"},
      {"4c~NCHW", "E_UNSUPPORTED"},
      {"NCHW;off(C)=1;stride(C)=0", "E_UNSUPPORTED"},
      {"NCHW;view=0,0,1,5", "E_BAD_EXTENT"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(code_of(row.text, "NCHW", {2, 17, 4, 5}), row.code) << row.text;
  }
}

TEST(LayoutText, DimsAndShape) {
  EXPECT_EQ(code_of("NCH", "NCH", {1, 3, 2, 2}), "E_RANK");
  EXPECT_EQ(code_of("NN", "NN", {1, 3}), "E_DUP_DIM");
  EXPECT_EQ(code_of("NC", "nc", {1, 3}), "E_SYNTAX");
  EXPECT_EQ(code_of("NC", "NC", {1, -3}), "E_BAD_EXTENT");
  EXPECT_EQ(code_of("NC", "NC", {1, 3}, 0), "E_BAD_EXTENT");
  EXPECT_EQ(code_of("NC", "NC", {1, 3}, 129), "E_BAD_EXTENT");
  EXPECT_EQ(code_of("NC", "NC", {0, 3}), "ok");
}

TEST(LayoutText, MessagesNameThePair) {
  const auto text = Layout::parse("NM;stride(N)=3", "MN", {4, 4}, 32);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().message(), testing::StartsWith("E_NOT_INVERTIBLE: "));
  EXPECT_THAT(text.error().message(), HasSubstr("indices [0, 1] and [3, 0] both lie in bank 0, slot 3"));
}

TEST(LayoutText, OrdinaryErrorsHaveNoCode) {
  EXPECT_EQ(layout_error_code(Error(Code::parse, "no layout")), "");
  EXPECT_EQ(layout_error_code(Error(Code::parse, "E_SYNTAX: layout")), "E_SYNTAX");
}

TEST(LayoutText, QuestionMarks) {
  EXPECT_EQ(*bind_layout_text("NCHW{?c?n}", std::vector<int64_t>{16, 4}), "NCHW{16c4n}");
  EXPECT_EQ(layout_error_code(bind_layout_text("NCHW{?c}", {}).error()), "E_BAD_EXTENT");
  EXPECT_EQ(layout_error_code(bind_layout_text("NCHW", std::vector<int64_t>{1}).error()), "E_BAD_EXTENT");
}

// A place must be separated from a number after it.
TEST(LayoutText, PlacesStandApart) {
  const auto layout = Layout::parse("RC{2r@4 4c2r@1 2r@2}", "RC", {8, 8}, 16);
  ASSERT_TRUE(layout.ok()) << layout.error().to_string();
  const auto again = Layout::parse(layout->to_string(), "RC", {8, 8}, 16);
  ASSERT_TRUE(again.ok()) << layout->to_string();
  EXPECT_EQ(*again, *layout) << layout->to_string();
}

// Any change of a character gives an invertible layout, or an error with a code.
TEST(LayoutText, Mutations) {
  LayoutGenerator generator(6);
  const std::string_view alphabet = "NCHWnchw0123456789[]{}<>;:=()@/~!?,|-+ Bxorstide\x01\xff";
  int parsed = 0, refused = 0;
  for (int tries = 0; tries < 100000; ++tries) {
    RandomLayout random = generator.next();
    for (int64_t edits = 1 + generator.below(3); edits > 0; --edits) {
      const auto at = static_cast<size_t>(generator.below(static_cast<int64_t>(random.text.size()) + 1));
      const char c = alphabet[static_cast<size_t>(generator.below(static_cast<int64_t>(alphabet.size())))];
      switch (generator.below(3)) {
        case 0: random.text.insert(at, 1, c); break;
        case 1: random.text.erase(at, 1); break;
        default: random.text.replace(at, 1, 1, c);
      }
    }
    SCOPED_TRACE(random.to_string());
    const auto layout = random.parse();
    if (!layout.ok()) {
      ASSERT_THAT(std::string(layout_error_code(layout.error())), testing::StartsWith("E_"));
      ++refused;
      continue;
    }
    ++parsed;
    const auto verified = layout->verify(2000);
    ASSERT_TRUE(verified.ok()) << verified.error().to_string();
    const auto again = Layout::parse(layout->to_string(), random.dims, random.shape, random.element_bits);
    ASSERT_TRUE(again.ok()) << layout->to_string() << ": " << again.error().to_string();
    ASSERT_EQ(*again, *layout) << layout->to_string();
  }
  EXPECT_GT(parsed, 2500);
  EXPECT_GT(refused, 5000);
}

TEST(LayoutText, Hostile) {
  const std::string many(1 << 20, '(');
  EXPECT_EQ(code_of(many, "N", {4}), "E_SYNTAX");
  EXPECT_EQ(code_of(many.substr(0, 16000), "N", {4}), "E_SYNTAX");
  EXPECT_EQ(code_of("(n) -> (" + many.substr(0, 8000) + ")", "N", {4}), "E_SYNTAX");
  std::string digits = "N";
  for (int i = 0; i < 100; ++i) digits += "1n";
  EXPECT_EQ(code_of(digits, "N", {4}), "E_SYNTAX");
  EXPECT_EQ(code_of(std::string("N\0C", 3), "NC", {4, 4}), "E_SYNTAX");
  std::string chain = "n";
  for (int i = 0; i < 150; ++i) chain = "(" + chain + " + 1) floordiv 2";
  EXPECT_NE(code_of("(n) -> (" + chain + ")", "N", {4}), "") << "an answer, and no overflow of the stack";
}

}  // namespace
}  // namespace tenon
