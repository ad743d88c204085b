// Sets of integers, checked for each 8-bit number.
#include "x86/body/whole_set.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

#include "x86/names.hpp"

namespace tenon::x86 {
namespace {

using Numbers = std::bitset<256>;  // indexed by the bits of the number

int value_of(ElementType type, size_t bits) { return type == kI8 ? static_cast<int8_t>(bits) : static_cast<int>(bits); }

struct Both {
  WholeSet set;
  Numbers numbers;
};

Both drawn(ElementType type, std::mt19937& random) {
  const uint64_t at = random() % 4 == 0 ? (random() % 2 == 0 ? 0x80 : 0x7f) : random() % 256;
  const auto orders = random() % 8;
  Both made{WholeSet(type, at, (orders & 1) != 0, (orders & 2) != 0, (orders & 4) != 0), {}};
  const int number = value_of(type, at);
  for (size_t bits = 0; bits < 256; ++bits) {
    const int x = value_of(type, bits);
    made.numbers[bits] = x < number ? orders & 1 : x == number ? orders >> 1 & 1 : orders >> 2 & 1;
  }
  return made;
}

bool holds(Name op, int a, int b) {
  if (op == kLess) return a < b;
  if (op == kLessOrEqual) return a <= b;
  if (op == kGreaterOrEqual) return a >= b;
  if (op == kEqual) return a == b;
  EXPECT_EQ(op, kNotEqual);
  return a != b;
}

// Compares the set with the numbers, by its intersection with each single number and by its form as a comparison.
void expect_alike(ElementType type, const Both& both) {
  for (size_t bits = 0; bits < 256; ++bits) {
    const WholeSet one(type, bits, false, true, false);
    ASSERT_EQ(both.set.common(one) == one, both.numbers[bits]) << value_of(type, bits);
  }
  const auto comparison = both.set.as_comparison();
  if (!comparison) return;
  for (size_t bits = 0; bits < 256; ++bits) {
    const int x = value_of(type, bits), number = comparison->number ? value_of(type, *comparison->number) : x;
    ASSERT_EQ(holds(comparison->op, x, number), both.numbers[bits])
        << x << " " << comparison->op.view() << " " << number;
  }
}

TEST(WholeSet, IsTheNumbers) {
  std::mt19937 random(1);
  int comparisons = 0;
  for (int i = 0; i < 2000 && !::testing::Test::HasFailure(); ++i) {
    const ElementType type = i % 2 == 0 ? kI8 : kU8;
    Both a = drawn(type, random);
    for (int step = 0; step < 4; ++step) {
      const Both b = drawn(type, random);
      const auto y = random() % 256;
      Numbers moved;
      switch (random() % 5) {
        case 0: a = {a.set.common(b.set), a.numbers & b.numbers}; break;
        case 1: a = {a.set.joined(b.set), a.numbers | b.numbers}; break;
        case 2: a = {a.set.others(), ~a.numbers}; break;
        case 3:
          for (size_t x = 0; x < 256; ++x) moved[(x + y) % 256] = a.numbers[x];
          a = {a.set.more(y), moved};
          break;
        default:
          for (size_t x = 0; x < 256; ++x) moved[(256 - x) % 256] = a.numbers[x];
          a = {a.set.negated(), moved};
      }
    }
    expect_alike(type, a);
    comparisons += a.set.as_comparison().has_value();
  }
  EXPECT_GT(comparisons, 500);
}

TEST(WholeSet, WiderIntegers) {
  const WholeSet top(kU64, ~uint64_t{0}, false, true, false), low(kU64, 1, true, false, false);
  EXPECT_EQ(top.joined(low), WholeSet(kU64, 1, true, true, false).more(~uint64_t{0})) << "0, and what is one less";
  EXPECT_EQ(low.as_comparison()->op, kEqual);
  EXPECT_EQ(*low.as_comparison()->number, 0u);
  const WholeSet least(kI64, uint64_t{1} << 63, false, true, false);
  EXPECT_EQ(least.negated(), least) << "as it wraps around";
  EXPECT_EQ(least.others().as_comparison()->op, kNotEqual);
  EXPECT_EQ(least.more(1).as_comparison()->number, (uint64_t{1} << 63) + 1);
  EXPECT_EQ(WholeSet(kI32, 7, true, true, false).as_comparison()->number, 7u);
  EXPECT_EQ(WholeSet(kI32, 7, false, false, true).as_comparison()->op, kGreaterOrEqual);
}

}  // namespace
}  // namespace tenon::x86
