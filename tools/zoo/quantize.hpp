// Static quantisation to 8 bits in ONNX's QDQ form: QuantizeLinear and DequantizeLinear surround the operators that a
// target may then run on integers.
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::zoo {

// The quantisation of activations. Weights are i8 with one scale per output channel and zero point 0 in both.
enum class Scheme : uint8_t {
  symmetric,   // i8, zero point 0: supported by most accelerators
  asymmetric,  // u8 with a zero point, so that rectified values use the whole range
};

// Rewrites a float graph (Conv with its BatchNormalization folded): every activation that Conv, Gemm, Add or
// GlobalAveragePool reads is followed by a QuantizeLinear and a DequantizeLinear; weights and biases become integers
// with a DequantizeLinear. Scales come from a run of the reference over `samples`, one list of inputs each.
Result<void> quantize(Graph& graph, const std::vector<std::vector<Datum>>& samples, Scheme scheme);

}  // namespace tenon::zoo
