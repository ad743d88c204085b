// Products before they become 8 bits: what fuse-quantised finds in the graph, puts terms and clips on, and writes as
// one fused operator.
#pragma once
#include <cmath>
#include <optional>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

// An i8 value and what it stands for: real = 2^exponent * integer.
struct Quantised {
  Value* value = nullptr;
  int64_t exponent = 0;
};
// Of a quant.Dequantize.
std::optional<Quantised> quantised(const Value* real);

// Reals outside are cut.
struct ClipRange {
  double least = -INFINITY, greatest = INFINITY;
  void cut(double low, double high) {
    least = std::fmax(least, low);
    greatest = std::fmin(greatest, high);
  }
};
// That of a Relu or of a Clip with constant ends; nullopt for another operator.
std::optional<ClipRange> clip_of(const Op& op);
// The attributes clip_min and clip_max for values of that exponent, and `shift`; defaults are left out.
void set_epilogue(Attributes& attributes, int64_t shift, const ClipRange& clip, int64_t exponent);

// fused.QConv or fused.QDense without an epilogue.
struct Accumulator {
  Name op;
  Value *x = nullptr, *w = nullptr, *bias = nullptr;  // bias may be null
  Attributes window;
  int64_t exponent = 0;  // real = 2^exponent * accumulator
};

// The accumulator behind `real`, when that has one use: a Conv, Gemm or MatMul of quantised x and constant weights, or
// one that became 8 bits already and is read by `real` alone, with neither residual nor clip. `why` says why not.
Result<std::optional<Accumulator>> accumulator_of(Builder& builder, Value* real, std::string* why = nullptr);
// That of a Conv, Gemm or MatMul, or of a MatMul and a bias, whoever reads its result.
Result<std::optional<Accumulator>> accumulator_under(Builder& builder, Op& op, std::string* why = nullptr);
// Can the residual be shifted to the accumulator's scale?
bool takes_residual(const Accumulator& accumulator, const Quantised& residual);
// The fused operator; its exponent is `exponent`, or the nearest to it that shifts can reach.
Result<Quantised> finish(Builder& builder, const Accumulator& accumulator, const std::optional<Quantised>& residual,
                         const ClipRange& clip, int64_t exponent);

// Strides, pads and dilations of a windowed operator on x of shape `x` with result of shape `y`, all explicit; nullopt
// when the extents are not known.
Result<std::optional<Attributes>> explicit_window(const Op& op, std::vector<Dim> kernel, const Shape& x,
                                                  const Shape& y);

}  // namespace tenon::quant
