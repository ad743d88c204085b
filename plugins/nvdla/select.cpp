#include "nvdla/select.hpp"

#include <algorithm>

#include <tenon-ext/fused/convolution.hpp>
#include <tenon-ext/fused/dense.hpp>
#include <tenon-ext/fused/elementwise.hpp>
#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/fused/pooling.hpp>
#include <tenon/ops/activations.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/ops/pooling.hpp>
#include <tenon/ops/window.hpp>
#include <tenon/plugin/limits.hpp>
#include <tenon/reference/interpreter.hpp>

#include "nvdla/buffer_plan.hpp"
#include "nvdla/operators.hpp"

namespace tenon::nvdla {
namespace {

using Integers = Attribute::Integers;

bool is_f32(const Value* value) { return value && value->type().is_tensor() && value->type().element() == kF32; }

template <class... Parts>
Error refuse_on(const Hardware& hardware, const Parts&... parts) {
  return error(Code::unsupported, parts..., " on target ", hardware.name);
}

// The static extents of a value of the machine's element type.
Result<Dims> dims_on(const Hardware& hardware, const Value* value, std::string_view what) {
  if (!value || !value->type().is_tensor()) return refuse_on(hardware, what, " is no tensor");
  const Type& type = value->type();
  if (type.element() != hardware.element)
    return refuse_on(hardware, what, " is ", type.element(), ", not ", hardware.element);
  if (auto dims = type.shape().static_dims()) return *dims;
  return refuse_on(hardware, what, " has the shape ", type.shape(), ", which only a run tells");
}

// The context for mapping one operator to an operator of the machine.
struct Selection {
  Builder& builder;
  const Op& op;
  std::span<Value* const> operands;
  const Hardware& hardware;

  Value* operand(size_t i) const { return i < operands.size() ? operands[i] : nullptr; }
  template <class... Parts>
  Error refuse(const Parts&... parts) const {
    return refuse_on(hardware, parts...);
  }

