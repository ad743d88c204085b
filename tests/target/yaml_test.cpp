// What parse_yaml and read_small_file refuse, and that they are fast and never crash on any input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <random>

#include <tenon/target/load.hpp>
#include <tenon/target/setting.hpp>

#include "target_files.hpp"

namespace tenon {
namespace {

using test::kHead;
using ::testing::HasSubstr;
using ::testing::StartsWith;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Nested maps (or lists), `depth` in all; the outermost is the file's own map.
std::string nested(int depth, const char* open, const char* close) {
  std::string text = "options: ";
  for (int i = 1; i < depth; ++i) text += open;
  text += "1";
  for (int i = 1; i < depth; ++i) text += close;
  return text + "\n";
}

TEST(ParseYaml, DepthUpToTheCap) {
  for (const auto& [open, close] : {std::pair{"{a: ", "}"}, std::pair{"[", "]"}}) {
    EXPECT_TRUE(parse_yaml(nested(63, open, close), "f").ok());
    EXPECT_TRUE(parse_yaml(nested(64, open, close), "f").ok());
    const auto over = parse_yaml(nested(65, open, close), "f");
    ASSERT_FALSE(over.ok());
    EXPECT_THAT(over.error().message(), StartsWith("f:1:"));
    EXPECT_THAT(over.error().message(), HasSubstr("nested deeper than 64 levels"));
  }
  EXPECT_EQ(parse_yaml(nested(65, "[", "]"), "f").error().message(),
            "f:1:73: maps and lists are nested deeper than 64 levels here");
}

TEST(ParseYaml, HostileNestingEndsQuickly) {
  const auto start = std::chrono::steady_clock::now();
  for (const char* unit : {"[", "{", "{a: ", "- ", "? ", "a:\n ", "[{", "!", "&a ", "\"", "'", "|\n", "{? ", "[? "}) {
    std::string text;
    while (text.size() < 100'000) text += unit;
    EXPECT_FALSE(parse_target(text, "f").ok()) << unit;
  }
  std::string staircase;  // block maps, each a column further in
  for (int i = 0; i < 400; ++i) staircase += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_FALSE(parse_yaml(staircase, "f").ok());
  EXPECT_LT(seconds_since(start), 60);
}

TEST(ParseYaml, SizeUpToTheCap) {
  const auto padded = [](size_t bytes) { return kHead + "#" + std::string(bytes - kHead.size() - 2, 'x') + "\n"; };
  EXPECT_TRUE(parse_target(padded(kMaxYamlBytes - 1), "f").ok());
  EXPECT_TRUE(parse_target(padded(kMaxYamlBytes), "f").ok());
  const auto over = parse_target(padded(kMaxYamlBytes + 1), "f");
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().message(), "f: 1048577 bytes; a target file may have at most 1048576");
  EXPECT_EQ(over.error().code(), Code::resource_exhausted);
}

TEST(ParseYaml, LargeFilesTakeLinearTime) {
  std::string many_keys = kHead + "options:\n";
  for (int i = 0; many_keys.size() < 900'000; ++i) many_keys += str("  key", i, ": ", i, "\n");
  std::string one_list = kHead + "options: {list: [";
  while (one_list.size() < 900'000) one_list += "a,";
  one_list += "a]}\n";
  for (const auto& text : {many_keys, one_list}) {
    const auto start = std::chrono::steady_clock::now();
    const auto target = parse_target(text, "f");
    ASSERT_TRUE(target.ok()) << target.error().to_string();
    EXPECT_LT(seconds_since(start), 20);
  }
}

TEST(ParseYaml, AliasBombIsRefusedAtOnce) {
  const auto bomb = test::read_bytes(test::kSource + "/tests/fixtures/yaml/bad/alias_bomb.yaml");
  const auto start = std::chrono::steady_clock::now();
  const auto refused = parse_yaml(bomb, "bomb.yaml");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("anchor \"a\" is not allowed"));
  EXPECT_LT(seconds_since(start), 1);
}

// Every control byte, alone and escaped; every byte that does not start a UTF-8 sequence.
TEST(ParseYaml, ControlAndForeignBytes) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    const bool allowed = (byte >= 0x20 && byte < 0x7f) || c == '\t' || c == '\n' || c == '\r';
    const auto result = parse_yaml(std::string("a: b # ") + c + "\n", "f");
    EXPECT_EQ(result.ok(), allowed) << "byte " << byte;
    if (!allowed) {
      EXPECT_THAT(result.error().message(), StartsWith("f:1:8: the "));
    }
  }
  for (const char* escape : {"\\0", "\\x01", "\\a", "\\e", "\\x7f", "\\x9f", "\\u0000", "\\ud800", "\\U00110000"})
    EXPECT_FALSE(parse_yaml(str("a: \"", escape, "\"\n"), "f").ok()) << escape;
  EXPECT_TRUE(parse_yaml("a: \"\\t\\n\\u00e4\"\n", "f").ok());
}

TEST(ParseYaml, OtherEncodingsAreRefused) {
  EXPECT_FALSE(parse_yaml(std::string("\xff\xfe\x61\x00", 4), "f").ok());
  EXPECT_FALSE(parse_yaml(std::string("\xfe\xff\x00\x61", 4), "f").ok());
  EXPECT_FALSE(parse_yaml(std::string("\x00\x61\x00\x3a", 4), "f").ok());
  EXPECT_TRUE(parse_target("\xef\xbb\xbf" + kHead, "f").ok()) << "a UTF-8 byte order mark";
}

TEST(ParseYaml, PlacesCountFromOne) {
  const auto root = parse_yaml("a: 1\nbb:\n  - x\n  - {c: y}\n", "f.yaml");
  ASSERT_TRUE(root.ok());
  const auto place = [](const Setting& s) { return s.place().prefix(); };
  EXPECT_EQ(place(*root), "f.yaml:1:1: ");
  EXPECT_EQ(place(*root->find("a")), "f.yaml:1:4: ");
  EXPECT_EQ(place(root->find("bb")->items()[0]), "f.yaml:3:5: ");
  EXPECT_EQ(place(*root->find("bb")->items()[1].find("c")), "f.yaml:4:9: ");
}

using ReadSmallFile = test::Scratch;

TEST_F(ReadSmallFile, OnlyRegularFilesUpToTheCap) {
  test::write_bytes(path("good"), "text");
  EXPECT_EQ(*read_small_file(path("good")), "text");
  EXPECT_EQ(*read_small_file(path("good"), 4), "text");
  EXPECT_EQ(read_small_file(path("good"), 3).error().code(), Code::resource_exhausted);
  EXPECT_EQ(read_small_file(path("absent")).error().code(), Code::not_found);
  EXPECT_THAT(read_small_file(folder_.string()).error().message(), HasSubstr("a folder"));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(read_small_file(path("fifo")).error().message(), HasSubstr("not a regular file"));
  EXPECT_THAT(read_small_file("/dev/zero").error().message(), HasSubstr("not a regular file"));
  std::filesystem::create_symlink(path("loop"), path("loop"));
  EXPECT_EQ(read_small_file(path("loop")).error().code(), Code::io);
  std::filesystem::create_symlink(path("good"), path("link"));
  EXPECT_EQ(*read_small_file(path("link")), "text");
}

// Mutations of the valid files: some remain valid, none may crash, hang or throw. Valid ones must round trip.
TEST(ParseYaml, FiveThousandMutations) {
  constexpr unsigned kSeed = 7071;
  constexpr std::string_view kPieces[] = {"{",  "}",    "[",  "]",    ": ",
                                          ", ", "- ",   "\n", "  ",   "&a ",
                                          "*a", "!!x ", "? ", "#",    "\"",
                                          "'",  "|",    ">",  "%",    "---\n",
                                          "\t", "\xff", "~",  "<<: ", "99999999999999999999",
                                          "-1", "0"};
  std::vector<std::string> seeds;
  for (const auto& path : test::yaml_files("targets")) seeds.push_back(test::read_bytes(path));
  ASSERT_GE(seeds.size(), 9u);
  std::mt19937 random(kSeed);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const auto start = std::chrono::steady_clock::now();
  double slowest = 0;
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = seeds[below(seeds.size())];
    for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
      const size_t at = below(text.size());
      switch (below(6)) {
        case 0: text[at] = static_cast<char>(below(256)); break;
        case 1: text.erase(at, 1 + below(20)); break;
        case 2: text.insert(at, kPieces[below(std::size(kPieces))]); break;
        case 3: text.insert(at, text.substr(below(text.size()), below(80))); break;
        case 4: text.resize(at); break;
        case 5: std::swap(text[at], text[below(text.size())]); break;
      }
    }
    const auto before = std::chrono::steady_clock::now();
    const auto target = parse_target(text, "mutated.yaml");
    slowest = std::max(slowest, seconds_since(before));
    if (!target.ok()) {
      EXPECT_THAT(target.error().message(), StartsWith("mutated.yaml")) << "seed " << kSeed << ", mutation " << i;
      continue;
    }
    ++accepted;
    const auto again = parse_target(to_yaml(*target), "again.yaml");
    ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << text;
    EXPECT_EQ(*again, *target) << "seed " << kSeed << ", mutation " << i << "\n" << text;
  }
  EXPECT_GT(accepted, 100) << "mutations that change nothing of weight exercise the writer";
  EXPECT_LT(accepted, 4500);
  EXPECT_LT(slowest, 2);
  EXPECT_LT(seconds_since(start), 120);
}

}  // namespace
}  // namespace tenon
