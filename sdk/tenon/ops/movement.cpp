#include <tenon/ops/movement.hpp>

#include <algorithm>
#include <numeric>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

// ---- Transpose, Concat, Split ----

InferredTypes infer_transpose(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  const auto perm = context.attr<Attribute::Integers>("perm");
  if (!data.shape.ranked()) return one_type(data.element, perm.empty() ? Shape() : unknown_shape(perm.size()));
  std::vector<Dim> dims(data.shape.dims().rbegin(), data.shape.dims().rend());
  if (!perm.empty()) {
    TENON_TRY(axes, normalize_axes(perm, data.shape.rank()), "attribute 'perm' of Transpose");
    if (axes.size() != dims.size()) {
      return error(Code::invalid_argument, "attribute 'perm' of Transpose names ", axes.size(), " axes of ",
                   context.type(0), ", it must name each once");
    }
    for (size_t d = 0; d < axes.size(); ++d) dims[d] = data.shape[axes[d]];
  }
  return one_type(data.element, Shape(std::move(dims)));
}

InferredTypes infer_concat(const InferContext& context) {
  TENON_TRY(first, context.tensor(0));
  Shape shape;
  Dim total = 0;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    TENON_TRY(next, context.tensor(i));
    if (!next.shape.ranked()) {
      total = Dim();
      continue;
    }
    TENON_TRY(axis, axis_attribute(context, "axis", 0, next.shape.rank()));
    total = total + next.shape[axis];
    next.shape[axis] = Dim();
    TENON_TRY(merged, merge(shape, next.shape), "operand ", i, " of ", context.op().describe(),
              " beside those before it");
    shape = std::move(merged);
  }
  if (shape.ranked()) {
    TENON_TRY(axis, axis_attribute(context, "axis", 0, shape.rank()));
    shape[axis] = total;
  }
  return one_type(first.element, std::move(shape));
}

std::optional<std::vector<Dim>> dims_of_concat(const InferContext& context) {
  std::vector<Dim> all;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    const auto part = context.dims_value(i);
    if (!part || all.size() + part->size() > kMostTracedDims) return std::nullopt;
    all.insert(all.end(), part->begin(), part->end());
  }
  return all;
}

// The length of part `i` of an axis cut into `count` parts.
Dim part_of(const Dim& whole, int64_t count, int64_t i) {
  if (!whole.known()) return Dim();
  const Expr part = ceildiv(whole.expr(), Expr(count));
  if (i == 0) return extent(part);
  return extent(min(part, max(Expr(0), whole.expr() - Expr(i) * part)));
}

InferredTypes infer_split(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  const size_t count = context.op().result_count();
  if (!input.shape.ranked()) return std::vector<Type>(count, Type(input.element, Shape()));
  TENON_TRY(axis, axis_attribute(context, "axis", 0, input.shape.rank()));
  const Dim whole = input.shape[axis];
  std::vector<Dim> parts(count);
  if (context.has_operand(1)) {
    if (const auto given = context.dims_value(1)) {
      if (given->size() != count) {
        return error(Code::invalid_argument, "operand 'split' of ", context.op().describe(), " gives ", given->size(),
                     " lengths for ", count, " results");
      }
      parts = *given;
    }
    const Dim total = std::accumulate(parts.begin(), parts.end(), Dim(0));
    if (certainly_differ(total, whole)) {
      return error(Code::invalid_argument, "operand 'split' of ", context.op().describe(), " adds up to ", total,
                   ", axis ", axis, " of ", context.type(0), " has ", whole);
    }
    for (const Dim& part : parts) {
      if (part.is_static() && part.value() < 0) {
        return error(Code::invalid_argument, "operand 'split' of ", context.op().describe(),
                     " has the negative length ", part);
      }
      // The total may have overflowed, and then it is not known to differ.
      if (part.is_static() && whole.is_static() && part.value() > whole.value()) {
        return error(Code::invalid_argument, "operand 'split' of ", context.op().describe(), " has the length ", part,
                     ", axis ", axis, " of ", context.type(0), " has ", whole);
      }
    }
  } else {
    const auto asked = context.attr<int64_t>("num_outputs", static_cast<int64_t>(count));
    if (asked != static_cast<int64_t>(count)) {
      return error(Code::invalid_argument, "attribute 'num_outputs' of ", context.op().describe(), " is ", asked,
                   ", it has ", count, " results");
    }
    for (size_t i = 0; i < count; ++i) parts[i] = part_of(whole, asked, static_cast<int64_t>(i));
  }
  std::vector<Type> types;
  for (const Dim& part : parts) {
    input.shape[axis] = part;
    types.emplace_back(input);
  }
  return types;
}

// ---- Slice ----

