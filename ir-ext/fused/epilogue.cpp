#include <tenon-ext/fused/epilogue.hpp>

namespace tenon::fused {
namespace {

Result<void> within(const Op& op, Name name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return error(Code::invalid_argument, name, " of ", op.describe(), " is ", value, ", which is outside [", least, ", ",
               most, "]");
}

Value* number(Builder& builder, int64_t value) { return builder.constant_scalar(kI32, static_cast<double>(value)); }

}  // namespace

Epilogue Epilogue::of(const Op& op) {
  return {op.attr<int64_t>("shift", 0), op.attr<int64_t>("clip_min", -128), op.attr<int64_t>("clip_max", 127)};
}

OpDef& add_epilogue(OpDef& def) {
  return def.attribute("shift", int64_t{0}).attribute("clip_min", int64_t{-128}).attribute("clip_max", int64_t{127});
}

Result<void> verify_epilogue(const Op& op) {
  const Epilogue epilogue = Epilogue::of(op);
  TENON_OK(within(op, "shift", epilogue.shift, 0, kMostShift));
  TENON_OK(within(op, "clip_min", epilogue.clip_min, -128, 127));
  return within(op, "clip_max", epilogue.clip_max, epilogue.clip_min, 127);
}

Result<void> verify_left_shift(const Op& op, Name name) {
  return within(op, name, op.attr<int64_t>(name, 0), 0, kMostLeftShift);
}

Result<void> verify_residual(const Op& op, size_t residual) {
  TENON_OK(verify_left_shift(op, "residual_shift"));
  const int64_t shift = op.attr<int64_t>("residual_shift", 0);
  if (shift == 0 || op.operand(residual)) return {};
  return error(Code::invalid_argument, "residual_shift of ", op.describe(), " is ", shift,
               ", and it has no residual: leave the attribute out");
}

Result<Value*> decompose_left_shift(Builder& builder, Value* x, int64_t shift) {
  TENON_TRY(wide, builder.op("Cast", {x}, {{"to", Type(kI32, Shape())}}));
  if (shift == 0) return wide;
  return builder.op("Mul", {wide, number(builder, int64_t{1} << shift)});
}

Result<Value*> decompose_epilogue(Builder& builder, Value* acc, const Op& op) {
  const Epilogue epilogue = Epilogue::of(op);
  if (epilogue.shift > 0) {
    // Division rounds towards zero. Minus the remainder, which has the divisor's sign, it is exact and rounds down.
    Value* const divisor = number(builder, int64_t{1} << epilogue.shift);
    TENON_TRY(rounded, builder.op("Add", {acc, number(builder, int64_t{1} << (epilogue.shift - 1))}));
    TENON_TRY(rest, builder.op("Mod", {rounded, divisor}));
    TENON_TRY(multiple, builder.op("Sub", {rounded, rest}));
    TENON_TRY(quotient, builder.op("Div", {multiple, divisor}));
    acc = quotient;
  }
  TENON_TRY(clipped, builder.op("Clip", {acc, number(builder, epilogue.clip_min), number(builder, epilogue.clip_max)}));
  return builder.op("Cast", {clipped}, {{"to", Type(kI8, Shape())}});
}

Result<std::vector<Value*>> decompose_layer_end(Builder& builder, Value* acc, Value* bias, Value* residual,
                                                const Op& op) {
  if (bias) {
    TENON_TRY(sum, builder.op("Add", {acc, bias}));
    acc = sum;
  }
  if (residual) {
    TENON_TRY(shifted, decompose_left_shift(builder, residual, op.attr<int64_t>("residual_shift", 0)));
    TENON_TRY(sum, builder.op("Add", {acc, shifted}));
    acc = sum;
  }
  TENON_TRY(y, decompose_epilogue(builder, acc, op));
  return std::vector<Value*>{y};
}

}  // namespace tenon::fused
