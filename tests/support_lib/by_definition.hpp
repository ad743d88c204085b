// Runs an operator by its decomposition, whether or not it has an evaluator.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::testing {

// A graph of one operator, with types for `operands` only; absent operands are absent in the graph as well.
inline Result<std::unique_ptr<Graph>> graph_of(Name op, const std::vector<Datum>& operands,
                                               const Attributes& attributes) {
  auto graph = std::make_unique<Graph>("one");
  std::vector<Value*> values;
  for (const Datum& operand : operands) {
    values.push_back(operand.is_tensor() ? graph->body().add_input(str("x", values.size()), operand.type()) : nullptr);
  }
  Builder builder(graph->body());
  TENON_TRY(y, builder.op(op, values, attributes));
  graph->body().add_output(y, "y");
  return graph;
}

// The result of the decomposition of `op`.
inline Result<Tensor> by_definition(Name op, const std::vector<Datum>& operands, const Attributes& attributes = {}) {
  TENON_TRY(graph, graph_of(op, operands, attributes));
  Op& whole = *graph->body().output(0)->producer();
  Builder builder(graph->body(), &whole);
  TENON_TRY(parts, whole.def()->decompose_fn()(builder, whole));
  graph->body().set_output(0, parts[0]);
  whole.erase();
  std::vector<Datum> inputs;
  for (const Datum& operand : operands) {
    if (operand.is_tensor()) inputs.push_back(operand);
  }
  TENON_TRY(interpreter, Interpreter::prepare(*graph));
  TENON_TRY(outputs, interpreter->run(inputs));
  return outputs[0].tensor();
}

}  // namespace tenon::testing
