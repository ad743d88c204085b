// A graph partitioned among backends, and assembled to a model.
#pragma once
#include <memory>
#include <vector>

#include <tenon/compile/partition.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/model/compiled_model.hpp>

namespace tenon::testing {

// The partition, assembled as in compile().
inline Result<std::unique_ptr<CompiledModel>> assembled(const Graph& graph, std::vector<TargetBackend*> backends) {
  const std::vector<const TargetBackend*> views(backends.begin(), backends.end());
  TENON_TRY(cut, partition(graph, views));
  CompiledModel::Parts parts;
  parts.name = graph.name();
  const Region& body = graph.body();
  for (size_t i = 0; i < body.input_count(); ++i)
    parts.inputs.push_back({body.input(i)->name(), body.input(i)->type()});
  for (size_t i = 0; i < body.output_count(); ++i)
    parts.outputs.push_back({body.output_name(i), body.output(i)->type()});
  parts.slots = cut.slots;
  parts.constants = std::move(cut.constants);
  parts.output_slots = std::move(cut.output_slots);
  parts.placement = std::move(cut.placement);
  for (GraphPart& part : cut.parts) {
    TENON_OK(verify(*part.graph), "a part for ", backends[part.target]->name());
    TENON_TRY(executable, backends[part.target]->build(std::move(part.graph)));
    parts.segments.push_back(
        {backends[part.target]->name(), std::move(executable), std::move(part.inputs), std::move(part.outputs)});
  }
  return CompiledModel::assemble(std::move(parts));
}

}  // namespace tenon::testing
