#include <tenon/ops/movement.hpp>

#include <algorithm>
#include <numeric>

#include <tenon/reference/elements.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/loops.hpp>

namespace tenon {
namespace {

// The axes in operand `i` or a list, converted to non-negative; all if there are none.
std::vector<size_t> axes_or_all(const std::vector<int64_t>& given, bool absent, int64_t rank) {
  std::vector<size_t> axes;
  for (const int64_t axis : given) axes.push_back(static_cast<size_t>(axis < 0 ? axis + rank : axis));
  if (!absent) return axes;
  axes.resize(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), size_t{0});
  return axes;
}
std::vector<size_t> axes_operand(const EvalContext& context, size_t i, int64_t rank) {
  if (!context.has_operand(i)) return axes_or_all({}, true, rank);
  return axes_or_all(context.tensor(i).to_ints(), false, rank);
}

size_t axis_of(const EvalContext& context, Name name, int64_t fallback, int64_t rank) {
  const int64_t axis = context.attr<int64_t>(name, fallback);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

// ---- Transpose and blocks ----

Result<void> transposed(EvalContext& context, const Dims& seen_as, std::span<const int64_t> perm) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  copy_transposed(context.parallel(), in, seen_as, perm, out.tensor());
  return out.close();
}

Result<void> transpose(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  auto perm = context.attr<Attribute::Integers>("perm");
  if (perm.empty()) {
    for (int64_t axis = data.rank(); axis-- > 0;) perm.push_back(axis);
  }
  return transposed(context, data.dims(), perm);
}

Result<void> depth_to_space(EvalContext& context) {
  const Dims& dims = context.tensor(0).dims();
  const int64_t block = context.attr<int64_t>("blocksize");
  const int64_t channels = dims[1] / (block * block);
  if (context.attr<std::string>("mode", "DCR") == "DCR") {
    return transposed(context, {dims[0], block, block, channels, dims[2], dims[3]},
                      std::vector<int64_t>{0, 3, 4, 1, 5, 2});
  }
  return transposed(context, {dims[0], channels, block, block, dims[2], dims[3]},
                    std::vector<int64_t>{0, 1, 4, 2, 5, 3});
}

Result<void> space_to_depth(EvalContext& context) {
  const Dims& dims = context.tensor(0).dims();
  const int64_t block = context.attr<int64_t>("blocksize");
  return transposed(context, {dims[0], dims[1], dims[2] / block, block, dims[3] / block, block},
                    std::vector<int64_t>{0, 3, 5, 1, 2, 4});
}

// ---- Joined and cut ----

Result<void> concat(EvalContext& context) {
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const size_t axis = axis_of(context, "axis", 0, static_cast<int64_t>(out.dims().size()));
  const Dims to_strides = row_major_strides(out.dims());
  int64_t position = 0;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    TENON_TRY(part, spread(context.tensor(i)));
    copy_elements(context.parallel(), part, {0, row_major_strides(part.dims())}, out.tensor(),
                  {position * to_strides[axis], to_strides}, part.dims());
    position += part.dim(axis);
  }
  return out.close();
}

Result<void> split(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  const size_t axis = axis_of(context, "axis", 0, in.rank());
  const Dims strides = row_major_strides(in.dims());
  int64_t position = 0;
  for (size_t i = 0; i < context.result_count(); ++i) {
    TENON_TRY(dims, context.result_dims(i));
    if (context.wants(i)) {
      TENON_TRY(out, SpreadOutput::open(context, i));
      copy_elements(context.parallel(), in, {position * strides[axis], strides}, out.tensor(),
                    {0, row_major_strides(dims)}, dims);
      TENON_OK(out.close());
    }
    position += dims[axis];
  }
  return {};
}