// A bound of a slice clamped to the axis; `last` is 0 for steps forward, -1 for steps back, where positions run from
// -1.
Expr clamped_bound(const Expr& bound, const Expr& axis, int64_t last) {
  if (!bound.is_constant()) return max(Expr(last), min(bound, axis + Expr(last)));
  const int64_t value = bound.constant();
  if (value > INT64_MAX / 2) return axis + Expr(last);  // "to the end"
  if (value < -(INT64_MAX / 2)) return Expr(last);
  const Expr from_front = value < 0 ? axis + bound : bound;
  return max(Expr(last), min(from_front, axis + Expr(last)));
}

Dim sliced_extent(const Dim& axis, const Dim& start, const Dim& end, int64_t step) {
  if (!axis.known() || !start.known() || !end.known()) return Dim();
  // A bound that may turn out negative would count from the back then.
  for (const Dim& bound : {start, end}) {
    if (!bound.is_static() && !certainly_at_least(bound, 0)) return Dim();
  }
  const int64_t last = step > 0 ? 0 : -1;
  const Expr from = clamped_bound(start.expr(), axis.expr(), last), to = clamped_bound(end.expr(), axis.expr(), last);
  // A step beyond the axis takes one element, whatever its length; so the division cannot overflow.
  const int64_t most = axis.is_static() ? std::max<int64_t>(1, axis.value()) : INT32_MAX;
  const int64_t stride = std::clamp(step, -most, most);
  const Expr count = stride > 0 ? ceildiv(to - from, Expr(stride)) : ceildiv(from - to, Expr(-stride));
  return extent(max(Expr(0), count));
}

// What the operands of a Slice say, one entry per sliced axis. Bounds may be unknown.
struct Cuts {
  std::vector<size_t> axes;
  std::vector<Dim> starts, ends;
  std::vector<std::optional<int64_t>> steps;
};

// nullopt when it is not even known which axes are meant.
Result<std::optional<Cuts>> cuts_of(const InferContext& context, int64_t rank) {
  const auto starts = context.dims_value(1), ends = context.dims_value(2);
  auto count = starts ? std::optional(static_cast<int64_t>(starts->size())) : static_length(context, 1);
  std::vector<int64_t> axes;
  if (context.has_operand(3)) {
    const auto given = known_ints(context, 3);
    if (!given) return std::optional<Cuts>();
    axes = *given;
    if (!count) count = static_cast<int64_t>(axes.size());
  } else if (count) {
    axes.resize(static_cast<size_t>(*count));
    std::iota(axes.begin(), axes.end(), int64_t{0});
  } else {
    return std::optional<Cuts>();
  }
  const auto steps = context.has_operand(4) ? known_ints(context, 4) : std::vector<int64_t>(axes.size(), 1);
  if (static_cast<int64_t>(axes.size()) != *count || (ends && ends->size() != axes.size()) ||
      (steps && steps->size() != axes.size())) {
    return error(Code::invalid_argument, context.op().describe(), " has ", *count, " starts, ", ends ? ends->size() : 0,
                 " ends, ", axes.size(), " axes and ", steps ? steps->size() : 0, " steps; they must be equally many");
  }
  TENON_TRY(normal, normalize_axes(axes, rank), "operand 'axes' of Slice");
  Cuts cuts{std::move(normal), std::vector<Dim>(axes.size()), std::vector<Dim>(axes.size()), {}};
  cuts.steps.resize(axes.size());
  for (size_t k = 0; k < axes.size(); ++k) {
    if (starts) cuts.starts[k] = (*starts)[k];
    if (ends) cuts.ends[k] = (*ends)[k];
    if (steps) cuts.steps[k] = (*steps)[k];
    if (cuts.steps[k] == 0) return error(Code::invalid_argument, "step 0 for axis ", axes[k], " of Slice");
  }
  return std::optional(std::move(cuts));
}

InferredTypes infer_slice(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  if (!data.shape.ranked()) return one_type(data.element, Shape());
  TENON_TRY(cuts, cuts_of(context, data.shape.rank()));
  if (!cuts) return one_type(data.element, unknown_shape(data.shape.rank()));
  for (size_t k = 0; k < cuts->axes.size(); ++k) {
    Dim& dim = data.shape[cuts->axes[k]];
    dim = cuts->steps[k] ? sliced_extent(dim, cuts->starts[k], cuts->ends[k], *cuts->steps[k]) : Dim();
  }
  return one_type(data.element, std::move(data.shape));
}

std::optional<std::vector<Dim>> dims_of_slice(const InferContext& context) {
  const auto data = context.dims_value(0);
  const auto cuts = cuts_of(context, 1);
  if (!data || !cuts.ok() || !*cuts) return std::nullopt;
  if ((*cuts)->axes.empty()) return data;
  const Dim &start = (*cuts)->starts[0], &end = (*cuts)->ends[0];
  const auto step = (*cuts)->steps[0];
  if (!start.is_static() || !end.is_static() || !step) return std::nullopt;
  const auto count = static_cast<int64_t>(data->size());
  const Dim length = sliced_extent(Dim(count), start, end, *step);
  const int64_t last = *step > 0 ? 0 : -1;
  const int64_t first = clamped_bound(start.expr(), Expr(count), last).constant();
  std::vector<Dim> out;
  for (int64_t i = 0; i < length.value(); ++i) out.push_back((*data)[static_cast<size_t>(first + i * *step)]);
  return out;
}

