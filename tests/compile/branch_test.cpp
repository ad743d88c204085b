// Models whose untaken branches contradict the shapes around them, as exporters write them: imported, compiled, run.
#include <tenon/compile/compile.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/onnx/import.hpp>
#include <tenon/passes/standard.hpp>
#include "onnx/wire.hpp"

namespace tenon {
namespace {

using namespace tenon::wire;
using ::testing::AllOf;
using ::testing::HasSubstr;

Message int64s(std::string_view name, const std::vector<int64_t>& values, bool scalar = false) {
  const std::vector<int64_t> dims = scalar ? std::vector<int64_t>{} : std::vector{static_cast<int64_t>(values.size())};
  return tensor(name, kInt64Element, dims, values);
}

// A branch without inputs whose output `made` is computed by one node, declared with `type` if given.
Message branch(const Message& node, std::string_view made, const Message* type = nullptr) {
  return wire::graph({.nodes = {node}, .inputs = {}, .outputs = {type ? info(made, *type) : info(made)}}, "branch");
}

// What torch writes for x.squeeze(axis): to = If(Shape(from)[axis] == 1) then Squeeze(from, axis) else Identity(from).
struct Squeezed {
  std::string from, to, axis;  // `axis`: an initializer i64[1]
  std::string shape = to + "_shape", dim = to + "_dim", is_one = to + "_is_one", yes = to + "_yes", no = to + "_no";

