#include <tenon/ops/shape.hpp>

#include <algorithm>
#include <cmath>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

// ---- Shape and Size ----

// The axes [begin, end) that a Shape operator selects, for a tensor of `rank`.
struct AxisRange {
  int64_t begin, end;
};
AxisRange axes_of_shape(const InferContext& context, int64_t rank) {
  const auto clamped = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t begin = clamped(context.attr<int64_t>("start", 0));
  return {begin, std::max(begin, clamped(context.attr<int64_t>("end", INT64_MAX)))};
}

InferredTypes infer_shape(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  if (!data.shape.ranked()) return one_type(kI64, {Dim()});
  const auto [begin, end] = axes_of_shape(context, data.shape.rank());
  return one_type(kI64, {Dim(end - begin)});
}

std::optional<std::vector<Dim>> dims_of_shape(const InferContext& context) {
  const Type& data = context.type(0);
  if (!data.is_tensor() || !data.shape().ranked()) return std::nullopt;
  const auto [begin, end] = axes_of_shape(context, data.shape().rank());
  const auto& dims = data.shape().dims();
  return std::vector<Dim>(dims.begin() + begin, dims.begin() + end);
}

InferredTypes infer_size(const InferContext& context) {
  TENON_OK(context.tensor(0));
  return one_type(kI64, Shape(Dims{}));
}

std::optional<std::vector<Dim>> dims_of_size(const InferContext& context) {
  const Type& data = context.type(0);
  if (!data.is_tensor() || !data.shape().ranked()) return std::nullopt;
  return std::vector<Dim>{product_of(data.shape().dims())};
}

// ---- Reshape ----

// The extent of the open dim: data's elements divided by the other extents. Extents that occur on both sides are
// cancelled first, so that they may be symbols.
Result<Dim> open_extent(const InferContext& context, const Shape& data, const std::vector<Dim>& asked, size_t open) {
  std::vector<Dim> have = data.dims();
  Dim rest = 1;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (i == open) continue;
    const auto same = std::find_if(have.begin(), have.end(), [&](const Dim& dim) { return dim.same_extent(asked[i]); });
    if (same != have.end()) {
      have.erase(same);
    } else {
      rest = rest * asked[i];
    }
  }
  const Dim total = product_of(have);
  if (!total.known() || !rest.known()) return Dim();
  if (total.is_static() && rest.is_static() && total.value() % rest.value() != 0) {
    return error(Code::invalid_argument, "Reshape to ", Shape(asked), " of ", context.type(0), ": ", total,
                 " elements do not divide by ", rest);
  }
  return extent(floordiv(total.expr(), rest.expr()));
}

InferredTypes infer_reshape(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  const auto given = context.dims_value(1);
  if (!given) {
    const auto rank = static_length(context, 1);
    return one_type(data.element, rank ? unknown_shape(*rank) : Shape());
  }
  std::vector<Dim> asked = *given;
  const bool allowzero = context.attr<int64_t>("allowzero", 0) != 0;
  std::optional<size_t> open;
  bool has_zero = false;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!asked[i].is_static() || asked[i].value() > 0) continue;
    if (asked[i].value() < -1) {
      return error(Code::invalid_argument, "Reshape to ", Shape(asked), ": an extent is -1, 0 or positive");
    }
    if (asked[i].value() == -1) {
      if (open) return error(Code::invalid_argument, "Reshape to ", Shape(asked), ": -1 may stand once only");
      open = i;
    } else if (!allowzero) {
      if (data.shape.ranked() && static_cast<int64_t>(i) >= data.shape.rank()) {
        return error(Code::invalid_argument, "Reshape to ", Shape(asked), " of ", context.type(0), ": 0 at place ", i,
                     " copies an extent that is not there; set allowzero for an extent of 0");
      }
      asked[i] = data.shape.ranked() ? data.shape[i] : Dim();
    } else {
      has_zero = true;
    }
  }
  if (open && has_zero) {
    return error(Code::invalid_argument, "Reshape to ", Shape(asked), ": -1 is not determined beside an extent of 0");
  }
  if (open) {
    if (data.shape.ranked()) {
      TENON_TRY(rest, open_extent(context, data.shape, asked, *open));
      asked[*open] = rest;
    } else {
      asked[*open] = Dim();
    }
  }
  if (data.shape.ranked() && certainly_differ(product_of(data.shape.dims()), product_of(asked))) {
    return error(Code::invalid_argument, "Reshape of ", context.type(0), " to ", Shape(*given), ": ",
                 product_of(data.shape.dims()), " elements are there, ", product_of(asked), " are asked for");
  }
  return one_type(data.element, Shape(std::move(asked)));
}

