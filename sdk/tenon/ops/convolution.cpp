#include <tenon/ops/convolution.hpp>

#include <algorithm>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>
#include <tenon/ops/window.hpp>
#include <tenon/ops/window_bounds.hpp>

namespace tenon {
namespace {

Result<void> same_rank(const Op& op, const Shape& x, const Shape& w) {
  if (!x.ranked() || !w.ranked() || (x.rank() == w.rank() && x.rank() >= 2)) return {};
  return error(Code::invalid_argument, op.describe(), " needs x [N, C, ...] and w of one rank >= 2, they are ", x,
               " and ", w);
}

// Checks that `channels` is `group` times the `per_group` channels of w.
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

// Checks that the operand is a vector with one element per channel, or with `scalar` also a scalar.
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

// For an operator that convolves operand 0 with operand 1 and has its bias in operand `bias`.
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
  // A product beyond int64_t is not a number, and cannot be an extent.
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
    for (size_t axis = 0; axis < y.dims().size(); ++axis) {
      if (axis != 1 && y[axis].is_static()) TENON_OK(extent_is(context.op(), what, shape, axis, y[axis]));
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

// ---- Bounds ----

// Ranges of the groups' channels in x [C] and w [M] if the output channels [min, max] are computed.
struct Channels {
  DimBounds x, w;
};
Channels channels_of(const BoundsQuery& query, const Dim& in) {
  const BoxRange& out = query.box[1];
  const int64_t group = query.context.attr<int64_t>("group", 1);
  if (group == 1) return {whole_dim(in), exactly(out)};
  if (!in.known() || !query.shape[1].known()) return {whole_dim(in, false), exactly(out)};
  const BoxRange used = outer_part(out, floordiv(query.shape[1].expr(), Expr(group)));
  return {exactly(groups(used, floordiv(in.expr(), Expr(group)))), exactly(out)};
}

// For operands x at `x_at` and w at `w_at`; those in `per_channel` have one element per output channel, or one.
Result<Bounds> convolution_bounds(const BoundsQuery& query, size_t x_at, size_t w_at,
                                  std::initializer_list<size_t> per_channel) {
  Bounds bounds = all_whole(query);
  for (const size_t operand : per_channel) {
    if (ranked_shape(query.context, operand)) bounds.operands[operand] = follow(query, operand, {1});
  }
  const Shape *x = ranked_shape(query.context, x_at), *w = ranked_shape(query.context, w_at);
  if (!x || !w) return bounds;
  TENON_TRY(window, Window::of(query.context.op(), w->dims().size() - 2, spatial(*w)));
  const Channels channels = channels_of(query, (*x)[1]);
  std::vector<DimBounds> read{exactly(query.box[0]), channels.x}, taps{channels.w, whole_dim((*w)[1])};
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    read.push_back(window_reads(window, axis, query, (*x)[axis + 2]));
    taps.push_back(window_taps(window, axis));
  }
  // With one channel per group, products are summed in another order if only one group is left.
  const size_t channel_dim[] = {1};
  const bool depthwise = query.context.attr<int64_t>("group", 1) > 1;
  bounds.same_bits = !depthwise || keeps_sums(query, channel_dim);
  bounds.operands[x_at] = boxed(std::move(read));
  bounds.operands[w_at] = boxed(std::move(taps));
  return bounds;
}

// Allows whole groups of channels, or channels of one group.
Result<void> set_groups(const SubBoxQuery& query, SubBoxOp& op) {
  const int64_t group = query.context.attr<int64_t>("group", 1), size = query.shape[1] / group;
  const StaticRange& out = query.box[1];
  const int64_t first = out.min / size, last = out.max / size;
  if (first != last && (out.min % size != 0 || (out.max + 1) % size != 0)) {
    return error(Code::unsupported, "the output channels [", out.min, ", ", out.max, "] cut through groups of ", size);
  }
  op.attributes.set("group", last - first + 1);
  return {};
}

template <size_t X, size_t W>
Result<void> convolution_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  const Shape& w = query.context.type(W).shape();
  TENON_TRY(window, Window::of(query.context.op(), w.dims().size() - 2, spatial(w)));
  TENON_OK(set_groups(query, op));
  return set_window_pads(window, query, X, op);
}

BoundsRule conv_rule() {
  return {[](const BoundsQuery& query) { return convolution_bounds(query, 0, 1, {2}); }, convolution_sub_box<0, 1>};
}
BoundsRule conv_integer_rule() {
  return {[](const BoundsQuery& query) { return convolution_bounds(query, 0, 1, {3}); }, convolution_sub_box<0, 1>};
}
BoundsRule qlinear_conv_rule() {
  return {[](const BoundsQuery& query) {
            return convolution_bounds(query, 0, 3, {4, 5, 8});
          },
          convolution_sub_box<0, 3>};
}

// Output o gets input i if o = i * stride - begin + k * dilation for a tap k.
DimBounds transposed_reads(const Window& window, size_t axis, const Expr& begin, const BoxRange& out, const Dim& in) {
  const Expr stride(window.strides[axis]), reach = window.effective_kernel(axis).expr() - Expr(1);
  const BoxRange range{ceildiv(out.min + begin - reach, stride), floordiv(out.max + begin, stride)};
  return clamped(range, in, window.dilations[axis] == 1);
}

bool all_known(const Shape& shape) {
  return std::ranges::all_of(shape.dims(), [](const Dim& dim) { return dim.known(); });
}
std::vector<Expr> spatial_extents(const Shape& shape) {
  std::vector<Expr> extents;
  for (size_t d = 2; d < shape.dims().size(); ++d) extents.push_back(shape[d].expr());
  return extents;
}

Result<Bounds> conv_transpose_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  if (ranked_shape(query.context, 2)) bounds.operands[2] = follow(query, 2, {1});
  const Shape *x = ranked_shape(query.context, 0), *w = ranked_shape(query.context, 1);
  if (!x || !w) return bounds;
  bounds.operands[0].dims[0] = exactly(query.box[0]);
  if (!all_known(*w) || !(*x)[1].known()) return bounds;
  const Expr group(query.context.attr<int64_t>("group", 1));
  const DimBounds channels = exactly(groups(outer_part(query.box[1], (*w)[1].expr()), floordiv((*x)[1].expr(), group)));
  bounds.operands[0].dims[1] = channels;
  // No weight is used where no input contributes.
  bounds.operands[1].dims[0] = at_most({channels.min, channels.max});
  bounds.operands[1].dims[1] = at_most(inner_part(query.box[1], (*w)[1].expr()));
  if (!all_known(*x) || !all_known(query.shape)) return bounds;
  TENON_TRY(window, Window::of(query.context.op(), w->dims().size() - 2, spatial(*w)));
  TENON_TRY(begin, conv_transpose_begin(query.context.op(), window, spatial_extents(*x), spatial_extents(query.shape)));
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    bounds.operands[0].dims[axis + 2] =
        transposed_reads(window, axis, begin[axis], query.box[axis + 2], (*x)[axis + 2]);
  }
  return bounds;
}

