#include <tenon/ops/string.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

TEST(StringRule, ShapesFollow) {
  EXPECT_EQ(inferred("(%x: str[N,1], %y: str[3]) -> %z { %z = StringConcat %x, %y }"), "str[N,3]");
  EXPECT_EQ(inferred("(%x: str[N,2]) -> (%y, %z) { %y, %z = StringSplit %x }"), "str[N,2,?] i64[N,2]");
  EXPECT_EQ(inferred("(%x: str[N,2]) -> %y { %y = RegexFullMatch %x {pattern = \"a\"} }"), "bool[N,2]");
  EXPECT_EQ(inferred("(%x: str[1,N]) -> %y { %y = StringNormalizer %x }"), "str[1,?]");
  EXPECT_THAT(inferred("(%x: str[2,N]) -> %y { %y = StringNormalizer %x }"),
              HasSubstr("must be [C] or [1, C], it is str[2,N]"));
  EXPECT_THAT(inferred("(%x: f32[N]) -> %y { %y = RegexFullMatch %x {pattern = \"a\"} }"), HasSubstr("str"));
}

TEST(StringRule, TfIdfVectorizer) {
  const auto counted = [](std::string_view type, std::string_view counts, std::string_view indexes) {
    return inferred(str("(%x: ", type,
                        ") -> %y { %y = TfIdfVectorizer %x {mode = \"TF\", min_gram_length = 1, max_gram_length = 2, "
                        "max_skip_count = 0, ngram_counts = ",
                        counts, ", ngram_indexes = ", indexes, ", pool_int64s = [1, 2, 3, 4]} }"));
  };
  EXPECT_EQ(counted("i64[N,5]", "[0, 2]", "[0, 7, 1]"), "f32[N,8]");
  EXPECT_EQ(counted("i32[5]", "[0, 2]", "[0, 1, 2]"), "f32[3]");
  EXPECT_THAT(counted("i64[5]", "[0, 3]", "[0, 1, 2]"), HasSubstr("2-grams at [3, 4) of a pool of 4 items"));
  EXPECT_THAT(counted("i64[5]", "[0, 5]", "[0, 1, 2]"), HasSubstr("1-grams at [0, 5)"));
  EXPECT_THAT(counted("i64[5]", "[0, 2]", "[0, 1]"), HasSubstr("3 n-grams, 2 ngram_indexes"));
  EXPECT_THAT(counted("i64[5]", "[0, 2]", "[0, 1, -1]"), HasSubstr("holds -1"));
  EXPECT_THAT(counted("i64[5]", "[0, 2]", "[0, 1, 9223372036854775807]"), HasSubstr("holds 9223372036854775807"));
  EXPECT_THAT(counted("str[5]", "[0, 2]", "[0, 1, 2]"), HasSubstr("a pool of 0 strings"));
}

}  // namespace
}  // namespace tenon