std::optional<std::vector<Dim>> dims_of_reshape(const InferContext& context) {
  const auto rank = static_length(context, 1);
  return rank && *rank <= 1 ? context.dims_value(0) : std::nullopt;
}

// ---- Flatten, Squeeze, Unsqueeze ----

InferredTypes infer_flatten(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  if (!input.shape.ranked()) return one_type(input.element, unknown_shape(2));
  const int64_t rank = input.shape.rank();
  const int64_t given = context.attr<int64_t>("axis", 1);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) {
    return error(Code::invalid_argument, "attribute 'axis' of Flatten is ", given, ", outside [", -rank, ", ", rank,
                 "] for ", context.type(0));
  }
  const std::span<const Dim> dims(input.shape.dims());
  return one_type(input.element, {product_of(dims.first(axis)), product_of(dims.subspan(axis))});
}

// The result's rank is known if the number of axes is.
Shape shape_of_rank_change(const InferContext& context, const Shape& data, int64_t sign) {
  const auto count = static_length(context, 1);
  if (!count || !data.ranked() || data.rank() + sign * *count < 0) return Shape();
  return unknown_shape(data.rank() + sign * *count);
}

InferredTypes infer_squeeze(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  if (!data.shape.ranked()) return one_type(data.element, Shape());
  std::vector<bool> drop(data.shape.dims().size());
  if (context.has_operand(1)) {
    const auto given = known_ints(context, 1);
    if (!given) return one_type(data.element, shape_of_rank_change(context, data.shape, -1));
    TENON_TRY(axes, normalize_axes(*given, data.shape.rank()), "operand 'axes' of Squeeze");
    for (const size_t axis : axes) {
      if (certainly_differ(data.shape[axis], 1)) {
        return error(Code::invalid_argument, "Squeeze of ", context.type(0), ": axis ", axis, " has extent ",
                     data.shape[axis], ", only 1 can be dropped");
      }
      drop[axis] = true;
    }
  } else {
    for (size_t i = 0; i < drop.size(); ++i) {
      if (!data.shape[i].is_static()) return one_type(data.element, Shape());
      drop[i] = data.shape[i].value() == 1;
    }
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i]) dims.push_back(data.shape[i]);
  }
  return one_type(data.element, Shape(std::move(dims)));
}

InferredTypes infer_unsqueeze(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  const auto given = known_ints(context, 1);
  if (!given || !data.shape.ranked()) return one_type(data.element, shape_of_rank_change(context, data.shape, 1));
  const int64_t rank = data.shape.rank() + static_cast<int64_t>(given->size());
  TENON_TRY(axes, normalize_axes(*given, rank), "operand 'axes' of Unsqueeze");
  std::vector<Dim> dims;
  auto next = data.shape.dims().begin();
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    const bool inserted = std::find(axes.begin(), axes.end(), i) != axes.end();
    dims.push_back(inserted ? Dim(1) : *next++);
  }
  return one_type(data.element, Shape(std::move(dims)));
}

std::optional<std::vector<Dim>> dims_of_unsqueeze(const InferContext& context) {
  const Type& data = context.type(0);
  const bool scalar = data.is_tensor() && data.shape().ranked() && data.shape().rank() == 0;
  return scalar && static_length(context, 1) == 1 ? context.dims_value(0) : std::nullopt;
}

// ---- Tensors from shapes ----