// ---- Pad, Tile ----

// The axes that operand or attribute `axes` names; all when absent; nullopt when they are not known.
Result<std::optional<std::vector<size_t>>> axes_operand(const InferContext& context, size_t operand, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (context.has_operand(operand)) {
    const auto given = known_ints(context, operand);
    if (!given) return std::optional<std::vector<size_t>>();
    axes = *given;
  }
  TENON_TRY(normal, normalize_axes(axes, rank), "operand 'axes' of ", context.op().describe());
  return std::optional(std::move(normal));
}

InferredTypes infer_pad(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  if (!data.shape.ranked()) return one_type(data.element, Shape());
  TENON_TRY(axes, axes_operand(context, 3, data.shape.rank()));
  const auto pads = context.dims_value(1);
  if (!axes) return one_type(data.element, unknown_shape(data.shape.rank()));
  const size_t count = axes->size();
  if (pads && pads->size() != 2 * count) {
    return error(Code::invalid_argument, "operand 'pads' of ", context.op().describe(), " has ", pads->size(),
                 " elements, two for each of ", count, " axes are wanted");
  }
  for (size_t k = 0; k < count; ++k) {
    Dim& dim = data.shape[(*axes)[k]];
    dim = pads ? dim + (*pads)[k] + (*pads)[count + k] : Dim();
    if (dim.is_static() && dim.value() < 0) {
      return error(Code::invalid_argument, context.op().describe(), " cuts more off axis ", (*axes)[k], " of ",
                   context.type(0), " than it has: ", dim, " would be left");
    }
  }
  return one_type(data.element, std::move(data.shape));
}

InferredTypes infer_tile(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  const auto repeats = context.dims_value(1);
  if (!input.shape.ranked()) return one_type(input.element, repeats ? unknown_shape(repeats->size()) : Shape());
  if (repeats && static_cast<int64_t>(repeats->size()) != input.shape.rank()) {
    return error(Code::invalid_argument, "operand 'repeats' of ", context.op().describe(), " has ", repeats->size(),
                 " elements for ", context.type(0), ", one per axis is wanted");
  }
  for (size_t d = 0; d < input.shape.dims().size(); ++d) {
    if (repeats && (*repeats)[d].is_static() && (*repeats)[d].value() < 0) {
      return error(Code::invalid_argument, "operand 'repeats' of ", context.op().describe(), " is ", (*repeats)[d],
                   " for axis ", d, "; it must not be negative");
    }
    input.shape[d] = repeats ? input.shape[d] * (*repeats)[d] : Dim();
  }
  return one_type(input.element, std::move(input.shape));
}

std::optional<std::vector<Dim>> dims_of_tile(const InferContext& context) {
  const auto input = context.dims_value(0);
  const auto repeats = known_ints(context, 1);
  if (!input || !repeats || repeats->size() != 1) return std::nullopt;
  const int64_t times = (*repeats)[0];
  if (times < 0 || times > static_cast<int64_t>(kMostTracedDims / std::max<size_t>(1, input->size())))
    return std::nullopt;
  std::vector<Dim> out;
  for (int64_t i = 0; i < times; ++i) out.insert(out.end(), input->begin(), input->end());
  return out;
}

// ---- Blocks, sequences, the middle ----

InferredTypes infer_trilu(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 2));
  return std::vector<Type>{context.type(0)};
}

Result<Dim> divided(const InferContext& context, size_t axis, const Dim& dim, int64_t by) {
  if (dim.is_static() && dim.value() % by != 0) {
    return error(Code::invalid_argument, "axis ", axis, " of ", context.type(0), " does not divide by ", by, ", which ",
                 context.op().describe(), " asks for");
  }
  return dim.known() ? extent(floordiv(dim.expr(), Expr(by))) : Dim();
}

template <bool to_space>
InferredTypes infer_blocks(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  TENON_OK(require_rank(context, 0, 4));
  const auto block = context.attr<int64_t>("blocksize");
  if (block < 1 || block > INT32_MAX) {
    return error(Code::invalid_argument, "attribute 'blocksize' of ", context.op().describe(), " is ", block,
                 "; it must be positive");
  }
  Shape shape = input.shape.ranked() ? input.shape : unknown_shape(4);
  if (to_space) {
    TENON_TRY(channels, divided(context, 1, shape[1], block * block));
    shape = {shape[0], channels, shape[2] * Dim(block), shape[3] * Dim(block)};
  } else {
    TENON_TRY(height, divided(context, 2, shape[2], block));
    TENON_TRY(width, divided(context, 3, shape[3], block));
    shape = {shape[0], shape[1] * Dim(block * block), height, width};
  }
  return one_type(input.element, std::move(shape));
}

