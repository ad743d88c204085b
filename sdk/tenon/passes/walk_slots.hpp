// Rewrites elementwise operators on values in blocked layouts as operators on their slots, for targets whose kernels
// take only row-major tensors.
//
//   %x : f32[1,42,17,31] in "NCHW{16c}"          its slots: f32[1,3,17,31,16], row-major
//   %y = Mul %x, %scale : f32[42,1,1]            %y.slots = Mul %x.slots, %scale.slots : f32[1,3,1,1,16]
//
// Padding takes part in the computation but is never visible: the conversion back to logical indices drops it.
#pragma once
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/layout.hpp>

namespace tenon {

// The slots of a layout as a row-major tensor, and the conversion to it: each dim is padded and split into its digits,
// and the digits are permuted into the order of the layout.
struct SlotView {
  Dims shape, padded;         // `padded`: of the dims of the value
  std::vector<Dims> digits;   // extents of the digits of each dim, outermost first
  std::vector<size_t> order;  // dim i of the slots is digit order[i], counted over all dims

  TENON_API Dims slots() const;
  bool operator==(const SlotView&) const = default;
};
// Code::unsupported gives the reason: several elements in a word, banks, fused dims, offsets, rings, ragged or swizzled
// blocks, gaps between strides, a view, no elements.
TENON_API Result<SlotView> slot_view(const Layout& layout);

struct WalkSlotsOptions {
  // What is written to padding: zeros, or for tests a value that shows where it is read.
  PoisonPadding poison = PoisonPadding::none;
};
struct WalkSlotsReport {
  size_t operators = 0;  // that now run over slots
  // Operators that read or produce a value in a layout and do not: "ReduceSum '...': not element by element".
  std::vector<std::string> refused;
};

// Applies to the graph's body. An operator is rewritten when it is elementwise and not random, and its result, or the
// value to which a layout.Reorder converts its result, has a slot_view().
// Operands with the result's layout are used as they are. All others are logical, of any extents that broadcast, and
// are padded and split as the result is. For other operators that need a value in its layout, a layout.Reorder produces
// it, with the padding that its ValueLayout states. Needs static types.
TENON_API Result<WalkSlotsReport> walk_slots(Graph& graph, const WalkSlotsOptions& options = {});

}  // namespace tenon
