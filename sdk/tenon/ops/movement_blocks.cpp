// Triangles, blocks of pixels, reversed sequences, cropping and padding around the centre.
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
                 ", which is outside [1, ", INT32_MAX, "]");
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

// ---- Bounds ----

// In one triangle, zeros replace what is read.
Result<Bounds> trilu_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = inexact(follow(query, 0, each_dim(query.box.size())));
  return bounds;
}

// The diagonal k has another number in a part that begins elsewhere.
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

// Pixel (h, w) of a channel is pixel (h / b, w / b) of the channel given by (h mod b, w mod b) and the channel.
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

// Whole blocks only: all channels that form them, and rows and columns from a block's first to another's last.
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

const OpRegistration kMovementBlocksRegistered({
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