  Result<Dims> dims_of(const Value* value, std::string_view what) const { return dims_on(hardware, value, what); }
  Result<Tensor> constant(size_t i, std::string_view what) const {
    if (const Tensor* tensor = constant_of(operand(i))) return *tensor;
    return refuse(what, " of ", op.name(), " is no constant");
  }
};

Attributes attributes_as(std::string_view as) { return {{"as", std::string(as)}}; }

// ---- Windows ----

// Strides and pads of a window over an image, with numeric pads. The result must have the operator's extents.
Result<Attributes> window_of(const Selection& s, const Dims& image, const std::vector<int64_t>& kernel, bool dilated) {
  if (image.size() != 4) return s.refuse("rank ", image.size(), " of a window's operand is not 4");
  TENON_TRY(window, Window::of(s.op, 2, std::vector<Dim>(kernel.begin(), kernel.end())));
  Integers pads(4), dilations = window.dilations;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t in = image[axis + 2];
    TENON_TRY(extent, window.output_extent(axis, in));
    pads[axis] = window.pad_begin(axis, in);
    pads[axis + 2] = window.pads[axis + 2];
    const int64_t reach = (extent.value() - 1) * window.strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1;
    if (window.auto_pad != AutoPad::notset || window.ceil_mode)
      pads[axis + 2] = std::max(pads[axis + 2], reach - in - pads[axis]);
    if (pads[axis] < 0 || pads[axis + 2] < 0)
      return s.refuse("pad ", std::min(pads[axis], pads[axis + 2]), " cuts the image, which the machine cannot do");
    if (!dilated && dilations[axis] != 1) return s.refuse("dilation ", dilations[axis], " of a pool is not 1");
  }
  Attributes out{{"strides", Integers(window.strides.begin(), window.strides.end())}, {"pads", pads}};
  if (dilated) out.set("dilations", dilations);
  return out;
}

void add(Attributes& to, const Attributes& from) {
  for (const auto& [name, value] : from) to.set(name, value);
}

void add_epilogue(const Op& op, Attributes& to) {
  const fused::Epilogue epilogue = fused::Epilogue::of(op);
  to.set("shift", epilogue.shift);
  to.set("low", static_cast<float>(epilogue.clip_min));
  to.set("high", static_cast<float>(epilogue.clip_max));
}

// ---- CONV ----

Result<Value*> products(const Selection& s, Attributes attributes, Value* w) {
  attributes.set("atomic_c", s.hardware.atomic_c);
  attributes.set("atom", s.hardware.atom_channels);
  std::vector<Value*> operands{s.operand(0), w, s.operand(2), s.operand(3)};
  while (!operands.back()) operands.pop_back();
  return s.builder.op(Conv::name(), operands, std::move(attributes));
}

Result<Attributes> conv_window(const Selection& s) {
  TENON_TRY(x, s.dims_of(s.operand(0), "x"));
  TENON_TRY(w, s.constant(1, "w"));
  if (w.rank() != 4) return s.refuse("weights of rank ", w.rank(), " are not for images");
  TENON_TRY(window, window_of(s, x, {w.dim(2), w.dim(3)}, true));
  window.set("group", s.op.attr<int64_t>("group", 1));
  return window;
}

Result<void> check_bias(const Selection& s) {
  if (s.operand(2)) TENON_OK(s.constant(2, "the bias"));
  return {};
}

Result<Value*> conv(const Selection& s) {
  TENON_TRY(window, conv_window(s));
  TENON_OK(check_bias(s));
  Attributes attributes = attributes_as("Conv");
  add(attributes, window);
  return products(s, std::move(attributes), s.operand(1));
}

Result<Value*> quantised_conv(const Selection& s) {
  TENON_TRY(window, conv_window(s));
  TENON_OK(check_bias(s));
  Attributes attributes = attributes_as("Conv");
  add(attributes, window);
  add_epilogue(s.op, attributes);
  attributes.set("residual_shift", s.op.attr<int64_t>("residual_shift", 0));
  return products(s, std::move(attributes), s.operand(1));
}

Result<Value*> quantised_dense(const Selection& s) {
  TENON_OK(s.dims_of(s.operand(0), "x"));
  TENON_OK(s.constant(1, "w"));
  TENON_OK(check_bias(s));
  Attributes attributes = attributes_as("Gemm");
  add_epilogue(s.op, attributes);
  attributes.set("residual_shift", s.op.attr<int64_t>("residual_shift", 0));
  return products(s, std::move(attributes), s.operand(1));
}

// Transposes [C, K] to [K, C].
Result<Value*> transposed(const Selection& s, const Tensor& w) {
  TENON_TRY(made, evaluate("Transpose", {Datum(w)}, {{"perm", Integers{1, 0}}}));
  return s.builder.constant(made[0].tensor());
}

// [1, C] times a constant matrix.
Result<Value*> dense(const Selection& s, bool turned) {
  TENON_TRY(x, s.dims_of(s.operand(0), "A"));
  TENON_TRY(w, s.constant(1, "B"));
  if (x.size() != 2 || w.rank() != 2)
    return s.refuse("a product of rank ", x.size(), " by rank ", w.rank(), " is not 2 by 2");
  if (turned) return products(s, attributes_as("Gemm"), s.operand(1));
  TENON_TRY(value, transposed(s, w));
  return products(s, attributes_as("Gemm"), value);
}

Result<Value*> matmul(const Selection& s) { return dense(s, false); }

Result<Value*> gemm(const Selection& s) {
  const auto gemm = Gemm(const_cast<Op&>(s.op));
  if (gemm.trans_a()) return s.refuse("transA is not 0");
  if (gemm.alpha() != 1 || gemm.beta() != 1)
    return s.refuse("alpha ", gemm.alpha(), " and beta ", gemm.beta(), " are not both 1");
  if (!s.operand(2)) return dense(s, gemm.trans_b());
  TENON_TRY(c, s.constant(2, "C"));
  TENON_TRY(w, s.constant(1, "B"));
  const int64_t kernels = w.rank() == 2 ? w.dim(gemm.trans_b() ? 0 : 1) : -1;
  if (c.size() != kernels) return s.refuse("C of ", c.size(), " elements is no bias of ", kernels, " channels");
  std::vector<Value*> operands(s.operands.begin(), s.operands.end());
  if (c.rank() != 1) {
    TENON_TRY(flat, c.reshaped({kernels}));
    operands[2] = s.builder.constant(flat);
  }
  return dense({s.builder, s.op, operands, s.hardware}, gemm.trans_b());
}

// ---- SDP ----

Result<Value*> elementwise(const Selection& s, Attributes attributes, size_t operands) {
  for (size_t i = 0; i < operands; ++i) TENON_OK(s.dims_of(s.operand(i), "an operand"));
  return s.builder.op(Sdp::name(), s.operands.subspan(0, operands), std::move(attributes));
}

Result<Value*> relu(const Selection& s) {
  Attributes attributes = attributes_as("Relu");
  attributes.set("low", 0.0f);
  return elementwise(s, std::move(attributes), 1);
}

Result<Value*> clip(const Selection& s) {
  Attributes attributes = attributes_as("Clip");
  for (const size_t i : {1, 2}) {
    if (!s.operand(i)) continue;
    TENON_TRY(value, s.constant(i, i == 1 ? "min" : "max"));
    attributes.set(i == 1 ? "low" : "high", static_cast<float>(value.double_at(0)));
  }
  return elementwise(s, std::move(attributes), 1);
}

Result<void> check_same_shape(const Selection& s) {
  TENON_TRY(a, s.dims_of(s.operand(0), "A"));
  TENON_TRY(b, s.dims_of(s.operand(1), "B"));
  if (a != b) return s.refuse("operands of the extents ", Shape(a), " and ", Shape(b), " are not of one shape");
  return {};
}

Result<Value*> sum(const Selection& s) {
  TENON_OK(check_same_shape(s));
  if (!s.hardware.half()) return s.refuse("Add of i8 wraps around, the machine clips: fused.QAdd is its form");
  return elementwise(s, attributes_as("Add"), 2);
}

Result<Value*> quantised_sum(const Selection& s) {
  TENON_OK(check_same_shape(s));
  Attributes attributes = attributes_as("Add");
  add_epilogue(s.op, attributes);
  for (const char* shift : {"a_shift", "b_shift"}) attributes.set(shift, s.op.attr<int64_t>(shift, 0));
  return elementwise(s, std::move(attributes), 2);
}

// ---- PDP ----

Result<Value*> pool(const Selection& s, Attributes attributes, const Integers& kernel) {
  attributes.set("kernel_shape", kernel);
  const std::vector<Value*> operands{s.operand(0)};
  return s.builder.op(Pdp::name(), operands, std::move(attributes));
}

Result<Value*> windowed_pool(const Selection& s, Attributes attributes) {
  TENON_TRY(x, s.dims_of(s.operand(0), "x"));
  const auto kernel = s.op.attr<Integers>("kernel_shape");
  if (kernel.size() != 2) return s.refuse("a window of rank ", kernel.size(), " is not 2");
  TENON_TRY(window, window_of(s, x, kernel, false));
  add(attributes, window);
  return pool(s, std::move(attributes), kernel);
}

Result<Value*> max_pool(const Selection& s) {
  if (s.op.result_count() > 1 && s.op.result(1)->used()) return s.refuse("the indices of MaxPool are not made");
  return windowed_pool(s, attributes_as("MaxPool"));
}

Result<Value*> average_pool(const Selection& s) {
  const int64_t with_pads = s.op.attr<int64_t>("count_include_pad", 0);
  if (with_pads != 0 && s.op.attr<int64_t>("ceil_mode", 0) != 0)
    return s.refuse("an average that counts padding with ceil_mode has windows of several sizes");
  Attributes attributes = attributes_as("AveragePool");
  attributes.set("mode", "average");
  attributes.set("count_include_pad", with_pads);
  return windowed_pool(s, std::move(attributes));
}

Result<Value*> global_pool(const Selection& s, Attributes attributes) {
  TENON_TRY(x, s.dims_of(s.operand(0), "x"));
  if (x.size() != 4) return s.refuse("rank ", x.size(), " of a window's operand is not 4");
  return pool(s, std::move(attributes), {x[2], x[3]});
}
Result<Value*> global_max(const Selection& s) { return global_pool(s, attributes_as("MaxPool")); }
Result<Value*> global_average(const Selection& s) {
  Attributes attributes = attributes_as("AveragePool");
  attributes.set("mode", "average");
  return global_pool(s, std::move(attributes));
}

Result<Value*> quantised_average(const Selection& s) {
  Attributes attributes = attributes_as("AveragePool");
  attributes.set("mode", "average");
  attributes.set("multiplier", s.op.attr<int64_t>("multiplier", 1));
  add_epilogue(s.op, attributes);
  return windowed_pool(s, std::move(attributes));
}

// ---- All ----

struct Row {
  std::string_view op;
  Result<Value*> (*select)(const Selection&);
};
constexpr Row kRows[] = {
    {tenon::Conv::kName, conv},
    {Gemm::kName, gemm},
    {MatMul::kName, matmul},
    {fused::QConv::kName, quantised_conv},
    {fused::QDense::kName, quantised_dense},
    {Relu::kName, relu},
    {Clip::kName, clip},
    {"Add", sum},
    {fused::QAdd::kName, quantised_sum},
    {MaxPool::kName, max_pool},
    {AveragePool::kName, average_pool},
    {GlobalMaxPool::kName, global_max},
    {GlobalAveragePool::kName, global_average},
    {fused::QMaxPool::kName, max_pool},
    {fused::QAvgPool::kName, quantised_average},
};

const Row* row_of(const Op& op) {
  const auto* row = std::ranges::find_if(kRows, [&](const Row& r) { return op.name().view() == r.op; });
  return row == std::end(kRows) ? nullptr : row;
}

// A copy of an operand for a graph of its own: a constant as it is, any other value as an input.
Result<Value*> copied(Value* operand, Graph& graph, Builder& builder) {
  if (!operand) return nullptr;
  if (const Tensor* tensor = constant_of(operand)) return builder.constant(*tensor);
  return graph.body().add_input("x", operand->type());
}

// The same with f16 instead of f32, and zeros as f16 constants, for checks that do not depend on the numbers.
Result<Value*> copied_as_half(Value* operand, Graph& graph, Builder& builder) {
  if (!is_f32(operand)) return copied(operand, graph, builder);
  const Shape& shape = operand->type().shape();
  if (!constant_of(operand)) return graph.body().add_input("x", Type(kF16, shape));
  TENON_TRY(zeros, Tensor::zeros(kF16, constant_of(operand)->dims()));
  return builder.constant(zeros);
}

Result<void> check_selected(const Op& op, const Machine& machine) {
  if (auto limit = limits_refuse(machine.description, op, original_name(op)))
    return error(Code::unsupported, limit->reason);
  return check_fits(op, machine.hardware);
}

// Checks the operator of the machine that `op` would become, with operands made by `copy`.
template <class Copy>
Result<void> check_copy(const Op& op, const Machine& machine, const Copy& copy) {
  Graph scratch("scratch");
  Builder builder(scratch.body());
  std::vector<Value*> operands;
  for (Value* operand : op.operands()) {
    TENON_TRY(value, copy(operand, scratch, builder));
    operands.push_back(value);
  }
  TENON_TRY(value, select(builder, op, operands, machine.hardware));
  return check_selected(*value->producer(), machine);
}

Result<void> check_op(const Op& op, const Machine& machine) {
  if (is_view(op)) return check_view(op, machine.hardware);
  if (!original_name(op).empty()) return check_selected(op, machine);
  return check_copy(op, machine, copied);
}

}  // namespace

