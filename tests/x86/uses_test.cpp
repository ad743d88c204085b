// Where registers are written and read, and which instructions are removed as dead.
#include "x86/passes/uses.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include <gtest/gtest.h>

#include <tenon/support/str.hpp>

namespace tenon::x86 {
namespace {

LinearKernel kernel() {
  auto made = snippet::parse_linear(
      "kernel @uses lanes 8 {\n  #0 = pointer 0\n  #1 = limit loop 0\n  %0:g = Parameter #0\n  %1:g = Zero\n"
      "  %2:f32 = Scalar {bits = 0x40000000}\n  %3:f32 = Neg %2\n  %4:f32 = Abs %2\n"
      "  loop 0 d0 dim 0 %1 vector step 8 limit #1 {\n    %5:f32 = Mul %3, %3\n    %2:f32 = Add %2, %5\n"
      "    Store f32 [%0 + %1], %5\n  }\n}\n");
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
  return made.ok() ? *std::move(made) : LinearKernel();
}

TEST(Uses, AreCountedByPlaces) {
  const LinearKernel of = kernel();
  const Uses uses(of);
  EXPECT_EQ(uses.writes(2), 2);  // also in the loop
  EXPECT_FALSE(uses.maker(2));
  EXPECT_EQ(uses.maker(3), 3u);
  EXPECT_EQ(std::vector<size_t>(uses.readers(3).begin(), uses.readers(3).end()), (std::vector<size_t>{6, 6}));
  EXPECT_EQ(uses.readers(0).size(), 1u);  // as an address
  EXPECT_TRUE(uses.is_for_one(0));
  EXPECT_FALSE(uses.is_for_one(3));
  EXPECT_FALSE(uses.is_read(4));
  EXPECT_TRUE(uses.in_one_stretch(6, 8));
  EXPECT_FALSE(uses.in_one_stretch(3, 6));  // the loop begins in between
  EXPECT_TRUE(uses.is_written_between(2, 6, 8));
  EXPECT_FALSE(uses.is_written_between(2, 6, 7));  // without both ends
  EXPECT_FALSE(uses.is_written_between(2, 2, 7));
  EXPECT_TRUE(uses.stores_between(7, 9));
  EXPECT_FALSE(uses.stores_between(8, 9));
}

// Products that are added long after their computation, with all others in between.
double milliseconds_to_contract(int products) {
  std::string text = "kernel @far lanes 8 {\n  %0:f32 = Scalar {bits = 0x40000000}\n";
  for (int i = 1; i <= products; ++i) text += str("  %", i, ":f32 = Mul %0, %0\n");
  for (int i = 1; i <= products; ++i)
    text += str("  %", products + i, ":f32 = Add %", i, ", %", i == 1 ? 0 : products + i - 1, "\n");
  auto parsed = snippet::parse_linear(text + "}\n");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().to_string());
  LinearKernel made = parsed.ok() ? *std::move(parsed) : LinearKernel();
  const std::clock_t begin = std::clock();  // processor time, since other processes may use the machine
  contract_multiply_add(made);
  const double ms = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_EQ(made.body.size(), static_cast<size_t>(products) + 1);
  return ms;
}

TEST(Uses, TimeGrowsWithTheNumberOfInstructions) {
  const double small = milliseconds_to_contract(500), large = milliseconds_to_contract(50000);
  std::printf("500 products: %.2f ms, 50,000 products: %.2f ms\n", small, large);
  EXPECT_LT(large, 3000 * std::max(small, 0.1));  // a hundred times as many; quadratic growth would be 10,000
}

TEST(Uses, WhatIsReadNoMoreIsDroppedWithWhatItWasMadeOf) {
  LinearKernel of = kernel();
  const Uses before(of);
  drop_unread(of, before);
  EXPECT_EQ(print(of), print(kernel()));  // %4 had no reader before either
  of.body.erase(of.body.begin() + 7, of.body.begin() + 9);
  drop_unread(of, before);
  const std::string text = print(of);
  EXPECT_EQ(text.find("Mul"), std::string::npos) << text;
  EXPECT_EQ(text.find("Neg"), std::string::npos) << text;
  EXPECT_NE(text.find("Abs"), std::string::npos) << text;
  EXPECT_NE(text.find("Scalar"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon::x86
