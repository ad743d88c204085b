#include <tenon/ops/resize.hpp>

#include <algorithm>
#include <cmath>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>
#include <tenon/ops/resize_taps.hpp>
#include <tenon/ops/window.hpp>

namespace tenon {
namespace {

constexpr double kMostExtent = 1e15;     // of the result of a Resize
constexpr double kMostRegion = 1 << 20;  // of a region of interest, in extents of the image

// The elements of a known operand; nullopt if it is absent, empty or not known.
std::optional<std::vector<double>> known_numbers(const InferContext& context, size_t operand) {
  const Tensor* tensor = given(context, operand) ? context.constant(operand) : nullptr;
  if (!tensor || tensor->size() == 0) return {};
  std::vector<double> out;
  for (int64_t i = 0; i < tensor->size(); ++i) out.push_back(tensor->double_at(i));
  return out;
}

Result<std::vector<size_t>> resized_axes(const Op& op, int64_t rank) {
  auto axes = op.attr<Attribute::Integers>("axes");
  if (axes.empty()) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  TENON_TRY(normalized, normalize_axes(axes, rank), "axes of ", op.describe());
  return normalized;
}

// What is known about the extents if not all of them are.
Result<Shape> partial_resize(const InferContext& context, const Shape& x) {
  TENON_TRY(axes, resized_axes(context.op(), x.rank()));
  Shape y = x;
  for (const size_t axis : axes) y[axis] = Dim();
  const bool crops = context.attr<std::string>("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  if (const auto scales = known_numbers(context, 2); scales && scales->size() == axes.size() && !crops) {
    for (size_t i = 0; i < axes.size(); ++i) {
      const double scale = (*scales)[i];
      if (scale == std::floor(scale) && scale >= 1 && scale < 1e9) {
        y[axes[i]] = x[axes[i]] * Dim(static_cast<int64_t>(scale));
      } else if (x[axes[i]].is_static()) {
        const double extent = std::floor(static_cast<double>(x[axes[i]].value()) * scale);
        if (extent >= 0 && extent < kMostExtent) y[axes[i]] = Dim(static_cast<int64_t>(extent));
      }
    }
  }
  const bool stretch = context.attr<std::string>("keep_aspect_ratio_policy", "stretch") == "stretch";
  if (given(context, 3) && stretch) {
    if (const auto sizes = context.dims_value(3); sizes && sizes->size() == axes.size()) {
      for (size_t i = 0; i < axes.size(); ++i) y[axes[i]] = (*sizes)[i];
    }
  }
  return y;
}

InferredTypes infer_resize(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  if (!given(context, 2) && !given(context, 3)) {
    return error(Code::invalid_argument, context.op().describe(), " needs scales or sizes");
  }
  if (!x.shape.ranked()) return one_type(x.element, Shape());
  const auto scales = known_numbers(context, 2), roi = known_numbers(context, 1);
  const auto sizes = given(context, 3) ? known_ints(context, 3) : std::nullopt;
  const auto in = x.shape.static_dims();
  const bool crops = context.attr<std::string>("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  if (!in || (!scales && (!sizes || sizes->empty())) || (crops && scales && !roi)) {
    TENON_TRY(partial, partial_resize(context, x.shape));
    return one_type(x.element, std::move(partial));
  }
  TENON_TRY(plan, ResizePlan::of(context.op(), *in, scales, sizes, roi));
  return one_type(x.element, Shape(plan.out));
}

InferredTypes infer_grid_sample(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 3));
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(grid, context.tensor(1));
  if (!x.shape.ranked() && !grid.shape.ranked()) return one_type(x.element, Shape());
  const int64_t rank = x.shape.ranked() ? x.shape.rank() : grid.shape.rank();
  const Shape image = x.shape.ranked() ? x.shape : unknown_shape(rank),
              points = grid.shape.ranked() ? grid.shape : unknown_shape(rank);
  if (points.rank() != rank || certainly_differ(points.dims().back(), Dim(rank - 2)) ||
      certainly_differ(image[0], points[0])) {
    return error(Code::invalid_argument, context.op().describe(), ": grid ", points, " does not fit X ", image,
                 "; it must be [N, ...extents, ", rank - 2, "]");
  }
  std::vector<Dim> dims{image[0], image[1]};
  dims.insert(dims.end(), points.dims().begin() + 1, points.dims().end() - 1);
  return one_type(x.element, Shape(std::move(dims)));
}

