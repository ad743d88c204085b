// Layout assignment as an abstract problem, independent of graphs: which implementation to choose for each node, so
// that the total cost of kernels, reorders and scrubs is minimal.
//
//   cost = sum of the implementations' costs
//        + for each tensor and each requested layout other than the one it is produced in: one reorder, shared by all
//          users
//        + for each tensor whose padding is dirty but must be zero in the layout it is produced in: one scrub, shared
//          as well
//
// A reorder leaves zero padding unless the layout has another fill. The padding of a result of PadEffect::same is zero
// when the padding of all operands is zero (or absent), which the assignment may achieve with a scrub.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/ir/layout_kernel.hpp>
#include <tenon/passes/pbqp.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

// Layouts are numbers; each tensor has its own set.
struct LayoutCosts {
  struct Pad {
    bool there = false;           // the layout has padding
    double scrub = 0;             // cost of zeroing it
    bool zero_by_reorder = true;  // a reorder into the layout leaves zeros
    bool operator==(const Pad&) const = default;
  };
  std::vector<Pad> pads;         // for each layout
  std::vector<double> reorders;  // [from * layouts + to]; infinity: not possible
  size_t count() const { return pads.size(); }
  double reorder(size_t from, size_t to) const { return reorders[from * count() + to]; }
};

struct LayoutProblem {
  struct Tensor {
    std::string name;
    size_t costs = 0;  // index into LayoutProblem::costs; tensors of the same type share an entry
    // For a tensor that no node produces: its layout.
    std::optional<size_t> given = {};
    // Available in every layout at no cost, with zero padding: a constant.
    bool free = false;
    bool given_zero_pad = true;
  };
  struct Implementation {
    struct Port {
      size_t layout = 0;
      bool needs_zero_pad = false;
    };
    std::vector<Port> operands;
    std::vector<size_t> results;
    double cost = 0;
    PadEffect pad = PadEffect::zero;
  };
  struct Node {
    std::string name;
    std::vector<size_t> operands, results;  // tensors
    std::vector<Implementation> implementations;
  };
  std::vector<LayoutCosts> costs;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  // in topological order

  const LayoutCosts& costs_of(size_t tensor) const { return costs[tensors[tensor].costs]; }
};

// An implementation for each node, and whether it is to receive all operands with zero padding although it does not
// need it (for PadEffect::same).
struct LayoutChoice {
  std::vector<size_t> implementations;
  std::vector<bool> zero_operands;
};
struct LayoutAssignment {
  struct Step {
    size_t tensor, from, to;  // from == to: a scrub
    double cost;
    bool operator==(const Step&) const = default;
  };
  struct Made {
    size_t layout = 0;
    bool zero_pad = true;  // or there is no padding
  };
  LayoutChoice choice;
  std::vector<Made> made;   // for each tensor
  std::vector<Step> steps;  // by tensor
  double cost = 0, kernel_cost = 0;
  // No assignment costs less; equal to the cost if `proven`.
  double lower_bound = 0;
  bool proven = false;
};

// The assignment that a choice implies. Code::unsupported, naming node, tensor and layouts, when a required reorder
// does not exist.
TENON_API Result<LayoutAssignment> apply_choice(const LayoutProblem& problem, const LayoutChoice& choice);

// Node by node, always taking the cheapest option given the choices so far: a baseline, and the solver's start.
TENON_API LayoutChoice greedy_choice(const LayoutProblem& problem);

// An error naming the node or tensor when the numbers are inconsistent or no assignment exists.
TENON_API Result<LayoutAssignment> solve_layouts(const LayoutProblem& problem, PbqpOptions options = {});

}  // namespace tenon
