// Maps operators to operators of the machine, or gives the reason why not. The only place that decides this: the
// backend's refuses(), preparation and tensor selection all use it.
#pragma once
#include <optional>
#include <span>

#include <tenon/ir/builder.hpp>
#include <tenon/plugin/backend.hpp>

#include "nvdla/machine.hpp"

namespace tenon::nvdla {

//   Conv, Gemm, MatMul, fused.QConv, fused.QDense                       nvdla.Conv
//   Relu, Clip, Add, fused.QAdd                                         nvdla.Sdp
//   MaxPool, AveragePool, their Global forms, fused.QMaxPool, QAvgPool  nvdla.Pdp
// `operands` replace those of `op`, in the machine's element type; they are constants where those of `op` are.
// Code::unsupported has a sentence for users; what was built before is then left without uses.
Result<Value*> select(Builder& builder, const Op& op, std::span<Value* const> operands, const Hardware& hardware);

// Whether select() has a row for operators of this name.
bool is_selectable(const Op& op);
// Reshape, Flatten, Squeeze, Unsqueeze, Identity between [1, C] and images of one pixel, or between equal shapes, need
// no work. check_view() returns an error for others.
bool is_view(const Op& op);
Result<void> check_view(const Op& op, const Hardware& hardware);

// Whether the machine runs this operator as it is: checks the limits of the target file first, then the capabilities of
// the machine, then the convolution buffer. For an f32 operator on an f16 machine, objections to its f16 form come
// first.
std::optional<Refusal> refusal(const Op& op, const Machine& machine);

}  // namespace tenon::nvdla
