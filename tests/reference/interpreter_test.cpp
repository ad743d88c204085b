#include <tenon/reference/interpreter.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Graph> parsed(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
  return graph.ok() ? *std::move(graph) : std::make_unique<Graph>();
}

std::unique_ptr<Interpreter> prepared(const Graph& graph) {
  auto interpreter = Interpreter::prepare(graph);
  EXPECT_TRUE(interpreter.ok()) << (interpreter.ok() ? "" : interpreter.error().to_string());
  return interpreter.ok() ? *std::move(interpreter) : nullptr;
}

std::vector<float> floats(const Datum& datum) {
  const auto values = datum.tensor().as<float>();
  return {values.begin(), values.end()};
}

Datum row(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::of<float>({count}, values);
}

TEST(Interpreter, RunsAChainInAnArenaOfTwoBlocks) {
  const auto graph = parsed(R"(graph @chain(%x: f32[4]) -> %d {
    %a = Add %x, %x
    %b = Neg %a
    %c = Add %b, %x
    %d = Neg %c
  })");
  const auto interpreter = prepared(*graph);
  const std::vector<Datum> inputs{row({1, 2, 3, 4})};
  const auto outputs = interpreter->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_THAT(floats((*outputs)[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(interpreter->arena_bytes(), 128u);  // two aligned blocks; the output has its own bytes
  EXPECT_EQ(interpreter->arena_lower_bound_bytes(), 128u);
}

TEST(Interpreter, OutputsKeepTheirBytesAcrossRuns) {
  const auto graph = parsed("graph @g(%x: f32[2]) -> %y { %y = Neg %x }");
  const auto interpreter = prepared(*graph);
  const std::vector<Datum> first{row({1, 2})}, second{row({5, 6})};
  const auto one = interpreter->run(first);
  const auto two = interpreter->run(second);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_THAT(floats((*one)[0]), ElementsAre(-1, -2));
  EXPECT_THAT(floats((*two)[0]), ElementsAre(-5, -6));
}

TEST(Interpreter, InputsConstantsAndViewsThatAreOutputsAreCopies) {
  const auto graph = parsed(R"(graph @g(%x: f32[2]) -> (%x, %k, %v, again: %v) {
    %k = Constant {value = dense<f32[1]: 7.0>}
    %s = Constant {value = dense<i64[2]: 2, 1>}
    %v = Reshape %x, %s
  })");
  const auto interpreter = prepared(*graph);
  const std::vector<Datum> inputs{row({1, 2})};
  auto outputs = interpreter->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  for (Datum& output : *outputs) output.tensor().set_double(0, 99);
  EXPECT_THAT(floats(inputs[0]), ElementsAre(1, 2));
  const auto second = interpreter->run(inputs);
  ASSERT_TRUE(second.ok());
  EXPECT_THAT(floats((*second)[1]), ElementsAre(7));
  EXPECT_THAT(floats((*second)[3]), ElementsAre(1, 2));
}

TEST(Interpreter, AViewInsideTheArenaLivesAsLongAsItsReaders) {
  // %a is read through %v after other values were made; sharing must keep its place.
  const auto graph = parsed(R"(graph @g(%x: f32[4]) -> %z {
    %s = Constant {value = dense<i64[2]: 2, 2>}
    %f = Constant {value = dense<i64[1]: 4>}
    %a = Neg %x
    %v = Reshape %a, %s
    %b = Add %x, %x
    %c = Add %b, %b
    %w = Reshape %v, %f
    %z = Add %c, %w
  })");
  const std::vector<Datum> inputs{row({1, 2, 3, 4})};
  const auto outputs = prepared(*graph)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_THAT(floats((*outputs)[0]), ElementsAre(3, 6, 9, 12));
}

TEST(Interpreter, OneProgramServesManySizes) {
  const auto graph = parsed("graph @g(%x: f32[N], %y: f32[N]) -> %z { %z = Add %x, %y }");
  const auto interpreter = prepared(*graph);
  for (const int64_t n : {0, 1, 3, 1000}) {
    const std::vector<Datum> inputs{row(std::vector<float>(n, 1)), row(std::vector<float>(n, 2))};
    const auto outputs = interpreter->run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    EXPECT_EQ((*outputs)[0].tensor().dims(), Dims{n});
    EXPECT_EQ(floats((*outputs)[0]), std::vector<float>(n, 3));
  }
}

