#include <tenon/ops/string.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using testing::error_of;
using testing::evaluated;
using testing::evaluated_all;
using ::testing::HasSubstr;
using testing::ints;
using Texts = std::vector<std::string>;

Tensor texts(const Texts& values) { return Tensor::of<std::string>({static_cast<int64_t>(values.size())}, values); }

TEST(StringEvaluator, Concat) {
  const Tensor column = Tensor::of<std::string>({2, 1}, {"a", ""});
  EXPECT_TRUE(evaluated("StringConcat", {column, texts({"x", "yz"})})
                  .identical(Tensor::of<std::string>({2, 2}, {"ax", "ayz", "x", "yz"})));
}

TEST(StringEvaluator, Split) {
  const auto split = [](const Texts& x, const Attributes& attributes) {
    return evaluated_all("StringSplit", {texts(x)}, attributes, 2);
  };
  auto y = split({" a  b\tc ", "", "d"}, {});
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<std::string>({3, 3}, {"a", "b", "c", "", "", "", "d", "", ""})));
  EXPECT_TRUE(y[1].tensor().identical(ints({3, 0, 1})));
  y = split({"a--b----c", ""}, {{"delimiter", "--"}});
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<std::string>({2, 4}, {"a", "b", "", "c", "", "", "", ""})));
  EXPECT_TRUE(y[1].tensor().identical(ints({4, 1})));
  y = split({"a,b,c"}, {{"delimiter", ","}, {"maxsplit", 1}});
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<std::string>({1, 2}, {"a", "b,c"})));
  y = split({" a b c"}, {{"maxsplit", 1}});
  EXPECT_TRUE(y[0].tensor().identical(Tensor::of<std::string>({1, 2}, {"a", "b c"})));
  EXPECT_EQ(split({}, {})[0].tensor().dims(), (Dims{0, 0}));
}

TEST(StringEvaluator, RegexFullMatch) {
  const Attributes digits{{"pattern", "\\d+"}};
  EXPECT_TRUE(evaluated("RegexFullMatch", {texts({"12", "1a", ""})}, digits)
                  .identical(Tensor::of<bool>({3}, {true, false, false})));
  EXPECT_THAT(error_of("RegexFullMatch", {texts({"a"})}, {{"pattern", "(a"}}),
              HasSubstr("no regular expression of RE2"));
}

TEST(StringEvaluator, Normalizer) {
  const Tensor x = texts({"Monday", "tuesday", "\xC3\x84rger"});
  const auto normalized = [&](const Attributes& attributes) { return evaluated("StringNormalizer", {x}, attributes); };
  EXPECT_TRUE(normalized({{"stopwords", Texts{"monday"}}, {"is_case_sensitive", 1}}).identical(x));
  EXPECT_TRUE(normalized({{"stopwords", Texts{"monday"}}, {"case_change_action", "LOWER"}})
                  .identical(texts({"tuesday", "\xC3\xA4rger"})));
  EXPECT_TRUE(normalized({{"case_change_action", "UPPER"}}).identical(texts({"MONDAY", "TUESDAY", "\xC3\x84RGER"})));
  EXPECT_TRUE(normalized({{"stopwords", Texts{"MONDAY", "TUESDAY", "\xC3\xA4rger"}}}).identical(texts({""})));
  EXPECT_EQ(
      evaluated("StringNormalizer", {Tensor::of<std::string>({1, 2}, {"a", "b"})}, {{"stopwords", Texts{"a"}}}).dims(),
      (Dims{1, 1}));
}

TEST(StringEvaluator, TfIdfVectorizer) {
  const auto counted = [](const Tensor& x, std::string mode, int64_t shortest, int64_t skips) {
    return evaluated("TfIdfVectorizer", {x},
                     {{"mode", mode},
                      {"min_gram_length", shortest},
                      {"max_gram_length", 2},
                      {"max_skip_count", skips},
                      {"ngram_counts", Attribute::Integers{0, 2}},
                      {"ngram_indexes", Attribute::Integers{2, 0, 1, 3}},
                      {"weights", Attribute::Reals{2, 3, 4, 5}},
                      {"pool_int64s", Attribute::Integers{1, 2, 1, 2, 2, 2}}});
  };
  const Tensor x = ints({1, 2, 1, 2, 2});  // 1: twice, 2: three times, (1, 2): twice, (2, 2): once
  EXPECT_TRUE(counted(x, "TF", 1, 0).identical(Tensor::of<float>({4}, {3, 2, 2, 1})));
  EXPECT_TRUE(counted(x, "TF", 2, 0).identical(Tensor::of<float>({4}, {0, 2, 0, 1})));
  EXPECT_TRUE(counted(x, "TF", 2, 1).identical(Tensor::of<float>({4}, {0, 3, 0, 2})));  // and one apart
  EXPECT_TRUE(counted(x, "IDF", 1, 0).identical(Tensor::of<float>({4}, {3, 4, 2, 5})));
  EXPECT_TRUE(counted(Tensor::of<int32_t>({2, 2}, {1, 2, 2, 2}), "TFIDF", 1, 0)
                  .identical(Tensor::of<float>({2, 4}, {3, 4, 2, 0, 6, 0, 0, 5})));
}

}  // namespace
}  // namespace tenon