// The shape given by integer operand `i`; an error if an extent is negative.
Result<Shape> spelled_shape(const InferContext& context, size_t i) {
  auto dims = context.dims_value(i);
  if (!dims) {
    const auto rank = static_length(context, i);
    return rank ? unknown_shape(*rank) : Shape();
  }
  for (const Dim& dim : *dims) {
    if (dim.is_static() && dim.value() < 0) {
      return error(Code::invalid_argument, "operand ", i, " of ", context.op().describe(), " spells the shape ",
                   Shape(*dims), "; extents are not negative");
    }
  }
  return Shape(*std::move(dims));
}

InferredTypes infer_expand(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  TENON_TRY(asked, spelled_shape(context, 1));
  TENON_TRY(shape, broadcast(input.shape, asked));
  return one_type(input.element, std::move(shape));
}

// `value`, repeated as often as the only extent states.
std::optional<std::vector<Dim>> repeated(const std::optional<std::vector<Dim>>& count, const Dim& value) {
  if (!count || count->size() > 1) return std::nullopt;
  if (count->empty()) return std::vector<Dim>{value};
  const Dim& length = (*count)[0];
  if (!length.is_static() || length.value() < 0 || length.value() > static_cast<int64_t>(kMostTracedDims)) {
    return std::nullopt;
  }
  return std::vector<Dim>(static_cast<size_t>(length.value()), value);
}

std::optional<std::vector<Dim>> dims_of_expand(const InferContext& context) {
  const auto input = context.dims_value(0);
  if (!input || input->size() != 1 || static_length(context, 1) != 1) return std::nullopt;
  return repeated(context.dims_value(1), (*input)[0]);
}

const Tensor* value_attribute(const InferContext& context) {
  const Attribute* value = context.op().attributes().find("value");
  return value ? value->get_if<Tensor>() : nullptr;
}

InferredTypes infer_constant_of_shape(const InferContext& context) {
  TENON_OK(require_rank(context, 0, 1));
  TENON_TRY(shape, spelled_shape(context, 0));
  const Tensor* value = value_attribute(context);
  return one_type(value ? value->element() : kF32, std::move(shape));
}

std::optional<std::vector<Dim>> dims_of_constant_of_shape(const InferContext& context) {
  const Tensor* value = value_attribute(context);
  if (!value || !value->element().is_int() || value->size() != 1) return std::nullopt;
  return repeated(context.dims_value(0), value->int_at(0));
}

Result<void> verify_constant_of_shape(const Op& op) {
  const Attribute* value = op.attributes().find("value");
  const Tensor* tensor = value ? value->get_if<Tensor>() : nullptr;
  if (!tensor || tensor->size() == 1) return {};
  return error(Code::invalid_argument, "attribute 'value' of ", op.describe(), " has ", tensor->size(),
               " elements, one is wanted");
}

// The number of elements of a Range; unknown when an operand is.
Result<Dim> range_length(const InferContext& context, ElementType element) {
  const Tensor* numbers[3] = {context.constant(0), context.constant(1), context.constant(2)};
  if (numbers[2] && numbers[2]->size() == 1 && numbers[2]->double_at(0) == 0) {
    return error(Code::invalid_argument, "Range with a delta of 0 has no end");
  }
  if (element.is_float()) {
    for (const Tensor* number : numbers) {
      if (!number || number->size() != 1) return Dim();
    }
    const double count = std::ceil((numbers[1]->double_at(0) - numbers[0]->double_at(0)) / numbers[2]->double_at(0));
    if (!(count < 0x1p62)) return error(Code::invalid_argument, "Range of ", count, " elements");
    return Dim(static_cast<int64_t>(std::max(count, 0.0)));
  }
  const auto start = context.dims_value(0), limit = context.dims_value(1), delta = context.dims_value(2);
  const auto single = [](const auto& dims) { return dims && dims->size() == 1 && (*dims)[0].known(); };
  if (!single(start) || !single(limit) || !single(delta) || !(*delta)[0].is_static()) return Dim();
  const Expr distance = (*limit)[0].expr() - (*start)[0].expr();
  const int64_t step = (*delta)[0].value();
  const Expr count = step > 0 ? ceildiv(distance, Expr(step)) : ceildiv(-distance, -Expr(step));
  return extent(max(count, Expr(0)));
}