InferredTypes infer_affine_grid(const InferContext& context) {
  TENON_OK(require_rank(context, 0, 3));
  TENON_TRY(theta, context.tensor(0));
  const auto size = context.dims_value(1);
  if (!size) return one_type(theta.element, Shape());
  if (size->size() != 4 && size->size() != 5) {
    return error(Code::invalid_argument, "size of ", context.op().describe(), " has ", size->size(),
                 " elements, it needs 4 or 5");
  }
  const auto k = static_cast<int64_t>(size->size()) - 2;
  if (theta.shape.ranked() &&
      (certainly_differ(theta.shape[1], Dim(k)) || certainly_differ(theta.shape[2], Dim(k + 1)) ||
       certainly_differ(theta.shape[0], (*size)[0]))) {
    return error(Code::invalid_argument, "theta of ", context.op().describe(), " is ", theta.shape, ", it must be [",
                 (*size)[0], ",", k, ",", k + 1, "]");
  }
  std::vector<Dim> dims{(*size)[0]};
  dims.insert(dims.end(), size->begin() + 2, size->end());
  dims.emplace_back(k);
  return one_type(theta.element, Shape(std::move(dims)));
}

InferredTypes infer_col2im(const InferContext& context) {
  TENON_OK(require_rank(context, 0, 3));
  TENON_TRY(input, context.tensor(0));
  const auto image = context.dims_value(1), block = context.dims_value(2);
  if (!image) return one_type(input.element, Shape());
  const size_t rank = image->size();
  if (block && block->size() != rank) {
    return error(Code::invalid_argument, context.op().describe(), ": image_shape has ", rank, " elements, block_shape ",
                 block->size());
  }
  const Shape columns = input.shape.ranked() ? input.shape : unknown_shape(3);
  const Dim block_size = block ? product_of(*block) : Dim();
  if (columns[1].is_static() && block_size.is_static() &&
      (block_size.value() < 1 || columns[1].value() % block_size.value() != 0)) {
    return error(Code::invalid_argument, context.op().describe(), ": ", columns[1],
                 " rows are no whole number of blocks of ", block_size);
  }
  if (block) {
    TENON_TRY(window, Window::of(context.op(), rank, *block));
    Dim blocks(1);
    for (size_t axis = 0; axis < rank; ++axis) {
      TENON_TRY(count, window.output_extent(axis, (*image)[axis]), context.op().describe());
      blocks = blocks * count;
    }
    if (certainly_differ(blocks, columns[2])) {
      return error(Code::invalid_argument, context.op().describe(), ": an image of ", Shape(*image), " has ", blocks,
                   " blocks, input has ", columns[2]);
    }
  }
  std::vector<Dim> dims{columns[0], floordiv(columns[1], block_size)};
  dims.insert(dims.end(), image->begin(), image->end());
  return one_type(input.element, Shape(std::move(dims)));
}

// ---- Bounds ----

// One axis of a Resize: its scale, as far as it is known, and how it is mapped.
struct ScaledAxis {
  bool resized = true;
  std::optional<double> scale;
  double start = 0, end = 1;
};

