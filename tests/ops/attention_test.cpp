#include <tenon/ops/attention.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string attention(std::string_view q, std::string_view k, std::string_view v, std::string_view attributes = "") {
  return inferred(str("(%q: ", q, ", %k: ", k, ", %v: ", v,
                      ") -> (%y, %pk, %pv, %s) { %y, %pk, %pv, %s = Attention %q, %k, %v ", attributes, " }"));
}

TEST(AttentionShape, HeadsApartOrPacked) {
  EXPECT_EQ(attention("f32[B,8,L,64]", "f32[B,2,S,64]", "f32[B,2,S,32]"),
            "f32[B,8,L,32] f32[B,2,S,64] f32[B,2,S,32] f32[B,8,L,S]");
  EXPECT_EQ(attention("f32[B,L,512]", "f32[B,S,128]", "f32[B,S,64]", "{q_num_heads = 8, kv_num_heads = 2}"),
            "f32[B,L,256] f32[B,2,S,64] f32[B,2,S,32] f32[B,8,L,S]");
  EXPECT_EQ(inferred("(%q: f32[B,8,L,64], %k: f32[B,8,S,64], %p: f32[B,8,P,64]) -> (%y, %pk) "
                     "{ %y, %pk = Attention %q, %k, %k, _, %p, %p }"),
            "f32[B,8,L,64] f32[B,8,P + S,64]");
}

TEST(AttentionShape, Refusals) {
  EXPECT_THAT(attention("f32[1,4,2,8]", "f32[1,3,2,8]", "f32[1,3,2,8]"), HasSubstr("4 query heads cannot share 3"));
  EXPECT_THAT(attention("f32[1,4,2,8]", "f32[1,4,2,9]", "f32[1,4,2,8]"), HasSubstr("8 elements, those of K 9"));
  EXPECT_THAT(attention("f32[1,4,2,8]", "f32[1,4,2,8]", "f32[1,4,3,8]"), HasSubstr("length"));
  EXPECT_THAT(attention("f32[1,2,9]", "f32[1,2,8]", "f32[1,2,8]", "{q_num_heads = 2, kv_num_heads = 2}"),
              HasSubstr("q_num_heads"));
  EXPECT_THAT(attention("f32[1,2,8]", "f32[1,2,8]", "f32[1,2,8]"), HasSubstr("q_num_heads"));
  EXPECT_THAT(attention("f32[8]", "f32[1,2,8]", "f32[1,2,8]"), HasSubstr("rank 3 or 4"));
}

TEST(AttentionShape, Rotary) {
  const auto rotary = [](std::string_view x, std::string_view cache, std::string_view attributes = "") {
    return inferred(str("(%x: ", x, ", %c: ", cache, ", %p: i64[B,L]) -> %y { %y = RotaryEmbedding %x, %c, %c, %p ",
                        attributes, " }"));
  };
  EXPECT_EQ(rotary("f32[B,4,L,8]", "f32[50,4]"), "f32[B,4,L,8]");
  EXPECT_EQ(rotary("f32[B,L,32]", "f32[50,2]", "{num_heads = 4, rotary_embedding_dim = 4}"), "f32[B,L,32]");
  EXPECT_THAT(rotary("f32[B,4,L,8]", "f32[50,3]"), HasSubstr("last axis must be 4"));
  EXPECT_THAT(rotary("f32[B,4,L,7]", "f32[50,3]"), HasSubstr("even"));
}

TEST(AttentionShape, Linear) {
  const auto linear = [](std::string_view rest, std::string_view rule) {
    return inferred(
        str("(%q: f16[B,T,64], %k: f16[B,T,16], %v: f16[B,T,8], %g: f16[B,T,2]) -> (%y, %s) { %y, %s = LinearAttention "
            "%q, %k, %v",
            rest, " {q_num_heads = 8, kv_num_heads = 2, update_rule = \"", rule, "\"} }"));
  };
  EXPECT_EQ(linear("", "linear"), "f16[B,T,32] f16[B,2,8,4]");
  EXPECT_EQ(linear(", _, %g, %g", "gated_delta"), "f16[B,T,32] f16[B,2,8,4]");
  EXPECT_THAT(linear("", "gated"), HasSubstr("gated rules need decay"));
  EXPECT_THAT(linear("", "other"), HasSubstr("update_rule"));
}

}  // namespace
}  // namespace tenon