TEST(Interpreter, RefusesInputsThatAreNotAsDeclared) {
  const auto graph = parsed("graph @g(%x: f32[N,2], %y: f32[N]) -> %z { %z = Neg %x }");
  const auto interpreter = prepared(*graph);
  const auto refusal = [&](std::vector<Datum> inputs) {
    const auto outputs = interpreter->run(inputs);
    return outputs.ok() ? "no error" : outputs.error().message();
  };
  const Datum x = Tensor::of<float>({3, 2}, std::vector<float>(6)), y = row({1, 2, 3});
  EXPECT_EQ(refusal({x, y}), "no error");
  EXPECT_THAT(refusal({x}), HasSubstr("has 2 inputs, 1 are given"));
  EXPECT_THAT(refusal({x, row({1})}), HasSubstr("N is 3 elsewhere and 1 here"));
  EXPECT_THAT(refusal({y, y}), HasSubstr("input 'x' is declared f32[N,2] and given f32[3]: another rank"));
  EXPECT_THAT(refusal({Datum(Tensor::of<float>({3, 1}, {1, 2, 3})), y}), HasSubstr("dim 1 differs"));
  EXPECT_THAT(refusal({Datum(Tensor::of<double>({3, 2}, std::vector<double>(6))), y}), HasSubstr("given f64[3,2]"));
  EXPECT_THAT(refusal({Datum(), y}), HasSubstr("given nothing"));
}

TEST(Interpreter, ADeclaredShapeThatIsWrongIsNoPlaceToWriteTo) {
  // The file says that %z has 2 elements; which it has depends on the values of %n.
  const auto graph = parsed("graph @g(%n: i64[1]) -> %z { %y = ConstantOfShape %n : f32[2] %z = Neg %y : f32[2] }");
  const auto interpreter = prepared(*graph);
  const std::vector<Datum> inputs{Tensor::of<int64_t>({1}, {1000})};
  const auto outputs = interpreter->run(inputs);
  // Right or refused, but never written beyond: what a run gives has the true size.
  if (outputs.ok()) {
    EXPECT_EQ((*outputs)[0].tensor().dims(), Dims{1000});
  }
}

TEST(Interpreter, WhatAnEvaluatorThrowsIsAnError) {
  ASSERT_TRUE(register_op(OpDef("interpreter_test.Loud")
                              .operand("x", "T")
                              .result("y", "T")
                              .types("T", kAnyTensor)
                              .infer(same_as_operand(0)))
                  .ok());
  ASSERT_TRUE(register_evaluator("interpreter_test.Loud", [](EvalContext&) -> Result<void> { throw 42; }).ok());
  const auto graph = parse_graph("graph @g(%x: f32[2]) -> %y { %y = interpreter_test.Loud %x }");
  ASSERT_TRUE(graph.ok());
  const auto prepared = Interpreter::prepare(**graph);
  ASSERT_TRUE(prepared.ok());
  const auto ran = (*prepared)->run(std::vector<Datum>{*Tensor::zeros(kF32, {2})});
  ASSERT_FALSE(ran.ok());
  EXPECT_THAT(ran.error().to_string(), ::testing::HasSubstr("an evaluator threw something that is no std::exception"));
}

TEST(Interpreter, NamesAnOperatorWithoutEvaluator) {
  ASSERT_TRUE(register_op(OpDef("test.NoEvaluator").operand("x", "T").result("y", "T").types("T", kAnyTensor)
                              .infer(same_as_operand(0))).ok());
  const auto graph = parsed("graph @g(%x: f32[2]) -> %y { %y = test.NoEvaluator %x \"the/node\" }");
  const auto interpreter = Interpreter::prepare(*graph);
  ASSERT_FALSE(interpreter.ok());
  EXPECT_EQ(interpreter.error().code(), Code::unsupported);
  EXPECT_THAT(interpreter.error().message(), HasSubstr("test.NoEvaluator 'the/node'"));
}

