#include <tenon/support/str.hpp>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <list>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::ElementsAre;

struct Named {
  std::string to_string() const { return "<named>"; }
};
// Both a range and a thing with a text form: the text form is what people want to read.
struct NamedList : std::vector<int> {
  using std::vector<int>::vector;
  std::string to_string() const { return "1x2"; }
};

template <class T>
concept Printable = requires(std::string& out, const T& part) {
  append_text(out, part);
};

TEST(Str, JoinsEveryKindOfPart) {
  EXPECT_EQ(str(), "");
  EXPECT_EQ(str("dim ", 3, " of ", std::string("x"), ' ', std::string_view("y"), " is ", true, '/', false),
            "dim 3 of x y is true/false");
  EXPECT_EQ(str(uint8_t{200}, ' ', int8_t{-5}, ' ', std::numeric_limits<int64_t>::min(), ' ',
                std::numeric_limits<uint64_t>::max()),
            "200 -5 -9223372036854775808 18446744073709551615");
  EXPECT_EQ(str(Named{}, NamedList{1, 2}), "<named>1x2");
}

TEST(Str, PrintsRangesNested) {
  EXPECT_EQ(str(std::vector<int>{}), "[]");
  EXPECT_EQ(str(std::vector<int64_t>{1, -2, 3}), "[1, -2, 3]");
  EXPECT_EQ(str(std::list<std::vector<std::string>>{{"a"}, {}, {"b", "c"}}), "[[a], [], [b, c]]");
  EXPECT_EQ(str(std::vector<bool>{true, false}), "[true, false]");
  EXPECT_EQ(str(std::vector<Named>(2)), "[<named>, <named>]");
}

TEST(Str, TakesNoPointerForABool) {
  EXPECT_TRUE((Printable<const char*> && Printable<bool> && Printable<std::vector<bool>>));
  EXPECT_FALSE((Printable<const int*> || Printable<void*>));
}

TEST(Str, FloatsAreShortestAndReadBack) {
  EXPECT_EQ(str(0.1), "0.1");
  EXPECT_EQ(str(0.1f), "0.1");
  EXPECT_EQ(str(1.0, ' ', -0.0), "1 -0");
  EXPECT_EQ(str(1e300, ' ', 5e-324), "1e+300 5e-324");
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(str(kInf, ' ', -kInf, ' ', nan, ' ', std::copysign(nan, -1.0)), "inf -inf nan -nan");
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const double d = std::bit_cast<double>(random());
    const float f = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(d)) {
      EXPECT_EQ(std::strtod(str(d).c_str(), nullptr), d) << str(d);
    }
    if (std::isfinite(f)) {
      EXPECT_EQ(std::strtof(str(f).c_str(), nullptr), f) << str(f);
    }
  }
}

TEST(Split, KeepsEmptyPieces) {
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split("a", ','), ElementsAre("a"));
  EXPECT_THAT(split(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
}

TEST(Trim, DropsBlanksAtBothEndsOnly) {
  EXPECT_EQ(trim(" \t\r\n a b \n"), "a b");
  EXPECT_EQ(trim("a"), "a");
  EXPECT_EQ(trim(" \t"), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Quote, EscapesWhatWouldEndOrBreakTheText) {
  EXPECT_EQ(quote(""), R"("")");
  EXPECT_EQ(quote("say \"hi\" \\ \n\t"), R"("say \"hi\" \\ \n\t")");
  EXPECT_EQ(quote(std::string_view("\0\x1f\x7f", 3)), R"("\x00\x1f\x7f")");
  EXPECT_EQ(quote("größe"), "\"größe\"");
}

TEST(Quote, RoundTripsAnyBytes) {
  std::mt19937 random(2);
  for (int i = 0; i < 1000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::string quoted = quote(bytes) + "rest";
    std::string_view left = quoted;
    EXPECT_EQ(unquote(left), bytes) << quoted;
    EXPECT_EQ(left, "rest");
  }
}

TEST(Unquote, RefusesMalformedTextAndLeavesItAlone) {
  for (const std::string_view bad : {"", "a", "\"", "\"abc", "\"\\", "\"\\\"", R"("\q")", R"("\x")", R"("\x1")",
                                     R"("\x1)", R"("\xg0")", R"("\x-1")", R"("\x 1")"}) {
    std::string_view text = bad;
    EXPECT_EQ(unquote(text), std::nullopt) << bad;
    EXPECT_EQ(text, bad);
  }
}

// The boundaries of the table of well-formed byte sequences, Unicode 15 table 3-7.
TEST(IsUtf8, AcceptsTheEdgesOfEveryRange) {
  for (const std::string_view good :
       {"", "plain", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa9z"})
    EXPECT_TRUE(is_utf8(good)) << quote(good);
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(IsUtf8, RefusesWhatLiesBeyond) {
  for (const std::string_view bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2z", "\xc2\xc2", "\xe0\x9f\xbf", "\xe0\xa0", "\xe0\xa0z",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff", "\xfe", "ok\xf8\x88\x80\x80\x80"})
    EXPECT_FALSE(is_utf8(bad)) << quote(bad);
}

TEST(Nearest, FindsTheSlipOfAFingerAndNothingFar) {
  const std::vector<std::string> operators = {"Conv", "ConvTranspose", "Relu", "Softmax"};
  EXPECT_EQ(nearest("Cnov", operators), "Conv");
  EXPECT_EQ(nearest("relu", operators), "Relu");
  EXPECT_EQ(nearest("Softmx", operators), "Softmax");
  EXPECT_EQ(nearest("Conv", operators), "Conv");
  EXPECT_EQ(nearest("Einsum", operators), "");
  EXPECT_EQ(nearest("Conv", {}), "");
}

TEST(Nearest, NeighboursThatChangedPlacesAreOneSlip) {
  EXPECT_EQ(nearest("tow", {"one", "toe", "two"}), "toe") << "one letter each: the first";
  EXPECT_EQ(nearest("tow", {"one", "two"}), "two");
  EXPECT_EQ(nearest("otw", {"two"}), "") << "three letters, two slips";
  EXPECT_EQ(nearest("lbael", {"level", "label"}), "label");
  EXPECT_EQ(nearest("SotfmxaX", {"Softmax"}), "") << "two pairs, and a letter";
  EXPECT_EQ(nearest("SotfmxaXY", {"SoftmaxXY"}), "SoftmaxXY") << "two pairs";
}

TEST(Nearest, MoreThanAThirdOfTheLettersMakeAnotherWord) {
  EXPECT_EQ(nearest("Foo", {"Cos", "Not", "Exp"}), "");
  EXPECT_EQ(nearest("Fo", {"Foo"}), "Foo");
  EXPECT_EQ(nearest("cos", {"Cos", "Floor"}), "Cos");
  EXPECT_EQ(nearest("c", {"ab", "b"}), "b") << "one letter of one";
  EXPECT_EQ(nearest("ReluXX", {"Relu"}), "Relu") << "two of six";
  EXPECT_EQ(nearest("ReluX", {"Celu"}), "") << "two of five";
}

}  // namespace
}  // namespace tenon
