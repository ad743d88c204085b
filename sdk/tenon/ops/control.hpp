// Control flow: operators that run their regions. A region may use values from outside the operator.
#pragma once
#include <tenon/ir/op_view.hpp>

namespace tenon {

// The outputs of region 0 when `cond` (one boolean) is true, of region 1 when it is false.
struct If : OpView<If> {
  static constexpr std::string_view kName = "If";
  using OpView::OpView;
  Value* cond() const { return operand(0); }
  Region& then_branch() const { return op().region(0); }
  Region& else_branch() const { return op().region(1); }
};

// Runs the body for i = 0, 1, ... while i < M (no limit when absent) and the condition holds: initially `cond` (true
// when absent), then what the body returns.
//
//   body inputs    i (i64[]), condition (bool[]), carried values
//   body outputs   condition, carried values, one slice for each scan output
//   results        carried values after the last iteration, scan outputs: the slices stacked along a new first axis
//
// ONNX permits ignoring the body's condition if `cond` is absent; here, as in its reference implementation, it is used.
struct Loop : OpView<Loop> {
  static constexpr std::string_view kName = "Loop";
  using OpView::OpView;
  Value* trip_count() const { return operand(0); }  // may be null
  Value* cond() const { return operand(1); }        // may be null
  size_t carried_count() const { return op().operand_count() > 2 ? op().operand_count() - 2 : 0; }
  Region& body() const { return op().region(0); }
};

// Runs the body once for each slice of the scan inputs, the last num_scan_inputs operands, along their scan_input_axes
// (from the back where scan_input_directions is 1).
//
//   body inputs    carried values, one slice (without the scanned axis) of each scan input
//   body outputs   carried values, one slice for each scan output
//   results        carried values, scan outputs: slices stacked along scan_output_axes, backwards where
//                  scan_output_directions is 1
struct Scan : OpView<Scan> {
  static constexpr std::string_view kName = "Scan";
  using OpView::OpView;
  size_t scan_input_count() const { return static_cast<size_t>(attr<int64_t>("num_scan_inputs")); }
  size_t carried_count() const { return op().operand_count() - scan_input_count(); }
  Region& body() const { return op().region(0); }
};

}  // namespace tenon
