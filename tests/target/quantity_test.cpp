#include <tenon/target/quantity.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tenon {
namespace {

using ::testing::HasSubstr;

struct Row {
  const char* text;
  Unit unit;
  uint64_t value;
};

class Quantity : public ::testing::TestWithParam<Row> {};
TEST_P(Quantity, IsRead) {
  const auto& row = GetParam();
  const auto value = parse_quantity(row.text, row.unit, "'x'");
  ASSERT_TRUE(value.ok()) << value.error().to_string();
  EXPECT_EQ(*value, row.value);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, Quantity,
    ::testing::Values(Row{"0 B", Unit::bytes, 0}, Row{"1 B", Unit::bytes, 1}, Row{"3 KiB", Unit::bytes, 3072},
                      Row{"5MiB", Unit::bytes, 5u << 20}, Row{"7   GiB", Unit::bytes, 7ull << 30},
                      Row{"1.5 KiB", Unit::bytes, 1536}, Row{"0.5 KiB", Unit::bytes, 512},
                      Row{"18446744073709551615 B", Unit::bytes, UINT64_MAX},
                      Row{"17179869183 GiB", Unit::bytes, 17179869183ull << 30},
                      Row{"1.0000000000000000000000000 B", Unit::bytes, 1}, Row{"007 B", Unit::bytes, 7},
                      Row{"1 Hz", Unit::hertz, 1}, Row{"2 kHz", Unit::hertz, 2000},
                      Row{"33.333333 MHz", Unit::hertz, 33333333}, Row{"1.2 GHz", Unit::hertz, 1200000000},
                      Row{"1 cycle", Unit::cycles, 1}, Row{"64 cycles", Unit::cycles, 64}, Row{"1 bit", Unit::bits, 1},
                      Row{"512 bits", Unit::bits, 512}, Row{"42", Unit::none, 42}, Row{"2.0", Unit::none, 2}));

struct BadRow {
  const char* text;
  Unit unit;
  const char* sentence;
};
class BadQuantity : public ::testing::TestWithParam<BadRow> {};
TEST_P(BadQuantity, IsRefusedWithASentence) {
  const auto& row = GetParam();
  const auto value = parse_quantity(row.text, row.unit, "'x'");
  ASSERT_FALSE(value.ok()) << *value;
  EXPECT_EQ(value.error().code(), Code::invalid_argument);
  EXPECT_THAT(value.error().message(), HasSubstr(row.sentence));
}
INSTANTIATE_TEST_SUITE_P(
    Rows, BadQuantity,
    ::testing::Values(
        BadRow{"", Unit::bytes, "'x' is \"\"; expected a number with its unit"},
        BadRow{"512", Unit::bytes, "'x' is 512 with no unit; write one of B, KiB, MiB, GiB"},
        BadRow{"512 KB", Unit::bytes, "'x' has the unit \"KB\"; write one of B, KiB, MiB, GiB"},
        BadRow{"512 kib", Unit::bytes, "has the unit \"kib\""}, BadRow{"1 Hz", Unit::bytes, "has the unit \"Hz\""},
        BadRow{"1 B B", Unit::bytes, "unit \"B B\""}, BadRow{"1 2 B", Unit::bytes, "unit \"2 B\""},
        BadRow{"1..5 B", Unit::bytes, "expected a number"}, BadRow{"1. B", Unit::bytes, "expected a number"},
        BadRow{".5 B", Unit::bytes, "expected a number"}, BadRow{"+1 B", Unit::bytes, "expected a number"},
        BadRow{"nan B", Unit::bytes, "expected a number"}, BadRow{"inf B", Unit::bytes, "expected a number"},
        BadRow{"1,5 B", Unit::bytes, "unit \",5 B\""}, BadRow{"-1 B", Unit::bytes, "may not be negative"},
        BadRow{"0.5 B", Unit::bytes, "not a whole number of B"},
        BadRow{"1.2345 kHz", Unit::hertz, "not a whole number of Hz"},
        BadRow{"18446744073709551616 B", Unit::bytes, "more than 2^64 - 1"},
        BadRow{"17179869184 GiB", Unit::bytes, "more than 2^64 - 1"},
        BadRow{"0.00000000000000000001 GiB", Unit::bytes, "2^64 - 1"},
        BadRow{"5 ns", Unit::cycles, "write one of cycle, cycles"},
        BadRow{"32 B", Unit::bits, "write one of bit, bits"},
        BadRow{"4 banks", Unit::none, "it takes a plain number, without \"banks\""}));

TEST(Quantity, FormatsInTheLargestUnitThatDivides) {
  EXPECT_EQ(format_quantity(0, Unit::none), "0");
  EXPECT_EQ(format_quantity(1536, Unit::bytes), "1536 B");
  EXPECT_EQ(format_quantity(3 << 20, Unit::bytes), "3 MiB");
  EXPECT_EQ(format_quantity(1'500'000, Unit::hertz), "1500 kHz");
  EXPECT_EQ(format_quantity(1, Unit::cycles), "1 cycle");
  EXPECT_EQ(format_quantity(2, Unit::cycles), "2 cycles");
  EXPECT_EQ(format_quantity(256, Unit::bits), "256 bits");
}

TEST(Quantity, FormattedTextReadsBack) {
  constexpr uint64_t kSeed = 20240611;
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t value = random() >> (random() % 64);
    for (const Unit unit : {Unit::none, Unit::bytes, Unit::hertz, Unit::cycles, Unit::bits}) {
      const auto text = format_quantity(value, unit);
      const auto back = parse_quantity(text, unit, "'x'");
      ASSERT_TRUE(back.ok()) << text << ", seed " << kSeed;
      ASSERT_EQ(*back, value) << text << ", seed " << kSeed;
    }
  }
}

