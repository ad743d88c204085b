// DeviceOp: one operator of a graph as this plugin runs it, or the reason why it does not.
//
//   fused.QConv, fused.QDense       a dense or diagonal term; the residual is a diagonal one before it
//   fused.QAdd                      two diagonal terms
//   fused.QAvgPool                  a diagonal term of ones
//   fused.QMaxPool                  the ALU
//   Reshape, Flatten, Squeeze, Unsqueeze   between [N, C] and images of one pixel: the same bytes
#pragma once
#include <variant>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

#include "vta/layer.hpp"
#include "vta/stream.hpp"
#include "vta/tiling.hpp"

namespace tenon::vta {

struct DeviceView {};  // the result is where the operand is

struct DeviceOp {
  std::string op, label;         // of the operator
  std::vector<Value*> operands;  // activations: segment kOperandSegment + i of the stream
  Value* result = nullptr;
  std::variant<Layer, PoolLayer, DeviceView> work;
  std::vector<std::byte> weights, bias;  // segments of the stream
};

// Code::unsupported is a refusal: a sentence with the numbers on both sides. Reads no neighbours, only constants.
Result<DeviceOp> device_op(const Op& op, const Hardware& hardware);

// The stream of a device op that is no view, raced against itself (check_stream) unless `check` is false.
struct StreamOptions {
  TilingOptions tiling;
  bool check = true;
};
Result<Stream> stream_of(const DeviceOp& op, const Hardware& hardware, const StreamOptions& options = {});
// Whether buffers hold a tile of it: what stream_of would say, without making the stream.
Result<void> check_tiling(const DeviceOp& op, const Hardware& hardware);

// The race check on a stream with addresses of its own: an error lists the findings.
Result<void> check_races(const Stream& stream, const Hardware& hardware);

}  // namespace tenon::vta