bool is_selectable(const Op& op) { return row_of(op) != nullptr; }

Result<Value*> select(Builder& builder, const Op& op, std::span<Value* const> operands, const Hardware& hardware) {
  const Row* row = row_of(op);
  if (!row)
    return error(Code::unsupported, op.name(), " is nothing that CONV, SDP or PDP of target ", hardware.name, " does");
  TENON_TRY(value, row->select({builder, op, operands, hardware}));
  value->producer()->set_label(op.label());
  return value;
}

bool is_view(const Op& op) {
  static const Name kViews[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"};
  return std::ranges::find(kViews, op.name()) != std::end(kViews);
}

Result<void> check_view(const Op& op, const Hardware& hardware) {
  TENON_TRY(from, dims_on(hardware, op.operand(0), "the operand"));
  TENON_TRY(to, dims_on(hardware, op.result(), "the result"));
  TENON_TRY(before, Image::of(from, hardware));
  TENON_TRY(after, Image::of(to, hardware));
  const bool pixel = before.height == 1 && before.width == 1 && after.height == 1 && after.width == 1;
  if (before.channels == after.channels && (pixel || from == to)) return {};
  return refuse_on(hardware, op.name(), " from ", Shape(from), " to ", Shape(to), " moves values between surfaces");
}

std::optional<Refusal> refusal(const Op& op, const Machine& machine) {
  const auto as_refusal = [](const Result<void>& checked) {
    return checked.ok() ? std::nullopt : std::optional(Refusal{checked.error().message()});
  };
  if (isa<Constant>(op)) return std::nullopt;
  // An operator that preparation has left in f32 may have an objection other than its type.
  if (machine.hardware.half() && is_f32(op.operand(0)) && is_selectable(op))
    if (auto reason = as_refusal(check_copy(op, machine, copied_as_half))) return reason;
  if (auto limit = limits_refuse(machine.description, op)) return limit;
  return as_refusal(check_op(op, machine));
}

}  // namespace tenon::nvdla
