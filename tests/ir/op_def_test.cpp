#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include <tenon/ir/op_def.hpp>

namespace tenon {
namespace {

using ::testing::HasSubstr;

std::string refusal(OpDef def) {
  auto registered = register_op(std::move(def));
  return registered.ok() ? "registered" : registered.error().to_string();
}

TEST(OpDefTest, CountsFollowFromTheArities) {
  const OpDef fixed = OpDef("t.A").operand("a", "f32").operand("b", "f32").result("y", "f32");
  EXPECT_EQ(fixed.min_operands(), 2u);
  EXPECT_EQ(fixed.max_operands(), 2u);
  const OpDef optional = OpDef("t.B")
                             .operand("a", "f32")
                             .optional_operand("b", "f32")
                             .result("y", "f32")
                             .result("z", "f32", Arity::optional);
  EXPECT_EQ(optional.min_operands(), 1u);
  EXPECT_EQ(optional.max_operands(), 2u);
  EXPECT_EQ(optional.min_results(), 1u);
  EXPECT_EQ(optional.max_results(), 2u);
  const OpDef variadic =
      OpDef("t.C").operand("a", "f32").variadic_operands("more", "f32", 2).variadic_results("y", "f32", 1);
  EXPECT_EQ(variadic.min_operands(), 3u);
  EXPECT_EQ(variadic.max_operands(), SIZE_MAX);
  EXPECT_EQ(variadic.min_results(), 1u);
  EXPECT_EQ(variadic.max_results(), SIZE_MAX);
}

TEST(OpDefTest, AttributesAndTraits) {
  const OpDef def = OpDef("t.D")
                        .attribute("axis", int64_t{-1})
                        .optional_attribute("scale", AttributeKind::real)
                        .required_attribute("mode", AttributeKind::text)
                        .one_of({"a", "b"})
                        .traits(Trait::pure | Trait::movement);
  EXPECT_TRUE(*def.attribute("axis")->fallback == Attribute(-1));
  EXPECT_EQ(def.attribute("axis")->kind, AttributeKind::integer);
  EXPECT_FALSE(def.attribute("scale")->required || def.attribute("scale")->fallback);
  EXPECT_TRUE(def.attribute("mode")->required);
  EXPECT_EQ(def.attribute("mode")->one_of.size(), 2u);
  EXPECT_EQ(def.attribute("other"), nullptr);
  EXPECT_TRUE(def.has(Trait::movement));
  EXPECT_FALSE(def.has(Trait::elementwise));
}

TEST(OpDefTest, AnOperatorFindsADefinitionThatCameLater) {
  Graph graph;
  const Op& op = graph.body().create("test.def.Later", {}, {});
  EXPECT_EQ(op.def(), nullptr);
  ASSERT_EQ(refusal(OpDef("test.def.Later")), "registered");
  EXPECT_EQ(op.def(), find_op("test.def.Later"));
  EXPECT_EQ(op.def()->name(), "test.def.Later");
}

TEST(OpDefTest, DomainStandsBeforeTheLastDot) {
  EXPECT_EQ(OpDef("Conv").domain(), "");
  EXPECT_EQ(OpDef("vta.Gemm").domain(), "vta");
  EXPECT_EQ(OpDef("ai.onnx.ml.Scaler").domain(), "ai.onnx.ml");
}

TEST(OpDefTest, RegisteredOnceFoundByName) {
  ASSERT_EQ(refusal(OpDef("test.def.Once").summary("first")), "registered");
  const OpDef* found = find_op("test.def.Once");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->summary(), "first");
  EXPECT_THAT(refusal(OpDef("test.def.Once")), HasSubstr("'test.def.Once' is defined already"));
  EXPECT_EQ(find_op("test.def.Once"), found);
  EXPECT_EQ(find_op("test.def.Never"), nullptr);
  const auto all = all_ops();
  EXPECT_NE(std::find(all.begin(), all.end(), found), all.end());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto* a, auto* b) { return a->name() < b->name(); }));
}

TEST(OpDefTest, ContradictionsAreRefusedWithTheirReason) {
  EXPECT_THAT(refusal(OpDef("test.def.NoTypes").operand("x", "T")), HasSubstr("'T'"));
  EXPECT_THAT(refusal(OpDef("test.def.Order").optional_operand("a", "f32").operand("b", "f32")), HasSubstr("'b'"));
  EXPECT_THAT(refusal(OpDef("test.def.Twice").attribute("a", 1).attribute("a", 2)), HasSubstr("'a'"));
  EXPECT_THAT(refusal(OpDef("test.def.Tail").variadic_operands("a", "f32", 0).operand("b", "f32")), HasSubstr("'a'"));
  for (const char* name : {"test.def.NoTypes", "test.def.Order", "test.def.Twice", "test.def.Tail"}) {
    EXPECT_EQ(find_op(name), nullptr) << name;
  }
}

TEST(OpDefTest, TypeSets) {
  const Type f16(kF16, Shape()), u8(kU8, Shape()), text(kString, Shape()), list = Type::sequence(f16);
  EXPECT_TRUE(kFloatTypes.contains(f16));
  EXPECT_FALSE(kFloatTypes.contains(u8));
  EXPECT_TRUE(kIntTypes.contains(u8));
  EXPECT_FALSE(kIntTypes.contains(Type(kBool, Shape())));
  EXPECT_TRUE(kNumberTypes.contains(f16) && kNumberTypes.contains(u8));
  EXPECT_FALSE(kNumberTypes.contains(text));
  EXPECT_TRUE(kAnyTensor.contains(text));
  EXPECT_FALSE(kAnyTensor.contains(list));
  EXPECT_TRUE(kAnyType.contains(list) && kAnyType.contains(Type::optional(list)));
  EXPECT_TRUE(kSequenceTypes.contains(list));
  EXPECT_FALSE(kSequenceTypes.contains(f16) || kOptionalTypes.contains(list));
  EXPECT_TRUE(kIndexTypes.contains(Type(kI32, Shape())));
  EXPECT_FALSE(kIndexTypes.contains(u8) || kI64Type.contains(Type(kI32, Shape())));
}

TEST(OpDefTest, AnyThreadMayRegisterAndFind) {
  std::vector<std::thread> threads;
  std::atomic<int> taken = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        taken += register_op(OpDef(str("test.def.Race", i))).ok();
        ASSERT_TRUE(find_op(str("test.def.Race", i)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken, 200);
}

}  // namespace
}  // namespace tenon
