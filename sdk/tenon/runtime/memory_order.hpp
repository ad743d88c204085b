// An order of operators that needs little memory: a pure function on an abstract graph.
//
// Depth first from the results without readers, operands by descending (most memory needed below - own result): what
// needs most memory is computed while little else is live, and leaves little behind. The order is improved by list
// scheduling and by moving nodes later or earlier where that frees memory; the given order stays when no better one is
// found.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/runtime/arena_plan.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/inline_vector.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct OrderNode {
  size_t result_bytes = 0;
  InlineVector<size_t, 2> operands = {};  // nodes whose results it reads; repetition counts once
  size_t scratch_bytes = 0;               // while it runs
  bool in_place = false;                  // its result may take the place of one operand without later readers
  bool kept = false;                      // its result lives to the end, as an output does
};

struct MemoryOrder {
  std::vector<size_t> order;  // nodes, operands before users
  size_t peak_bytes = 0;
  size_t original_peak_bytes = 0;  // of the given order of the nodes, made topological where it was not
};

// n log n for graphs of bounded degree; deterministic. Code::invalid_argument: an operand that does not exist, a cycle.
TENON_API Result<MemoryOrder> order_for_memory(std::span<const OrderNode> nodes);

// Most bytes live at one step of `order`, a permutation of the nodes with operands before users: results live from the
// step of their node to that of their last user (to the end where kept), scratch during its node's step.
TENON_API size_t peak_of_order(std::span<const OrderNode> nodes, std::span<const size_t> order);
// The lifetimes on which that is based, one per node.
TENON_API std::vector<Lifetime> lifetimes_of_order(std::span<const OrderNode> nodes, std::span<const size_t> order);

}  // namespace tenon
