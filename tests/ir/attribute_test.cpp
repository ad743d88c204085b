#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include <tenon/ir/attribute.hpp>

namespace tenon {
namespace {

TEST(AttributeTest, KindFollowsTheValue) {
  const std::vector<std::pair<Attribute, AttributeKind>> cases = {
      {3, AttributeKind::integer},
      {true, AttributeKind::integer},
      {uint8_t{7}, AttributeKind::integer},
      {2.5, AttributeKind::real},
      {2.5f, AttributeKind::real},
      {"text", AttributeKind::text},
      {std::string_view("text"), AttributeKind::text},
      {Tensor::scalar<float>(1), AttributeKind::tensor},
      {Type(kF32, Shape()), AttributeKind::type},
      {Attribute::Integers{1}, AttributeKind::integers},
      {Attribute::Reals{1.f}, AttributeKind::reals},
      {Attribute::Texts{"a"}, AttributeKind::texts},
      {Attribute::Tensors{Tensor()}, AttributeKind::tensors},
  };
  for (const auto& [attribute, kind] : cases) {
    EXPECT_EQ(attribute.kind(), kind) << attribute_kind_name(kind);
    for (const auto& [other, other_kind] : cases) {
      if (kind != other_kind) {
        EXPECT_FALSE(attribute == other) << attribute_kind_name(kind) << " " << attribute_kind_name(other_kind);
      }
    }
  }
}

TEST(AttributeTest, GetIfGivesOnlyTheRightKind) {
  const Attribute attribute(int64_t{5});
  ASSERT_TRUE(attribute.get_if<int64_t>());
  EXPECT_EQ(*attribute.get_if<int64_t>(), 5);
  EXPECT_FALSE(attribute.get_if<float>());
  EXPECT_FALSE(attribute.get_if<Attribute::Integers>());
}

TEST(AttributeTest, FloatsAreComparedByBits) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), other_nan = std::bit_cast<float>(0x7fc00001u);
  EXPECT_TRUE(Attribute(nan) == Attribute(nan));
  EXPECT_EQ(Attribute(nan).hash(), Attribute(nan).hash());
  EXPECT_FALSE(Attribute(nan) == Attribute(other_nan));
  EXPECT_FALSE(Attribute(0.0f) == Attribute(-0.0f));
  EXPECT_TRUE(Attribute(Attribute::Reals{nan, 1}) == Attribute(Attribute::Reals{nan, 1}));
  EXPECT_FALSE(Attribute(Attribute::Reals{nan, 0.f}) == Attribute(Attribute::Reals{nan, -0.f}));
}

TEST(AttributeTest, TensorsAreComparedByContent) {
  const Attribute one = Tensor::of<float>({2}, {1, 2}), same = Tensor::of<float>({2}, {1, 2});
  EXPECT_TRUE(one == same);
  EXPECT_EQ(one.hash(), same.hash());
  EXPECT_FALSE(one == Attribute(Tensor::of<float>({2}, {1, 3})));
  EXPECT_FALSE(one == Attribute(Tensor::of<float>({1, 2}, {1, 2})));
  EXPECT_FALSE(one == Attribute(Tensor::of<double>({2}, {1, 2})));
  EXPECT_TRUE(Attribute(Tensor()) == Attribute(Tensor()));
}

TEST(AttributeTest, HashTellsValuesAndKindsApart) {
  EXPECT_NE(Attribute(1).hash(), Attribute(2).hash());
  EXPECT_NE(Attribute("a").hash(), Attribute("b").hash());
  EXPECT_NE(Attribute(Attribute::Integers{1, 2}).hash(), Attribute(Attribute::Integers{2, 1}).hash());
  EXPECT_NE(Attribute(Attribute::Integers{}).hash(), Attribute(Attribute::Texts{}).hash());
}

TEST(AttributesTest, SortedByNameWhateverTheOrderOfSetting) {
  Attributes attributes = {{"b", 2}, {"a", 1}};
  attributes.set("c", 3);
  attributes.set("aa", 4);
  std::string order;
  for (const auto& [name, value] : attributes) order += name.str() + " ";
  EXPECT_EQ(order, "a aa b c ");
  EXPECT_TRUE((attributes == Attributes{{"c", 3}, {"aa", 4}, {"b", 2}, {"a", 1}}));
}

TEST(AttributesTest, SetReplacesEraseForgets) {
  Attributes attributes = {{"a", 1}};
  attributes.set("a", "text");
  EXPECT_EQ(attributes.size(), 1u);
  EXPECT_EQ(attributes.find("a")->kind(), AttributeKind::text);
  attributes.erase("missing");
  EXPECT_TRUE(attributes.has("a"));
  attributes.erase("a");
  EXPECT_FALSE(attributes.has("a"));
  EXPECT_TRUE(attributes.empty());
  EXPECT_EQ(attributes.find("a"), nullptr);
}

}  // namespace
}  // namespace tenon
