// Shared by the passes: the kernels of a graph, and errors that name them.
#pragma once
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/constant.hpp>

#include "vta/kernels.hpp"
#include "vta/passes/passes.hpp"

namespace tenon::vta {

// The current kernels of the body.
inline std::vector<Kernel> kernels_of(Graph& graph) {
  std::vector<Kernel> kernels;
  for (Op& op : graph.body())
    if (auto kernel = dyn_cast<Kernel>(op)) kernels.push_back(kernel);
  return kernels;
}

// A pass that applies `run` to each kernel.
template <class Run>
Pass pass_over_kernels(std::string name, std::string contract, Run run) {
  return {.name = std::move(name), .contract = std::move(contract), .run = [run](Graph& graph) -> Result<Change> {
            const auto kernels = kernels_of(graph);
            for (Kernel kernel : kernels) TENON_OK(run(kernel), kernel->describe());
            return kernels.empty() ? Change::no : Change::yes;
          }};
}

// The value that a chain of views shows.
inline Value* behind_views(Value* value) {
  while (auto view = producer_as<ViewOp>(value)) value = view.operand(0);
  return value;
}

// Erases the producers of unused values when they are constants or views.
inline void erase_unused(std::vector<Value*> values) {
  while (!values.empty()) {
    Value* value = values.back();
    values.pop_back();
    Op* made = value ? value->producer() : nullptr;
    if (!made || made->has_uses() || !(isa<Constant>(made) || isa<ViewOp>(made))) continue;
    for (Value* operand : made->operands()) values.push_back(operand);
    std::erase(values, value);
    made->erase();
  }
}

}  // namespace tenon::vta
