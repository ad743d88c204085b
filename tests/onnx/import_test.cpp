#include <tenon/onnx/import.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/tensor/compare.hpp>
#include "onnx/wire.hpp"

namespace tenon {
namespace {

using namespace tenon::wire;
using testing::HasSubstr;

std::unique_ptr<Graph> imported(const Message& model, const ImportOptions& options = {}) {
  auto graph = import_model_bytes(model.span(), options);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *std::move(graph) : nullptr;
}

// Imports `nodes` on input x: f32[dims] and output y, and compares with the text form.
void expect_import(int64_t version, const std::vector<Message>& nodes, std::string_view expected,
                   const std::vector<Extent>& dims = {2, 3, 4}, const std::vector<Message>& initializers = {}) {
  const auto graph = imported(model(wire::graph({.nodes = nodes,
                                                 .inputs = {info("x", kFloatElement, dims)},
                                                 .outputs = {info("y")},
                                                 .initializers = initializers}),
                                    version));
  ASSERT_TRUE(graph);
  const auto wanted = parse_graph(expected);
  ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
  std::string difference;
  EXPECT_TRUE(same_graph(*graph, **wanted, {}, &difference)) << difference << "\n" << print(*graph);
}

TEST(Import, NamesAndTypes) {
  const auto graph = imported(model(
      wire::graph({.nodes = {node("Relu", {"x"}, {"hidden"}, {}, "", "layer/relu"), node("Neg", {"hidden"}, {"y"})},
                   .inputs = {info("x", kFloatElement, {"batch", 3})},
                   .outputs = {info("y")}},
                  "net"),
      13));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->name(), "net");
  const Op& relu = *graph->body().first();
  EXPECT_EQ(relu.label(), "layer/relu");
  EXPECT_EQ(relu.result()->name(), "hidden");
  EXPECT_EQ(graph->body().input(0)->name(), "x");
  EXPECT_EQ(graph->body().output_name(0), "y");
  EXPECT_EQ(graph->body().output(0)->type().to_string(), "f32[batch,3]");
  EXPECT_EQ(graph->properties()["opset.ai.onnx"], "13");
  EXPECT_EQ(graph->properties()["ir_version"], "8");
}

TEST(Import, NodesInAnyOrder) {
  expect_import(13, {node("Neg", {"a"}, {"y"}), node("Relu", {"x"}, {"a"})},
                "graph @g(%x: f32[2,3,4]) -> (%y) { %a = Relu %x\n %y = Neg %a }");
}

TEST(Import, InitializersAreConstantsEvenWhenListedAsInputs) {
  const auto graph =
      imported(model(wire::graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                  .inputs = {info("x", kFloatElement, {2}), info("w", kFloatElement, {2})},
                                  .outputs = {info("y", kFloatElement, {2})},
                                  .initializers = {wire::tensor<float>("w", kFloatElement, {2}, {1, 2})}}),
                     13));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->body().input_count(), 1u);
  const Tensor* w = constant_of(graph->body().last()->operand(1));
  ASSERT_TRUE(w);
  EXPECT_EQ(w->as<float>()[1], 2.0f);
  EXPECT_EQ(graph->body().first()->result()->name(), "w");
}

TEST(Import, OverridableInitializersStayInputsWhenAsked) {
  const Message file = model(wire::graph({.nodes = {node("Add", {"x", "w"}, {"a"}), node("Add", {"a", "v"}, {"y"})},
                                          .inputs = {info("x", kFloatElement, {2}), info("w", kFloatElement, {2})},
                                          .outputs = {info("y", kFloatElement, {2})},
                                          .initializers = {wire::tensor<float>("w", kFloatElement, {2}, {1, 2}),
                                                           wire::tensor<float>("v", kFloatElement, {2}, {3, 4})}}),
                             13);
  const auto graph = imported(file, {.keep_overridable_inputs = true});
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->body().input_count(), 2u);
  EXPECT_EQ(graph->body().input(1)->name(), "w");
  EXPECT_EQ(graph->body().op_count(), 3u);  // v is a constant all the same
}

TEST(Import, TrailingAbsentOperandsAreDropped) {
  const auto graph = imported(model(wire::graph({.nodes = {node("Clip", {"x", "", ""}, {"y"})},
                                                 .inputs = {info("x", kFloatElement, {2})},
                                                 .outputs = {info("y")}}),
                                    13));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->body().first()->operand_count(), 1u);
}

