// From models with scales of their own to integer layers with powers of two.
//
//   QDQ, QLinearConv, QLinearMatMul, ConvInteger ...
//     expand-quantised     DequantizeLinear, float operator, QuantizeLinear
//     round-to-powers      quant.Round {exponent} where a value is held in 8 bits
//     fuse-quantised       fused.QConv, fused.QDense ... between quant.Quantize and quant.Dequantize
//   legalise-quantised     all three
//
// A float model joins at quant.Round, which calibration (calibrate.hpp) puts in. Each of them is a registered pass,
// too.
#pragma once
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

// A value that is held as an i8 value of the same name, with real = 2^exponent * integer.
struct IntegerValue {
  std::string name, op;  // of the value; the operator that makes it
  int64_t exponent = 0;
};

// Quantised operators of ONNX as DequantizeLinear, a float operator, and QuantizeLinear. Of ConvInteger and
// MatMulInteger those followed by a Cast to f32, whose operands have constant zero points; exact while sums stay below
// 2^24. Needs: inferred types. Keeps: numbers, but for the rounding of floats. Leaves dead producers for remove-dead.
TENON_API Result<Change> expand_quantised(Graph& graph);

// quant.Round in place of QuantizeLinear and DequantizeLinear with one constant scale, with the nearest power of two
// (symmetric_step in scales.hpp): zero points are folded, since reals do not know them. Weights become float constants.
// Left alone: scales by axis or block, or computed by the run; element types other than i8 and u8.
// Needs: inferred types. Changes numbers.
TENON_API Result<Change> round_to_powers(Graph& graph);

// Float operators between quant.Rounds become integer ones, with names of the values that they hold:
//   Conv, Gemm, MatMul (+ bias) (+ Add of another rounded value) (+ Relu, Clip)   fused.QConv, fused.QDense
//   Add, AveragePool, GlobalAveragePool, ReduceMean over the image, MaxPool       fused.QAdd, QAvgPool, QMaxPool
//   Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Identity                     themselves, on integers
// A value inside such a chain must have one use. Scales stay as quant.Round says, but where an accumulator is coarser.
// Whatever else is rounded gets a quant.Quantize; what floats read gets a quant.Dequantize.
// Needs: inferred types. Changes numbers by rounding only. `values`, when given, receives what became integers.
TENON_API Result<Change> fuse_quantised(Graph& graph, std::vector<IntegerValue>* values = nullptr);

// All of them, with constants folded between. A graph with nothing quantised does not change.
TENON_API Result<Change> legalise_quantised(Graph& graph, std::vector<IntegerValue>* values = nullptr);

// Operators that fuse-quantised looks for and that are floats still, with the reason: "Conv 'c3': its weights are no
// constant".
struct FloatOperator {
  std::string op, reason;
};
TENON_API std::vector<FloatOperator> float_operators(const Graph& graph);

}  // namespace tenon::quant
