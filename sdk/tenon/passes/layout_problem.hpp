// Layout assignment as a problem of its own, apart from graphs: which implementation each node takes, so that kernels,
// reorders and scrubs together cost least.
//
//   cost = sum of the implementations' costs
//        + for each tensor and layout that somebody wants and the tensor is not made in: one reorder, shared by all who
//        want it
//        + for each tensor whose padding is dirty and wanted zero in the layout it is made in: one scrub, shared as
//        well
//
// A reorder leaves zero padding unless the layout has another fill. The padding of a result of PadEffect::same is zero
// where all operands reach the node with zero padding (or without any), which the assignment may bring about by a
// scrub.
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

// Layouts are numbers, each tensor has its own.
struct LayoutCosts {
  struct Pad {
    bool there = false;           // the layout has padding
    double scrub = 0;             // cost of setting it to zero
    bool zero_by_reorder = true;  // a reorder into the layout leaves zeros
    bool operator==(const Pad&) const = default;
  };
  std::vector<Pad> pads;         // for each layout
  std::vector<double> reorders;  // [from * layouts + to]; infinity: there is none
  size_t count() const { return pads.size(); }
  double reorder(size_t from, size_t to) const { return reorders[from * count() + to]; }
};

struct LayoutProblem {
  struct Tensor {
    std::string name;
    size_t costs = 0;  // which of LayoutProblem::costs; tensors of one type share them
    // Of a tensor that no node makes: the layout that it comes in.
    std::optional<size_t> given = {};
    // Given in every layout for nothing, with zero padding: a constant.
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
  std::vector<Node> nodes;  // each after those that make its operands

  const LayoutCosts& costs_of(size_t tensor) const { return costs[tensors[tensor].costs]; }
};

// An implementation for each node, and whether it is to receive all operands with zero padding though it does not need
// it (for PadEffect::same).
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
    bool zero_pad = true;  // or no padding
  };
  LayoutChoice choice;
  std::vector<Made> made;   // for each tensor
  std::vector<Step> steps;  // by tensor
  double cost = 0, kernel_cost = 0;
  // No assignment costs less; the cost itself where that is proven.
  double lower_bound = 0;
  bool proven = false;
};

// What follows from a choice. Code::unsupported, naming node, tensor and layouts, when a reorder that it needs does not
// exist.
TENON_API Result<LayoutAssignment> apply_choice(const LayoutProblem& problem, const LayoutChoice& choice);

// Node by node, each taking what is cheapest as things stand then: a baseline, and the start of the solver.
TENON_API LayoutChoice greedy_choice(const LayoutProblem& problem);

// An error naming node or tensor where numbers do not fit together, or where there is no assignment.
TENON_API Result<LayoutAssignment> solve_layouts(const LayoutProblem& problem, PbqpOptions options = {});

}  // namespace tenon