TEST(Import, EveryFormOfConstant) {
  const Message strings = strings_attribute("value_strings", {"a", "b"});
  const auto graph = imported(
      model(wire::graph({.nodes = {node("Constant", {}, {"f"}, {float_attribute("value_float", 2.5f)}),
                                   node("Constant", {}, {"i"}, {int_attribute("value_int", 7)}),
                                   node("Constant", {}, {"is"}, {ints_attribute("value_ints", {1, 2, 3})}),
                                   node("Constant", {}, {"s"}, {string_attribute("value_string", "t")}),
                                   node("Constant", {}, {"ss"}, {strings}),
                                   node("Constant", {}, {"t"},
                                        {tensor_attribute("value", wire::tensor<float>("", kFloatElement, {1}, {4}))})},
                         .inputs = {},
                         .outputs = {info("f"), info("i"), info("is"), info("s"), info("ss"), info("t")}}),
            13));
  ASSERT_TRUE(graph);
  const char* types[] = {"f32[]", "i64[]", "i64[3]", "str[]", "str[2]", "f32[1]"};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(graph->body().output(i)->type().to_string(), types[i]);
  EXPECT_EQ(constant_of(graph->body().output(4))->as<std::string>()[1], "b");
}

TEST(Import, UnknownOperatorsAreAllNamed) {
  const auto file = [](std::string_view last_domain) {
    return model(wire::graph({.nodes = {node("Reluu", {"x"}, {"a"}), node("Wobble", {"a"}, {"b"}, {}, "my.domain"),
                                        node("Wobble", {"b"}, {"c"}, {}, "my.domain"),
                                        node("Flub", {"c"}, {"y"}, {}, last_domain)},
                              .inputs = {info("x", kFloatElement, {2})},
                              .outputs = {info("y", kFloatElement, {2})}}),
                 13)
        .add(8, opset("my.domain", 3));
  };
  const auto refused = import_model_bytes(file("no.one").span());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unsupported);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("\"Reluu\" (domain \"ai.onnx\", opset 13) of node 0 Reluu (did you mean 'Relu'?)"));
  EXPECT_THAT(refused.error().message(),
              HasSubstr("\"Wobble\" (domain \"my.domain\", opset 3) of node 1 my.domain.Wobble, 2 nodes in all"));
  EXPECT_THAT(refused.error().message(),
              HasSubstr("\"Flub\" (domain \"no.one\", of which the model imports none) of node 3 no.one.Flub"));

  const auto kept = imported(file("my.domain"), {.allow_unknown_ops = true});
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->body().last()->name().str(), "my.domain.Flub");
  EXPECT_EQ(kept->body().output(0)->type().to_string(), "f32[2]");
}

// ---- Subgraphs ----

Message branch(std::string_view op) {
  return wire::graph({.nodes = {node(op, {"x"}, {"r"})}, .inputs = {}, .outputs = {info("r")}}, "branch");
}

TEST(Import, BranchesAreRegionsInTheirOrder) {
  const auto graph = imported(model(wire::graph({.nodes = {node("If", {"c"}, {"y"},
                                                                {graph_attribute("else_branch", branch("Neg")),
                                                                 graph_attribute("then_branch", branch("Relu"))})},
                                                 .inputs = {info("c", kBoolElement, {}), info("x", kFloatElement, {2})},
                                                 .outputs = {info("y", kFloatElement, {2})}}),
                                    13),
                              {.allow_unknown_ops = true});
  ASSERT_TRUE(graph);
  const Op& op = *graph->body().first();
  ASSERT_EQ(op.region_count(), 2u);
  EXPECT_EQ(op.region(0).first()->name().str(), "Relu");
  EXPECT_EQ(op.region(1).first()->name().str(), "Neg");
  EXPECT_EQ(op.region(0).first()->operand(0), graph->body().input(1));
}

// ---- Functions ----