InferredTypes infer_reverse_sequence(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  TENON_OK(require_rank_at_least(context, 0, 2));
  TENON_OK(require_rank(context, 1, 1));
  const auto batch = context.attr<int64_t>("batch_axis", 1), time = context.attr<int64_t>("time_axis", 0);
  if (batch == time || batch < 0 || batch > 1 || time < 0 || time > 1) {
    return error(Code::invalid_argument, "attributes 'batch_axis' and 'time_axis' of ", context.op().describe(),
                 " are ", batch, " and ", time, "; one must be 0 and the other 1");
  }
  const Type& lengths = context.type(1);
  if (input.shape.ranked() && lengths.is_tensor() && lengths.shape().ranked() &&
      certainly_differ(lengths.shape()[0], input.shape[static_cast<size_t>(batch)])) {
    return error(Code::invalid_argument, context.op().describe(), " has ", lengths.shape()[0],
                 " lengths for a batch of ", input.shape[static_cast<size_t>(batch)]);
  }
  return std::vector<Type>{context.type(0)};
}

InferredTypes infer_center_crop_pad(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  if (!input.shape.ranked()) return one_type(input.element, Shape());
  std::vector<int64_t> axes(input.shape.dims().size());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  axes = context.attr<Attribute::Integers>("axes", axes);
  TENON_TRY(normal, normalize_axes(axes, input.shape.rank()), "attribute 'axes' of CenterCropPad");
  const auto shape = context.dims_value(1);
  if (shape && shape->size() != normal.size()) {
    return error(Code::invalid_argument, "operand 'shape' of ", context.op().describe(), " gives ", shape->size(),
                 " extents for ", normal.size(), " axes");
  }
  for (size_t k = 0; k < normal.size(); ++k) {
    if (shape && (*shape)[k].is_static() && (*shape)[k].value() < 0) {
      return error(Code::invalid_argument, "operand 'shape' of ", context.op().describe(), " asks for the extent ",
                   (*shape)[k]);
    }
    input.shape[normal[k]] = shape ? (*shape)[k] : Dim();
  }
  return one_type(input.element, std::move(input.shape));
}

// ---- Bounds: permuted, joined, cut ----

Result<Bounds> transpose_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const auto rank = static_cast<int>(query.box.size());
  const auto perm = query.context.attr<Attribute::Integers>("perm");
  std::vector<int> to(query.box.size());
  for (int d = 0; d < rank; ++d) {
    const int64_t from = perm.empty() ? rank - 1 - d : perm[static_cast<size_t>(d)];
    to[static_cast<size_t>(from < 0 ? from + rank : from)] = d;
  }
  bounds.operands[0] = follow(query, 0, to);
  return bounds;
}

// Each operand's part of the box; empty for the operands beside it.
Result<Bounds> concat_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, query.shape.rank()));
  Dim before = 0;
  for (size_t i = 0; i < bounds.operands.size(); ++i) {
    const Shape* shape = ranked_shape(query.context, i);
    const Dim own = shape ? (*shape)[axis] : Dim();
    if (shape) {
      std::vector<DimBounds> dims;
      for (const BoxRange& range : query.box) dims.push_back(exactly(range));
      const bool told = before.known() && own.known();
      dims[axis] = told ? clamped(shifted(query.box[axis], -before.expr()), own) : whole_dim(own, false);
      bounds.operands[i] = boxed(std::move(dims));
    }
    before = before + own;
  }
  return bounds;
}

// Operands of which nothing is needed join with no positions.
Result<void> concat_sub_box(const SubBoxQuery&, SubBoxOp&) { return {}; }

// The lengths of the results of a Split of an axis of extent `whole`; unknown where they are not told.
std::vector<Dim> part_lengths(const InferContext& context, const Dim& whole) {
  const size_t count = context.op().result_count();
  if (context.has_operand(1)) {
    const auto given = context.dims_value(1);
    return given && given->size() == count ? *given : std::vector<Dim>(count);
  }
  std::vector<Dim> parts;
  for (size_t i = 0; i < count; ++i) {
    parts.push_back(part_of(whole, static_cast<int64_t>(count), static_cast<int64_t>(i)));
  }
  return parts;
}

Result<Bounds> split_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, query.shape.rank()));
  const Shape* input = ranked_shape(query.context, 0);
  if (!input) return bounds;
  const std::vector<Dim> parts = part_lengths(query.context, (*input)[axis]);
  const Dim before = std::accumulate(parts.begin(), parts.begin() + static_cast<int64_t>(query.result), Dim(0));
  bounds.operands[0] = follow(query, 0, each_dim(query.box.size()));
  bounds.operands[0].dims[axis] =
      before.known() ? exactly(shifted(query.box[axis], before.expr())) : whole_dim((*input)[axis], false);
  return bounds;
}