InferredTypes infer_range(const InferContext& context) {
  TENON_TRY(start, context.tensor(0));
  for (size_t i = 0; i < 3; ++i) {
    const Type& type = context.type(i);
    if (type.is_tensor() && certainly_differ(product_of(type.shape().dims()), 1)) {
      return error(Code::invalid_argument, "operand ", i, " of Range must be one number, it is ", type);
    }
  }
  TENON_TRY(length, range_length(context, start.element));
  return one_type(start.element, {length});
}

std::optional<std::vector<Dim>> dims_of_range(const InferContext& context) {
  const auto start = known_ints(context, 0), limit = known_ints(context, 1), delta = known_ints(context, 2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1) return std::nullopt;
  const auto length = range_length(context, kI64);
  if (!length.ok() || !length->is_static() || length->value() > static_cast<int64_t>(kMostTracedDims)) {
    return std::nullopt;
  }
  std::vector<Dim> out;
  for (int64_t i = 0; i < length->value(); ++i) out.emplace_back(start->at(0) + i * delta->at(0));
  return out;
}

InferredTypes infer_eye_like(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  TENON_OK(require_rank(context, 0, 2));
  return one_type(context.attr<Type>("dtype", Type(input.element, Shape())).element(), input.shape);
}

// ---- Bounds ----

Result<Bounds> shape_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = unread();
  return bounds;
}

// Only the axes of the part.
Result<void> shape_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  const Type& data = query.context.type(0);
  const int64_t begin = axes_of_shape(query.context, data.shape().rank()).begin;
  op.attributes.set("start", begin + query.box[0].min);
  op.attributes.set("end", begin + query.box[0].max + 1);
  return {};
}

// The crop has the part's elements in the part's order if it has the same number of elements.
Result<void> require_view(const SubBoxQuery& query, const SubBoxOp& op) {
  TENON_TRY(asked, element_count(extents_of(query.box)));
  TENON_TRY(cropped, element_count(extents_of(op.operands[0])));
  if (asked == cropped) return {};
  return error(Code::unsupported, "its ", asked, " elements lie in no box of the operand");
}

Result<void> reshape_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  TENON_OK(require_view(query, op));
  op.replaced[1] = ints_tensor(extents_of(query.box));
  return {};
}

// Without a list of axes, more of them might have extent 1 in the part.
Result<void> squeeze_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  TENON_OK(require_view(query, op));
  if (query.context.has_operand(1)) return {};
  const Shape& data = query.context.type(0).shape();
  std::vector<int64_t> axes;
  for (size_t d = 0; d < data.dims().size(); ++d) {
    if (data[d].value() == 1) axes.push_back(static_cast<int64_t>(d));
  }
  op.replaced[1] = ints_tensor(axes);
  return {};
}

Result<Bounds> expand_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = broadcast_to(query, 0);
  return bounds;
}

Result<void> spelled_sub_box(const SubBoxQuery& query, SubBoxOp& op, size_t operand) {
  op.replaced[operand] = ints_tensor(extents_of(query.box));
  return {};
}

// Only the operand's shape matters.
Result<void> eye_like_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  op.operands[0] = query.box;
  op.attributes.set("k", query.context.attr<int64_t>("k", 0) + query.box[0].min - query.box[1].min);
  return {};
}

// ---- Definitions ----

constexpr Trait kView = Trait::pure | Trait::layout_dependent | Trait::movement | Trait::view;