TEST(ImportFunctions, AreInlinedWithTheirAttributes) {
  const Message leaky = function("Twice", {"v"}, {"w"},
                                 {node("LeakyRelu", {"v"}, {"inner"}, {ref_attribute("alpha", "slope", 1)}),
                                  node("LeakyRelu", {"inner"}, {"w"}, {ref_attribute("alpha", "slope", 1)})})
                            .add(11, float_attribute("slope", 0.5f));
  const auto graph = imported(
      model(wire::graph({.nodes = {node("Twice", {"x"}, {"a"}, {float_attribute("slope", 0.25f)}, "local", "one"),
                                   node("Twice", {"a"}, {"y"}, {}, "local", "two")},
                         .inputs = {info("x", kFloatElement, {2})},
                         .outputs = {info("y")}}),
            16, {leaky}));
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->body().op_count(), 4u);
  const auto ops = graph->body().ops();
  const float slopes[] = {0.25f, 0.25f, 0.5f, 0.5f};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ops[i]->attr<float>("alpha"), slopes[i]) << i;
  EXPECT_EQ(ops[0]->result()->name(), "one/inner");
  EXPECT_EQ(ops[1]->result()->name(), "a");
  EXPECT_EQ(graph->body().output(0)->name(), "y");
}

TEST(ImportFunctions, HaveTheirOwnOpset) {
  // The function is of opset 11, where Squeeze had an attribute; the model of opset 13.
  const Message squeeze =
      function("Drop", {"v"}, {"w"}, {node("Squeeze", {"v"}, {"w"}, {ints_attribute("axes", {0})})}, "local", 11);
  const auto graph = imported(model(wire::graph({.nodes = {node("Drop", {"x"}, {"y"}, {}, "local")},
                                                 .inputs = {info("x", kFloatElement, {1, 2})},
                                                 .outputs = {info("y", kFloatElement, {2})}}),
                                    13, {squeeze}));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->body().last()->operand_count(), 2u);
}

TEST(ImportFunctions, NestedAndOverloaded) {
  const Message inner_a = function("Inner", {"v"}, {"w"}, {node("Neg", {"v"}, {"w"})});
  const Message inner_b = function("Inner", {"v"}, {"w"}, {node("Relu", {"v"}, {"w"})}).text(13, "other");
  const Message outer =
      function("Outer", {"v"}, {"w"},
               {node("Inner", {"v"}, {"t"}, {}, "local").text(8, "other"), node("Inner", {"t"}, {"w"}, {}, "local")});
  const auto graph = imported(model(wire::graph({.nodes = {node("Outer", {"x"}, {"y"}, {}, "local")},
                                                 .inputs = {info("x", kFloatElement, {2})},
                                                 .outputs = {info("y", kFloatElement, {2})}}),
                                    13, {inner_a, inner_b, outer}));
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->body().op_count(), 2u);
  EXPECT_EQ(graph->body().first()->name().str(), "Relu");
  EXPECT_EQ(graph->body().last()->name().str(), "Neg");
}

TEST(ImportFunctions, OperandsMayBeLeftOut) {
  const Message clip = function("MyClip", {"v", "low", "high"}, {"w"}, {node("Clip", {"v", "low", "high"}, {"w"})});
  const auto graph = imported(model(wire::graph({.nodes = {node("MyClip", {"x"}, {"y"}, {}, "local")},
                                                 .inputs = {info("x", kFloatElement, {2})},
                                                 .outputs = {info("y", kFloatElement, {2})}}),
                                    13, {clip}));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->body().first()->operand_count(), 1u);
}

TEST(ImportFunctions, ConstantsAreSharedBetweenCalls) {
  const Message weights = function(
      "W", {"v"}, {"w"},
      {node("Constant", {}, {"k"}, {tensor_attribute("value", wire::tensor<float>("", kFloatElement, {2}, {1, 2}))}),
       node("Add", {"v", "k"}, {"w"})});
  const auto graph =
      imported(model(wire::graph({.nodes = {node("W", {"x"}, {"a"}, {}, "local"), node("W", {"a"}, {"y"}, {}, "local")},
                                  .inputs = {info("x", kFloatElement, {2})},
                                  .outputs = {info("y", kFloatElement, {2})}}),
                     13, {weights}));
  ASSERT_TRUE(graph);
  const auto ops = graph->body().ops();
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(constant_of(ops[0]->result())->data(), constant_of(ops[2]->result())->data());
}

// ---- Gradient ----

