// From models with scales of their own to integer layers with powers of two.
//
//   QDQ, QLinearConv, QLinearMatMul, QLinearAdd, ConvInteger ...
//     expand-quantised     DequantizeLinear, float operator, QuantizeLinear
//     round-to-powers      quant.Round {exponent, factor} where a value is held in 8 bits
//     fold-factors         quant.Round {exponent}; the factors are in weights
//     fuse-quantised       fused.QConv, fused.QDense ... between quant.Quantize and quant.Dequantize
//   legalise-quantised     all of them
//
// A float model joins at quant.Round, which calibration (calibrate.hpp) puts in. Each of them is a registered pass,
// too.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

// A value that is held as an i8 value of the same name, with real = factor * 2^exponent * integer.
struct IntegerValue {
  std::string name, op;  // of the value; the operator that makes it
  int64_t exponent = 0;
  double factor = 1;
};

// Quantised operators of ONNX and of qlinear.hpp as DequantizeLinear, a float operator, and QuantizeLinear. Of
// ConvInteger and MatMulInteger those followed by a Cast to f32, whose operands have constant zero points; exact while
// sums stay below 2^24. Needs: inferred types. Keeps: numbers, but for the rounding of floats. Leaves dead producers
// for remove-dead.
TENON_API Result<Change> expand_quantised(Graph& graph);

// quant.Round in place of QuantizeLinear and DequantizeLinear with one constant scale, with the step that i8 needs for
// the same reals (symmetric_step in scales.hpp): zero points are folded, since reals do not know them. Weights become
// float constants. Left alone: scales by axis or block, or computed by the run; element types other than i8 and u8.
// Needs: inferred types. Changes numbers.
TENON_API Result<Change> round_to_powers(Graph& graph);

// Steps of quant.Round become powers of two: a value x = factor * 2^exponent * q is held as x / factor, which its
// product gives and the next one takes, by their weights. What is added, averaged or rounded again shares one factor,
// so that of such a family some steps change (scale_families_internal.hpp). Where no weights are, a Mul stays. Needs:
// inferred types, constants folded. Changes numbers by those steps only. `factors`, when given, receives those of the
// values that are held so, by their names.
TENON_API Result<Change> fold_factors(Graph& graph, std::map<std::string, double>* factors = nullptr);

// Float operators between quant.Rounds without factors become integer ones, with names of the values that they hold:
//   Conv, Gemm, MatMul (+ bias) (+ Add of another rounded value) (+ Relu, Clip)   fused.QConv, fused.QDense
//   Add, AveragePool, GlobalAveragePool, ReduceMean over the image, MaxPool       fused.QAdd, QAvgPool, QMaxPool
//   Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Identity                     themselves, on integers
// A value inside such a chain must have one use. Scales stay as quant.Round says, but where an accumulator is coarser.
// Whatever else is rounded gets a quant.Quantize; what floats read gets a quant.Dequantize. Products whose result
// floats read, the last one of a classifier, say, become two fused operators with 16 bits of the accumulator. Needs:
// inferred types. Changes numbers by rounding only. `values`, when given, receives what became integers.
TENON_API Result<Change> fuse_quantised(Graph& graph, std::vector<IntegerValue>* values = nullptr);

// Does it quantise anything by itself: QuantizeLinear, QLinearConv, ConvInteger, those of qlinear.hpp, quant.Round ...?
TENON_API bool has_scales(const Graph& graph);

// All of them, with constants folded between. A graph with nothing quantised does not change.
TENON_API Result<Change> legalise_quantised(Graph& graph, std::vector<IntegerValue>* values = nullptr);

// Operators that fuse-quantised looks for and that are floats still, with the reason: "Conv 'c3': its weights are no
// constant".
struct FloatOperator {
  std::string op, reason;
};
TENON_API std::vector<FloatOperator> float_operators(const Graph& graph);

}  // namespace tenon::quant
