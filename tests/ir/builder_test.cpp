#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include <support_lib/test_ops.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BuilderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::register_test_ops(); }

  template <class T>
  static std::string message(const Result<T>& result) {
    return result.ok() ? "ok" : result.error().to_string();
  }

  Graph graph;
  Value* x = graph.body().add_input("x", Type(kF32, Shape({Dim(Expr::symbol("N")), Dim(int64_t{4})})));
  Value* row = graph.body().add_input("row", Type(kF32, Shape(Dims{4})));
  Builder builder{graph.body()};
};

TEST_F(BuilderTest, InfersResultTypes) {
  auto sum = builder.op("test.Add", {x, row});
  ASSERT_TRUE(sum.ok()) << message(sum);
  EXPECT_EQ((*sum)->type().to_string(), "f32[N,4]");
  auto parts = builder.ops("test.Split", std::vector<Value*>{*sum}, 2, {{"axis", -1}});
  ASSERT_TRUE(parts.ok()) << message(parts);
  EXPECT_EQ((*parts)[1]->type().to_string(), "f32[N,2]");
  EXPECT_EQ((*parts)[1]->producer()->attr<int64_t>("axis"), -1);
}

TEST_F(BuilderTest, RefusalsLeaveNothingBehind) {
  Value* flag = graph.body().add_input("flag", Type(kBool, Shape(Dims{})));
  const Type wide(kF32, Shape(Dims{5}));
  Value* five = graph.body().add_input("five", wide);
  EXPECT_THAT(message(builder.op("test.Nothing", {x})), HasSubstr("'test.Nothing'"));
  EXPECT_THAT(message(builder.op("test.Add", {x})), HasSubstr("1 operands, its definition wants 2"));
  EXPECT_THAT(message(builder.op("test.Add", {x, nullptr})), HasSubstr("'b'"));
  EXPECT_THAT(message(builder.op("test.Add", {x, row}, {{"axis", 1}})), HasSubstr("no attribute 'axis'"));
  EXPECT_THAT(message(builder.op("test.Split", {x}, {{"axis", "last"}})), HasSubstr("'axis' is of kind"));
  EXPECT_THAT(message(builder.op("test.Add", {x, five})), HasSubstr("do not broadcast"));
  EXPECT_THAT(message(builder.op("test.Neg", {flag})), HasSubstr("bool[], allowed are float and integer tensors"));
  EXPECT_TRUE(graph.body().empty());
  EXPECT_FALSE(x->used());
}

TEST_F(BuilderTest, BuildsBeforeAnOperator) {
  auto last = builder.op("test.Neg", {x});
  Builder earlier(graph.body(), (*last)->producer());
  ASSERT_TRUE(earlier.op("test.Neg", {row}).ok());
  ASSERT_TRUE(earlier.op("test.Add", {row, row}).ok());
  std::vector<std::string> order;
  for (const Op& op : graph.body()) order.push_back(op.name().str() + (op.operand(0) == x ? " x" : ""));
  EXPECT_THAT(order, ElementsAre("test.Neg", "test.Add", "test.Neg x"));
}

TEST_F(BuilderTest, RegionsAreFilledThenInferred) {
  Value* condition = builder.constant(Tensor::scalar<bool>(true), "condition");
  Op& choice = builder.create("test.If", std::vector<Value*>{condition}, 1);
  EXPECT_FALSE(choice.result()->type().known());
  // Called too early, the rule is not run, because there are no regions yet.
  EXPECT_THAT(message(infer_result_types(choice)), HasSubstr("0 regions, its definition wants 2"));
  for (int i = 0; i < 2; ++i) {
    Region& region = choice.add_region();
    region.add_output(*Builder(region).op("test.Neg", {row}), "r");
  }
  ASSERT_TRUE(infer_result_types(choice).ok());
  EXPECT_EQ(choice.result()->type().to_string(), "f32[4]");
}