Message gradient_model(const std::vector<Message>& nodes, const Names& xs, const Names& at) {
  std::vector<Message> all = nodes;
  all.push_back(node("Gradient", at, {"dx"}, {strings_attribute("xs", xs), string_attribute("y", "y")},
                     "ai.onnx.preview.training"));
  return model(wire::graph({.nodes = all,
                            .inputs = {info("x", kFloatElement, {3}), info("other", kFloatElement, {3})},
                            .outputs = {info("dx", kFloatElement, {3})}}),
               13)
      .add(8, opset("ai.onnx.preview.training", 1));
}

void expect_gradient(const Message& file, const std::vector<float>& expected) {
  const auto graph = imported(file);
  ASSERT_TRUE(graph);
  const auto runs = Interpreter::prepare(*graph);
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  const std::vector<Datum> inputs = {Tensor::of<float>({3}, {1, 2, 3}), Tensor::of<float>({3}, {-1, 5, 0})};
  const auto outputs = (*runs)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  const auto got = (*outputs)[0].tensor().as<float>();
  EXPECT_EQ(std::vector<float>(got.begin(), got.end()), expected);
}

// y = x * x + x * other
const std::vector<Message>& polynomial() {
  static const std::vector<Message> nodes = {node("Mul", {"x", "x"}, {"a"}), node("Mul", {"x", "other"}, {"b"}),
                                             node("Add", {"a", "b"}, {"y"})};
  return nodes;
}

TEST(ImportGradient, IsExpanded) { expect_gradient(gradient_model(polynomial(), {"x"}, {"x"}), {1, 9, 6}); }

TEST(ImportGradient, AtOtherValues) { expect_gradient(gradient_model(polynomial(), {"x"}, {"other"}), {-3, 15, 0}); }

TEST(ImportGradient, OfWhatDoesNotDependIsZero) {
  expect_gradient(gradient_model({node("Mul", {"other", "other"}, {"y"})}, {"x"}, {"x"}), {0, 0, 0});
}

TEST(ImportGradient, NamesWhatCannotBeDone) {
  const auto rule =
      import_model_bytes(gradient_model({node("Round", {"x"}, {"y"}, {}, "", "rounding")}, {"x"}, {"x"}).span());
  ASSERT_FALSE(rule.ok());
  EXPECT_EQ(rule.error().code(), Code::unsupported);
  EXPECT_THAT(rule.error().to_string(), HasSubstr("'Round' has no gradient rule"));
  EXPECT_THAT(rule.error().to_string(), HasSubstr("rounding"));
  const auto name = import_model_bytes(gradient_model(polynomial(), {"nothing"}, {"x"}).span());
  ASSERT_FALSE(name.ok());
  EXPECT_THAT(name.error().to_string(), HasSubstr("\"nothing\""));
  EXPECT_FALSE(import_model_bytes(gradient_model(polynomial(), {"x", "other"}, {"x"}).span()).ok());
}

// ---- Older operators ----

TEST(Upgrade, AxesBecomeAnOperand) {
  expect_import(
      11, {node("Unsqueeze", {"x"}, {"y"}, {ints_attribute("axes", {0})})},
      "graph @g(%x: f32[2,3,4]) -> (%y) { %a = Constant {value = dense<i64[1]: 0>}\n %y = Unsqueeze %x, %a }");
  // ReduceSum moved at 13, the other reductions at 18.
  expect_import(
      11, {node("ReduceSum", {"x"}, {"y"}, {ints_attribute("axes", {1})})},
      "graph @g(%x: f32[2,3,4]) -> (%y) { %a = Constant {value = dense<i64[1]: 1>}\n %y = ReduceSum %x, %a }");
  expect_import(
      17, {node("ReduceMax", {"x"}, {"y"}, {ints_attribute("axes", {1})})},
      "graph @g(%x: f32[2,3,4]) -> (%y) { %a = Constant {value = dense<i64[1]: 1>}\n %y = ReduceMax %x, %a }");
}

