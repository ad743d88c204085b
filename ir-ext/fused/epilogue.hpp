// The epilogue shared by fused integer operators: 32-bit accumulators become 8-bit results.
//
//   y = clip((acc + rounding) >> shift, clip_min, clip_max),  rounding = 1 << (shift - 1) for shift > 0, else 0
//
// Sums are modulo 2^32 and the shift is arithmetic: ties round up. A residual operand is first added to the
// accumulator, shifted left by `residual_shift`. Attributes, with defaults: shift = 0, in [0, 30]; residual_shift = 0,
// in [0, 23]; clip_min = -128, clip_max = 127, both in [-128, 127]. With power-of-two scales, x = 2^e * q, this is a
// complete requantisation: shift = e_y - e_acc, residual_shift = e_residual - e_acc.
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

// Adds the attributes shift, clip_min and clip_max.
TENON_API OpDef& add_epilogue(OpDef& def);
TENON_API Result<void> verify_epilogue(const Op& op);
// Checks that attribute `name` is in [0, kMostLeftShift].
TENON_API Result<void> verify_left_shift(const Op& op, Name name);
// The same, and that it is 0 unless operand `residual` is given.
TENON_API Result<void> verify_residual(const Op& op, size_t residual);

// In generic operators: i8 `x` << `shift` as i32.
TENON_API Result<Value*> decompose_left_shift(Builder& builder, Value* x, int64_t shift);
// The epilogue of `op` applied to acc (i32).
TENON_API Result<Value*> decompose_epilogue(Builder& builder, Value* acc, const Op& op);
// The result of a layer: acc (i32) + bias + the shifted residual, then the epilogue. `bias`, which must broadcast to
// acc's shape, and `residual` may be null.
TENON_API Result<std::vector<Value*>> decompose_layer_end(Builder& builder, Value* acc, Value* bias, Value* residual,
                                                          const Op& op);

}  // namespace tenon::fused