const OpRegistration kShapeRegistered({
    OpDef(ShapeOf::kName)
        .summary("The extents of `data` for the axes [start, end)")
        .operand("data", "T")
        .result("shape", "i64")
        .types("T", kAnyTensor)
        .attribute("start", int64_t{0})
        .optional_attribute("end", AttributeKind::integer)
        .traits(Trait::pure | Trait::layout_oblivious)
        .infer(infer_shape)
        .bounds({shape_bounds, shape_sub_box})
        .infer_dims(dims_of_shape),
    OpDef(Size::kName)
        .summary("The number of elements of `data`")
        .operand("data", "T")
        .result("size", "i64")
        .types("T", kAnyTensor)
        .traits(Trait::pure | Trait::layout_oblivious)
        .infer(infer_size)
        .bounds({shape_bounds, nullptr})
        .infer_dims(dims_of_size),
    OpDef(Reshape::kName)
        .summary(
            "The elements of `data` in row-major order under another shape; -1 is what is left, 0 copies an extent")
        .operand("data", "T")
        .operand("shape", "i64")
        .result("reshaped", "T")
        .types("T", kAnyTensor)
        .attribute("allowzero", int64_t{0})
        .traits(kView)
        .infer(infer_reshape)
        .bounds({view_bounds, reshape_sub_box})
        .infer_dims(dims_of_reshape),
    OpDef(Flatten::kName)
        .summary("The matrix [product of the extents before `axis`, product of the others]")
        .operand("input", "T")
        .result("output", "T")
        .types("T", kAnyTensor)
        .attribute("axis", int64_t{1})
        .traits(kView)
        .infer(infer_flatten)
        .bounds({view_bounds, require_view}),
    OpDef(Squeeze::kName)
        .summary("`data` without `axes` of extent 1, or without all axes of extent 1")
        .operand("data", "T")
        .optional_operand("axes", "i64")
        .result("squeezed", "T")
        .types("T", kAnyTensor)
        .traits(kView)
        .infer(infer_squeeze)
        .bounds({view_bounds, squeeze_sub_box})
        .infer_dims(dims_of_operand(0)),
    OpDef(Unsqueeze::kName)
        .summary("`data` with axes of extent 1 that stand at `axes` of the result")
        .operand("data", "T")
        .operand("axes", "i64")
        .result("expanded", "T")
        .types("T", kAnyTensor)
        .traits(kView)
        .infer(infer_unsqueeze)
        .bounds({view_bounds, require_view})
        .infer_dims(dims_of_unsqueeze),
    OpDef(Expand::kName)
        .summary("`input` broadcast with `shape`")
        .operand("input", "T")
        .operand("shape", "i64")
        .result("output", "T")
        .types("T", kAnyTensor)
        .traits(Trait::pure | Trait::movement | Trait::layout_aware)
        .infer(infer_expand)
        .bounds({expand_bounds, [](const SubBoxQuery& query, SubBoxOp& op) { return spelled_sub_box(query, op, 1); }})
        .infer_dims(dims_of_expand),
    OpDef(ConstantOfShape::kName)
        .summary("A tensor of shape `input` filled with `value`")
        .operand("input", "i64")
        .result("output", "T")
        .types("T", kAnyTensor)
        .attribute("value", Tensor::of<float>({1}, {0.0f}))
        .infer(infer_constant_of_shape)
        .bounds({[](const BoundsQuery& query) -> Result<Bounds> { return all_whole(query); },
                 [](const SubBoxQuery& query, SubBoxOp& op) { return spelled_sub_box(query, op, 0); }})
        .infer_dims(dims_of_constant_of_shape)
        .verify(verify_constant_of_shape),
    OpDef(Range::kName)
        .summary("start, start + delta, ... before limit")
        .operand("start", "T")
        .operand("limit", "T")
        .operand("delta", "T")
        .result("output", "T")
        .types("T", kNumberTypes)
        .infer(infer_range)
        .bounds(whole_operands())
        .infer_dims(dims_of_range),
    OpDef(EyeLike::kName)
        .summary("1 on the diagonal `k` of a matrix with the shape of `input`, 0 elsewhere")
        .operand("input", "T1")
        .result("output", "T2")
        .types("T1", kAnyTensor)
        .types("T2", kAnyTensor)
        .optional_attribute("dtype", AttributeKind::type)
        .attribute("k", int64_t{0})
        .infer(infer_eye_like)
        .bounds({shape_bounds, eye_like_sub_box}),
});

}  // namespace
}  // namespace tenon