TEST(Interpreter, RunsDecompositions) {
  ASSERT_TRUE(register_op(OpDef("test.Twice").operand("x", "T").result("y", "T").types("T", kAnyTensor)
                              .infer(same_as_operand(0))
                              .decompose([](Builder& builder, const Op& op) -> Result<std::vector<Value*>> {
                                TENON_TRY(sum, builder.op("Add", {op.operand(0), op.operand(0)}));
                                return std::vector<Value*>{sum};
                              })).ok());
  ASSERT_TRUE(register_op(OpDef("test.FourTimes").operand("x", "T").result("y", "T").types("T", kAnyTensor)
                              .infer(same_as_operand(0))
                              .decompose([](Builder& builder, const Op& op) -> Result<std::vector<Value*>> {
                                TENON_TRY(twice, builder.op("test.Twice", {op.operand(0)}));
                                TENON_TRY(four, builder.op("test.Twice", {twice}));
                                return std::vector<Value*>{four};
                              })).ok());
  const auto graph = parsed("graph @g(%x: f32[2]) -> %y { %y = test.FourTimes %x }");
  const std::vector<Datum> inputs{row({1, 2})};
  const auto outputs = prepared(*graph)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_THAT(floats((*outputs)[0]), ElementsAre(4, 8));
  EXPECT_EQ(graph->body().op_count(), 1u);  // the caller's graph is as it was
}

TEST(Interpreter, AnEndlessDecompositionIsAnError) {
  ASSERT_TRUE(register_op(OpDef("test.Endless").operand("x", "T").result("y", "T").types("T", kAnyTensor)
                              .infer(same_as_operand(0))
                              .decompose([](Builder& builder, const Op& op) -> Result<std::vector<Value*>> {
                                TENON_TRY(again, builder.op("test.Endless", {op.operand(0)}));
                                return std::vector<Value*>{again};
                              })).ok());
  const auto graph = parsed("graph @g(%x: f32[2]) -> %y { %y = test.Endless %x }");
  const auto interpreter = Interpreter::prepare(*graph);
  ASSERT_FALSE(interpreter.ok());
  EXPECT_THAT(interpreter.error().message(), HasSubstr("do not end"));
}

TEST(Interpreter, SerialAndManyRunsAtOnceGiveTheSame) {
  const auto graph = parsed(R"(graph @g(%x: f32[100]) -> %d {
    %a = Add %x, %x
    %b = Neg %a
    %c = Add %b, %x
    %d = Neg %c
  })");
  const auto interpreter = prepared(*graph);
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<Datum> inputs{row(std::vector<float>(100, static_cast<float>(t)))};
      for (int i = 0; i < 200; ++i) {
        const auto outputs = interpreter->run(inputs);
        wrong[t] += !outputs.ok() || floats((*outputs)[0]) != std::vector<float>(100, static_cast<float>(t));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(wrong, ::testing::Each(0));
}

TEST(Interpreter, TheObserverSeesEachOperatorWithItsResults) {
  struct Seen final : Interpreter::Observer {
    std::vector<std::string> lines;
    void before(const Op& op) override { lines.push_back("before " + op.name().str()); }
    void after(const Op& op, std::span<const Datum> results) override {
      lines.push_back(str("after ", op.name(), " ", results[0].tensor().double_at(0)));
    }
  };
  const auto graph = parsed("graph @g(%x: f32[1]) -> %z { %y = Neg %x %z = Add %y, %y }");
  Seen seen;
  const std::vector<Datum> inputs{row({3})};
  ASSERT_TRUE(prepared(*graph)->run(inputs, serial(), &seen).ok());
  EXPECT_THAT(seen.lines, ElementsAre("before Neg", "after Neg -3", "before Add", "after Add -6"));
}

TEST(Evaluate, ErrorsNameTheOperatorAndTheShapes) {
  const auto outputs = evaluate("Add", {row({1, 2}), row({1, 2, 3})});
  ASSERT_FALSE(outputs.ok());
  EXPECT_THAT(outputs.error().to_string(), HasSubstr("[2] and [3] do not broadcast"));
  EXPECT_THAT(outputs.error().to_string(), HasSubstr("Add"));
}

}  // namespace
}  // namespace tenon