// The crop is all of the one result, the others get nothing.
Result<void> split_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, static_cast<int64_t>(query.box.size())));
  std::vector<int64_t> lengths(query.context.op().result_count(), 0);
  lengths[query.result] = query.box[axis].extent();
  op.attributes.erase("num_outputs");
  op.replaced[1] = ints_tensor(lengths);
  return {};
}

// Position 0 of a slice, as an expression; nothing when it is not told.
std::optional<Expr> slice_start(const Dim& axis, const Dim& start, int64_t step) {
  if (!axis.known() || !start.known()) return std::nullopt;
  if (!start.is_static() && !certainly_at_least(start, 0)) return std::nullopt;
  return clamped_bound(start.expr(), axis.expr(), step > 0 ? 0 : -1);
}

Result<Bounds> slice_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* data = ranked_shape(query.context, 0);
  if (!data) return bounds;
  TENON_TRY(cuts, cuts_of(query.context, data->rank()));
  if (!cuts) return bounds;
  bounds.operands[0] = follow(query, 0, each_dim(query.box.size()));
  for (size_t k = 0; k < cuts->axes.size(); ++k) {
    const size_t axis = cuts->axes[k];
    const auto start = cuts->steps[k] ? slice_start((*data)[axis], cuts->starts[k], *cuts->steps[k]) : std::nullopt;
    DimBounds& dim = bounds.operands[0].dims[axis];
    if (!start) {
      dim = whole_dim((*data)[axis], false);
      continue;
    }
    const Expr step(*cuts->steps[k]);
    const Expr first = *start + query.box[axis].min * step, last = *start + query.box[axis].max * step;
    dim = *cuts->steps[k] > 0 ? exactly({first, last}) : exactly({last, first});
  }
  return bounds;
}

// From the first position of the crop to its last one; or, with a step back, from the last to the first.
Result<void> slice_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  TENON_TRY(cuts, cuts_of(query.context, static_cast<int64_t>(query.box.size())));
  const bool told = cuts && std::ranges::all_of(cuts->steps, [](const auto& step) { return step.has_value(); });
  if (!told) return error(Code::unsupported, "its axes and steps are not known");
  const ElementType index = query.context.type(1).element();
  const int64_t far = index == kI32 ? INT32_MAX : INT64_MAX;
  std::vector<int64_t> starts, ends;
  for (const auto& step : cuts->steps) {
    starts.push_back(*step > 0 ? 0 : -1);
    ends.push_back(*step > 0 ? far : -far);
  }
  for (size_t k = 0; k < cuts->axes.size(); ++k) {
    const size_t axis = cuts->axes[k];
    if (query.bounds.operands[0].dims[axis].whole && query.shape[axis] > 1) TENON_OK(require_whole(query, axis));
  }
  op.replaced[1] = ints_tensor(starts, index);
  op.replaced[2] = ints_tensor(ends, index);
  return {};
}

// ---- Bounds: padded, repeated ----

// One axis of a Pad: `before` positions of padding, then `extent` of the operand from `first` on.
struct PaddedDim {
  int64_t before, first;
  Expr extent;
};

// By dim; nothing for those whose padding or extent is not told.
Result<std::vector<std::optional<PaddedDim>>> padded_dims(const InferContext& context, const Shape& data) {
  std::vector<std::optional<PaddedDim>> out(data.dims().size());
  TENON_TRY(axes, axes_operand(context, 3, data.rank()));
  const auto pads = known_ints(context, 1);
  if (!axes || !pads || pads->size() != 2 * axes->size()) return out;
  for (size_t d = 0; d < out.size(); ++d) {
    if (data[d].known()) out[d] = PaddedDim{0, 0, data[d].expr()};
  }
  for (size_t k = 0; k < axes->size(); ++k) {
    auto& dim = out[(*axes)[k]];
    const int64_t before = (*pads)[k], after = (*pads)[axes->size() + k];
    if (!dim) continue;
    const int64_t first = std::max<int64_t>(-before, 0);
    dim = PaddedDim{std::max<int64_t>(before, 0), first, dim->extent - Expr(first + std::max<int64_t>(-after, 0))};
  }
  return out;
}

// The image of a range under |x|, then under the mirror at `last`: a range each time.
BoxRange mirrored(const BoxRange& range, const Expr& last) {
  const BoxRange low{max(max(range.min, -range.max), Expr(0)), max(-range.min, range.max)};
  const BoxRange flipped{last - low.max, last - low.min};
  return {last - max(-flipped.min, flipped.max), last - max(max(flipped.min, -flipped.max), Expr(0))};
}

