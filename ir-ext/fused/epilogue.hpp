// The end that fused integer operators share: 32-bit accumulators become 8-bit results.
//
//   y = clip((acc + rounding) >> shift, clip_min, clip_max),  rounding = 1 << (shift - 1) for shift > 0, else 0
//
// Sums are modulo 2^32 and the shift is arithmetic: halves round up. A residual operand is added to the accumulator
// first, shifted left by `residual_shift`. Attributes, with defaults: shift = 0, in [0, 30]; residual_shift = 0, in [0,
// 23]; clip_min = -128, clip_max = 127, both in [-128, 127]. With scales that are powers of two, x = 2^e * q, that is
// all there is to requantisation: shift = e_y - e_acc, residual_shift = e_residual - e_acc.
#pragma once
#include <cstdint>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::fused {

inline constexpr int64_t kMostShift = 30, kMostLeftShift = 23;

struct TENON_API Epilogue {
  int64_t shift = 0;
  int64_t clip_min = -128, clip_max = 127;

  // From verified attributes.
  static Epilogue of(const Op& op);
  int8_t operator()(uint32_t acc) const {
    const uint32_t rounded = acc + (shift > 0 ? uint32_t{1} << (shift - 1) : 0);
    const int32_t value = static_cast<int32_t>(rounded) >> shift;
    return static_cast<int8_t>(value < clip_min ? clip_min : value > clip_max ? clip_max : value);
  }
};

// The attributes shift, clip_min and clip_max.
TENON_API OpDef& add_epilogue(OpDef& def);
TENON_API Result<void> verify_epilogue(const Op& op);
// Attribute `name` in [0, kMostLeftShift].
TENON_API Result<void> verify_left_shift(const Op& op, Name name);
// The same, and 0 unless operand `residual` is there.
TENON_API Result<void> verify_residual(const Op& op, size_t residual);

// In generic operators: i8 `x` << `shift` as i32.
TENON_API Result<Value*> decompose_left_shift(Builder& builder, Value* x, int64_t shift);
// The epilogue of `op` on acc (i32).
TENON_API Result<Value*> decompose_epilogue(Builder& builder, Value* acc, const Op& op);
// The result of a layer: acc (i32) + bias + the residual, shifted, then the epilogue. `bias`, which acc's shape takes
// as it is, and `residual` may be null.
TENON_API Result<std::vector<Value*>> decompose_layer_end(Builder& builder, Value* acc, Value* bias, Value* residual,
                                                          const Op& op);

}  // namespace tenon::fused