// Per axis. With static extents, as in the evaluator; otherwise if the scale is stated or follows from the extents.
Result<std::vector<ScaledAxis>> scaled_axes(const BoundsQuery& query, const Shape& x) {
  const InferContext& context = query.context;
  std::vector<ScaledAxis> out(x.dims().size());
  const auto scales = known_numbers(context, 2), roi = known_numbers(context, 1);
  const auto sizes = given(context, 3) ? known_ints(context, 3) : std::nullopt;
  const bool crops = context.attr<std::string>("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  const auto in = x.static_dims();
  if (in && (scales || (sizes && !sizes->empty())) && (!crops || roi)) {
    TENON_TRY(plan, ResizePlan::of(context.op(), *in, scales, sizes, roi));
    for (size_t d = 0; d < out.size(); ++d) out[d] = {plan.resized[d], plan.scales[d], plan.start[d], plan.end[d]};
    return out;
  }
  TENON_TRY(axes, resized_axes(context.op(), x.rank()));
  for (ScaledAxis& axis : out) axis.resized = false;
  const bool stretch = context.attr<std::string>("keep_aspect_ratio_policy", "stretch") == "stretch";
  for (size_t i = 0; i < axes.size(); ++i) {
    ScaledAxis& axis = out[axes[i]];
    const Dim &from = x[axes[i]], &to = query.shape[axes[i]];
    axis.resized = true;
    if (crops) continue;
    if (scales && scales->size() == axes.size()) {
      axis.scale = (*scales)[i];
    } else if (!given(context, 2) && stretch && from.same_extent(to)) {
      axis.scale = 1;
    } else if (!given(context, 2) && stretch && from.is_static() && to.is_static() && from.value() > 0) {
      axis.scale = static_cast<double>(to.value()) / static_cast<double>(from.value());
    }
  }
  return out;
}

// Whether every output of the axis is the input at its position.
bool is_kept(const Op& op, const ScaledAxis& axis, const Dim& in, const Dim& out) {
  if (!axis.resized) return true;
  return axis.scale == 1 && in.same_extent(out) && ResizeAxis(op, 1, 1, 1).keeps_unscaled();
}

// A bound of what outputs [begin, end] read: their coordinates, widened by the reach of a tap and clamped to the axis.
DimBounds reach_of(const ResizeAxis& axis, int64_t in, int64_t begin, int64_t end) {
  const auto [low, high] = std::minmax({axis.coordinate(begin), axis.coordinate(end)});
  const auto last = static_cast<double>(in - 1), reach = static_cast<double>(axis.reach());
  const auto index = [&](double at) { return Expr(static_cast<int64_t>(std::clamp(at, 0.0, last))); };
  return at_most({index(std::floor(low - reach)), index(std::ceil(high + reach))});
}

// The least and the greatest index that outputs [begin, end] read. Coordinates are monotonic, so only those near an end
// are evaluated. If many outputs share their taps, or have many, the bound of reach_of() is used.
DimBounds taps_of(const ResizeAxis& axis, int64_t in, int64_t begin, int64_t end) {
  constexpr int64_t kMostTaps = 1 << 20;
  int64_t looks = kMostTaps / (2 * axis.reach() + 1);
  const bool rises = axis.coordinate(end) >= axis.coordinate(begin);
  int64_t least = INT64_MAX, greatest = -1;
  const auto look = [&](int64_t i) {
    const ResizeTaps taps = axis.taps(i);
    for (const ResizeTap& tap : taps.taps) {
      if (taps.outside) continue;
      least = std::min(least, tap.index);
      greatest = std::max(greatest, tap.index);
    }
  };
  const double reach = static_cast<double>(axis.reach());
  int64_t from_begin = begin, from_end = end;
  for (; from_begin <= end; ++from_begin) {
    if (--looks < 0) return reach_of(axis, in, begin, end);
    look(from_begin);
    const double next = axis.coordinate(from_begin + 1);
    if (rises ? next - reach > static_cast<double>(least) : next + reach < static_cast<double>(greatest)) break;
  }
  for (; from_end > from_begin; --from_end) {
    if (--looks < 0) return reach_of(axis, in, begin, end);
    look(from_end);
    const double next = axis.coordinate(from_end - 1);
    if (rises ? next + reach < static_cast<double>(greatest) : next - reach > static_cast<double>(least)) break;
  }
  return least > greatest ? exactly({Expr(0), Expr(-1)}) : exactly({Expr(least), Expr(greatest)});
}

// 1 / scale as a ratio: exact if small numbers give it, else rounded to 2^-20, which is off by less than one position
// for extents up to 2^20.
struct Ratio {
  int64_t numerator, denominator;
};
std::optional<Ratio> inverse_of(double scale, bool exact_only) {
  for (int64_t d = 1; d <= 64; ++d) {
    const double n = scale * static_cast<double>(d);
    if (n == std::floor(n) && n >= 1 && n < 1e6) return Ratio{d, static_cast<int64_t>(n)};
  }
  constexpr int64_t kOne = int64_t{1} << 20;
  if (exact_only || scale < 1e-4) return std::nullopt;
  return Ratio{static_cast<int64_t>(std::floor(static_cast<double>(kOne) / scale)), kOne};
}

// For symbolic ends: a linear bound of the coordinates, widened by the reach of a tap and by rounding.
DimBounds line_reads(const ResizeAxis& axis, double scale, const BoxRange& out, const Dim& in, bool small) {
  const auto ratio = inverse_of(scale, !small);
  if (!ratio || !in.known()) return whole_dim(in, false);
  const double offset = axis.coordinate(0);
  const Expr margin(axis.reach() + 3);
  const auto at = [&](const Expr& i) {
    return floordiv(i * Expr(ratio->numerator), Expr(ratio->denominator)) +
           Expr(static_cast<int64_t>(std::floor(offset)));
  };
  // Beyond the ends, the border's element is read.
  const Expr last = in.expr() - Expr(1);
  const auto inside = [&](const Expr& index) { return min(max(index, Expr(0)), last); };
  return at_most({inside(at(out.min) - margin), inside(at(out.max) + margin)});
}

DimBounds resize_reads(const Op& op, const ScaledAxis& axis, const BoxRange& box, const Dim& in, const Dim& out) {
  if (is_kept(op, axis, in, out)) return exactly(box);
  const bool is_empty = in.is_static() && in.value() == 0;  // no output has taps
  if (!axis.scale || !(*axis.scale > 0) || is_empty) return whole_dim(in, false);
  const bool extents = in.is_static() && out.is_static();
  const ResizeAxis resized(op, extents ? in.value() : 2, extents ? out.value() : 2, *axis.scale, axis.start, axis.end);
  if (extents && box.min.is_constant() && box.max.is_constant()) {
    return taps_of(resized, in.value(), box.min.constant(), box.max.constant());
  }
  if (!resized.by_scale_alone()) return whole_dim(in, false);
  return line_reads(resized, *axis.scale, box, in, extents && out.value() < 1 << 20);
}

Result<Bounds> resize_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* x = ranked_shape(query.context, 0);
  if (!x) return bounds;
  TENON_TRY(axes, scaled_axes(query, *x));
  for (size_t d = 0; d < axes.size(); ++d) {
    bounds.operands[0].dims[d] = resize_reads(query.context.op(), axes[d], query.box[d], (*x)[d], query.shape[d]);
  }
  return bounds;
}

