// Static quantisation to 8 bits, written as ONNX's QDQ form: QuantizeLinear and DequantizeLinear stand around the
// operators that a target may then run on integers.
#pragma once
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon::zoo {

// How activations become 8 bits. Weights are i8 with one scale per output channel and zero point 0 in both.
enum class Scheme : uint8_t {
  symmetric,   // i8, zero point 0: what most accelerators take
  asymmetric,  // u8 with a zero point, so that rectified values use all of the range
};

// Rewrites a float graph (Conv with its BatchNormalization folded): every activation that feeds Conv, Gemm, Add or
// GlobalAveragePool gets a QuantizeLinear and a DequantizeLinear after it, their weights and biases become integers
// with a DequantizeLinear. Scales come from a run of the reference over `samples`, one list of inputs each.
Result<void> quantize(Graph& graph, const std::vector<std::vector<Datum>>& samples, Scheme scheme);

}  // namespace tenon::zoo
