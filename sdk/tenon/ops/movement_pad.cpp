// Padding and repetition.
#include <algorithm>
#include <numeric>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>
#include <tenon/ops/movement_internal.hpp>

namespace tenon {
namespace {

using detail::kMoves;
using detail::mover;

// ---- Shapes ----

// The axes in operand or attribute `axes`; all when absent; nullopt when they are not known.
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

// ---- Bounds ----

// One axis of a Pad: `before` positions of padding, then `extent` of the operand from `first` on.
struct PaddedDim {
  int64_t before, first;
  Expr extent;
};

// Per dim; nothing where padding or extent are not known.
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

// The image of a range under |x|, then under reflection at `last`: a range each time.
BoxRange mirrored(const BoxRange& range, const Expr& last) {
  const BoxRange low{max(max(range.min, -range.max), Expr(0)), max(-range.min, range.max)};
  const BoxRange flipped{last - low.max, last - low.min};
  return {last - max(-flipped.min, flipped.max), last - max(max(flipped.min, -flipped.max), Expr(0))};
}

// The result extent determines how far the padding extends after the operand.
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
  // Beyond one reflection, the positions alternate in direction.
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

// The padding that gives `box` from the crop [low, high] of an operand of `extent`, all counted from its first
// position; nothing if there is none.
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

// Repeated dims must stay whole.
Result<void> tile_sub_box(const SubBoxQuery& query, SubBoxOp&) {
  for (size_t d = 0; d < query.box.size(); ++d) {
    if (query.context.type(0).shape()[d].value() != query.shape[d]) TENON_OK(require_whole(query, d));
  }
  return {};
}

// ---- Definitions ----

const OpRegistration kMovementPadRegistered({
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
});

}  // namespace
}  // namespace tenon