TEST(Upgrade, SoftmaxWorkedOnAMatrix) {
  expect_import(11, {node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 1)})},
                "graph @g(%x: f32[2,3,4]) -> (%y) { %s = Shape %x\n %m = Flatten %x {axis = 1}\n %d = Softmax %m {axis "
                "= -1}\n %y = Reshape %d, %s }");
  // The default axis was 1; where only ones stand behind it, the operator itself says the same.
  expect_import(11, {node("Softmax", {"x"}, {"y"})}, "graph @g(%x: f32[2,3,1]) -> (%y) { %y = Softmax %x {axis = 1} }",
                {2, 3, 1});
  expect_import(13, {node("Softmax", {"x"}, {"y"})}, "graph @g(%x: f32[2,3,4]) -> (%y) { %y = Softmax %x }");
}

TEST(Upgrade, BroadcastAtAnAxis) {
  expect_import(6, {node("Add", {"x", "w"}, {"y"}, {int_attribute("broadcast", 1), int_attribute("axis", 1)})},
                "graph @g(%x: f32[2,3,4]) -> (%y) { %w = Constant {value = dense<f32[3]: 1.0, 2.0, 3.0>}\n %a = "
                "Constant {value = dense<i64[1]: 1>}\n"
                " %u = Unsqueeze %w, %a\n %y = Add %x, %u }",
                {2, 3, 4}, {wire::tensor<float>("w", kFloatElement, {3}, {1, 2, 3})});
  expect_import(6, {node("Add", {"x", "w"}, {"y"}, {int_attribute("broadcast", 1)})},
                "graph @g(%x: f32[2,3,4]) -> (%y) { %w = Constant {value = dense<f32[4]: 1.0, 2.0, 3.0, 4.0>}\n %y = "
                "Add %x, %w }",
                {2, 3, 4}, {wire::tensor<float>("w", kFloatElement, {4}, {1, 2, 3, 4})});
}

TEST(Upgrade, LimitsOfClip) {
  expect_import(6, {node("Clip", {"x"}, {"y"}, {float_attribute("max", 6.0f), float_attribute("min", 0.0f)})},
                "graph @g(%x: f32[2,3,4]) -> (%y) { %a = Constant {value = dense<f32[]: 0.0>}\n %b = Constant {value = "
                "dense<f32[]: 6.0>}\n %y = Clip %x, %a, %b }");
}

TEST(Upgrade, CastToANamedType) {
  expect_import(1, {node("Cast", {"x"}, {"y"}, {string_attribute("to", "INT64")})},
                "graph @g(%x: f32[2,3,4]) -> (%y) { %y = Cast %x {to = type<i64[*]>} }");
}

TEST(Upgrade, ConsumedInputsGo) {
  expect_import(1, {node("Relu", {"x"}, {"y"}, {ints_attribute("consumed_inputs", {0})})},
                "graph @g(%x: f32[2,3,4]) -> (%y) { %y = Relu %x }");
}

TEST(Upgrade, SplitCountsItsOutputs) {
  const auto graph = imported(
      model(wire::graph({.nodes = {node("Split", {"x"}, {"a", "b"}, {int_attribute("axis", 2)})},
                         .inputs = {info("x", kFloatElement, {2, 3, 4})},
                         .outputs = {info("a", kFloatElement, {2, 3, 2}), info("b", kFloatElement, {2, 3, 2})}}),
            13));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->body().last()->attr<int64_t>("num_outputs"), 2);
}

TEST(Upgrade, UpsampleBecameResize) {
  const auto graph =
      imported(model(wire::graph({.nodes = {node("Upsample", {"x", "s"}, {"y"}, {string_attribute("mode", "linear")})},
                                  .inputs = {info("x", kFloatElement, {1, 1, 2, 2})},
                                  .outputs = {info("y")},
                                  .initializers = {wire::tensor<float>("s", kFloatElement, {4}, {1, 1, 2, 2})}}),
                     9),
               {.allow_unknown_ops = true});
  ASSERT_TRUE(graph);
  const Op& op = *graph->body().last();
  EXPECT_EQ(op.name().str(), "Resize");
  EXPECT_EQ(op.operand(1), nullptr);
  EXPECT_NE(op.operand(2), nullptr);
  EXPECT_EQ(op.attr<std::string>("coordinate_transformation_mode"), "asymmetric");
  EXPECT_EQ(op.attr<std::string>("nearest_mode"), "floor");
}

