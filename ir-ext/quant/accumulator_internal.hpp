// Products before they are reduced to 8 bits: what fuse-quantised finds in the graph, extends by terms and clips, and
// writes as one fused operator.
#pragma once
#include <cmath>
#include <optional>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::quant {

// An i8 value and its scale: real = 2^exponent * integer.
struct Quantised {
  Value* value = nullptr;
  int64_t exponent = 0;
};
// For the result of a quant.Dequantize.
std::optional<Quantised> quantised(const Value* real);

// Reals outside this range are clipped.
struct ClipRange {
  double least = -INFINITY, greatest = INFINITY;
  void cut(double low, double high) {
    least = std::fmax(least, low);
    greatest = std::fmin(greatest, high);
  }
};
// The range of a Relu or of a Clip with constant bounds; nullopt for another operator.
std::optional<ClipRange> clip_of(const Op& op);
// Sets the attributes clip_min and clip_max for values with that exponent, and `shift`; defaults are omitted.
void set_epilogue(Attributes& attributes, int64_t shift, const ClipRange& clip, int64_t exponent);

// fused.QConv or fused.QDense without an epilogue.
struct Accumulator {
  Name op;
  Value *x = nullptr, *w = nullptr, *bias = nullptr;  // bias may be null
  Attributes window;
  int64_t exponent = 0;  // real = 2^exponent * accumulator
};

// The accumulator that produces `real`, if that has a single use: a Conv, Gemm or MatMul of quantised x and constant
// weights, or one that has already been reduced to 8 bits and is read by `real` alone, with neither residual nor clip.
// `why` receives the reason if there is none.
Result<std::optional<Accumulator>> accumulator_of(Builder& builder, Value* real, std::string* why = nullptr);
// The accumulator of a Conv, Gemm or MatMul, or of a MatMul and a bias, whatever the uses of its result.
Result<std::optional<Accumulator>> accumulator_under(Builder& builder, Op& op, std::string* why = nullptr);
// Whether the residual can be shifted to the accumulator's scale.
bool takes_residual(const Accumulator& accumulator, const Quantised& residual);
// The fused operator; its exponent is `exponent`, or the nearest one that shifts can reach.
Result<Quantised> finish(Builder& builder, const Accumulator& accumulator, const std::optional<Quantised>& residual,
                         const ClipRange& clip, int64_t exponent);

// Strides, pads and dilations of a windowed operator on x with shape `x` and a result with shape `y`, all explicit;
// nullopt if the extents are not known.
Result<std::optional<Attributes>> explicit_window(const Op& op, std::vector<Dim> kernel, const Shape& x,
                                                  const Shape& y);

}  // namespace tenon::quant