TEST(Bandwidth, EveryUnit) {
  const std::pair<const char*, Bandwidth> rows[] = {
      {"8 B/cycle", {8, Bandwidth::Per::cycle}},
      {"0.25 B/cycle", {0.25, Bandwidth::Per::cycle}},
      {"9 B/s", {9, Bandwidth::Per::second}},
      {"2 KB/s", {2e3, Bandwidth::Per::second}},
      {"2 KiB/s", {2048, Bandwidth::Per::second}},
      {"3 MB/s", {3e6, Bandwidth::Per::second}},
      {"3 MiB/s", {3.0 * 1048576, Bandwidth::Per::second}},
      {"12.8 GB/s", {12.8e9, Bandwidth::Per::second}},
      {"1 GiB/s", {1073741824, Bandwidth::Per::second}},
  };
  EXPECT_EQ(std::size(rows), bandwidth_unit_names().size() + 1);
  for (const auto& [text, expected] : rows) {
    const auto value = parse_bandwidth(text, "'x'");
    ASSERT_TRUE(value.ok()) << value.error().to_string();
    EXPECT_EQ(*value, expected) << text;
    const auto back = parse_bandwidth(format_bandwidth(*value), "'x'");
    ASSERT_TRUE(back.ok()) << format_bandwidth(*value);
    EXPECT_EQ(*back, expected) << text;
  }
}

TEST(Bandwidth, IsRefused) {
  for (const char* text : {"0 B/cycle", "0 GB/s", "8", "8 GB", "8 Gbit/s", "0.5 B/s", "-1 B/cycle",
                           "9007199254740993 B/s", "18446744073709551615 B/cycle", "fast"})
    EXPECT_FALSE(parse_bandwidth(text, "'x'").ok()) << text;
  EXPECT_TRUE(parse_bandwidth("9007199254740992 B/s", "'x'").ok());
}

TEST(Bandwidth, PerCycleNeedsAClock) {
  EXPECT_EQ((Bandwidth{8, Bandwidth::Per::cycle}).bytes_per_second(100'000'000), 8e8);
  EXPECT_EQ((Bandwidth{5e9, Bandwidth::Per::second}).bytes_per_second(0), 5e9);
}

}  // namespace
}  // namespace tenon
