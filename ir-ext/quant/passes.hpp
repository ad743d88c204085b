// Converts models with arbitrary scales to integer layers with power-of-two scales.
//
//   QDQ, QLinearConv, QLinearMatMul, QLinearAdd, ConvInteger ...
//     expand-quantised     DequantizeLinear, float operator, QuantizeLinear
//     round-to-powers      quant.Round {exponent, factor} where a value is held in 8 bits
//     fold-factors         quant.Round {exponent}; the factors are in weights
//     fuse-quantised       fused.QConv, fused.QDense ... between quant.Quantize and quant.Dequantize
//   legalise-quantised     all of them
//
// A float model enters at quant.Round, which calibration (calibrate.hpp) inserts. Each of these steps is also a
// registered pass.
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
  std::string name, op;  // of the value; the operator that produces it
  int64_t exponent = 0;
  double factor = 1;
};

// Rewrites quantised operators of ONNX and of qlinear.hpp as DequantizeLinear, a float operator, and QuantizeLinear.
// ConvInteger and MatMulInteger only if they are followed by a Cast to f32 and their operands have constant zero
// points; exact while sums are below 2^24. Needs: inferred types. Keeps: values, except for float rounding. Leaves dead
// producers for remove-dead.
TENON_API Result<Change> expand_quantised(Graph& graph);

// Replaces QuantizeLinear and DequantizeLinear with one constant scale by quant.Round, with the step that i8 needs for
// the same reals (symmetric_step in scales.hpp). Zero points disappear, because reals have none. Weights become float
// constants. Left unchanged: scales per axis or block, or computed at run time; element types other than i8 and u8.
// Needs: inferred types. Changes values.
TENON_API Result<Change> round_to_powers(Graph& graph);

// Makes the steps of quant.Round powers of two. A value x = factor * 2^exponent * q is held as x / factor; the weights
// of the product that produces it and of the one that reads it compensate. Values that are added, averaged or rounded
// again share one factor, so some steps of such a family change (scale_families_internal.hpp). Where there are no
// weights, a Mul remains. Needs: inferred types, constants folded. Changes values only by those steps. `factors`, if
// given, receives the factors of such values, by name.
TENON_API Result<Change> fold_factors(Graph& graph, std::map<std::string, double>* factors = nullptr);

// Converts float operators between quant.Rounds without factors to integer ones, which keep the names of the values:
//   Conv, Gemm, MatMul (+ bias) (+ Add of another rounded value) (+ Relu, Clip)   fused.QConv, fused.QDense
//   Add, AveragePool, GlobalAveragePool, ReduceMean over the image, MaxPool       fused.QAdd, QAvgPool, QMaxPool
//   Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Identity                     themselves, on integers
// A value inside such a chain must have a single use. Scales are those of quant.Round, unless an accumulator is
// coarser. Other rounded values get a quant.Quantize; values that floats read get a quant.Dequantize. Products whose
// result floats read, such as the last one of a classifier, become two fused operators with 16 bits of the accumulator.
// Needs: inferred types. Changes values only by rounding. `values`, if given, receives what has become integers.
TENON_API Result<Change> fuse_quantised(Graph& graph, std::vector<IntegerValue>* values = nullptr);

// Whether it contains quantisation itself: QuantizeLinear, QLinearConv, ConvInteger, those of qlinear.hpp, quant.Round
// ...
TENON_API bool has_scales(const Graph& graph);

// All of these passes, with constant folding in between. A graph with nothing quantised is unchanged.
TENON_API Result<Change> legalise_quantised(Graph& graph, std::vector<IntegerValue>* values = nullptr);

// Operators that fuse-quantised handles but that are still floats, with the reason: "Conv 'c3': its weights are no
// constant".
struct FloatOperator {
  std::string op, reason;
};
TENON_API std::vector<FloatOperator> float_operators(const Graph& graph);

}  // namespace tenon::quant
