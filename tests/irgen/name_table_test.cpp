#include <tenon/irgen/name_table.hpp>

#include <gtest/gtest.h>

namespace tenon::irgen {
namespace {

TEST(NameTable, NumbersWhatIsTaken) {
  NameTable names;
  EXPECT_EQ(names.fresh("x"), "x");
  EXPECT_EQ(names.fresh("x"), "x_2");
  EXPECT_EQ(names.fresh("x"), "x_3");
  EXPECT_EQ(names.fresh("y"), "y");
}

TEST(NameTable, ANameThatWasMadeOfAnotherIsTaken) {
  NameTable names;
  EXPECT_EQ(names.fresh("x_2"), "x_2");
  EXPECT_EQ(names.fresh("x"), "x");
  EXPECT_EQ(names.fresh("x"), "x_3");
  EXPECT_EQ(names.fresh("x_3"), "x_3_2");
  EXPECT_EQ(names.fresh("x_3"), "x_3_3");
}

TEST(NameTable, SpellsAnyText) {
  NameTable names;
  EXPECT_EQ(names.fresh("a/b:0"), "a_b_0");
  EXPECT_EQ(names.fresh("a b 0"), "a_b_0_2");
  EXPECT_EQ(names.fresh("7"), "v7");
  EXPECT_EQ(names.fresh(""), "v");
}

}  // namespace
}  // namespace tenon::irgen
