// A user-defined operator: its definition, a typed view, an evaluator, a pass that creates it, and a visitor that
// handles it together with Tenon's operators. A plugin does the same in Plugin::register_extensions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <tenon/ir/text.hpp>
#include <tenon/ir/visitor.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/passes/rewrite.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/tensor/compare.hpp>

#include "exit_code.hpp"

using namespace tenon;

namespace example {

// y = sign(x) * max(|x| - threshold, 0): small values become 0, others are moved towards it. y has x's type.
// A view provides named accessors for a generic Op. It is header-only and adds nothing to the binary interface.
struct SoftThreshold : OpView<SoftThreshold> {
  static constexpr std::string_view kName = "example.SoftThreshold";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  float threshold() const { return attr<float>("threshold", 0.5f); }
};

Result<void> evaluate_soft_threshold(EvalContext& context) {
  const float threshold = context.attr<float>("threshold", 0.5f);
  const auto x = context.tensor(0).as<float>();
  TENON_TRY(y, context.output(0));
  auto to = y->mutable_as<float>();
  for (size_t i = 0; i < x.size(); ++i) to[i] = std::copysign(std::max(std::abs(x[i]) - threshold, 0.0f), x[i]);
  return {};
}

constexpr TypeSet kF32Only("f32 tensors", [](ElementType element) { return element == kF32; });

// The only definition of the operator: the verifier, the parser, the printer and shape inference use it.
Result<void> register_operator() {
  TENON_OK(register_op(OpDef(SoftThreshold::kName)
                           .summary("sign(x) * max(|x| - threshold, 0)")
                           .operand("x", "T")
                           .result("y", "T")
                           .types("T", kF32Only)
                           .attribute("threshold", 0.5f)
                           .traits(Trait::pure | Trait::elementwise | Trait::layout_oblivious)
                           .infer(same_as_operand(0))));
  return register_evaluator(SoftThreshold::kName, evaluate_soft_threshold);
}

// sign(x) * relu(|x| - t) for a number t.
std::vector<Rewrite> soft_threshold_rewrites() {
  using namespace pattern;
  const auto is_number = [](const Match& m) { return m.constant("t").size() == 1; };
  return {
      Rewrite("soft-threshold")
          .match(op("Mul", {op("Sign", {any("x")}), op("Relu", {op("Sub", {op("Abs", {any("x")}), constant("t")})})}))
          .when(is_number)
          .into(SoftThreshold::kName, {"x"},
                [](const Match& m) {
                  return Attributes{{"threshold", m.constant("t").double_at(0)}};
                }),
  };
}

}  // namespace example

namespace {

constexpr std::string_view kGraph = R"(
graph @denoise(%x: f32[6]) -> %y {
  %t = Constant {value = dense<f32[]: 0.75>}
  %sign = Sign %x
  %size = Abs %x
  %rest = Sub %size, %t
  %kept = Relu %rest
  %y = Mul %sign, %kept
}
)";

Result<void> run() {
  TENON_OK(example::register_operator());
  TENON_TRY(graph, parse_graph(kGraph, "denoise"));
  PassManager passes;
  TENON_OK(passes.add(
      rewrite_pass("fuse-soft-threshold", "Four operators become one.", example::soft_threshold_rewrites())));
  TENON_OK(passes.run(*graph, {.verify_each = true}));
  std::printf("%s\n", print(*graph).c_str());

  // A visitor is a table: user-defined operators are handled like Tenon's, and one without a handler is an error.
  OpVisitor<std::string> describe("describe");
  describe.on<Constant>([](Constant) -> Result<std::string> { return std::string("a constant"); })
      .on<example::SoftThreshold>([](example::SoftThreshold op) -> Result<std::string> {
        return str("moves %", op.x()->name(), " by ", op.threshold(), " towards 0");
      });
  for (Op& op : graph->body()) {
    TENON_TRY(sentence, describe.visit(op));
    std::printf("%s %s\n", op.describe().c_str(), sentence.c_str());
  }
  const OpVisitor<std::string> knows_nothing("knows-nothing");
  const auto refused = knows_nothing.visit(*graph->body().last());
  if (refused.ok()) return error(Code::internal, "an operator without a handler was visited");
  std::printf("as it should be: %s\n", refused.error().to_string().c_str());

  // The operator runs on every target, because the reference runs operators that a target does not support.
  TENON_TRY(interpreter, Interpreter::prepare(*graph));
  TENON_TRY(outputs, interpreter->run(std::vector<Datum>{Tensor::of<float>({6}, {-2, -0.75f, -0.5f, 0.5f, 1, 4})}));
  const Comparison comparison = compare(outputs[0].tensor(), Tensor::of<float>({6}, {-1.25f, 0, 0, 0, 0.25f, 3.25f}));
  return comparison.equal ? Result<void>() : error(Code::internal, "the result is wrong: ", comparison.difference);
}

}  // namespace

int main() { return example::exit_code(run()); }