// Opset 8: a batch of two sequences of three steps, summed up.
TEST(Upgrade, ScanOverABatch) {
  const Message body =
      wire::graph({.nodes = {node("Add", {"sum", "next"}, {"sum_out"}), node("Identity", {"sum_out"}, {"scan_out"})},
                   .inputs = {info("sum", kFloatElement, {1}), info("next", kFloatElement, {1})},
                   .outputs = {info("sum_out", kFloatElement, {1}), info("scan_out", kFloatElement, {1})}});
  const auto scan = [&](std::string_view lengths) {
    return model(wire::graph({.nodes = {node("Scan", {lengths, "start", "x"}, {"y", "z"},
                                             {graph_attribute("body", body), int_attribute("num_scan_inputs", 1)})},
                              .inputs = {info("start", kFloatElement, {2, 1}), info("x", kFloatElement, {2, 3, 1}),
                                         info("lengths", kInt64Element, {2})},
                              .outputs = {info("y", kFloatElement, {2, 1}), info("z", kFloatElement, {2, 3, 1})}}),
                 8);
  };
  const auto graph = imported(scan(""));
  ASSERT_TRUE(graph);
  const auto runs = Interpreter::prepare(*graph);
  ASSERT_TRUE(runs.ok()) << runs.error().to_string();
  const std::vector<Datum> inputs = {Tensor::of<float>({2, 1}, {0, 100}),
                                     Tensor::of<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                                     Tensor::of<int64_t>({2}, {3, 3})};
  const auto outputs = (*runs)->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_TRUE((*outputs)[0].tensor().identical(Tensor::of<float>({2, 1}, {6, 115})));
  EXPECT_TRUE((*outputs)[1].tensor().identical(Tensor::of<float>({2, 3, 1}, {1, 3, 6, 104, 109, 115})));

  const auto refused = import_model_bytes(scan("lengths").span());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unsupported);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("sequence_lens"));
}