// Coordinates depend on the whole axis; only an axis that is not resized may be cropped.
Result<void> resize_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  const Shape &x = query.context.type(0).shape(), out(query.shape);
  const Box box = to_box(query.box);
  TENON_TRY(axes, scaled_axes({query.context, query.result, out, box}, x));
  for (size_t d = 0; d < axes.size(); ++d) {
    if (is_kept(query.context.op(), axes[d], x[d], out[d])) continue;
    TENON_OK(require_whole(query, d));
    op.operands[0][d] = {0, x[d].value() - 1};
  }
  if (!given(query.context, 3) || known_numbers(query.context, 2)) return {};
  if (query.context.attr<std::string>("keep_aspect_ratio_policy", "stretch") != "stretch") {
    return error(Code::unsupported, "its scales follow from all extents together");
  }
  TENON_TRY(named, resized_axes(query.context.op(), x.rank()));
  std::vector<int64_t> sizes;
  for (const size_t axis : named) sizes.push_back(query.box[axis].extent());
  op.replaced[3] = ints_tensor(sizes);
  return {};
}

// Points may be anywhere.
Result<Bounds> grid_sample_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape *x = ranked_shape(query.context, 0), *grid = ranked_shape(query.context, 1);
  if (x) {
    std::vector<int> image(x->dims().size(), kWhole);
    image[0] = 0, image[1] = 1;
    bounds.operands[0] = inexact(follow(query, 0, image));
  }
  if (!grid) return bounds;
  std::vector<int> points = each_dim(query.box.size());
  points.erase(points.begin() + 1);
  points.push_back(kWhole);
  bounds.operands[1] = inexact(follow(query, 1, points));
  return bounds;
}

