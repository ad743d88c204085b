// Conversion of a graph to a LayoutProblem and back: the mapping of nodes to operators and of tensors to values.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/passes/assign_layouts.hpp>
#include <tenon/passes/layout_problem.hpp>
#include <tenon/passes/layout_table.hpp>

namespace tenon {

struct LayoutModel {
  // An operand of an operator, possibly of one inside a region, or an output of the graph.
  struct Place {
    Op* user = nullptr;
    size_t operand = 0;
  };
  struct Tensor {
    Value* value = nullptr;  // for a pinned tensor, the value may change when the graph is written
    size_t type = LayoutTable::kOpaque;
    std::shared_ptr<const ValueLayout> pin = nullptr;  // as set by the user
    size_t home = LayoutTable::kRowMajor;              // the layout of the pin
  };
  struct Node {
    enum class Kind : uint8_t { op, pin, output };
    Kind kind = Kind::op;
    Op* op = nullptr;           // for a pin: the layout.Reorder that produces the pinned value
    std::vector<Place> places;  // of its operands in the problem
    std::vector<bool> padded;   // for each implementation: computes on padding
    std::string name;
  };
  LayoutProblem problem;
  std::vector<Tensor> tensors;  // as in the problem
  std::vector<Node> nodes;      // as in the problem
  LayoutTable table;

  explicit LayoutModel(const BandwidthTable& bandwidth) : table(bandwidth) {}
};

// Removes what an earlier run added, and adds a layout.Reorder after each operator whose result is pinned, so that the
// computed result and the pinned value are separate values.
Result<void> prepare_layouts(Graph& graph);

// Nothing when every value must be row-major.
Result<std::optional<LayoutModel>> make_layout_model(Graph& graph, const AssignLayoutsOptions& options);

// Writes the assignment into the graph.
LayoutReport write_layouts(LayoutModel& model, const LayoutAssignment& assignment);

}  // namespace tenon
