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
  EXPECT_THAT(attention("f32[2,4,2,8]", "f32[1,4,2,8]", "f32[2,4,2,8]"), HasSubstr("batch of 2, K of 1"));
  EXPECT_THAT(attention("f32[2,4,2,8]", "f32[2,4,2,8]", "f32[3,4,2,8]"), HasSubstr("V of 3"));
}

TEST(AttentionShape, ThePastIsOfTheHeadsOfKAndV) {
  const auto with_past = [](std::string_view key, std::string_view value) {
    return inferred(str("(%q: f32[B,8,L,64], %k: f32[B,8,S,64], %v: f32[B,8,S,32], %pk: ", key, ", %pv: ", value,
                        ") -> %y { %y = Attention %q, %k, %v, _, %pk, %pv }"));
  };
  EXPECT_EQ(with_past("f32[B,8,12,64]", "f32[B,8,12,32]"), "f32[B,8,L,32]");
  EXPECT_THAT(with_past("f32[B,8,12,64]", "f32[B,8,16,32]"), HasSubstr("operand 5 of Attention"));
  EXPECT_THAT(with_past("f32[B,8,12,32]", "f32[B,8,12,32]"), HasSubstr("operand 4 of Attention"));
  EXPECT_THAT(with_past("f32[B,4,12,64]", "f32[B,8,12,32]"), HasSubstr("it must be [B,8,?,64]"));
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
  const auto looked_up = [](std::string_view sines, std::string_view positions) {
    return inferred(str("(%x: f32[2,4,3,8], %c: f32[50,4], %s: ", sines, ", %p: ", positions,
                        ") -> %y { %y = RotaryEmbedding %x, %c, %s, %p }"));
  };
  EXPECT_EQ(looked_up("f32[50,4]", "i64[2,3]"), "f32[2,4,3,8]");
  EXPECT_THAT(looked_up("f32[49,4]", "i64[2,3]"), HasSubstr("it must be [50,4]"));
  EXPECT_THAT(looked_up("f32[50,4]", "i64[1,3]"), HasSubstr("it must be [2,3]"));
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
  EXPECT_THAT(linear(", %g", "linear"), HasSubstr("operand 3 of LinearAttention"));
  const auto decayed = [](std::string_view keys, std::string_view decay, std::string_view beta) {
    return inferred(str("(%q: f16[B,4,64], %k: f16[B,", keys, ",16], %v: f16[B,", keys, ",8], %g: ", decay,
                        ", %b: ", beta, ") -> %y { %y = LinearAttention %q, %k, %v, _, %g, %b ",
                        "{q_num_heads = 8, kv_num_heads = 2} }"));
  };
  EXPECT_EQ(decayed("4", "f16[B,4,16]", "f16[B,4,1]"), "f16[B,4,32]");
  EXPECT_THAT(decayed("5", "f16[B,5,2]", "f16[B,5,2]"), HasSubstr("query has 4 steps, key 5"));
  EXPECT_THAT(decayed("4", "f16[]", "f16[B,4,2]"), HasSubstr("operand 4 of LinearAttention"));
  EXPECT_THAT(decayed("4", "f16[B,4,3]", "f16[B,4,2]"), HasSubstr("its last axis must be 1 or 2 or 16"));
  EXPECT_THAT(decayed("4", "f16[B,4,2]", "f16[B,3,2]"), HasSubstr("operand 5 of LinearAttention"));
  EXPECT_THAT(decayed("4", "f16[B,4,2]", "f16[B,4,0]"), HasSubstr("its last axis must be 1 or 2"));
}

}  // namespace
}  // namespace tenon