Result<void> slice(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const std::vector<int64_t> starts = context.tensor(1).to_ints();
  const std::vector<int64_t> steps =
      context.has_operand(4) ? context.tensor(4).to_ints() : std::vector<int64_t>(starts.size(), 1);
  std::vector<size_t> axes = axes_operand(context, 3, in.rank());
  axes.resize(starts.size());
  ElementBlock from{0, row_major_strides(in.dims())};
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t extent = in.dim(axes[k]);
    if (extent == 0) continue;
    const int64_t position = starts[k] < 0 ? starts[k] + extent : starts[k];
    from.offset += std::clamp<int64_t>(position, 0, extent - 1) * from.strides[axes[k]];
    from.strides[axes[k]] *= std::clamp(steps[k], -extent, extent);
  }
  copy_elements(context.parallel(), in, from, out.tensor(), {0, row_major_strides(out.dims())}, out.dims());
  return out.close();
}

// ---- Repeated and padded ----

Result<void> tile(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const std::vector<int64_t> repeats = context.tensor(1).to_ints();
  const Dims in_strides = row_major_strides(in.dims()), out_strides = row_major_strides(out.dims());
  // Each axis becomes two: the repetition, and the position in the input.
  ElementBlock from, to;
  Dims dims;
  for (size_t d = 0; d < repeats.size(); ++d) {
    dims.insert(dims.end(), {repeats[d], in.dim(d)});
    from.strides.insert(from.strides.end(), {0, in_strides[d]});
    to.strides.insert(to.strides.end(), {in.dim(d) * out_strides[d], out_strides[d]});
  }
  copy_elements(context.parallel(), in, from, out.tensor(), to, dims);
  return out.close();
}

// The index in an axis of `extent` of the element at `position`, which may be outside.
int64_t reflected(int64_t position, int64_t extent) {
  const int64_t period = std::max<int64_t>(1, 2 * (extent - 1));
  const int64_t within = ((position % period) + period) % period;
  return std::min(within, period - within) % extent;
}
int64_t wrapped(int64_t position, int64_t extent) { return ((position % extent) + extent) % extent; }

// One axis of a Pad: the part of the operand that negative pads leave, and the padding around it.
struct PaddedAxis {
  int64_t first = 0, extent = 0, before = 0;

  // The index in the operand of element `i` of the result.
  int64_t source(const std::string& mode, int64_t i) const {
    const int64_t position = i - before;
    if (mode == "edge") return first + std::clamp<int64_t>(position, 0, extent - 1);
    return first + (mode == "reflect" ? reflected(position, extent) : wrapped(position, extent));
  }
};

// Copies the remaining part of the operand to its position.
void copy_inside(EvalContext& context, const Tensor& in, const std::vector<PaddedAxis>& axes, Tensor& out) {
  ElementBlock from{0, row_major_strides(in.dims())}, to{0, row_major_strides(out.dims())};
  Dims dims;
  for (size_t d = 0; d < axes.size(); ++d) {
    from.offset += axes[d].first * from.strides[d];
    to.offset += axes[d].before * to.strides[d];
    dims.push_back(axes[d].extent);
  }
  copy_elements(context.parallel(), in, from, out, to, dims);
}

Result<void> pad_from_inside(EvalContext& context, const Tensor& in, const std::vector<PaddedAxis>& axes,
                             const std::string& mode, Tensor& out) {
  const Dims strides = row_major_strides(in.dims());
  std::vector<Dims> offsets(axes.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].extent <= 0 && out.size() > 0) {
      return error(Code::invalid_argument, "nothing is left of axis ", d, " of ", in, " to pad from in mode ", mode);
    }
    for (int64_t i = 0; out.size() > 0 && i < out.dim(d); ++i)
      offsets[d].push_back(axes[d].source(mode, i) * strides[d]);
  }
  copy_gathered(context.parallel(), in, offsets, out);
  return {};
}