Result<Bounds> affine_grid_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = inexact(follow(query, 0, {0, kWhole, kWhole}));
  return bounds;
}

// Points depend on the extents of the whole grid.
Result<void> affine_grid_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  for (size_t d = 1; d < query.box.size(); ++d) TENON_OK(require_whole(query, d));
  auto size = known_ints(query.context, 1);
  if (!size) return error(Code::unsupported, "its size is not known");
  (*size)[0] = query.box[0].extent();
  op.replaced[1] = ints_tensor(*size);
  return {};
}

// Channel c adds up the rows of its block elements.
Result<Bounds> col2im_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* input = ranked_shape(query.context, 0);
  if (!input) return bounds;
  bounds.operands[0].dims[0] = exactly(query.box[0]);
  if (!(*input)[1].known() || !query.shape[1].known()) return bounds;
  const Expr rows = floordiv((*input)[1].expr(), query.shape[1].expr());
  bounds.operands[0].dims[1] = at_most(groups(query.box[1], rows));
  return bounds;
}

Result<void> col2im_sub_box(const SubBoxQuery& query, SubBoxOp&) {
  for (size_t d = 2; d < query.box.size(); ++d) TENON_OK(require_whole(query, d));
  return {};
}

const OpRegistration kResizeRegistered({
    OpDef(Resize::kName)
        .summary("Y = X resampled to other extents")
        .operand("X", "T1")
        .optional_operand("roi", "T2")
        .optional_operand("scales", "TS")
        .optional_operand("sizes", "TI")
        .result("Y", "T1")
        .types("T1", kAnyTensor)
        .types("T2", kFloatTypes)
        .types("TS", kFloatTypes)
        .types("TI", kI64Type)
        .attribute("antialias", int64_t{0})
        .optional_attribute("axes", AttributeKind::integers)
        .attribute("coordinate_transformation_mode", "half_pixel")
        .one_of({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                 "tf_half_pixel_for_nn", "tf_crop_and_resize"})
        .attribute("cubic_coeff_a", -0.75f)
        .attribute("exclude_outside", int64_t{0})
        .attribute("extrapolation_value", 0.0f)
        .attribute("keep_aspect_ratio_policy", "stretch")
        .one_of({"stretch", "not_larger", "not_smaller"})
        .attribute("mode", "nearest")
        .one_of({"nearest", "linear", "cubic"})
        .attribute("nearest_mode", "round_prefer_floor")
        .one_of({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_resize)
        .bounds({resize_bounds, resize_sub_box})
        .verify([](const Op& op) -> Result<void> {
          if (op.attr<std::string>("mode", "nearest") == "nearest" || !op.operand(0)->type().is_tensor()) return {};
          const ElementType element = op.operand(0)->type().element();
          if (!element.valid() || element.is_number()) return {};
          return error(Code::invalid_argument, op.describe(), " cannot interpolate ", element,
                       ": only mode 'nearest' can");
        }),
    OpDef(GridSample::kName)
        .summary("Y = X at the points of `grid`")
        .operand("X", "T1")
        .operand("grid", "T2")
        .result("Y", "T1")
        .types("T1", kNumberTypes)
        .types("T2", kFloatTypes)
        .attribute("align_corners", int64_t{0})
        .attribute("mode", "linear")
        .one_of({"linear", "nearest", "cubic"})
        .attribute("padding_mode", "zeros")
        .one_of({"zeros", "border", "reflection"})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_grid_sample)
        .bounds({grid_sample_bounds, runs_as_it_is()}),
    OpDef(AffineGrid::kName)
        .summary("grid = theta applied to the points of a grid over [-1, 1]^k")
        .operand("theta", "T1")
        .operand("size", "T2")
        .result("grid", "T1")
        .types("T1", kFloatTypes)
        .types("T2", kI64Type)
        .attribute("align_corners", int64_t{0})
        .traits(Trait::pure | Trait::data_dependent)
        .infer(infer_affine_grid)
        .bounds({affine_grid_bounds, affine_grid_sub_box}),
    OpDef(Col2Im::kName)
        .summary("output = the image that the blocks in `input` add up to")
        .operand("input", "T")
        .operand("image_shape", "I")
        .operand("block_shape", "I")
        .result("output", "T")
        .types("T", kNumberTypes)
        .types("I", kI64Type)
        .optional_attribute("dilations", AttributeKind::integers)
        .optional_attribute("pads", AttributeKind::integers)
        .optional_attribute("strides", AttributeKind::integers)
        .traits(Trait::pure | Trait::layout_aware | Trait::data_dependent)
        .infer(infer_col2im)
        .bounds({col2im_bounds, col2im_sub_box}),
});

