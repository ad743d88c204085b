#include <tenon-ext/fused/pooling.hpp>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/fused/window_internal.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/pooling.hpp>

namespace tenon::fused {
namespace {

// Shapes, windows and bounds are those of MaxPool, also for sums.
const OpDef& max_pool() { return *find_op(MaxPool::name()); }

Result<std::vector<Type>> infer_pool(const InferContext& context) { return max_pool().infer_fn()(context); }
Result<Bounds> bounds_of_pool(const BoundsQuery& query) { return max_pool().bounds_fn()(query); }
Result<void> sub_box_of_pool(const SubBoxQuery& query, SubBoxOp& op) {
  return max_pool().bounds_rule().sub_box(query, op);
}

Result<std::vector<Value*>> decompose_max(Builder& builder, const Op& op) {
  TENON_TRY(y, builder.op(MaxPool::name(), {op.operand(0)}, window_attributes(op, {"kernel_shape"})));
  return std::vector<Value*>{y};
}

Result<void> verify_average(const Op& op) {
  TENON_OK(verify_epilogue(op));
  const int64_t multiplier = op.attr<int64_t>("multiplier", 1);
  if (multiplier < 1) {
    return error(Code::invalid_argument, "multiplier of ", op.describe(), " is ", multiplier, ", the least is 1");
  }
  const int64_t shift = Epilogue::of(op).shift;
  int64_t most = (INT32_MAX - (shift > 0 ? int64_t{1} << (shift - 1) : 0)) / 128;
  for (const int64_t extent : op.attr<Attribute::Integers>("kernel_shape")) most /= std::max<int64_t>(1, extent);
  if (multiplier <= most) return {};
  return error(Code::invalid_argument, "multiplier of ", op.describe(), " is ", multiplier,
               "; for its window and shift ", shift, " the greatest is ", most, ", or sums leave 32 bits");
}

// The sum over a window is a depthwise convolution with ones.
Result<std::vector<Value*>> decompose_average(Builder& builder, const Op& op) {
  const Shape& shape = op.operand(0)->type().shape();
  if (!shape.ranked() || !shape[1].is_static()) {
    return error(Code::unsupported, op.describe(), " has x of shape ", shape, "; its channels must be known");
  }
  TENON_TRY(ones, window_of_ones(op, shape[1].value()));
  Attributes window = window_attributes(op, {});
  window.set("group", shape[1].value());
  TENON_TRY(sum, builder.op(ConvInteger::name(), {op.operand(0), builder.constant(ones)}, std::move(window)));
  Value* const factor = builder.constant_scalar(kI32, static_cast<double>(op.attr<int64_t>("multiplier", 1)));
  TENON_TRY(scaled, builder.op("Mul", {sum, factor}));
  TENON_TRY(y, decompose_epilogue(builder, scaled, op));
  return std::vector<Value*>{y};
}

OpDef pool(std::string_view name) {
  OpDef def{Name(name)};
  def.operand("x", "i8")
      .result("y", "i8")
      .required_attribute("kernel_shape", AttributeKind::integers)
      .optional_attribute("strides", AttributeKind::integers)
      .optional_attribute("pads", AttributeKind::integers)
      .optional_attribute("dilations", AttributeKind::integers)
      .traits(Trait::pure | Trait::layout_aware)
      .infer(infer_pool)
      .bounds({bounds_of_pool, sub_box_of_pool});
  return def;
}

OpDef max_definition() {
  return pool(QMaxPool::kName).summary("y = the largest element of each window of x").decompose(decompose_max);
}
OpDef average_definition() {
  OpDef def = pool(QAvgPool::kName);
  def.summary("y = the sum of each window of x times multiplier, shifted right, rounded and clipped")
      .attribute("multiplier", int64_t{1})
      .verify(verify_average)
      .decompose(decompose_average);
  return add_epilogue(def);
}

const OpRegistration kPoolingRegistered({max_definition(), average_definition()});

}  // namespace
}  // namespace tenon::fused
