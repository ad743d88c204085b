// Which operator becomes which operator of the machine, or the reason why not. The only place that knows: the backend's
// refuses(), preparation and tensor selection all ask it.
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
// `operands` stand for those of `op`, in the machine's element type; constants where `op` has some. Code::unsupported:
// a sentence for users. What was built until then is left without uses.
Result<Value*> select(Builder& builder, const Op& op, std::span<Value* const> operands, const Hardware& hardware);

// Has select() a row for operators of this name?
bool is_selectable(const Op& op);
// Reshape, Flatten, Squeeze, Unsqueeze, Identity: between [1, C] and images of one pixel, or of one shape and itself,
// nothing has to be done. An error otherwise.
bool is_view(const Op& op);
Result<void> check_view(const Op& op, const Hardware& hardware);

// Does the machine run this operator, as it stands? Limits of the target file first, then what the machine lacks, then
// the convolution buffer. Of an f32 operator on a machine of f16 what stands against its form in f16 comes before all.
std::optional<Refusal> refusal(const Op& op, const Machine& machine);

}  // namespace tenon::nvdla
