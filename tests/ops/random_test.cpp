#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/ir/op_def.hpp>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

TEST(RandomRule, Types) {
  EXPECT_EQ(inferred("() -> %y { %y = RandomNormal {shape = [2, 3]} }"), "f32[2,3]");
  EXPECT_EQ(inferred("() -> %y { %y = RandomUniform {shape = [0], dtype = type<f16[*]>} }"), "f16[0]");
  EXPECT_THAT(inferred("() -> %y { %y = RandomUniform {shape = [2, -1]} }"), HasSubstr("the attribute 'shape' of "));
  EXPECT_THAT(inferred("() -> %y { %y = RandomUniform }"), HasSubstr("shape"));
  EXPECT_EQ(inferred("(%x: f64[N]) -> %y { %y = RandomNormalLike %x }"), "f64[N]");
  EXPECT_EQ(inferred("(%x: i32[*]) -> %y { %y = RandomUniformLike %x {dtype = type<f32[*]>} }"), "f32[*]");
  EXPECT_EQ(inferred("(%x: f64[N]) -> %y { %y = Bernoulli %x {dtype = type<bool[*]>} }"), "bool[N]");
  EXPECT_EQ(inferred("(%x: f32[N,4]) -> %y { %y = Multinomial %x {sample_size = 7} }"), "i32[N,7]");
  EXPECT_EQ(inferred("(%x: f32[*]) -> %y { %y = Multinomial %x {dtype = type<i64[*]>} }"), "i64[?,1]");
  EXPECT_THAT(inferred("(%x: f32[4]) -> %y { %y = Multinomial %x }"), HasSubstr("must be [batch, classes]"));
  EXPECT_THAT(inferred("(%x: f32[N,4]) -> %y { %y = Multinomial %x {sample_size = -1} }"),
              HasSubstr("sample_size is -1"));
}

TEST(RandomRule, IsNotPure) {
  for (const char* name :
       {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}) {
    const OpDef* def = find_op(Name(name));
    ASSERT_NE(def, nullptr) << name;
    EXPECT_TRUE(def->has(Trait::random)) << name;
    EXPECT_FALSE(def->has(Trait::pure)) << name;
  }
}

}  // namespace
}  // namespace tenon
