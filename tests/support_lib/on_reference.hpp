// Whole graphs on the reference interpreter.
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/support/check.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::testing {

// The outputs, which must be tensors. Aborts with the error if the graph does not run.
inline std::vector<Tensor> on_reference(const Graph& graph, const std::vector<Datum>& inputs) {
  auto interpreter = Interpreter::prepare(graph);
  TENON_CHECK(interpreter.ok(), interpreter.ok() ? "" : interpreter.error().to_string());
  auto made = (*interpreter)->run(inputs);
  TENON_CHECK(made.ok(), made.ok() ? "" : made.error().to_string());
  std::vector<Tensor> outputs;
  for (const Datum& datum : *made) outputs.push_back(datum.tensor());
  return outputs;
}

}  // namespace tenon::testing
