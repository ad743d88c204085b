#include <tenon/tensor/type.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Type, TextAndBack) {
  const Expr n = Expr::symbol("N"), strange = Expr::symbol("a],(\"b");
  const std::pair<Type, const char*> cases[] = {
      {Type(), "?"},
      {Type(kF32, Shape(Dims{})), "f32[]"},
      {Type(kI64, Shape(Dims{2, 3})), "i64[2,3]"},
      {Type(kU4, Shape{Dim(2), Dim(n), Dim()}), "u4[2,N,?]"},
      {Type(kString, Shape()), "str[*]"},
      {Type(ElementType(), Shape(Dims{2})), "?[2]"},
      {Type::sequence(Type(kF32, Shape{Dim()})), "seq(f32[?])"},
      {Type::optional(Type::sequence(Type())), "optional(seq(?))"},
  };
  for (const auto& [type, text] : cases) {
    EXPECT_EQ(type.to_string(), text);
    const auto parsed = parse_type(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
    EXPECT_EQ(*parsed, type) << text;
  }
  const Type computed(kF32, Shape{Dim(floordiv(n + 1, 2)), Dim(min(n, strange)), Dim(strange)});
  const auto parsed = parse_type(computed.to_string());
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  EXPECT_EQ(*parsed, computed) << computed.to_string();
}

TEST(Type, SpacesAreFree) { EXPECT_EQ(parse_type(" seq( f32 [ 2 , N ] ) ")->to_string(), "seq(f32[2,N])"); }

TEST(Type, RefusesWhatIsNone) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "is no type"},
      {"f32", "f32[] for a scalar"},
      {"f33[2]", "\"f33\" is no element type"},
      {"f32[2", "is no type"},
      {"f32[2,]", "a dim is missing"},
      {"f32[,]", "a dim is missing"},
      {"f32[-1]", "the dim -1 is negative"},
      {"f32[2 3]", ""},
      {"f32[99999999999999999999]", ""},
      {"seq(f32[2]", "\"seq(f32\" is no element type"},
      {"seq()", "is no type"},
      {"optional(f32)", "is no type"},
      {"map(i64,f32[])", "is no type"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_type(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.error().message(), testing::HasSubstr(message)) << text;
  }
}

TEST(Type, DeepNestingIsRefused) {
  std::string text = "?";
  for (int i = 0; i < 30; ++i) text = "seq(" + text + ")";
  EXPECT_TRUE(parse_type(text).ok());
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "seq(";
  deep += "?";
  deep.append(100000, ')');
  const auto parsed = parse_type(deep);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code(), Code::resource_exhausted);
}

TEST(Type, Equality) {
  const Type f(kF32, Shape(Dims{2})), g(kF32, Shape(Dims{3}));
  EXPECT_EQ(Type(), Type());
  EXPECT_NE(f, g);
  EXPECT_NE(f, Type());
  EXPECT_EQ(Type::sequence(f), Type::sequence(f));
  EXPECT_NE(Type::sequence(f), Type::sequence(g));
  EXPECT_NE(Type::sequence(f), Type::optional(f));
}

TEST(Type, Merge) {
  struct Row {
    const char *a, *b, *out;
  };
  const Row rows[] = {
      {"?", "f32[2]", "f32[2]"},
      {"?[2,?]", "f32[*]", "f32[2,?]"},
      {"f32[?,3]", "f32[2,?]", "f32[2,3]"},
      {"seq(?)", "seq(f32[])", "seq(f32[])"},
      {"optional(f32[?])", "optional(f32[4])", "optional(f32[4])"},
  };
  for (const Row& row : rows) {
    const Type a = *parse_type(row.a), b = *parse_type(row.b);
    EXPECT_EQ(merge(a, b)->to_string(), row.out);
    EXPECT_EQ(merge(b, a)->to_string(), row.out);
  }
}

TEST(Type, MergeRefuses) {
  struct Row {
    const char *a, *b, *message;
  };
  const Row rows[] = {
      {"f32[2]", "f64[2]", "f32 and f64"},
      {"f32[2]", "f32[3]", "dim 0 is 2 and 3"},
      {"f32[2]", "seq(f32[2])", "types f32[2] and seq(f32[2])"},
      {"seq(f32[2])", "seq(i64[2])", "f32 and i64"},
  };
  for (const Row& row : rows) {
    const auto merged = merge(*parse_type(row.a), *parse_type(row.b));
    ASSERT_FALSE(merged.ok());
    EXPECT_THAT(merged.error().message(), testing::HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace tenon
