#include "x86/code/code_object.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::x86 {
namespace {

const CodeMarks kMarks{{0, "", "enter"}, {8, "Exp a", "%1:f32 = Exp %0"}, {40, "Exp a", "%3:f32 = Exp %2"}};

TEST(CodeMarks, KeepsWhatWasSaid) {
  EXPECT_TRUE(CodeMarks().empty());
  ASSERT_EQ(kMarks.size(), 3u);
  EXPECT_EQ(kMarks[0], (CodeMark{0, "", "enter"}));
  EXPECT_EQ(kMarks[1], (CodeMark{8, "Exp a", "%1:f32 = Exp %0"}));
  EXPECT_EQ(kMarks.back(), (CodeMark{40, "Exp a", "%3:f32 = Exp %2"}));
}

TEST(CodeMarks, TellsWhoseCodeAnOffsetIs) {
  EXPECT_EQ(kMarks.at(0)->instruction, "enter");
  EXPECT_EQ(kMarks.at(7)->instruction, "enter");
  EXPECT_EQ(kMarks.at(8)->label, "Exp a");
  EXPECT_EQ(kMarks.at(1000)->offset, 40u);
  EXPECT_FALSE((CodeMarks{{8, "", "later"}}).at(7).has_value());
  EXPECT_FALSE(CodeMarks().at(0).has_value());
}

TEST(CodeMarks, AreEqualByWhatTheySay) {
  // Equality does not depend on how texts are stored; these have one label twice.
  const CodeMarks again{{0, "Exp a", "x"}, {8, "", "y"}, {9, "Exp a", "z"}};
  EXPECT_EQ(again, (CodeMarks{{0, "Exp a", "x"}, {8, "", "y"}, {9, "Exp a", "z"}}));
  EXPECT_NE(again, kMarks);
  EXPECT_NE(kMarks, (CodeMarks{kMarks[0], kMarks[1]}));
  EXPECT_NE(kMarks, (CodeMarks{kMarks[0], kMarks[1], {41, "Exp a", "%3:f32 = Exp %2"}}));
}

TEST(CodeMarks, LabelsOfCopiesStandOnce) {
  const std::string label(500, 'l');
  CodeMarks marks;
  for (uint32_t i = 0; i < 100; ++i) marks.add({i, label, "x"});
  EXPECT_LT(marks.footprint(), 100 * label.size() / 4);
  EXPECT_EQ(marks.back().label, label);
}

TEST(CodeMarks, CopiesAreApart) {
  CodeMarks copy = kMarks;
  copy.add({50, "other", "text that makes the other string move to another place of memory"});
  EXPECT_EQ(kMarks.size(), 3u);
  EXPECT_EQ(copy[1], kMarks[1]);
  EXPECT_NE(copy[1].label.data(), kMarks[1].label.data());
}

}  // namespace
}  // namespace tenon::x86
