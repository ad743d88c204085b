#include <tenon/ops/convolution.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/window.hpp>

namespace tenon {
namespace {

constexpr TypeSet kBytes("8-bit integers", [](ElementType e) { return e == kI8 || e == kU8; });
constexpr TypeSet kInt32("i32", [](ElementType e) { return e == kI32; });

Result<void> same_rank(const Op& op, const Shape& x, const Shape& w) {
  if (!x.ranked() || !w.ranked() || (x.rank() == w.rank() && x.rank() >= 2)) return {};
  return error(Code::invalid_argument, op.describe(), " needs x [N, C, ...] and w of one rank >= 2, they are ", x,
               " and ", w);
}

// Do `channels` inputs fit the `per_group` that w has, `group` times?
Result<void> channels_fit(const Op& op, const Dim& channels, const Dim& per_group, int64_t group) {
  if (group < 1) return error(Code::invalid_argument, "group of ", op.describe(), " is ", group, ", the least is 1");
  if (!channels.is_static() || !per_group.is_static()) return {};
  if (channels.value() % group == 0 && channels.value() / group == per_group.value()) return {};
  return error(Code::invalid_argument, op.describe(), ": x has ", channels.value(), " channels, w takes ",
               per_group.value(), " in each of ", group, " groups");
}

Result<void> divides(const Op& op, const char* what, const Dim& extent, int64_t group) {
  if (!extent.is_static() || extent.value() % group == 0) return {};
  return error(Code::invalid_argument, op.describe(), ": ", what, ", ", extent.value(),
               ", must be a multiple of its group, ", group);
}

// A vector with one element for each of `channels`; scalars too, where `scalar` says so.
Result<void> per_channel(const InferContext& context, size_t operand, const Dim& channels, bool scalar) {
  if (!context.has_operand(operand) || !context.type(operand).is_tensor()) return {};
  const Shape& shape = context.type(operand).shape();
  if (!shape.ranked()) return {};
  if (scalar && (shape.rank() == 0 || (shape.rank() == 1 && shape[0].is_static() && shape[0].value() == 1))) return {};
  if (shape.rank() == 1 && (!shape[0].is_static() || !channels.is_static() || shape[0].value() == channels.value())) {
    return {};
  }
  return error(Code::invalid_argument, "operand ", operand, " of ", context.op().describe(), " is ", shape,
               ", it must hold one element for each of ", channels, " output channels");
}

std::vector<Dim> spatial(const Shape& shape) { return {shape.dims().begin() + 2, shape.dims().end()}; }

// The shape of a convolution of x, operand `x_at`, by w, operand `w_at`.
Result<Shape> convolved(const InferContext& context, size_t x_at, size_t w_at) {
  const Op& op = context.op();
  TENON_TRY(x, context.tensor(x_at));
  TENON_TRY(w, context.tensor(w_at));
  TENON_OK(same_rank(op, x.shape, w.shape));
  if (!x.shape.ranked()) return Shape();
  const size_t rank = static_cast<size_t>(x.shape.rank()) - 2;
  const Shape weights = w.shape.ranked() ? w.shape : Shape(std::vector<Dim>(rank + 2));
  const int64_t group = context.attr<int64_t>("group", 1);
  TENON_OK(channels_fit(op, x.shape[1], weights[1], group));
  TENON_OK(divides(op, "the number of output channels", weights[0], group));
  TENON_TRY(window, Window::of(op, rank, spatial(weights)));
  TENON_TRY(shape, window_output_shape(window, x.shape, weights[0]), "the shape of ", op.describe());
  return shape;
}

// Of an operator that convolves operand 0 by operand 1, its bias operand `bias`.
Result<std::vector<Type>> infer_biased(const InferContext& context, size_t bias) {
  TENON_TRY(shape, convolved(context, 0, 1));
  TENON_TRY(x, context.tensor(0));
  if (shape.ranked()) TENON_OK(per_channel(context, bias, shape[1], false));
  return std::vector<Type>{Type(x.element, std::move(shape))};
}

Result<std::vector<Type>> infer_conv(const InferContext& context) { return infer_biased(context, 2); }

Result<std::vector<Type>> infer_conv_integer(const InferContext& context) {
  TENON_TRY(shape, convolved(context, 0, 1));
  if (shape.ranked()) TENON_OK(per_channel(context, 3, shape[1], true));
  return std::vector<Type>{Type(kI32, std::move(shape))};
}

Result<std::vector<Type>> infer_qlinear_conv(const InferContext& context) {
  TENON_TRY(shape, convolved(context, 0, 3));
  TENON_TRY(y_zero_point, context.tensor(7));
  if (shape.ranked()) {
    TENON_OK(per_channel(context, 4, shape[1], true));
    TENON_OK(per_channel(context, 5, shape[1], true));
    TENON_OK(per_channel(context, 8, shape[1], false));
  }
  return std::vector<Type>{Type(y_zero_point.element, std::move(shape))};
}

Result<std::vector<Type>> infer_conv_transpose(const InferContext& context) {
  const Op& op = context.op();
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(w, context.tensor(1));
  TENON_OK(same_rank(op, x.shape, w.shape));
  if (!x.shape.ranked()) return std::vector<Type>{Type(x.element, Shape())};
  const size_t rank = static_cast<size_t>(x.shape.rank()) - 2;
  const Shape weights = w.shape.ranked() ? w.shape : Shape(std::vector<Dim>(rank + 2));
  const int64_t group = context.attr<int64_t>("group", 1);
  TENON_OK(channels_fit(op, x.shape[1], weights[0], 1));
  if (group < 1) return error(Code::invalid_argument, "group of ", op.describe(), " is ", group, ", the least is 1");
  TENON_OK(divides(op, "the number of input channels", weights[0], group));
  TENON_TRY(window, Window::of(op, rank, spatial(weights)));
  TENON_TRY(padding, integers_attribute(op, "output_padding", rank, 0, 0));
  const auto output_shape = context.attr<Attribute::Integers>("output_shape");
  if (!output_shape.empty() && output_shape.size() != rank && output_shape.size() != rank + 2) {
    return error(Code::invalid_argument, "output_shape of ", op.describe(), " has ", output_shape.size(),
                 " numbers, it needs ", rank);
  }
  std::vector<Dim> dims{x.shape[0], weights[1] * Dim(group)};
  for (size_t axis = 0; axis < rank; ++axis) {
    const Dim& in = x.shape[axis + 2];
    Dim extent;
    if (!output_shape.empty()) {
      extent = Dim(output_shape[output_shape.size() - rank + axis]);
    } else if (window.auto_pad == AutoPad::same_upper || window.auto_pad == AutoPad::same_lower) {
      extent = in * Dim(window.strides[axis]);
    } else {
      extent = (in - Dim(1)) * Dim(window.strides[axis]) + window.effective_kernel(axis) + Dim(padding[axis]) -
               Dim(window.pads[axis]) - Dim(window.pads[axis + rank]);
    }
    if (extent.is_static() && extent.value() < 0) {
      return error(Code::invalid_argument, op.describe(), ": its output would be ", extent, " at spatial axis ", axis,
                   "; pads ", window.pads, " cut more than there is");
    }
    dims.push_back(std::move(extent));
  }
  TENON_OK(per_channel(context, 2, dims[1], false));
  return std::vector<Type>{Type(x.element, Shape(std::move(dims)))};
}

Result<void> extent_is(const Op& op, const char* what, const Shape& shape, size_t axis, const Dim& expected) {
  // A product beyond int64_t is no number, and no extent either.
  if (!shape[axis].is_static() || !expected.known() || shape[axis].same_extent(expected)) return {};
  return error(Code::invalid_argument, what, " of ", op.describe(), " is ", shape, ", it needs ", expected, " at axis ",
               axis);
}

Result<std::vector<Type>> infer_deform_conv(const InferContext& context) {
  TENON_TRY(types, infer_biased(context, 3));
  const Shape& y = types[0].shape();
  const int64_t groups = context.attr<int64_t>("offset_group", 1);
  if (groups < 1) {
    return error(Code::invalid_argument, "offset_group of ", context.op().describe(), " is ", groups,
                 ", the least is 1");
  }
  if (!y.ranked() || !context.type(1).is_tensor()) return types;
  TENON_OK(divides(context.op(), "the number of input channels", context.type(0).shape()[1], groups));
  const Shape& w = context.type(1).shape();
  if (!w.ranked()) return types;
  Dim taps(1);
  for (size_t axis = 2; axis < w.dims().size(); ++axis) taps = taps * w[axis];
  for (const size_t operand : {size_t{2}, size_t{4}}) {
    if (!context.has_operand(operand) || !context.type(operand).is_tensor()) continue;
    const Shape& shape = context.type(operand).shape();
    if (!shape.ranked()) continue;
    const char* what = operand == 2 ? "offset" : "mask";
    if (shape.rank() != y.rank()) {
      return error(Code::invalid_argument, what, " of ", context.op().describe(), " is ", shape, ", it needs rank ",
                   y.rank());
    }
    if (taps.is_static()) {
      TENON_OK(extent_is(context.op(), what, shape, 1, taps * Dim(groups) * Dim(operand == 2 ? y.rank() - 2 : 1)));
    }
    for (size_t axis = 2; axis < y.dims().size(); ++axis) {
      if (y[axis].is_static()) TENON_OK(extent_is(context.op(), what, shape, axis, y[axis]));
    }
  }
  return types;
}

Result<std::vector<Type>> infer_causal_conv(const InferContext& context) {
  const Op& op = context.op();
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(w, context.tensor(1));
  for (const Shape* shape : {&x.shape, &w.shape}) {
    if (shape->ranked() && shape->rank() != 3) {
      return error(Code::invalid_argument, op.describe(), " needs operands of rank 3, one is ", *shape);
    }
  }
  const Shape input = x.shape.ranked() ? x.shape : Shape(std::vector<Dim>(3));
  const Shape weights = w.shape.ranked() ? w.shape : Shape(std::vector<Dim>(3));
  TENON_OK(channels_fit(op, input[1], weights[0], 1));
  TENON_OK(extent_is(op, "weight", weights, 1, 1));
  TENON_OK(per_channel(context, 2, input[1], false));
  Shape state{input[0], input[1], weights[2] - Dim(1)};
  if (context.has_operand(3) && context.type(3).is_tensor()) {
    TENON_TRY(merged, merge(state, context.type(3).shape()), "past_state of ", op.describe());
    state = std::move(merged);
  }
  std::vector<Type> types{Type(x.element, input)};
  if (op.result_count() > 1) types.emplace_back(x.element, std::move(state));
  return types;
}

OpDef windowed(std::string_view name) {
  OpDef def{Name(name)};
  def.attribute("auto_pad", "NOTSET")
      .one_of({"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"})
      .optional_attribute("dilations", AttributeKind::integers)
      .attribute("group", int64_t{1})
      .optional_attribute("kernel_shape", AttributeKind::integers)
      .optional_attribute("pads", AttributeKind::integers)
      .optional_attribute("strides", AttributeKind::integers)
      .traits(Trait::pure | Trait::layout_aware);
  return def;
}

const OpRegistration kRegistered({
    windowed(Conv::kName)
        .summary("Y = X convolved with W, plus B per output channel")
        .operand("X", "T")
        .operand("W", "T")
        .optional_operand("B", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .infer(infer_conv),
    windowed(ConvTranspose::kName)
        .summary("Y = X through the transpose of the convolution with W, plus B per output channel")
        .operand("X", "T")
        .operand("W", "T")
        .optional_operand("B", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .optional_attribute("output_padding", AttributeKind::integers)
        .optional_attribute("output_shape", AttributeKind::integers)
        .infer(infer_conv_transpose),
    windowed(ConvInteger::kName)
        .summary("y = (x - x_zero_point) convolved with (w - w_zero_point), in i32")
        .operand("x", "T1")
        .operand("w", "T2")
        .optional_operand("x_zero_point", "T1")
        .optional_operand("w_zero_point", "T2")
        .result("y", "T3")
        .types("T1", kBytes)
        .types("T2", kBytes)
        .types("T3", kInt32)
        .infer(infer_conv_integer),
    windowed(QLinearConv::kName)
        .summary("y = the convolution of quantised x and w, quantised again")
        .operand("x", "T1")
        .operand("x_scale", "TS")
        .operand("x_zero_point", "T1")
        .operand("w", "T2")
        .operand("w_scale", "TS")
        .operand("w_zero_point", "T2")
        .operand("y_scale", "TS")
        .operand("y_zero_point", "T3")
        .optional_operand("B", "T4")
        .result("y", "T3")
        .types("T1", kBytes)
        .types("T2", kBytes)
        .types("T3", kBytes)
        .types("T4", kInt32)
        .types("TS", kFloatTypes)
        .infer(infer_qlinear_conv),
    windowed(DeformConv::kName)
        .summary("Y = X convolved with W at taps moved by `offset` and weighted by `mask`, plus B per output channel")
        .operand("X", "T")
        .operand("W", "T")
        .operand("offset", "T")
        .optional_operand("B", "T")
        .optional_operand("mask", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("offset_group", int64_t{1})
        .infer(infer_deform_conv),
    OpDef(CausalConvWithState::kName)
        .summary("output = act(depthwise convolution of [past_state, input] with weight, plus bias)")
        .operand("input", "T")
        .operand("weight", "T")
        .optional_operand("bias", "T")
        .optional_operand("past_state", "T")
        .result("output", "T")
        .result("present_state", "T", Arity::optional)
        .types("T", kFloatTypes)
        .attribute("activation", "none")
        .one_of({"none", "silu", "swish"})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_causal_conv),
});

}  // namespace
}  // namespace tenon
