// DeviceOp: how this plugin runs an operator of a graph, or the reason why it does not.
//
//   fused.QConv, fused.QDense       a dense or diagonal term; the residual is a diagonal one before it
//   fused.QAdd                      two diagonal terms
//   fused.QAvgPool                  a diagonal term of ones
//   fused.QMaxPool                  the ALU
//   Reshape, Flatten, Squeeze, Unsqueeze   between [N, C] and images of one pixel: the same bytes
#pragma once
#include <string>
#include <variant>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

#include "vta/layer.hpp"

namespace tenon::vta {

struct DeviceView {};  // the result shares the operand's memory

// The source of a term's weights: constants of the graph, not yet in blocks.
struct TermWeights {
  Tensor w;           // i8[O, C / group, kernel ...]; none: `scale` times the operand
  int64_t group = 1;  // of channels
  int64_t scale = 1;
};

struct DeviceOp {
  std::string op, label;         // of the model's operator
  std::vector<Value*> operands;  // activations, by Term::operand
  Value* result = nullptr;
  std::variant<Layer, PoolLayer, DeviceView> work;
  std::vector<TermWeights> weights;  // of each term of a Layer
  Tensor bias;                       // i32[O], or none
  int64_t rounding = 0;              // added before the shift; included in Layer or in the bias
};

// Code::unsupported is a refusal: a sentence with both numbers. Inspects only the operator and its constants.
Result<DeviceOp> device_op(const Op& op, const Hardware& hardware);

// Checks that the buffers hold at least a smallest tile of it.
Result<void> check_tiling(const DeviceOp& op, const Hardware& hardware);

}  // namespace tenon::vta