// The crop's full output begins at crop.min * stride - begin; what is before and after the box is removed by pads.
Result<void> conv_transpose_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  TENON_OK(set_groups(query, op));
  TENON_OK(require_elements(op, 0));
  const Shape &x = query.context.type(0).shape(), &w = query.context.type(1).shape();
  TENON_TRY(window, Window::of(query.context.op(), w.dims().size() - 2, spatial(w)));
  TENON_TRY(begin,
            conv_transpose_begin(query.context.op(), window, spatial_extents(x), spatial_extents(Shape(query.shape))));
  Attribute::Integers pads(2 * window.rank());
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const StaticRange &crop = op.operands[0][axis + 2], &out = query.box[axis + 2];
    const int64_t full = (crop.extent() - 1) * window.strides[axis] + window.effective_kernel(axis).value();
    pads[axis] = out.min + begin[axis].constant() - crop.min * window.strides[axis];
    pads[axis + window.rank()] = full - pads[axis] - out.extent();
  }
  for (const char* attribute : {"output_padding", "output_shape"}) op.attributes.erase(attribute);
  op.attributes.set("auto_pad", "NOTSET");
  op.attributes.set("pads", pads);
  return {};
}

// Taps are displaced by data, so any pixel may be read.
Result<Bounds> deform_conv_bounds(const BoundsQuery& query) {
  TENON_TRY(bounds, convolution_bounds(query, 0, 1, {3}));
  for (const size_t moved : {size_t{0}, size_t{1}}) {
    const Shape* shape = ranked_shape(query.context, moved);
    for (size_t d = 2; shape && d < shape->dims().size(); ++d)
      bounds.operands[moved].dims[d] = whole_dim((*shape)[d], false);
  }
  for (const size_t by_place : {size_t{2}, size_t{4}}) {
    if (by_place < bounds.operands.size()) {
      bounds.operands[by_place] = inexact(follow(query, by_place, each_dim(query.box.size(), {1})));
    }
  }
  return bounds;
}