// The result extent tells how far behind the operand the padding reaches.
DimBounds padded_reads(const std::string& mode, const PaddedDim& dim, const BoxRange& box, const Dim& out,
                       const Dim& in) {
  const BoxRange range = shifted(box, Expr(-dim.before));
  const Expr last = dim.extent - Expr(1), first(dim.first);
  if (mode == "constant") {
    const DimBounds read = clamped(range, Dim(dim.extent));
    return exactly(shifted({read.min, read.max}, first));
  }
  if (mode == "edge") {
    const auto inside = [&](const Expr& at) { return min(max(at, Expr(0)), last) + first; };
    return exactly({inside(range.min), inside(range.max)});
  }
  if (mode == "wrap") return exactly(shifted(inner_part(range, dim.extent), first));
  // Beyond one mirror image the positions run to and fro.
  const bool once = out.is_static() && last.is_constant() && dim.before <= last.constant() &&
                    out.value() - dim.before - 1 - last.constant() <= last.constant();
  return once ? exactly(shifted(mirrored(range, last), first)) : whole_dim(in, false);
}

Result<Bounds> pad_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* data = ranked_shape(query.context, 0);
  if (!data) return bounds;
  TENON_TRY(padded, padded_dims(query.context, *data));
  const auto mode = query.context.attr<std::string>("mode", "constant");
  for (size_t d = 0; d < padded.size(); ++d) {
    if (padded[d]) {
      bounds.operands[0].dims[d] = padded_reads(mode, *padded[d], query.box[d], query.shape[d], (*data)[d]);
    }
  }
  return bounds;
}

// Which padding gives `box` from the crop [low, high] of an operand of `extent`, all counted from its first position;
// nothing when none does.
struct PadPair {
  int64_t before, after;
};
std::optional<PadPair> pads_of_crop(const std::string& mode, StaticRange box, StaticRange crop, int64_t extent) {
  if (mode == "edge" && box.max < 0) return PadPair{box.max - box.min, 0};
  if (mode == "edge" && box.min >= extent) return PadPair{0, box.max - box.min};
  const bool fits =
      crop.extent() > 0 && crop.min == std::max<int64_t>(box.min, 0) && crop.max == std::min(box.max, extent - 1);
  if (!fits) return std::nullopt;
  return PadPair{crop.min - box.min, box.max - crop.max};
}

Result<void> pad_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  const Shape& data = query.context.type(0).shape();
  TENON_TRY(padded, padded_dims(query.context, data));
  TENON_TRY(axes, axes_operand(query.context, 3, data.rank()));
  if (!axes) return error(Code::unsupported, "its axes are not known");
  const auto mode = query.context.attr<std::string>("mode", "constant");
  std::vector<int64_t> pads(2 * axes->size());
  for (size_t k = 0; k < axes->size(); ++k) {
    const size_t axis = (*axes)[k];
    const auto& dim = padded[axis];
    if (!dim) return error(Code::unsupported, "the padding of dim ", axis, " is not known");
    const StaticRange &box = query.box[axis], &crop = op.operands[0][axis];
    const auto pair = pads_of_crop(mode, {box.min - dim->before, box.max - dim->before},
                                   {crop.min - dim->first, crop.max - dim->first}, dim->extent.constant());
    if (!pair) {
      return error(Code::unsupported, "the part [", box.min, ", ", box.max, "] of dim ", axis,
                   " is no crop with padding in mode '", mode, "'");
    }
    pads[k] = pair->before;
    pads[axes->size() + k] = pair->after;
  }
  op.replaced[1] = ints_tensor(pads);
  return {};
}

Result<Bounds> tile_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* input = ranked_shape(query.context, 0);
  for (size_t d = 0; input && d < query.box.size(); ++d) {
    const Dim& extent = (*input)[d];
    if (extent.known()) bounds.operands[0].dims[d] = exactly(inner_part(query.box[d], extent.expr()));
  }
  return bounds;
}

// Repeated dims stay whole.
Result<void> tile_sub_box(const SubBoxQuery& query, SubBoxOp&) {
  for (size_t d = 0; d < query.box.size(); ++d) {
    if (query.context.type(0).shape()[d].value() != query.shape[d]) TENON_OK(require_whole(query, d));
  }
  return {};
}

// ---- Bounds: blocks, sequences, the middle ----

// Zeros take the place of what is read in one triangle.
Result<Bounds> trilu_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = inexact(follow(query, 0, each_dim(query.box.size())));
  return bounds;
}

