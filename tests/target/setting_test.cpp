#include <tenon/target/setting.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/target/load.hpp>

#include "target_files.hpp"

namespace tenon {
namespace {

// The options of a target, as a plugin gets them.
Setting options(const std::string& lines) {
  const auto root = parse_yaml(lines, "f.yaml");
  EXPECT_TRUE(root.ok()) << root.error().to_string();
  return *root;
}
template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? "no error" : result.error().message();
}

TEST(Setting, TypedAccess) {
  const auto s = options(
      "width: 8 bits\ndepth: -3\nname: sim\nfast: true\nratio: 0.25\nrate: 8 B/cycle\nlist: [1, 2]\n"
      "inner: {size: 4 KiB}\nempty:\n");
  EXPECT_EQ(*s.quantity("width", Unit::bits, 1, 32), 8u);
  EXPECT_EQ(*s.integer("depth", -5, 5), -3);
  EXPECT_EQ(*s.text_of("name"), "sim");
  EXPECT_TRUE(*s.boolean("fast"));
  EXPECT_EQ(*s.find("ratio")->as_real(), 0.25);
  EXPECT_EQ(s.find("rate")->as_bandwidth()->bytes, 8);
  const auto list = s.list("list");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ((*list)->items().size(), 2u);
  EXPECT_EQ(*(*list)->items()[1].as_integer(), 2);
  EXPECT_EQ(*(*s.map("inner"))->quantity("size", Unit::bytes, 1, 1 << 20), 4096u);
  EXPECT_EQ(s.find("empty")->kind(), Setting::Kind::none);
  EXPECT_EQ(s.find("absent"), nullptr);
}

TEST(Setting, FallbacksServeAbsentKeysOnly) {
  const auto s = options("depth: deep\n");
  EXPECT_EQ(*s.integer_or("other", 7, 0, 10), 7);
  EXPECT_EQ(*s.quantity_or("other", Unit::bytes, 9, 1, 10), 9u);
  EXPECT_EQ(*s.text_or("other", "x"), "x");
  EXPECT_TRUE(*s.boolean_or("other", true));
  EXPECT_FALSE(s.integer_or("depth", 7, 0, 10).ok());
  EXPECT_FALSE(s.quantity_or("depth", Unit::bytes, 9, 1, 10).ok());
  EXPECT_FALSE(s.boolean_or("depth", true).ok());
}

TEST(Setting, MisuseNamesThePlace) {
  const auto s = options("a: 1\nmap:\n  b: word\n  c: [1]\n  d: \"5\"\n");
  const auto& map = **s.map("map");
  EXPECT_EQ(message(map.integer("b", 0, 9)), "f.yaml:3:6: 'b' is \"word\"; expected a whole number");
  EXPECT_EQ(message(s.integer("a", 2, 9)), "f.yaml:1:4: 'a' is 1, outside [2, 9]");
  EXPECT_EQ(message(map.integer("c", 0, 9)), "f.yaml:4:6: 'c' is a list; expected a single value");
  EXPECT_EQ(message(map.integer("d", 0, 9)),
            "f.yaml:5:6: 'd' is the text \"5\"; expected a whole number, without quotes");
  EXPECT_EQ(message(map.get("e")), "f.yaml:3:3: 'map' lacks the key 'e'");
  EXPECT_EQ(message(s.get("e")), "f.yaml:1:1: the key 'e' is missing");
  EXPECT_EQ(message(s.map("a")), "f.yaml:1:4: 'a' is a single value; expected a map");
  EXPECT_EQ(message(s.list("map")), "f.yaml:3:3: 'map' is a map; expected a list");
  EXPECT_EQ(message(map.boolean("b")), "f.yaml:3:6: 'b' is \"word\"; expected true or false");
  EXPECT_EQ(message(map.quantity("b", Unit::bits, 0, 9)),
            "f.yaml:3:6: 'b' is \"word\"; expected a number with its unit, such as 64 bits");
  EXPECT_EQ(message(map.allow_keys({"b", "cc", "d"})), "f.yaml:4:3: unknown key \"c\" in 'map'; did you mean 'b'?");
  EXPECT_TRUE(map.allow_keys({"b", "c", "d"}).ok());
  EXPECT_THAT(message(map.allow_keys({})), ::testing::HasSubstr("in 'map'; there are no keys here"));
  EXPECT_EQ(message(map.find("c")->items()[0].as_bool()), "f.yaml:4:7: this value is \"1\"; expected true or false");
}

TEST(Setting, NumbersAtTheirLimits) {
  const auto s = options(
      "lo: -9223372036854775808\nhi: 9223372036854775807\nover: 9223372036854775808\nhuge: 1e999\n"
      "nan: nan\nu: 18446744073709551615\n");
  EXPECT_EQ(*s.find("lo")->as_integer(), INT64_MIN);
  EXPECT_EQ(*s.find("hi")->as_integer(), INT64_MAX);
  EXPECT_FALSE(s.find("over")->as_integer().ok());
  EXPECT_FALSE(s.find("huge")->as_real().ok());
  EXPECT_FALSE(s.find("nan")->as_real().ok());
  EXPECT_EQ(*s.find("u")->as_quantity(Unit::none), UINT64_MAX);
}

TEST(Setting, LongValuesAreClippedInMessagesBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "ä";
  const auto error = options("a: x" + umlauts + "\n").find("a")->as_integer();
  ASSERT_FALSE(error.ok());
  EXPECT_LT(error.error().message().size(), 150u);
  EXPECT_TRUE(is_utf8(error.error().message()));
}

TEST(Setting, EqualityKnowsQuotesAndNotPlaces) {
  EXPECT_EQ(options("a: 1\n"), options("\n\na:    1\n"));
  EXPECT_NE(options("a: 1\n"), options("a: \"1\"\n"));
  EXPECT_NE(options("a: 1\n"), options("b: 1\n"));
  EXPECT_NE(options("a: [1]\n"), options("a: [1, 1]\n"));
}

TEST(Setting, YamlReadsBack) {
  const char* rows[] = {
      "a: 1\n",
      "a: \"1\"\nb: ~\nc: \"~\"\nd: \"null\"\ne: \"\"\n",
      "a: {b: {c: {d: [1, [2, {e: f}], []]}}}\n",
      "a: \"x: y # z\"\nb: \"NCHW{1n16c}\"\nc: \"tab\\tline\\nquote\\\" \\\\\"\n",
      "\"odd key: [\": 1\n\"true\": false\n",
      "umlaut: ä\nemoji: \"\U0001F600\"\n",
      "n: -1\nminus: \"-\"\ndots: \"...\"\nstar: \"*x\"\n",
      "{}\n",
      "[]\n",
      "[a, b]\n",
      "word\n",
      "~\n",
      "\"\"\n",
  };
  for (const char* text : rows) {
    const auto first = options(text);
    const auto written = to_yaml(first);
    const auto second = parse_yaml(written, "again.yaml");
    ASSERT_TRUE(second.ok()) << written << second.error().to_string();
    EXPECT_EQ(first, *second) << text << " became " << written;
  }
}

TEST(Setting, JsonHasStringsAndWords) {
  auto json = Setting::map();
  json.add("a", Setting::word("1"))
      .add("b", Setting::text("x\"\n"))
      .add("c", Setting::list().add(Setting::word("true")));
  EXPECT_EQ(to_json(json), "{\n  \"a\": 1,\n  \"b\": \"x\\\"\\n\",\n  \"c\": [true]\n}\n");
  EXPECT_EQ(to_json(Setting::text(std::string("\x01\\x02\t\"", 7))), "\"\\u0001\\\\x02\\t\\\"\"\n");
  EXPECT_EQ(to_json(Setting::map()), "{}\n");
  EXPECT_EQ(to_json(Setting()), "null\n");
}

}  // namespace
}  // namespace tenon