Result<void> count_is(const Op& op, const char* what, size_t count, size_t expected) {
  if (count == expected) return {};
  return error(Code::invalid_argument, what, " of ", op.describe(), " has ", count, " elements, it needs ", expected);
}

}  // namespace

Result<ResizePlan> ResizePlan::of(const Op& op, const Dims& in, const std::optional<std::vector<double>>& scales,
                                  const std::optional<std::vector<int64_t>>& sizes,
                                  const std::optional<std::vector<double>>& roi) {
  TENON_TRY(axes, resized_axes(op, static_cast<int64_t>(in.size())));
  ResizePlan plan{in, std::vector<double>(in.size(), 1), std::vector<double>(in.size(), 0),
                  std::vector<double>(in.size(), 1), std::vector<bool>(in.size(), false)};
  const bool crops = op.attr<std::string>("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  if (crops && !roi) return error(Code::invalid_argument, op.describe(), " with tf_crop_and_resize needs roi");
  if (crops) TENON_OK(count_is(op, "roi", roi->size(), 2 * axes.size()));
  if (scales)
    TENON_OK(count_is(op, "scales", scales->size(), axes.size()));
  else
    TENON_OK(count_is(op, "sizes", sizes ? sizes->size() : 0, axes.size()));
  const auto policy = op.attr<std::string>("keep_aspect_ratio_policy", "stretch");
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = axes[i];
    const auto extent = static_cast<double>(in[axis]);
    plan.resized[axis] = true;
    if (crops) plan.start[axis] = (*roi)[i], plan.end[axis] = (*roi)[i + axes.size()];
    // This also prevents scales so small that antialiasing would not terminate.
    if (!(std::abs(plan.end[axis] - plan.start[axis]) <= kMostRegion)) {
      return error(Code::invalid_argument, "roi of ", op.describe(), " is [", plan.start[axis], ", ", plan.end[axis],
                   "] for axis ", axis, ", it may span ", kMostRegion, " times the extent");
    }
    plan.scales[axis] = scales ? (*scales)[i] : in[axis] == 0 ? 1 : static_cast<double>((*sizes)[i]) / extent;
    const double out = scales ? std::floor(extent * (*scales)[i] * (crops ? plan.end[axis] - plan.start[axis] : 1))
                              : static_cast<double>((*sizes)[i]);
    if (!(plan.scales[axis] > 0 || in[axis] == 0 || out == 0) || !(out >= 0 && out < kMostExtent)) {
      return error(Code::invalid_argument, op.describe(), " would give axis ", axis, " of extent ", in[axis],
                   " the extent ", out, " (scale ", plan.scales[axis], ")");
    }
    plan.out[axis] = static_cast<int64_t>(out);
  }
  if (!scales && policy != "stretch" && !axes.empty()) {
    double scale = plan.scales[axes[0]];
    for (const size_t axis : axes)
      scale = policy == "not_larger" ? std::min(scale, plan.scales[axis]) : std::max(scale, plan.scales[axis]);
    for (const size_t axis : axes) {
      plan.scales[axis] = scale;
      plan.out[axis] = static_cast<int64_t>(std::floor(scale * static_cast<double>(in[axis]) + 0.5));
    }
  }
  return plan;
}

}  // namespace tenon
