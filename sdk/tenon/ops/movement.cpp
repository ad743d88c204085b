#include <tenon/ops/movement.hpp>

#include <algorithm>
#include <numeric>

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
        .infer(infer_transpose),
    OpDef(Concat::kName)
        .summary("The operands one behind the other along `axis`")
        .variadic_operands("inputs", "T", 1)
        .result("concat_result", "T")
        .types("T", kAnyTensor)
        .required_attribute("axis", AttributeKind::integer)
        .traits(kMoves)
        .infer(infer_concat)
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
        .infer(infer_split),
    mover(Slice::kName, "Every steps[k]-th element of axis axes[k] from starts[k] up to ends[k]", "data")
        .types("Tind", kIndexTypes)
        .operand("starts", "Tind")
        .operand("ends", "Tind")
        .optional_operand("axes", "Tind")
        .optional_operand("steps", "Tind")
        .infer(infer_slice)
        .infer_dims(dims_of_slice),
    mover(Pad::kName, "`data` with elements put around it: a constant, mirrored, the edge, or repeated", "data")
        .operand("pads", "i64")
        .optional_operand("constant_value", "T")
        .types("Tind", kIndexTypes)
        .optional_operand("axes", "Tind")
        .attribute("mode", "constant")
        .one_of({"constant", "reflect", "edge", "wrap"})
        .infer(infer_pad),
    mover(Tile::kName, "`input` repeated repeats[d] times along each axis d", "input")
        .operand("repeats", "i64")
        .infer(infer_tile)
        .infer_dims(dims_of_tile),
    mover(Trilu::kName, "The upper or lower triangle of matrices, zeros elsewhere", "input")
        .optional_operand("k", "i64")
        .attribute("upper", int64_t{1})
        .infer(infer_trilu),
    mover(DepthToSpace::kName, "Channels moved into blocks of blocksize x blocksize pixels", "input")
        .required_attribute("blocksize", AttributeKind::integer)
        .attribute("mode", "DCR")
        .one_of({"DCR", "CRD"})
        .infer(infer_blocks<true>),
    mover(SpaceToDepth::kName, "Blocks of blocksize x blocksize pixels moved into channels", "input")
        .required_attribute("blocksize", AttributeKind::integer)
        .infer(infer_blocks<false>),
    mover(ReverseSequence::kName, "The first sequence_lens[b] elements in time of each batch entry b reversed", "input")
        .operand("sequence_lens", "i64")
        .attribute("batch_axis", int64_t{1})
        .attribute("time_axis", int64_t{0})
        .infer(infer_reverse_sequence),
    mover(CenterCropPad::kName, "Cut or padded around the middle to the extents `shape`", "input_data")
        .types("Tind", kIndexTypes)
        .operand("shape", "Tind")
        .optional_attribute("axes", AttributeKind::integers)
        .infer(infer_center_crop_pad),
});

}  // namespace
}  // namespace tenon