TEST(Upgrade, LabelEncoderReadItsClassesBothWays) {
  for (const bool from_strings : {true, false}) {
    const Message file =
        model(wire::graph({.nodes = {node("LabelEncoder", {"x"}, {"y"},
                                          {strings_attribute("classes_strings", {"a", "b"})}, "ai.onnx.ml")},
                           .inputs = {info("x", from_strings ? 8 : kInt64Element, {2})},
                           .outputs = {info("y")}}),
              13)
            .add(8, opset("ai.onnx.ml", 1));
    const auto graph = imported(file, {.allow_unknown_ops = true});
    ASSERT_TRUE(graph);
    const Op& op = *graph->body().last();
    EXPECT_FALSE(op.attributes().has("classes_strings"));
    EXPECT_EQ(op.attr<std::vector<int64_t>>(from_strings ? "values_int64s" : "keys_int64s"),
              (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(op.attr<std::vector<std::string>>(from_strings ? "keys_strings" : "values_strings"),
              (std::vector<std::string>{"a", "b"}));
  }
}

// ---- Older operators by what they compute ----

std::vector<Datum> results_of(int64_t version, const std::vector<Message>& nodes, const std::vector<Extent>& dims,
                              const std::vector<Message>& initializers, const Names& outputs) {
  std::vector<Message> infos;
  for (const auto name : outputs) infos.push_back(info(name));
  const auto graph = imported(model(
      wire::graph(
          {.nodes = nodes, .inputs = {info("x", kFloatElement, dims)}, .outputs = infos, .initializers = initializers}),
      version));
  if (!graph) return {};
  Dims extents;
  for (const Extent& dim : dims) extents.push_back(dim.value);
  auto x = Tensor::allocate(kF32, extents);
  std::mt19937 random(7);
  for (float& value : x->mutable_as<float>()) value = std::normal_distribution<float>()(random);
  const auto runs = Interpreter::prepare(*graph);
  EXPECT_TRUE(runs.ok()) << runs.error().to_string();
  auto results = runs.ok() ? (*runs)->run(std::vector<Datum>{*x}) : Result<std::vector<Datum>>(runs.error());
  EXPECT_TRUE(results.ok()) << results.error().to_string();
  return results.ok() ? *std::move(results) : std::vector<Datum>();
}

// Nodes of an old version give the same results as nodes of the newest, for the same input x and initializers.
void expect_same(int64_t version, const std::vector<Message>& old_nodes, const std::vector<Message>& new_nodes,
                 const std::vector<Extent>& dims = {2, 3, 4}, const std::vector<Message>& initializers = {},
                 const Names& outputs = {"y"}) {
  const auto old_results = results_of(version, old_nodes, dims, initializers, outputs);
  const auto new_results = results_of(28, new_nodes, dims, initializers, outputs);
  ASSERT_EQ(old_results.size(), outputs.size());
  ASSERT_EQ(new_results.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto comparison = compare(old_results[i], new_results[i], {.rtol = 1e-6, .atol = 1e-6});
    EXPECT_TRUE(comparison.equal) << "output " << i << ": " << comparison.difference;
  }
}

Message ints(std::string_view name, const std::vector<int64_t>& values) {
  return node("Constant", {}, {name}, {ints_attribute("value_ints", values)});
}
Message floats(std::string_view name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return wire::tensor<float>(name, kFloatElement, dims, values);
}
Message scalar(std::string_view name, int64_t value) { return wire::tensor<int64_t>(name, kInt64Element, {}, {value}); }

TEST(UpgradeResults, Movement) {
  expect_same(
      1,
      {node("Slice", {"x"}, {"y"},
            {ints_attribute("starts", {1, 0}), ints_attribute("ends", {3, -1}), ints_attribute("axes", {1, 2})})},
      {ints("s", {1, 0}), ints("e", {3, -1}), ints("a", {1, 2}), node("Slice", {"x", "s", "e", "a"}, {"y"})});
  expect_same(1, {node("Reshape", {"x"}, {"y"}, {ints_attribute("shape", {4, -1})})},
              {ints("s", {4, -1}), node("Reshape", {"x", "s"}, {"y"})});
  expect_same(1, {node("Concat", {"x", "x"}, {"y"})}, {node("Concat", {"x", "x"}, {"y"}, {int_attribute("axis", 1)})});
  expect_same(1, {node("Tile", {"x", "n", "at"}, {"y"})}, {ints("r", {1, 3, 1}), node("Tile", {"x", "r"}, {"y"})},
              {2, 3, 4}, {scalar("n", 3), scalar("at", 1)});
  expect_same(1, {node("TopK", {"x"}, {"y", "i"}, {int_attribute("k", 2)})},
              {ints("k", {2}), node("TopK", {"x", "k"}, {"y", "i"})}, {2, 3, 4}, {}, {"y", "i"});
  expect_same(2, {node("Split", {"x"}, {"y", "z"}, {int_attribute("axis", 2), ints_attribute("split", {1, 3})})},
              {ints("s", {1, 3}), node("Split", {"x", "s"}, {"y", "z"}, {int_attribute("axis", 2)})}, {2, 3, 4}, {},
              {"y", "z"});
}

TEST(UpgradeResults, Padding) {
  const auto wanted = {ints("p", {0, 1, 0, 0, 0, 2}),
                       node("Constant", {}, {"v"}, {float_attribute("value_float", 1.5f)}),
                       node("Pad", {"x", "p", "v"}, {"y"})};
  expect_same(
      1, {node("Pad", {"x"}, {"y"}, {ints_attribute("paddings", {0, 1, 0, 0, 0, 2}), float_attribute("value", 1.5f)})},
      wanted);
  expect_same(2,
              {node("Pad", {"x"}, {"y"}, {ints_attribute("pads", {0, 1, 0, 0, 0, 2}), float_attribute("value", 1.5f)})},
              wanted);
}

TEST(UpgradeResults, SlopePerChannel) {
  expect_same(6, {node("PRelu", {"x", "s"}, {"y"})},
              {ints("a", {1}), node("Unsqueeze", {"s", "a"}, {"u"}), node("PRelu", {"x", "u"}, {"y"})}, {2, 3, 4},
              {floats("s", {3}, {0.1f, 0.2f, 0.3f})});
}

TEST(UpgradeResults, Normalisations) {
  const std::vector<Message> statistics = {floats("s", {3}, {1, 2, 3}), floats("b", {3}, {0, 1, 0}),
                                           floats("m", {3}, {0.5f, 0, 1}), floats("v", {3}, {1, 2, 4})};
  const Message newest =
      node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {float_attribute("epsilon", 0.01f)});
  const auto old = [](const std::vector<Message>& more) {
    std::vector<Message> attributes = {float_attribute("epsilon", 0.01f)};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, attributes);
  };
  expect_same(6, {old({int_attribute("is_test", 1)})}, {newest}, {2, 3, 4}, statistics);
  expect_same(7, {old({int_attribute("spatial", 1)})}, {newest}, {2, 3, 4}, statistics);
  // Per activation is per channel where a channel has one place.
  expect_same(7, {old({int_attribute("spatial", 0)})}, {newest}, {2, 3}, statistics);

  const std::vector<Message> by_group = {floats("s", {2}, {2, 3}), floats("b", {2}, {1, -1}),
                                         floats("s4", {4}, {2, 2, 3, 3}), floats("b4", {4}, {1, 1, -1, -1})};
  expect_same(18, {node("GroupNormalization", {"x", "s", "b"}, {"y"}, {int_attribute("num_groups", 2)})},
              {node("GroupNormalization", {"x", "s4", "b4"}, {"y"}, {int_attribute("num_groups", 2)})}, {2, 4, 3},
              by_group);

  expect_same(1, {node("MeanVarianceNormalization", {"x"}, {"y"}, {int_attribute("across_channels", 1)})},
              {node("MeanVarianceNormalization", {"x"}, {"y"}, {ints_attribute("axes", {0, 1, 2, 3})})}, {2, 3, 4, 2});
  expect_same(1, {node("MeanVarianceNormalization", {"x"}, {"y"}, {int_attribute("normalize_variance", 0)})},
              {ints("a", {0, 2, 3}), node("ReduceMean", {"x", "a"}, {"m"}), node("Sub", {"x", "m"}, {"y"})},
              {2, 3, 4, 2});
}

