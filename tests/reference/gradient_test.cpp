// The gradient rules of the definitions, compared with finite differences of the evaluators' results.
#include <tenon/ops/gradient.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/reference/interpreter.hpp>

#include <support_lib/evaluated.hpp>

namespace tenon {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// A graph of one operator, its operands and d(loss)/d(result) as inputs; the operands' gradients as outputs.
Result<std::unique_ptr<Graph>> gradient_graph(Name name, const std::vector<Type>& operands, const Type& result) {
  auto graph = std::make_unique<Graph>("gradient");
  Region& body = graph->body();
  std::vector<Value*> inputs;
  for (const Type& type : operands) inputs.push_back(body.add_input("x", type));
  Value* given = body.add_input("g", result);
  Builder builder(body);
  TENON_TRY(y, builder.op(name, inputs));
  TENON_TRY(gradients, y->producer()->def()->gradient_fn()(builder, *y->producer(), std::vector<Value*>{given}));
  for (Value* gradient : gradients) body.add_output(gradient, "dx");
  return graph;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += a.double_at(i) * b.double_at(i);
  return sum;
}

struct Case {
  const char* op;
  std::vector<Dims> operands;
  Dims result;
};

TEST(Gradient, MatchesDifferences) {
  const std::vector<Case> cases = {{"Add", {{2, 3}, {3}}, {2, 3}},
                                   {"Add", {{2, 1}, {1, 3}}, {2, 3}},
                                   {"Sub", {{}, {2, 2}}, {2, 2}},
                                   {"Sub", {{2, 3}, {2, 3}}, {2, 3}},
                                   {"Mul", {{2, 3}, {1}}, {2, 3}},
                                   {"Mul", {{4, 1, 2}, {3, 1}}, {4, 3, 2}},
                                   {"Div", {{2, 3}, {2, 1}}, {2, 3}},
                                   {"Div", {{1, 3}, {2, 3}}, {2, 3}},
                                   {"Neg", {{3}}, {3}},
                                   {"Exp", {{2, 2}}, {2, 2}},
                                   {"Log", {{4}}, {4}},
                                   {"Sqrt", {{4}}, {4}},
                                   {"Relu", {{5}}, {5}},
                                   {"Sigmoid", {{5}}, {5}},
                                   {"Tanh", {{2, 2}}, {2, 2}}};
  std::mt19937 random(80);
  std::uniform_real_distribution<double> values(0.5, 2);
  const auto filled = [&](const Dims& dims) {
    Tensor tensor = *Tensor::zeros(kF64, dims);
    for (double& v : tensor.mutable_as<double>()) v = values(random);
    return tensor;
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op);
    std::vector<Datum> operands;
    std::vector<Type> types;
    for (const Dims& dims : c.operands) {
      operands.push_back(filled(dims));
      types.push_back(Type(kF64, Shape(dims)));
    }
    const auto graph = gradient_graph(c.op, types, Type(kF64, Shape(c.result)));
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    const Tensor g = filled(c.result);
    auto inputs = operands;
    inputs.push_back(g);
    const auto interpreter = Interpreter::prepare(**graph);
    ASSERT_TRUE(interpreter.ok()) << interpreter.error().to_string();
    const auto gradients = (*interpreter)->run(inputs);
    ASSERT_TRUE(gradients.ok()) << gradients.error().to_string();
    for (size_t k = 0; k < operands.size(); ++k) {
      const Tensor& dx = (*gradients)[k].tensor();
      ASSERT_EQ(dx.dims(), c.operands[k]);
      for (int64_t i = 0; i < dx.size(); ++i) {
        // Central differences of loss = g . y: the error is of the order of the square of the step.
        constexpr double kStep = 1e-5;
        const auto loss_at = [&](double shift) {
          auto moved = operands;
          Tensor x = moved[k].tensor().clone().value();
          x.mutable_as<double>()[static_cast<size_t>(i)] += shift;
          moved[k] = x;
          return dot(g, evaluated(c.op, moved));
        };
        EXPECT_NEAR(dx.double_at(i), (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep), 1e-6) << "operand " << k;
      }
    }
  }
}

TEST(Gradient, ReluPassesNothingBelowZero) {
  const auto graph = gradient_graph("Relu", {Type(kF32, Shape(Dims{3}))}, Type(kF32, Shape(Dims{3})));
  ASSERT_TRUE(graph.ok());
  const auto dx = (*Interpreter::prepare(**graph))
                      ->run(std::vector<Datum>{Tensor::of<float>({3}, {-1, 0, 1}), Tensor::of<float>({3}, {5, 6, 7})});
  ASSERT_TRUE(dx.ok());
  EXPECT_TRUE((*dx)[0].tensor().identical(Tensor::of<float>({3}, {0, 0, 7})));
}

TEST(Gradient, NeedsToKnowWhatWasBroadcast) {
  const Dim n(Expr::symbol("N")), m(Expr::symbol("M"));
  EXPECT_TRUE(gradient_graph("Mul", {Type(kF32, Shape{n, 3}), Type(kF32, Shape{1, 3})}, Type(kF32, Shape{n, 3})).ok());
  const auto unclear = gradient_graph("Mul", {Type(kF32, Shape{n}), Type(kF32, Shape{m})}, Type(kF32, Shape{n}));
  ASSERT_FALSE(unclear.ok());
  EXPECT_EQ(unclear.error().code(), Code::unsupported);
  EXPECT_THAT(unclear.error().to_string(), HasSubstr("it is not known which dims were broadcast"));
}

}  // namespace
}  // namespace tenon
