#include "nvdla/operators.hpp"

#include <mutex>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/pooling.hpp>

#include "nvdla/evaluate.hpp"

namespace tenon::nvdla {
namespace {

bool is_number(ElementType type) { return type == kF16 || type == kI8; }
bool is_bias(ElementType type) { return type == kF16 || type == kI32; }
const TypeSet kNumbers("f16 and i8 tensors", is_number);
const TypeSet kBiases("f16 and i32 tensors", is_bias);

// ---- Shapes ----

Result<Shape> pooled(const Op& op, Shape shape) {
  const auto kernel = op.attr<Attribute::Integers>("pool_kernel");
  if (kernel.empty() || !shape.ranked()) return shape;
  if (shape.rank() != static_cast<int64_t>(kernel.size()) + 2)
    return error(Code::invalid_argument, "pool_kernel of ", kernel.size(), " extents on a result of rank ",
                 shape.rank());
  Window window;
  window.kernel.assign(kernel.begin(), kernel.end());
  TENON_TRY(strides, integers_attribute(op, "pool_strides", kernel.size(), 1, 1));
  TENON_TRY(pads, integers_attribute(op, "pool_pads", 2 * kernel.size(), 0, 0));
  window.strides = strides, window.pads = pads;
  window.dilations.assign(kernel.size(), 1);
  return window_output_shape(window, shape, shape[1]);
}

// [1, C] by [K, C].
Result<Shape> dense_shape(const InferContext& context, const TensorType& x, const TensorType& w) {
  if (x.shape.rank() != 2 || w.shape.rank() != 2)
    return error(Code::invalid_argument, context.op().describe(), " multiplies ", x, " by ", w);
  TENON_OK(merge(Shape({x.shape[1]}), Shape({w.shape[1]})), "channels of ", context.op().describe());
  return Shape({x.shape[0], w.shape[0]});
}

Result<std::vector<Type>> infer_conv(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(w, context.tensor(1));
  if (x.shape.ranked() && w.shape.ranked() && x.shape.rank() == 2) {
    TENON_TRY(shape, dense_shape(context, x, w));
    return std::vector<Type>{Type(x.element, shape)};
  }
  TENON_TRY(types, find_op(tenon::Conv::name())->infer_fn()(context));
  TENON_TRY(shape, pooled(context.op(), types[0].shape()));
  return std::vector<Type>{Type(x.element, shape)};
}

Result<std::vector<Type>> infer_sdp(const InferContext& context) {
  TENON_TRY(a, context.tensor(0));
  if (!context.has_operand(1)) return std::vector<Type>{Type(a)};
  TENON_TRY(b, context.tensor(1));
  TENON_TRY(shape, merge(a.shape, b.shape), "the operands of ", context.op().describe());
  return std::vector<Type>{Type(a.element, shape)};
}

Result<std::vector<Type>> infer_pdp(const InferContext& context) {
  return find_op(MaxPool::name())->infer_fn()(context);
}

// ---- Definitions ----

OpDef& add_common(OpDef& def) {
  return def.types("T", kNumbers)
      .attribute("as", "")
      .optional_attribute("low", AttributeKind::real)
      .optional_attribute("high", AttributeKind::real)
      .attribute("shift", int64_t{0})
      .optional_attribute("dram", AttributeKind::integers)
      .optional_attribute("commands", AttributeKind::tensor)
      .traits(Trait::pure | Trait::layout_aware);
}

OpDef conv_definition() {
  OpDef def{Conv::name()};
  def.summary("y = the pool of the clipped convolution of x with w, plus bias and residual: NVDLA's CONV, SDP and PDP")
      .operand("x", "T")
      .operand("w", "T")
      .optional_operand("bias", "B")
      .optional_operand("residual", "T")
      .result("y", "T")
      .types("B", kBiases)
      .attribute("group", int64_t{1})
      .attribute("atomic_c", int64_t{64})
      .attribute("atom", int64_t{16})
      .attribute("residual_shift", int64_t{0});
  for (const char* window : {"strides", "pads", "dilations", "pool_kernel", "pool_strides", "pool_pads"})
    def.optional_attribute(window, AttributeKind::integers);
  def.optional_attribute("plan", AttributeKind::text);
  for (const char* planned : {"band_rows", "data_banks", "weight_banks"})
    def.optional_attribute(planned, AttributeKind::integer);
  return add_common(def).infer(infer_conv);
}

OpDef sdp_definition() {
  OpDef def{Sdp::name()};
  def.summary("y = a or a + b, clipped: NVDLA's SDP")
      .operand("a", "T")
      .optional_operand("b", "T")
      .result("y", "T")
      .attribute("a_shift", int64_t{0})
      .attribute("b_shift", int64_t{0});
  return add_common(def).infer(infer_sdp);
}

OpDef pdp_definition() {
  OpDef def{Pdp::name()};
  def.summary("y = the largest element or the mean of each window of x: NVDLA's PDP")
      .operand("x", "T")
      .result("y", "T")
      .attribute("mode", "max")
      .one_of({"max", "average"})
      .required_attribute("kernel_shape", AttributeKind::integers)
      .optional_attribute("strides", AttributeKind::integers)
      .optional_attribute("pads", AttributeKind::integers)
      .attribute("count_include_pad", int64_t{0})
      .attribute("multiplier", int64_t{1});
  return add_common(def).infer(infer_pdp);
}

Result<void> register_all() {
  TENON_OK(register_ops({conv_definition(), sdp_definition(), pdp_definition()}));
  TENON_OK(register_evaluator(Conv::name(), evaluate_conv));
  TENON_OK(register_evaluator(Sdp::name(), evaluate_sdp));
  return register_evaluator(Pdp::name(), evaluate_pdp);
}

}  // namespace

std::string original_name(const Op& op) {
  const bool ours = isa<Conv>(op) || isa<Sdp>(op) || isa<Pdp>(op);
  return ours ? op.attr<std::string>("as") : "";
}

std::optional<float> bound(const Op& op, Name name) {
  const Attribute* found = op.attributes().find(name);
  const float* value = found ? found->get_if<float>() : nullptr;
  return value ? std::optional(*value) : std::nullopt;
}

Result<void> register_operators() {
  static std::once_flag once;
  static Error* failed = nullptr;
  std::call_once(once, [] {
    if (auto done = register_all(); !done.ok()) failed = new Error(done.error());
  });
  if (failed) return *failed;
  return {};
}

}  // namespace tenon::nvdla
