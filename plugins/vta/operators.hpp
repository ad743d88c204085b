// The plugin's operators, which represent a graph between fused operators and streams. Registered under "vta.".
//
// One operator of the model is one kernel. Its body is straight-line code that cannot refer to values outside:
//
//   %y = vta.Kernel %x, %w, %b "conv1" {of = "fused.QConv"} ((%x: i8[...], %w: i8[...], %b: i32[...]) -> %y {
//     %0 = vta.Zero {shape = [1, 64, 56, 56]}                   accumulators: i32 tensors, as large as the output
//     %1 = vta.Gemm %0, %x, %w {kernel = [3, 3], ...}           += windows of x times w
//     %2 = vta.Alu %1, %b {op = "add"}                          op with an immediate, or a value for each channel
//     %y = vta.Narrow %2 {shift = 5, min = 0, max = 127}        requantised, 8 bits as the store unit takes them
//   })
//
//   vta.Max      max(acc, window(x)), of a pool
//   vta.Finish   the end of a kernel's commands
//   vta.View     an operand under another shape with the same bytes in the device's memory
//   vta.Stream   a kernel as its instructions, encoded
//
// The same operators represent a kernel on whole tensors and in tiles. In the latter, dma.load and dma.store are added,
// the accumulators are tiles, and each value on the chip is in a slot or resident. This is a register machine: the
// result of Gemm, Alu, Max and Narrow is in the place of their first operand.
//
// Attributes of a kernel, with the passes that set them: slots (vta-double-buffer); tile = [blocks, rows, cols],
// weight_slots, reduce, keep_input, keep_weights, outer (vta-tile); dram = byte addresses of the operands and the
// result (vta-dram).
#pragma once
#include <tenon/ir/op_view.hpp>
#include <tenon/support/result.hpp>

#include "vta/layer.hpp"

namespace tenon::vta {

// Once per process; further calls return the first result.
Result<void> register_operators();

struct Kernel : OpView<Kernel> {
  static constexpr std::string_view kName = "vta.Kernel";
  using OpView::OpView;
  Region& body() const { return op().region(0); }
  // The name of the operator that the kernel implements.
  std::string of() const { return attr<std::string>("of"); }
};
struct ZeroOp : OpView<ZeroOp> {
  static constexpr std::string_view kName = "vta.Zero";
  using OpView::OpView;
};
struct GemmOp : OpView<GemmOp> {
  static constexpr std::string_view kName = "vta.Gemm";
  using OpView::OpView;
  Value* acc() const { return operand(0); }
  Value* x() const { return operand(1); }
  Value* w() const { return operand(2); }  // null: `scale` times x
};
struct AluOpView : OpView<AluOpView> {
  static constexpr std::string_view kName = "vta.Alu";
  using OpView::OpView;
  Value* acc() const { return operand(0); }
  Value* vector() const { return operand(1); }  // null: an immediate
};
struct MaxOp : OpView<MaxOp> {
  static constexpr std::string_view kName = "vta.Max";
  using OpView::OpView;
  Value* acc() const { return operand(0); }
  Value* x() const { return operand(1); }
};
struct NarrowOp : OpView<NarrowOp> {
  static constexpr std::string_view kName = "vta.Narrow";
  using OpView::OpView;
};
struct FinishOp : OpView<FinishOp> {
  static constexpr std::string_view kName = "vta.Finish";
  using OpView::OpView;
};
struct ViewOp : OpView<ViewOp> {
  static constexpr std::string_view kName = "vta.View";
  using OpView::OpView;
};
struct StreamOp : OpView<StreamOp> {
  static constexpr std::string_view kName = "vta.Stream";
  using OpView::OpView;
  // The last three operands: encoded micro-ops, instructions (two words each), and the segment of each instruction.
  Value* micro_ops() const { return operand(op().operand_count() - 3); }
  Value* instructions() const { return operand(op().operand_count() - 2); }
  Value* segments() const { return operand(op().operand_count() - 1); }
  size_t segment_count() const { return op().operand_count() - 1; }  // operands, micro-ops and result
};

// Names of attributes, interned once.
struct AttributeNames {
  Name of{"of"}, slots{"slots"}, weight_slots{"weight_slots"}, tile{"tile"}, reduce{"reduce"}, keep_input{"keep_input"},
      keep_weights{"keep_weights"}, outer{"outer"}, dram{"dram"}, machine{"machine"}, shape{"shape"}, kernel{"kernel"},
      strides{"strides"}, dilations{"dilations"}, pads{"pads"}, group{"group"}, scale{"scale"}, form{"form"},
      groups{"groups"}, x_block{"x_block"}, w_block{"w_block"}, blocks{"blocks"}, op{"op"}, immediate{"immediate"},
      vector_block{"vector_block"}, uops{"uops"}, from{"from"}, to{"to"}, begin{"begin"}, extent{"extent"},
      steps{"steps"}, shift{"shift"}, min{"min"}, max{"max"}, slot{"slot"}, at{"at"}, memory{"memory"};
};
const AttributeNames& names();

// A list attribute, without a copy; empty when it is missing.
const Attribute::Integers& integers_of(const Attributes& attributes, Name name);
int64_t integer_of(const Attributes& attributes, Name name, int64_t fallback);

// From [N, C], [N, C, W] or [N, C, H, W]; missing extents are 1.
struct Extents {
  int64_t n = 1, c = 1, h = 1, w = 1;
};
Extents extents_of(const Dims& dims);

// The window of Gemm and Max: kernel, strides, dilations and pads = [top, left, bottom, right].
struct WindowAttributes {
  WindowAxis rows, cols;
  int64_t bottom = 0, right = 0;
};
WindowAttributes window_of(const Attributes& attributes);
// Omits defaults. `x` and `y`: extents of the operand and the result, from which the end pads follow.
void set_window(Attributes& attributes, const WindowAxis& rows, const WindowAxis& cols, const Extents& x,
                const Extents& y);

inline constexpr std::string_view kAluNames[] = {"min", "max", "add", "shr", "mul"};  // by AluOp

}  // namespace tenon::vta