Result<void> pad(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const std::vector<int64_t> pads = context.tensor(1).to_ints();
  const std::vector<size_t> named = axes_operand(context, 3, in.rank());
  std::vector<PaddedAxis> axes;
  for (const int64_t extent : in.dims()) axes.push_back({0, extent, 0});
  for (size_t k = 0; k < named.size(); ++k) {
    const int64_t before = pads[k], after = pads[named.size() + k];
    PaddedAxis& axis = axes[named[k]];
    axis.before = std::max<int64_t>(before, 0);
    axis.first = std::max<int64_t>(-before, 0);
    axis.extent -= axis.first + std::max<int64_t>(-after, 0);
  }
  const auto mode = context.attr<std::string>("mode", "constant");
  if (mode != "constant") {
    TENON_OK(pad_from_inside(context, in, axes, mode, out.tensor()));
    return out.close();
  }
  if (context.has_operand(2)) {
    TENON_TRY(value, spread(context.tensor(2)));
    if (value.size() != 1) {
      return error(Code::invalid_argument, "operand 'constant_value' of Pad must be one element, it is ", value);
    }
    fill_elements(context.parallel(), value, 0, out.tensor());
  } else {
    fill_zero(out.tensor());
  }
  const bool something = std::all_of(axes.begin(), axes.end(), [](const PaddedAxis& axis) { return axis.extent > 0; });
  if (something) copy_inside(context, in, axes, out.tensor());
  return out.close();
}

Result<void> center_crop_pad(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  std::vector<PaddedAxis> axes;
  for (size_t d = 0; d < in.dims().size(); ++d) {
    const int64_t have = in.dim(d), want = out.dims()[d];
    axes.push_back(
        {std::max<int64_t>(have - want, 0) / 2, std::min(have, want), std::max<int64_t>(want - have, 0) / 2});
  }
  fill_zero(out.tensor());
  copy_inside(context, in, axes, out.tensor());
  return out.close();
}

// ---- Triangles, reversed sequences ----

Result<void> trilu(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  if (context.has_operand(1) && context.tensor(1).size() != 1) {
    return error(Code::invalid_argument, "operand 'k' of Trilu must be one number, it is ", context.tensor(1));
  }
  const bool upper = context.attr<int64_t>("upper", 1) != 0;
  const int64_t rows = in.dims()[in.dims().size() - 2], columns = in.dims().back();
  // Clamped beyond the corners, where nothing changes, so that nothing overflows.
  const int64_t k = context.has_operand(1) ? std::clamp(context.tensor(1).int_at(0), -rows - 1, columns + 1) : 0;
  fill_zero(out.tensor());
  context.parallel().run(columns == 0 ? 0 : in.size() / columns, grain_of(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t diagonal = row % rows + k;
      const int64_t from = upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0;
      const int64_t to = upper ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns);
      copy_run(in, row * columns + from, out.tensor(), row * columns + from, to - from);
    }
  });
  return out.close();
}

Result<void> reverse_sequence(EvalContext& context) {
  TENON_TRY(in, spread(context.tensor(0)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const auto batch = static_cast<size_t>(context.attr<int64_t>("batch_axis", 1)), time = 1 - batch;
  const Dims strides = row_major_strides(in.dims());
  const std::vector<int64_t> lengths = context.tensor(1).to_ints();
  for (int64_t b = 0; b < in.dim(batch); ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    if (length < 0 || length > in.dim(time)) {
      return error(Code::invalid_argument, "sequence_lens[", b, "] is ", length, ", outside [0, ", in.dim(time), "]");
    }
    Dims dims = in.dims();
    dims[batch] = 1;
    dims[time] = length;
    const int64_t first = b * strides[batch];
    Dims backwards = strides;
    backwards[time] = -strides[time];
    copy_elements(context.parallel(), in, {first + (length - 1) * strides[time], backwards}, out.tensor(),
                  {first, strides}, dims);
    dims[time] = in.dim(time) - length;
    const int64_t rest = first + length * strides[time];
    copy_elements(context.parallel(), in, {rest, strides}, out.tensor(), {rest, strides}, dims);
  }
  return out.close();
}

const EvaluatorRegistration kMovementRegistered({
    {Transpose::kName, transpose},
    {Concat::kName, concat},
    {Split::kName, split},
    {Slice::kName, slice},
    {Pad::kName, pad},
    {Tile::kName, tile},
    {Trilu::kName, trilu},
    {DepthToSpace::kName, depth_to_space},
    {SpaceToDepth::kName, space_to_depth},
    {ReverseSequence::kName, reverse_sequence},
    {CenterCropPad::kName, center_crop_pad},
});

}  // namespace
}  // namespace tenon