// The diagonal k of the whole is another one of a part that begins elsewhere.
Result<void> trilu_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  const size_t rank = query.box.size();
  const int64_t moved = query.box[rank - 2].min - query.box[rank - 1].min;
  if (moved == 0) return {};
  const auto k = query.context.has_operand(1) ? known_ints(query.context, 1) : std::vector<int64_t>{0};
  if (!k || k->size() != 1) return error(Code::unsupported, "its diagonal is not known");
  const int64_t beyond = query.shape[rank - 2] + query.shape[rank - 1];
  op.replaced[1] = Tensor::scalar<int64_t>(std::clamp((*k)[0], -beyond, beyond) + moved);
  return {};
}

// Pixel (h, w) of a channel is pixel (h / b, w / b) of the channel that (h mod b, w mod b) and the channel tell.
Result<Bounds> depth_to_space_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  if (!ranked_shape(query.context, 0) || !query.shape[1].known()) return bounds;
  const Expr block(query.context.attr<int64_t>("blocksize"));
  const Box& out = query.box;
  const BoxRange row = inner_part(out[2], block), column = inner_part(out[3], block);
  const BoxRange pixel{row.min * block + column.min, row.max * block + column.max};
  const Expr channels = query.shape[1].expr(), area = block * block;
  const bool depth_first = query.context.attr<std::string>("mode", "DCR") == "DCR";
  const BoxRange channel = depth_first ? BoxRange{pixel.min * channels + out[1].min, pixel.max * channels + out[1].max}
                                       : BoxRange{out[1].min * area + pixel.min, out[1].max * area + pixel.max};
  bounds.operands[0] = boxed(
      {exactly(out[0]), exactly(channel), exactly(outer_part(out[2], block)), exactly(outer_part(out[3], block))});
  return bounds;
}

// Channel c is block c / C of the operand's channel c mod C.
Result<Bounds> space_to_depth_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* input = ranked_shape(query.context, 0);
  if (!input || !(*input)[1].known()) return bounds;
  const Expr block(query.context.attr<int64_t>("blocksize")), channels = (*input)[1].expr();
  const Box& out = query.box;
  const BoxRange place = outer_part(out[1], channels);
  const auto pixels = [&](const BoxRange& blocks, const BoxRange& inside) {
    return exactly({blocks.min * block + inside.min, blocks.max * block + inside.max});
  };
  bounds.operands[0] = boxed({exactly(out[0]), exactly(inner_part(out[1], channels)),
                              pixels(out[2], outer_part(place, block)), pixels(out[3], inner_part(place, block))});
  return bounds;
}

// Whole blocks: all channels that make them, and rows and columns from a block's first to another's last.
Result<void> depth_to_space_sub_box(const SubBoxQuery& query, SubBoxOp&) {
  const int64_t block = query.context.attr<int64_t>("blocksize");
  if (query.context.attr<std::string>("mode", "DCR") == "DCR") TENON_OK(require_whole(query, 1));
  for (const size_t d : {size_t{2}, size_t{3}}) {
    if (query.box[d].min % block == 0 && (query.box[d].max + 1) % block == 0) continue;
    return error(Code::unsupported, "the part [", query.box[d].min, ", ", query.box[d].max, "] of dim ", d,
                 " cuts through blocks of ", block);
  }
  return {};
}
Result<void> space_to_depth_sub_box(const SubBoxQuery& query, SubBoxOp&) { return require_whole(query, 1); }

Result<Bounds> reverse_sequence_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const auto batch = static_cast<size_t>(query.context.attr<int64_t>("batch_axis", 1)), time = 1 - batch;
  bounds.operands[0] = follow(query, 0, each_dim(query.box.size(), {time}));
  bounds.operands[1] = inexact(follow(query, 1, {static_cast<int>(batch)}));
  if (bounds.operands[0].kind == OperandBounds::Kind::box) bounds.operands[0].dims[time].exact = false;
  return bounds;
}

Result<void> reverse_sequence_sub_box(const SubBoxQuery& query, SubBoxOp&) {
  return require_whole(query, 1 - static_cast<size_t>(query.context.attr<int64_t>("batch_axis", 1)));
}

Result<Bounds> center_crop_pad_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* input = ranked_shape(query.context, 0);
  for (size_t d = 0; input && d < query.box.size(); ++d) {
    const Dim &have = (*input)[d], &want = query.shape[d];
    if (have.same_extent(want)) {
      bounds.operands[0].dims[d] = exactly(query.box[d]);
    } else if (have.is_static() && want.is_static()) {
      const int64_t cut = std::max<int64_t>(have.value() - want.value(), 0) / 2,
                    padded = std::max<int64_t>(want.value() - have.value(), 0) / 2;
      bounds.operands[0].dims[d] = clamped(shifted(query.box[d], Expr(cut - padded)), have);
    }
  }
  return bounds;
}