TEST(UpgradeResults, Dropout) {
  // No training before opset 12 (from 7 on): the data as they are; until opset 10 the mask had their type.
  expect_same(7, {node("Dropout", {"x"}, {"y", "m"}, {float_attribute("ratio", 0.3f)})},
              {node("Dropout", {"x"}, {"y", "b"}), node("CastLike", {"b", "x"}, {"m"})}, {2, 3, 4}, {}, {"y", "m"});
  expect_same(6, {node("Dropout", {"x"}, {"y"}, {int_attribute("is_test", 1)})}, {node("Identity", {"x"}, {"y"})});
}

TEST(UpgradeResults, Resizing) {
  const auto sizes = [](std::string_view mode, std::string_view transform, std::string_view nearest) {
    return node("Resize", {"x", "", "s"}, {"y"},
                {string_attribute("mode", mode), string_attribute("coordinate_transformation_mode", transform),
                 string_attribute("nearest_mode", nearest)});
  };
  const std::vector<Message> scales = {floats("s", {4}, {1, 1, 2, 3}), floats("empty", {0}, {})};
  const std::vector<Extent> dims = {1, 2, 3, 3};
  expect_same(1,
              {node("Upsample", {"x"}, {"y"},
                    {float_attribute("height_scale", 2), float_attribute("width_scale", 3),
                     string_attribute("mode", "bilinear")})},
              {sizes("linear", "asymmetric", "floor")}, dims, scales);
  expect_same(10, {node("Resize", {"x", "s"}, {"y"})}, {sizes("nearest", "asymmetric", "floor")}, dims, scales);
  expect_same(11, {node("Resize", {"x", "empty", "s"}, {"y"}, {string_attribute("nearest_mode", "ceil")})},
              {sizes("nearest", "half_pixel", "ceil")}, dims, scales);
  // floor((x + 0.5) / scale): by 2 and 3, each source row and column 2 and 3 times.
  expect_same(11,
              {node("Resize", {"x", "empty", "s"}, {"y"},
                    {string_attribute("nearest_mode", "floor"),
                     string_attribute("coordinate_transformation_mode", "tf_half_pixel_for_nn")})},
              {sizes("nearest", "asymmetric", "floor")}, dims, scales);
}

TEST(Upgrade, WhatTheNewestLeavesAlone) {
  expect_import(28, {node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 1)})},
                "graph @g(%x: f32[2,3,4]) -> (%y) { %y = Softmax %x {axis = 1} }");
}

}  // namespace
}  // namespace tenon
