// Operators on the layout of values in memory. As functions of logical indices they are the identity; their effect is
// given by the layouts of operand and result. The pass assign-layouts inserts them.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// output = input, in the layout of `output`. Padding gets the fill of that layout.
struct LayoutReorder : OpView<LayoutReorder> {
  static constexpr std::string_view kName = "layout.Reorder";
  using OpView::OpView;
  Value* input() const { return operand(0); }
};

// output = input, in the same layout, with the lowest bits of `bits` in every slot that holds no element. Its cost is
// proportional to the padding.
struct LayoutScrub : OpView<LayoutScrub> {
  static constexpr std::string_view kName = "layout.Scrub";
  using OpView::OpView;
  Value* input() const { return operand(0); }
  uint64_t bits() const { return static_cast<uint64_t>(attr<int64_t>("bits", 0)); }
};

}  // namespace tenon
