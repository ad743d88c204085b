#include <tenon/ops/matmul.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support_lib/inferred.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::inferred;

std::string product(std::string_view a, std::string_view b, std::string_view op = "MatMul",
                    std::string_view attributes = "") {
  return inferred(str("(%a: ", a, ", %b: ", b, ") -> %y { %y = ", op, " %a, %b ", attributes, " }"));
}
std::string einsum(std::string_view equation, std::string_view a, std::string_view b) {
  return product(a, b, "Einsum", str("{equation = ", quote(equation), "}"));
}

TEST(MatMulShape, RanksAndBroadcasting) {
  EXPECT_EQ(product("f32[2,3]", "f32[3,4]"), "f32[2,4]");
  EXPECT_EQ(product("f32[3]", "f32[3]"), "f32[]");
  EXPECT_EQ(product("f32[3]", "f32[5,3,4]"), "f32[5,4]");
  EXPECT_EQ(product("f32[5,2,3]", "f32[3]"), "f32[5,2]");
  EXPECT_EQ(product("f32[5,1,2,3]", "f32[7,3,4]"), "f32[5,7,2,4]");
  EXPECT_EQ(product("i64[B,S,8]", "i64[8,H]"), "i64[B,S,H]");
  EXPECT_EQ(product("f32[*]", "f32[3,4]"), "f32[*]");
  EXPECT_THAT(product("f32[2,3]", "f32[4,3]"), HasSubstr("the inner extent of A is 3, of B 4"));
  EXPECT_THAT(product("f32[2,2,3]", "f32[3,3,4]"), HasSubstr("leading axes"));
  EXPECT_THAT(product("f32[]", "f32[3]"), HasSubstr("rank >= 1"));
  EXPECT_THAT(product("bool[2,3]", "bool[3,4]"), HasSubstr("error"));
}

TEST(MatMulShape, Gemm) {
  EXPECT_EQ(product("f32[3,2]", "f32[4,3]", "Gemm", "{transA = 1, transB = 1}"), "f32[2,4]");
  EXPECT_EQ(product("f32[N,3]", "f32[*]", "Gemm"), "f32[N,?]");
  EXPECT_THAT(product("f32[2,3]", "f32[2,3]", "Gemm"), HasSubstr("inner extent"));
  EXPECT_THAT(product("f32[1,2,3]", "f32[3,3]", "Gemm"), HasSubstr("matrices"));
  EXPECT_EQ(inferred("(%a: f32[2,3], %b: f32[3,4], %c: f32[2,1]) -> %y { %y = Gemm %a, %b, %c }"), "f32[2,4]");
  EXPECT_THAT(inferred("(%a: f32[1,3], %b: f32[3,4], %c: f32[2,1]) -> %y { %y = Gemm %a, %b, %c }"),
              HasSubstr("does not broadcast"));
}

TEST(MatMulShape, Integers) {
  EXPECT_EQ(product("u8[2,3]", "i8[3,4]", "MatMulInteger"), "i32[2,4]");
  EXPECT_EQ(inferred("(%a: i8[2,3], %s: f16[], %z: i8[], %b: u8[3,4], %bz: u8[4], %yz: i8[]) -> %y "
                     "{ %y = QLinearMatMul %a, %s, %z, %b, %s, %bz, %s, %yz }"),
            "i8[2,4]");
  const auto with_zeros = [](std::string_view a, std::string_view zeros, std::string_view others = "i8[]") {
    return inferred(str("(%a: ", a, ", %b: i8[3,4], %az: ", zeros, ", %bz: ", others,
                        ") -> %y { %y = MatMulInteger %a, %b, %az, %bz }"));
  };
  EXPECT_EQ(with_zeros("u8[5,2,3]", "u8[2]", "i8[4]"), "i32[5,2,4]");
  EXPECT_EQ(with_zeros("u8[5,2,3]", "u8[5,2,1]", "i8[1,4]"), "i32[5,2,4]");
  EXPECT_EQ(with_zeros("u8[N,2,3]", "u8[M]"), "i32[N,2,4]");
  EXPECT_EQ(with_zeros("u8[3]", "u8[1]"), "i32[4]");
  EXPECT_THAT(with_zeros("u8[5,2,3]", "u8[0]"), HasSubstr("1 element, or 2 or 10, one for each row"));
  EXPECT_THAT(with_zeros("u8[5,2,3]", "u8[3]"), HasSubstr("operand 2 of MatMulInteger"));
  EXPECT_THAT(with_zeros("u8[5,2,3]", "u8[2]", "i8[3]"), HasSubstr("one for each column of [3,4]"));
  EXPECT_THAT(inferred("(%a: i8[2,3], %s: f16[], %z: i8[], %b: u8[3,4], %bz: u8[4], %yz: i8[0]) -> %y "
                       "{ %y = QLinearMatMul %a, %s, %z, %b, %s, %bz, %s, %yz }"),
              HasSubstr("operand 7 of QLinearMatMul"));
}

TEST(MatMulShape, Einsum) {
  EXPECT_EQ(einsum("ij,jk->ik", "f32[2,3]", "f32[3,4]"), "f32[2,4]");
  EXPECT_EQ(einsum("b...ij, ...jk", "f32[7,1,2,3]", "f32[5,3,4]"), "f32[5,7,2,4]")
      << "implicit: ... first, then b, i, k";
  EXPECT_EQ(einsum("bhqd,bhkd->bhqk", "f32[B,8,Q,64]", "f32[B,8,K,64]"), "f32[B,8,Q,K]");
  EXPECT_EQ(einsum("i,j->", "f32[2]", "f32[3]"), "f32[]");
  EXPECT_EQ(inferred(R"((%x: f32[5,4,4]) -> %y { %y = Einsum %x {equation = "...ii->...i"} })"), "f32[5,4]");
  EXPECT_THAT(einsum("ij->i", "f32[2,3]", "f32[3,4]"), HasSubstr("1 terms for 2 operands"));
  EXPECT_THAT(einsum("ij,j->i", "f32[2,3]", "f32[3,4]"), HasSubstr("labels 1 axes, its operand has 2"));
  EXPECT_THAT(einsum("ij,jk->iz", "f32[2,3]", "f32[3,4]"), HasSubstr("'z'"));
  EXPECT_THAT(einsum("ij,jk->ii", "f32[2,3]", "f32[3,4]"), HasSubstr("'i'"));
  EXPECT_THAT(einsum("i1,jk->i", "f32[2,3]", "f32[3,4]"), HasSubstr("'1'"));
  EXPECT_THAT(einsum("ij,jk->ik", "f32[2,3]", "f32[4,4]"), HasSubstr("operand 1"));
}

TEST(MatMulShape, Det) {
  EXPECT_EQ(inferred("(%x: f32[N,3,3]) -> %y { %y = Det %x }"), "f32[N]");
  EXPECT_EQ(inferred("(%x: f32[3,3]) -> %y { %y = Det %x }"), "f32[]");
  EXPECT_THAT(inferred("(%x: f32[3,4]) -> %y { %y = Det %x }"), HasSubstr("square"));
}

}  // namespace
}  // namespace tenon