// Offset groups count all channels of x; taps count from the first output.
Result<void> deform_conv_sub_box(const SubBoxQuery& query, SubBoxOp&) {
  for (size_t d = 1; d < query.box.size(); ++d) TENON_OK(require_whole(query, d));
  return {};
}

// Column t reads columns t .. t + K - 1 of [past_state, input]; the past has K - 1 of them.
Result<Bounds> causal_conv_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape *x = ranked_shape(query.context, 0), *w = ranked_shape(query.context, 1);
  if (!x || !w || !(*x)[2].known() || !(*w)[2].known()) return bounds;
  const Expr past = (*w)[2].expr() - Expr(1), length = (*x)[2].expr();
  const BoxRange& out = query.box[2];
  const BoxRange columns = query.result == 0 ? BoxRange{out.min, out.max + past} : shifted(out, length);
  const std::vector<DimBounds> place{exactly(query.box[0]), exactly(query.box[1])};
  bounds.operands[0] = boxed({place[0], place[1], clamped(shifted(columns, -past), (*x)[2])});
  bounds.operands[1] =
      query.result == 0 ? follow(query, 1, {1, kWhole, kWhole}) : inexact(follow(query, 1, {1, kWhole, kWhole}));
  if (ranked_shape(query.context, 2)) {
    bounds.operands[2] = query.result == 0 ? follow(query, 2, {1}) : inexact(follow(query, 2, {1}));
  }
  if (ranked_shape(query.context, 3)) bounds.operands[3] = boxed({place[0], place[1], clamped(columns, Dim(past))});
  return bounds;
}

// Parts along time would need the columns before them as their past.
Result<void> causal_conv_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  TENON_OK(require_whole(query, 2));
  for (const size_t operand : {size_t{0}, size_t{3}}) {
    if (operand >= op.operands.size() || op.operands[operand].empty()) continue;
    op.operands[operand][2] = {0, query.context.type(operand).shape()[2].value() - 1};
  }
  return {};
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

const OpRegistration kConvolutionRegistered({
    windowed(Conv::kName)
        .summary("Y = X convolved with W, plus B per output channel")
        .operand("X", "T")
        .operand("W", "T")
        .optional_operand("B", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .infer(infer_conv)
        .bounds(conv_rule()),
    windowed(ConvTranspose::kName)
        .summary("Y = X through the transpose of the convolution with W, plus B per output channel")
        .operand("X", "T")
        .operand("W", "T")
        .optional_operand("B", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .optional_attribute("output_padding", AttributeKind::integers)
        .optional_attribute("output_shape", AttributeKind::integers)
        .infer(infer_conv_transpose)
        .bounds({conv_transpose_bounds, conv_transpose_sub_box}),
    windowed(ConvInteger::kName)
        .summary("y = (x - x_zero_point) convolved with (w - w_zero_point), in i32")
        .operand("x", "T1")
        .operand("w", "T2")
        .optional_operand("x_zero_point", "T1")
        .optional_operand("w_zero_point", "T2")
        .result("y", "T3")
        .types("T1", kByteTypes)
        .types("T2", kByteTypes)
        .types("T3", kInt32Types)
        .infer(infer_conv_integer)
        .bounds(conv_integer_rule()),
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
        .types("T1", kByteTypes)
        .types("T2", kByteTypes)
        .types("T3", kByteTypes)
        .types("T4", kInt32Types)
        .types("TS", kFloatTypes)
        .infer(infer_qlinear_conv)
        .bounds(qlinear_conv_rule()),
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
        .infer(infer_deform_conv)
        .bounds({deform_conv_bounds, deform_conv_sub_box}),
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
        .infer(infer_causal_conv)
        .bounds({causal_conv_bounds, causal_conv_sub_box}),
});

}  // namespace

Result<std::vector<Expr>> conv_transpose_begin(const Op& op, const Window& window, const std::vector<Expr>& in,
                                               const std::vector<Expr>& out) {
  TENON_TRY(padding, integers_attribute(op, "output_padding", window.rank(), 0, 0));
  const bool pads_follow = window.auto_pad != AutoPad::notset || !op.attr<Attribute::Integers>("output_shape").empty();
  std::vector<Expr> begin;
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const Expr full =
        (in[axis] - Expr(1)) * Expr(window.strides[axis]) + window.effective_kernel(axis).expr() + Expr(padding[axis]);
    const Expr total = max(Expr(0), full - out[axis]), half = floordiv(total, Expr(2));
    const Expr follows = window.auto_pad == AutoPad::same_upper ? half : total - half;
    begin.push_back(pads_follow ? follows : Expr(window.pads[axis]));
  }
  return begin;
}

}  // namespace tenon
