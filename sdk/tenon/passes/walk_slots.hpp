// Elementwise operators on values in blocked layouts as operators on their slots: for targets whose kernels know
// row-major tensors only.
//
//   %x : f32[1,42,17,31] in "NCHW{16c}"          its slots: f32[1,3,17,31,16], row-major
//   %y = Mul %x, %scale : f32[42,1,1]            %y.slots = Mul %x.slots, %scale.slots : f32[1,3,1,1,16]
//
// What lies in padding takes part in the operator and is never seen: the way back to logical indices leaves it out.
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

// The slots of a layout as a row-major tensor, and how one gets there: each dim is padded, cut into its digits, and the
// digits are put into the order of the layout.
struct SlotView {
  Dims shape, padded;         // of the dims of the value
  std::vector<Dims> digits;   // of each dim their extents, outermost first
  std::vector<size_t> order;  // place i of the slots has digit order[i], counted over all dims

  TENON_API Dims slots() const;
  bool operator==(const SlotView&) const = default;
};
// Code::unsupported says what stands against it: several elements in a word, banks, fused dims, offsets, rings, ragged
// or swizzled blocks, gaps between strides, a view, no elements.
TENON_API Result<SlotView> slot_view(const Layout& layout);

struct WalkSlotsOptions {
  // What goes into padding: zeros, or for tests what shows where it is read.
  PoisonPadding poison = PoisonPadding::none;
};
struct WalkSlotsReport {
  size_t operators = 0;  // that run over slots now
  // Of those that read or make a value in a layout and do not: "ReduceSum '...': not element by element".
  std::vector<std::string> refused;
};

// Of the graph's body. An operator is taken when it is elementwise and not random, and its result, or the value that a
// layout.Reorder brings its result into, has a slot_view().
// Operands that lie as the result does are walked as they are; all others are logical, of any extents that broadcast:
// these are padded and cut as the result is. In front of other operators that want a value in its layout a
// layout.Reorder makes it, with the padding that its ValueLayout states. Needs static types.
TENON_API Result<WalkSlotsReport> walk_slots(Graph& graph, const WalkSlotsOptions& options = {});

}  // namespace tenon