// A part without padding is the crop itself.
Result<void> center_crop_pad_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  const Dims extents = extents_of(query.box);
  if (extents != extents_of(op.operands[0])) return error(Code::unsupported, "the part holds padding");
  const auto axes = query.context.attr<Attribute::Integers>("axes");
  std::vector<int64_t> asked;
  for (const int64_t axis : axes)
    asked.push_back(extents[static_cast<size_t>(axis < 0 ? axis + query.shape.size() : axis)]);
  op.replaced[1] = ints_tensor(axes.empty() ? extents : asked, query.context.type(1).element());
  return {};
}

// ---- Definitions ----

constexpr Trait kMoves = Trait::pure | Trait::movement | Trait::layout_aware;

// Where input and output both are tensors of any one type.
OpDef mover(std::string_view name, std::string_view summary, std::string_view input) {
  return OpDef(name)
      .summary(std::string(summary))
      .operand(std::string(input), "T")
      .result("output", "T")
      .types("T", kAnyTensor)
      .traits(kMoves);
}

const OpRegistration kRegistered({
    mover(Transpose::kName, "Axis d of the result is axis perm[d] of `data`", "data")
        .optional_attribute("perm", AttributeKind::integers)
        .infer(infer_transpose)
        .bounds({transpose_bounds, runs_as_it_is()}),
    OpDef(Concat::kName)
        .summary("The operands one behind the other along `axis`")
        .variadic_operands("inputs", "T", 1)
        .result("concat_result", "T")
        .types("T", kAnyTensor)
        .required_attribute("axis", AttributeKind::integer)
        .traits(kMoves)
        .infer(infer_concat)
        .bounds({concat_bounds, concat_sub_box})
        .infer_dims(dims_of_concat),
    OpDef(Split::kName)
        .summary("`input` cut along `axis` into parts of the lengths `split`, or into equal ones")
        .operand("input", "T")
        .optional_operand("split", "i64")
        .variadic_results("outputs", "T", 1)
        .types("T", kAnyTensor)
        .attribute("axis", int64_t{0})
        .optional_attribute("num_outputs", AttributeKind::integer)
        .traits(kMoves)
        .infer(infer_split)
        .bounds({split_bounds, split_sub_box}),
    mover(Slice::kName, "Every steps[k]-th element of axis axes[k] from starts[k] up to ends[k]", "data")
        .types("Tind", kIndexTypes)
        .operand("starts", "Tind")
        .operand("ends", "Tind")
        .optional_operand("axes", "Tind")
        .optional_operand("steps", "Tind")
        .infer(infer_slice)
        .bounds({slice_bounds, slice_sub_box})
        .infer_dims(dims_of_slice),
    mover(Pad::kName, "`data` with elements put around it: a constant, mirrored, the edge, or repeated", "data")
        .operand("pads", "i64")
        .optional_operand("constant_value", "T")
        .types("Tind", kIndexTypes)
        .optional_operand("axes", "Tind")
        .attribute("mode", "constant")
        .one_of({"constant", "reflect", "edge", "wrap"})
        .infer(infer_pad)
        .bounds({pad_bounds, pad_sub_box}),
    mover(Tile::kName, "`input` repeated repeats[d] times along each axis d", "input")
        .operand("repeats", "i64")
        .infer(infer_tile)
        .bounds({tile_bounds, tile_sub_box})
        .infer_dims(dims_of_tile),
    mover(Trilu::kName, "The upper or lower triangle of matrices, zeros elsewhere", "input")
        .optional_operand("k", "i64")
        .attribute("upper", int64_t{1})
        .infer(infer_trilu)
        .bounds({trilu_bounds, trilu_sub_box}),
    mover(DepthToSpace::kName, "Channels moved into blocks of blocksize x blocksize pixels", "input")
        .required_attribute("blocksize", AttributeKind::integer)
        .attribute("mode", "DCR")
        .one_of({"DCR", "CRD"})
        .infer(infer_blocks<true>)
        .bounds({depth_to_space_bounds, depth_to_space_sub_box}),
    mover(SpaceToDepth::kName, "Blocks of blocksize x blocksize pixels moved into channels", "input")
        .required_attribute("blocksize", AttributeKind::integer)
        .infer(infer_blocks<false>)
        .bounds({space_to_depth_bounds, space_to_depth_sub_box}),
    mover(ReverseSequence::kName, "The first sequence_lens[b] elements in time of each batch entry b reversed", "input")
        .operand("sequence_lens", "i64")
        .attribute("batch_axis", int64_t{1})
        .attribute("time_axis", int64_t{0})
        .infer(infer_reverse_sequence)
        .bounds({reverse_sequence_bounds, reverse_sequence_sub_box}),
    mover(CenterCropPad::kName, "Cut or padded around the middle to the extents `shape`", "input_data")
        .types("Tind", kIndexTypes)
        .operand("shape", "Tind")
        .optional_attribute("axes", AttributeKind::integers)
        .infer(infer_center_crop_pad)
        .bounds({center_crop_pad_bounds, center_crop_pad_sub_box}),
});

}  // namespace
}  // namespace tenon