TEST_F(BuilderTest, WhatARuleThrowsIsAnErrorThatNamesTheOperator) {
  static bool infer_throws = true;
  const auto defined =
      register_op(OpDef("builder_test.Loud")
                      .operand("x", "T")
                      .result("y", "T")
                      .types("T", kAnyTensor)
                      .infer([](const InferContext& context) -> Result<std::vector<Type>> {
                        if (infer_throws) throw 42;
                        return same_as_operand(0)(context);
                      })
                      .verify([](const Op&) -> Result<void> { throw std::runtime_error("no paper"); }));
  ASSERT_TRUE(defined.ok()) << defined.error().to_string();
  EXPECT_THAT(message(builder.op("builder_test.Loud", {x})),
              HasSubstr("threw something that is no std::exception; errors are returned, as a tenon::Error\n  in the "
                        "shape rule of builder_test.Loud"));
  infer_throws = false;
  EXPECT_THAT(message(builder.op("builder_test.Loud", {x})), HasSubstr("its verifier threw: no paper"));
}

TEST_F(BuilderTest, InferenceKeepsWhatIsDeclaredAndObjectsToContradictions) {
  Op& op = graph.body().create("test.Neg", std::vector<Value*>{x}, {Type(kF32, Shape({Dim(int64_t{3}), Dim()}))});
  ASSERT_TRUE(infer_result_types(op).ok());
  EXPECT_EQ(op.result()->type().to_string(), "f32[3,4]");
  op.result()->set_type(Type(kF32, Shape(Dims{3, 5})));
  EXPECT_THAT(message(infer_result_types(op)), HasSubstr("inferred against declared"));
}

TEST_F(BuilderTest, Constants) {
  EXPECT_EQ(builder.constant_int(7)->type().to_string(), "i64[]");
  Value* list = builder.constant_ints({1, -2, 3});
  EXPECT_EQ(list->type().to_string(), "i64[3]");
  EXPECT_THAT(*constant_ints_of(list), ElementsAre(1, -2, 3));
  Value* half = builder.constant_scalar(kBF16, 0.5);
  ASSERT_TRUE(constant_of(half));
  EXPECT_EQ(constant_of(half)->double_at(0), 0.5);
  EXPECT_EQ(constant_of(half)->element(), kBF16);
  EXPECT_FALSE(constant_ints_of(half));
  EXPECT_EQ(constant_of(x), nullptr);
  EXPECT_EQ(constant_of(nullptr), nullptr);
  EXPECT_EQ(builder.constant(Tensor::scalar<float>(1), "named")->name(), "named");
  auto negated = builder.op("test.Neg", {list});
  EXPECT_EQ(constant_of(*negated), nullptr);
  EXPECT_TRUE(verify(graph).ok());
}

TEST_F(BuilderTest, EmptyConstantList) {
  Value* none = builder.constant_ints({});
  EXPECT_EQ(none->type().to_string(), "i64[0]");
  EXPECT_TRUE(constant_ints_of(none)->empty());
}

// Every type comes from a source other than the graph.
class OnlyScalars final : public TypeSource {
 public:
  const Type& type_of(const Value&) const override { return scalar_; }

 private:
  Type scalar_{kI8, Shape(Dims{})};
};

TEST_F(BuilderTest, InferenceMayTakeTypesFromElsewhere) {
  Value* sum = *builder.op("test.Add", {x, row});
  const OnlyScalars source;
  auto types = infer_types(StaticInferContext(*sum->producer(), source));
  ASSERT_TRUE(types.ok());
  EXPECT_EQ((*types)[0].to_string(), "i8[]");
  EXPECT_EQ(sum->type().to_string(), "f32[N,4]");
}

TEST_F(BuilderTest, DimsOfIntegerTensors) {
  const TypeSource source;
  Value* list = builder.constant_ints({2, 3});
  Op& reader = graph.body().create("test.Add", std::vector<Value*>{list, x}, {Type()});
  const StaticInferContext context(reader, source);
  ASSERT_TRUE(context.dims_value(0));
  EXPECT_THAT(*context.dims_value(0), ElementsAre(Dim(int64_t{2}), Dim(int64_t{3})));
  EXPECT_FALSE(context.dims_value(1));
  EXPECT_FALSE(dims_of_tensor(Tensor::scalar<float>(2)));
  EXPECT_FALSE(dims_of_tensor(Tensor::of<int64_t>({1, 1}, {2})));
}

}  // namespace
}  // namespace tenon
