// snippet.Subgraph: a part of a graph that becomes one kernel. Other operators see one operator; the graph inside is
// ordinary graph IR.
//
//   %y = snippet.Subgraph %x, %b "gelu" (%0: f32[2,N], %1: f32[N]) -> %4 {
//     %2 = Constant {value = dense<f32[]: 0.5>}
//     %3 = Add %0, %1
//     %4 = Mul %3, %2
//   }
//
// Operand i is input i of the region, output j of the region is result j. The region cannot refer to values outside
// itself: whatever it needs is an operand, except scalar constants, which are inside.
#pragma once
#include <string_view>

#include <tenon/ir/op_view.hpp>
#include <tenon/support/export.hpp>

namespace tenon::snippet {

struct Subgraph : OpView<Subgraph> {
  static constexpr std::string_view kName = "snippet.Subgraph";
  using OpView::OpView;
  Region& body() const { return op().region(0); }
};

}  // namespace tenon::snippet
