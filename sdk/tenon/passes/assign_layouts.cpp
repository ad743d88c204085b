#include <tenon/passes/assign_layouts.hpp>

#include <algorithm>

#include <tenon/ir/value_layout.hpp>
#include <tenon/passes/layout_model.hpp>
#include <tenon/support/str.hpp>

namespace tenon {

bool has_pinned_layouts(const Graph& graph) {
  const auto pinned = [](const Value* value) { return value->layout() && value->layout()->pinned; };
  const Region& body = graph.body();
  for (size_t i = 0; i < body.input_count(); ++i) {
    if (pinned(body.input(i))) return true;
  }
  return std::any_of(body.begin(), body.end(), [&](const Op& op) {
    for (size_t i = 0; i < op.result_count(); ++i) {
      if (pinned(op.result(i))) return true;
    }
    return false;
  });
}

Result<LayoutReport> assign_layouts(Graph& graph, const AssignLayoutsOptions& options) {
  TENON_OK(prepare_layouts(graph));
  TENON_TRY(model, make_layout_model(graph, options), "layouts of graph '", graph.name(), "'");
  if (!model) return LayoutReport();
  TENON_TRY(assignment, solve_layouts(model->problem, options.solver), "layouts of graph '", graph.name(), "'");
  return write_layouts(*model, assignment);
}

Pass assign_layouts_pass(AssignLayoutsOptions options, std::shared_ptr<LayoutReport> report) {
  return {
      .name = "assign-layouts",
      .contract =
          "Chooses a layout for every value, puts reorders and scrubs where they cost least. Needs inferred\n"
          "types; keeps names and pinned layouts; leaves the graph as it is where no kernel takes another layout.",
      .run = [options = std::move(options), report = std::move(report)](Graph& graph) -> Result<Change> {
        TENON_TRY(made, assign_layouts(graph, options));
        const Change change{!made.empty()};
        if (report) *report = std::move(made);
        return change;
      },
      .needs = {"infer-types"},
  };
}

namespace {
const PassRegistration kAssignLayoutsRegistered({assign_layouts_pass({})});
}  // namespace

}  // namespace tenon