  std::vector<Message> nodes(const Message* declared = nullptr) const {
    return {node("Shape", {from}, {shape}), node("Gather", {shape, axis}, {dim}), node("Equal", {dim, "one"}, {is_one}),
            node("If", {is_one}, {to},
                 {graph_attribute("then_branch",
                                  branch(node("Squeeze", {from, axis}, {yes}, {}, "", to + "/squeeze"), yes, declared)),
                  graph_attribute("else_branch", branch(node("Identity", {from}, {no}), no))})};
  }
};

Message network(std::vector<Message> nodes, const std::vector<Extent>& x, const std::vector<Message>& inputs = {}) {
  std::vector<Message> all = {info("x", kFloatElement, x)};
  all.insert(all.end(), inputs.begin(), inputs.end());
  return model(wire::graph({.nodes = std::move(nodes),
                            .inputs = std::move(all),
                            .outputs = {info("y")},
                            .initializers = {int64s("one", {1}), int64s("last", {-1}), int64s("two", {2})}}),
               13);
}

Datum ramp(const Dims& dims) {
  Tensor out = *Tensor::allocate(kF32, dims);
  for (int64_t i = 0; i < out.size(); ++i) out.set_double(i, static_cast<double>(i) - 7);
  return out;
}

Result<std::unique_ptr<CompiledModel>> compiled(const Message& file, bool optimize = true) {
  TENON_TRY(graph, import_model_bytes(file.span()));
  TargetRegistry registry;
  return compile(std::move(graph), registry, {.targets = {"reference"}, .optimize = optimize});
}

// The shape of y, after checking that its elements are the negated ones of x in order; or the error.
std::string negated(const Message& file, const std::vector<Datum>& inputs, bool optimize = true) {
  const auto model = compiled(file, optimize);
  if (!model.ok()) return model.error().to_string();
  const auto outputs = (*model)->run(inputs);
  if (!outputs.ok()) return outputs.error().to_string();
  const Tensor& x = inputs[0].tensor();
  const Tensor& y = (*outputs)[0].tensor();
  if (y.size() != x.size()) return str(y, " of ", x);
  for (int64_t i = 0; i < y.size(); ++i) {
    if (y.double_at(i) != -x.double_at(i)) return str("element ", i, " is ", y.double_at(i));
  }
  return y.to_string();
}

// y = -squeeze(x, 1)
Message squeeze_network(const std::vector<Extent>& x, const Message* declared = nullptr) {
  auto nodes = Squeezed{"x", "z", "one"}.nodes(declared);
  nodes.push_back(node("Neg", {"z"}, {"y"}));
  return network(std::move(nodes), x);
}

TEST(Branch, TheOneThatIsNotTakenMayContradict) {
  const Message declared = tensor_type(kFloatElement, {2, 5});
  for (const bool optimize : {true, false}) {
    for (const Message* type : {static_cast<const Message*>(nullptr), &declared}) {
      EXPECT_EQ(negated(squeeze_network({2, 3, 5}, type), {ramp({2, 3, 5})}, optimize), "f32[2,3,5]");
      EXPECT_EQ(negated(squeeze_network({2, 1, 5}, type), {ramp({2, 1, 5})}, optimize), "f32[2,5]");
    }
  }
}

TEST(Branch, IsGoneWhenItsConditionIsKnown) {
  const auto graph = import_model_bytes(squeeze_network({2, 3, 5}).span());
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_TRUE(standard_passes()->run(**graph, {.verify_each = true}).ok());
  ASSERT_EQ((*graph)->body().op_count(), 1u);
  EXPECT_EQ((*graph)->body().output(0)->type().to_string(), "f32[2,3,5]");
}

TEST(Branch, OfASymbolicShapeIsChosenByTheRun) {
  const Message file = squeeze_network({"N", "C", 5});
  EXPECT_EQ(negated(file, {ramp({2, 3, 5})}), "f32[2,3,5]");
  EXPECT_EQ(negated(file, {ramp({2, 1, 5})}), "f32[2,5]");
}

TEST(Branch, ChainsGoInOneWalk) {
  // Each condition is known only after the previous branch has been inlined.
  auto nodes = Squeezed{"x", "a", "one"}.nodes();
  for (const auto& [from, to] : {std::pair("a", "b"), {"b", "c"}, {"c", "d"}}) {
    const auto more = Squeezed{from, to, "last"}.nodes();
    nodes.insert(nodes.end(), more.begin(), more.end());
  }
  nodes.push_back(node("Neg", {"d"}, {"y"}));
  const Message file = network(nodes, {2, 3, 1, 1});
  EXPECT_EQ(negated(file, {ramp({2, 3, 1, 1})}), "f32[2,3]");
  EXPECT_EQ(negated(file, {ramp({2, 3, 1, 1})}, /*optimize=*/false), "f32[2,3]");
  const auto graph = import_model_bytes(file.span());
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_TRUE(standard_passes()->run(**graph, {.verify_each = true}).ok());
  for (const Op& op : (*graph)->body()) EXPECT_FALSE(op.is("If")) << op.describe();
}

Message identity_branch() {
  return branch(node("Identity", {"x"}, {"w"}), "w");
}

// y = -(If(c) then `yes` else `no`) of x: f32[2,3,5]. Without `no`, x itself.
Message chosen_network(const Message& yes, const Message& no = identity_branch()) {
  return network({node("If", {"c"}, {"z"}, {graph_attribute("then_branch", yes), graph_attribute("else_branch", no)}),
                  node("Neg", {"z"}, {"y"})},
                 {2, 3, 5}, {info("c", kBoolElement, {})});
}

// Correct if the condition is false; an error of the run if it is true.
void expect_wrong_if_taken(const Message& file, const ::testing::Matcher<std::string>& says) {
  EXPECT_EQ(negated(file, {ramp({2, 3, 5}), Tensor::scalar(false)}), "f32[2,3,5]");
  EXPECT_THAT(negated(file, {ramp({2, 3, 5}), Tensor::scalar(true)}), says);
}

TEST(Branch, ThatIsTakenAndWrongIsAnErrorOfTheRun) {
  const Message drop = branch(node("Squeeze", {"x", "one"}, {"v"}, {}, "", "drop"), "v");
  const auto inner = Squeezed{"x", "w", "two"}.nodes();
  const Message nested = wire::graph({.nodes = inner, .inputs = {}, .outputs = {info("w")}}, "inner");
  for (const Message& other : {identity_branch(), nested})
    expect_wrong_if_taken(chosen_network(drop, other), AllOf(HasSubstr("Squeeze 'drop'"), HasSubstr("3")));
}

TEST(Branch, ThatEveryRunTakesAndIsWrongIsAnErrorOfCompilation) {
  const auto model = compiled(network(
      {node("Constant", {}, {"c"}, {tensor_attribute("value", tensor("", kBoolElement, {}, std::vector<uint8_t>{1}))}),
       node("If", {"c"}, {"y"},
            {graph_attribute("then_branch", branch(node("Squeeze", {"x", "one"}, {"v"}, {}, "", "drop"), "v")),
             graph_attribute("else_branch", identity_branch())})},
      {2, 3, 5}));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().to_string(), AllOf(HasSubstr("Squeeze 'drop'"), HasSubstr("pass 'inline-branch'")));
}

TEST(Branch, OperatorsOnWhatContradictsHaveTypesToo) {
  // After the Squeeze, everything has the required element type and an open shape.
  const Message yes = wire::graph(
      {.nodes = {node("Squeeze", {"x", "one"}, {"s"}),
                 node("Transpose", {"s"}, {"t"}, {ints_attribute("perm", {1, 0})}),
                 node("Transpose", {"t"}, {"u"}, {ints_attribute("perm", {1, 0})}), node("Add", {"u", "s"}, {"v"})},
       .inputs = {},
       .outputs = {info("v")}},
      "yes");
  expect_wrong_if_taken(chosen_network(yes), HasSubstr("Squeeze"));
}

TEST(Branch, PassesLeaveWhatContradicts) {
  // Permutations that do not fit their operand, a Pad of an axis that does not exist, and a Reshape after an invalid
  // Squeeze.
  const std::pair<const char*, std::vector<Message>> kBranches[] = {
      {"Transpose",
       {node("Transpose", {"x"}, {"s"}, {ints_attribute("perm", {1, 0})}),
        node("Transpose", {"s"}, {"v"}, {ints_attribute("perm", {0, 7})})}},
      {"Transpose", {node("Transpose", {"x"}, {"v"}, {ints_attribute("perm", {0, 1, 2, 3})})}},
      {"Squeeze", {node("Squeeze", {"x", "one"}, {"s"}), node("Reshape", {"s", "last"}, {"v"})}},
  };
  for (const auto& [culprit, nodes] : kBranches) {
    const Message yes = wire::graph({.nodes = nodes, .inputs = {}, .outputs = {info("v")}}, "yes");
    expect_wrong_if_taken(chosen_network(yes), HasSubstr(culprit));
  }
}

TEST(Branch, MayNotBeWrongInMoreThanShapes) {
  const auto refusal = [](const Message& wrong) {
    const auto model =
        compiled(network({node("If", {"c"}, {"y"},
                               {graph_attribute("then_branch", branch(wrong, "v")),
                                graph_attribute("else_branch", identity_branch())})},
                         {2, 3, 5}, {info("c", kBoolElement, {})}));
    return model.ok() ? "compiled" : model.error().to_string();
  };
  EXPECT_THAT(refusal(node("Add", {"x", "one"}, {"v"})), HasSubstr("both must be the same T"));
  EXPECT_THAT(refusal(node("Neg", {"x"}, {"v"}, {int_attribute("axis", 1)})),
              HasSubstr("there is no attribute 'axis'"));
  EXPECT_THAT(refusal(node("Shape", {"x"}, {"v"})), HasSubstr("output 0 of the branches"));
  EXPECT_THAT(refusal(node("Neg", {"x", "x"}, {"v"})), HasSubstr("operands"));
}

TEST(Branch, OutsideOfOneNothingMayContradict) {
  const auto model = compiled(network({node("Squeeze", {"x", "one"}, {"y"})}, {2, 3, 5}));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().to_string(), HasSubstr("Squeeze"));
}

}  // namespace
}  // namespace tenon
