// Operators of the machine: each is one pass through its units, from DRAM to DRAM.
//
//   nvdla.Conv(x, w, bias?, residual?)   CONV, then SDP, then PDP if pool_kernel is there
//   nvdla.Sdp(a, b?)                     SDP alone: element by element
//   nvdla.Pdp(x)                         PDP alone: a pool
//
// x: [1, C, H, W] or [1, C], of f16 or i8 throughout; w: [K, C / group, R, S] or [K, C]; bias: f16[K] or i32[K].
//
// Arithmetic in f16. Operands are f16; a product of two is exact in f32. Sums are in f32, one term after the other:
//   acc = 0; for each block of atomic_c input channels, each kernel row, each kernel column, each channel of the block:
//   acc += x * w; then acc += bias
// and acc is rounded to f16 once. Padding is 0 and is included in the sums. Blocks are counted from the first input
// channel of the part (parts.hpp) that contains the output channel. All later steps use rounded values: the residual
// (whose sum is rounded to f16 again), low and high, and the pool. Fusion therefore changes no bit.
// Arithmetic in i8. acc = sum of x * w + bias + (residual << residual_shift) modulo 2^32, then the epilogue of the
// fused operators (tenon-ext/fused/epilogue.hpp) with low and high as clip bounds, then the pool.
//
// Common attributes:
//   as         the generic operator that it implements, whose limits apply: "Conv", "Gemm", "Relu" ...
//   low, high  bounds of the result; absent: none
//   dram       places of its operands, in order, and its result: bytes from the start of DRAM, -1 for an absent one
//   commands   u32[n, 64]: the commands (command.hpp)
// Memory allocation and code emission set the last two.
#pragma once
#include <optional>

#include <tenon/ir/op_def.hpp>
#include <tenon/ir/op_view.hpp>
#include <tenon/support/result.hpp>

namespace tenon::nvdla {

// strides, pads (begins, then ends), dilations; group; atomic_c and atom, the channels of a feature atom, for the order
// of sums; shift, residual_shift (i8). pool_kernel, pool_strides, pool_pads: a max pool.
// Set by tensor scheduling (buffer_plan.hpp): plan, band_rows, data_banks, weight_banks.
struct Conv : OpView<Conv> {
  static constexpr std::string_view kName = "nvdla.Conv";
  using OpView::OpView;
  Value* x() const { return operand(0); }
  Value* w() const { return operand(1); }
  Value* bias() const { return operand(2); }      // may be null
  Value* residual() const { return operand(3); }  // may be null
};

// y = a, or a + b; for i8 the epilogue of (a << a_shift) + (b << b_shift).
struct Sdp : OpView<Sdp> {
  static constexpr std::string_view kName = "nvdla.Sdp";
  using OpView::OpView;
  Value* a() const { return operand(0); }
  Value* b() const { return operand(1); }  // may be null
};

// mode "max" or "average" over kernel_shape, strides, pads. For f16, the average is the exact sum over the elements
// inside (with count_include_pad over the whole window), divided in f64, rounded to f32, then to f16. For i8, it is the
// epilogue of the sum times multiplier; padding counts as 0.
struct Pdp : OpView<Pdp> {
  static constexpr std::string_view kName = "nvdla.Pdp";
  using OpView::OpView;
  bool average() const { return attr<std::string>("mode", "max") == "average"; }
};

// The name of the generic operator; "" for operators other than these three.
std::string original_name(const Op& op);
// The attribute low or high.
std::optional<float> bound(const Op& op, Name name);

// Registers definitions and evaluators, once per process; further calls do nothing.
Result<void> register_operators();

}  // namespace tenon::nvdla
