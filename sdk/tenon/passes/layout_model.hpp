// The graph seen as a LayoutProblem, and the way back: which node stands for which operator, which tensor for which
// value.
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
    Value* value = nullptr;  // of a pinned tensor: what stands for it changes when the graph is written
    size_t type = LayoutTable::kOpaque;
    std::shared_ptr<const ValueLayout> pin = nullptr;  // as the user put it
    size_t home = LayoutTable::kRowMajor;              // the layout of the pin
  };
  struct Node {
    enum class Kind : uint8_t { op, pin, output };
    Kind kind = Kind::op;
    Op* op = nullptr;           // of a pin: the layout.Reorder that makes the pinned value
    std::vector<Place> places;  // of its operands in the problem
    std::vector<bool> padded;   // for each implementation: works on padding
    std::string name;
  };
  LayoutProblem problem;
  std::vector<Tensor> tensors;  // as in the problem
  std::vector<Node> nodes;      // as in the problem
  LayoutTable table;

  explicit LayoutModel(const BandwidthTable& bandwidth) : table(bandwidth) {}
};

// Takes out what an earlier run put in, and puts a layout.Reorder behind each operator whose result is pinned: so that
// the result as it is made is one value, and the pinned value another one.
Result<void> prepare_layouts(Graph& graph);

// Nothing when every value may only be row-major.
Result<std::optional<LayoutModel>> make_layout_model(Graph& graph, const AssignLayoutsOptions& options);

// Writes the assignment into the graph.
LayoutReport write_layouts(LayoutModel& model, const LayoutAssignment& assignment);

}  // namespace tenon
