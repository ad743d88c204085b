#include <tenon/ops/pooling.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/infer_util.hpp>
#include <tenon/ops/window.hpp>
#include <tenon/ops/window_bounds.hpp>

namespace tenon {
namespace {

constexpr TypeSet kPooled("floats and 8-bit integers",
                          [](ElementType e) { return e.is_float() || e == kI8 || e == kU8; });

Result<Shape> pooled_shape(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 2));
  TENON_TRY(x, context.tensor(0));
  if (!x.shape.ranked()) return Shape();
  TENON_TRY(window, Window::of(context.op(), static_cast<size_t>(x.shape.rank()) - 2));
  TENON_TRY(shape, window_output_shape(window, x.shape, x.shape[1]), "the shape of ", context.op().describe());
  return shape;
}

InferredTypes infer_pool(const InferContext& context) {
  TENON_TRY(shape, pooled_shape(context));
  std::vector<Type> types{Type(context.type(0).element(), shape)};
  if (context.op().result_count() > 1) types.emplace_back(kI64, shape);
  return types;
}

InferredTypes infer_global(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 2));
  TENON_TRY(x, context.tensor(0));
  for (int64_t axis = 2; x.shape.ranked() && axis < x.shape.rank(); ++axis) x.shape[axis] = Dim(1);
  return one_type(x.element, x.shape);
}

InferredTypes infer_unpool(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 2));
  TENON_TRY(x, context.tensor(0));
  if (context.operand_count() > 2 && context.has_operand(2)) {
    if (const auto stated = context.dims_value(2)) return one_type(x.element, Shape(*stated));
    return one_type(x.element, x.shape.ranked() ? unknown_shape(x.shape.rank()) : Shape());
  }
  TENON_TRY(shape, max_unpool_shape(context.op(), x.shape));
  return one_type(x.element, std::move(shape));
}

// From images [N, C, H, W] and boxes [R, columns] to [R, C, height, width].
InferredTypes infer_boxes(const InferContext& context, int64_t columns, Dim height, Dim width) {
  TENON_OK(require_rank(context, 0, 4));
  TENON_OK(require_rank(context, 1, 2));
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(rois, context.tensor(1));
  const Shape boxes = rois.shape.ranked() ? rois.shape : unknown_shape(2);
  if (certainly_differ(boxes[1], Dim(columns))) {
    return error(Code::invalid_argument, "rois of ", context.op().describe(), " are ", boxes, ", each needs ", columns,
                 " numbers");
  }
  return one_type(x.element,
                  Shape{boxes[0], x.shape.ranked() ? x.shape[1] : Dim(), std::move(height), std::move(width)});
}

InferredTypes infer_roi_pool(const InferContext& context) {
  TENON_TRY(pooled, integers_attribute(context.op(), "pooled_shape", 2, 1, 1));
  return infer_boxes(context, 5, Dim(pooled[0]), Dim(pooled[1]));
}

InferredTypes infer_roi_align(const InferContext& context) {
  TENON_OK(require_rank(context, 2, 1));
  const int64_t height = context.attr<int64_t>("output_height", 1), width = context.attr<int64_t>("output_width", 1);
  if (height < 1 || width < 1) {
    return error(Code::invalid_argument, context.op().describe(),
                 " needs output_height and output_width >= 1, they are ", height, " and ", width);
  }
  return infer_boxes(context, 4, Dim(height), Dim(width));
}

// ---- Bounds ----

Result<Bounds> pool_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* x = ranked_shape(query.context, 0);
  if (!x) return bounds;
  TENON_TRY(window, Window::of(query.context.op(), x->dims().size() - 2));
  std::vector<DimBounds> read{exactly(query.box[0]), exactly(query.box[1])};
  for (size_t axis = 0; axis < window.rank(); ++axis) read.push_back(window_reads(window, axis, query, (*x)[axis + 2]));
  bounds.operands[0] = boxed(std::move(read));
  // A window may have only one position to refer to, and positions are indices into all of X.
  if (query.result == 1) bounds.operands[0] = inexact(bounds.operands[0]);
  bounds.same_bits = query.result == 0;
  return bounds;
}

Result<void> pool_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  if (query.result == 1) return error(Code::unsupported, "its indices count in all of X");
  TENON_TRY(window, Window::of(query.context.op(), query.shape.size() - 2));
  return set_window_pads(window, query, 0, op);
}

Result<Bounds> global_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  std::vector<int> to(query.box.size(), kWhole);
  to[0] = 0, to[1] = 1;
  bounds.operands[0] = follow(query, 0, to);
  return bounds;
}

// The image of a box and its position depend on data, so only the channels of X are bounded.
Result<Bounds> roi_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = inexact(follow(query, 0, {kWhole, 1, kWhole, kWhole}));
  bounds.operands[1] = inexact(follow(query, 1, {0, kWhole}));
  if (bounds.operands.size() > 2) bounds.operands[2] = follow(query, 2, {0});
  return bounds;
}

Result<void> roi_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  for (const size_t d : {size_t{2}, size_t{3}}) TENON_OK(require_whole(query, d));
  return runs_as_it_is()(query, op);
}

OpDef pool(std::string_view name, const TypeSet& types) {
  OpDef def{Name(name)};
  def.operand("X", "T")
      .result("Y", "T")
      .types("T", types)
      .attribute("auto_pad", "NOTSET")
      .one_of({"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"})
      .attribute("ceil_mode", int64_t{0})
      .optional_attribute("dilations", AttributeKind::integers)
      .required_attribute("kernel_shape", AttributeKind::integers)
      .optional_attribute("pads", AttributeKind::integers)
      .optional_attribute("strides", AttributeKind::integers)
      .traits(Trait::pure | Trait::layout_aware)
      .infer(infer_pool)
      .bounds({pool_bounds, pool_sub_box});
  return def;
}

OpDef global_pool(std::string_view name) {
  OpDef def{Name(name)};
  def.operand("X", "T")
      .result("Y", "T")
      .types("T", kFloatTypes)
      .traits(Trait::pure | Trait::reduction | Trait::layout_aware)
      .infer(infer_global)
      .bounds({global_bounds, runs_as_it_is()});
  return def;
}

const OpRegistration kPoolingRegistered({
    pool(MaxPool::kName, kPooled)
        .summary("Y = the largest element of each window of X; Indices: where it stands")
        .result("Indices", "I", Arity::optional)
        .types("I", kI64Type)
        .attribute("storage_order", int64_t{0}),
    pool(AveragePool::kName, kFloatTypes)
        .summary("Y = the mean of each window of X")
        .attribute("count_include_pad", int64_t{0}),
    pool(LpPool::kName, kFloatTypes)
        .summary("Y = (sum of |x|^p over each window of X)^(1/p)")
        .attribute("p", int64_t{2}),
    global_pool(GlobalMaxPool::kName).summary("Y = the largest element of each channel of X"),
    global_pool(GlobalAveragePool::kName).summary("Y = the mean of each channel of X"),
    global_pool(GlobalLpPool::kName)
        .summary("Y = (sum of |x|^p over each channel of X)^(1/p)")
        .attribute("p", int64_t{2}),
    OpDef(MaxUnpool::kName)
        .summary("output = zeros, with the elements of X where I says")
        .operand("X", "T1")
        .operand("I", "T2")
        .optional_operand("output_shape", "T2")
        .result("output", "T1")
        .types("T1", kFloatTypes)
        .types("T2", kI64Type)
        .required_attribute("kernel_shape", AttributeKind::integers)
        .optional_attribute("pads", AttributeKind::integers)
        .optional_attribute("strides", AttributeKind::integers)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_unpool)
        .bounds(whole_operands()),
    OpDef(MaxRoiPool::kName)
        .summary("Y = the largest elements of the bins of each box")
        .operand("X", "T")
        .operand("rois", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .required_attribute("pooled_shape", AttributeKind::integers)
        .attribute("spatial_scale", 1.0f)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_roi_pool)
        .bounds({roi_bounds, roi_sub_box}),
    OpDef(RoiAlign::kName)
        .summary("Y = the bins of each box, sampled by linear interpolation")
        .operand("X", "T1")
        .operand("rois", "T1")
        .operand("batch_indices", "T2")
        .result("Y", "T1")
        .types("T1", kFloatTypes)
        .types("T2", kI64Type)
        .attribute("coordinate_transformation_mode", "half_pixel")
        .one_of({"half_pixel", "output_half_pixel"})
        .attribute("mode", "avg")
        .one_of({"avg", "max"})
        .attribute("output_height", int64_t{1})
        .attribute("output_width", int64_t{1})
        .attribute("sampling_ratio", int64_t{0})
        .attribute("spatial_scale", 1.0f)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_roi_align)
        .bounds({roi_bounds, roi_sub_box}),
});

}  // namespace

Result<Shape> max_unpool_shape(const Op& op, const Shape& x) {
  if (!x.ranked()) return Shape();
  TENON_TRY(window, Window::of(op, static_cast<size_t>(x.rank()) - 2));
  std::vector<Dim> dims{x[0], x[1]};
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    dims.push_back((x[axis + 2] - Dim(1)) * Dim(window.strides[axis]) + window.kernel[axis] - Dim(window.pads[axis]) -
                   Dim(window.pads[axis + window.rank()]));
  }
  return Shape(std::move(dims));
}

}  // namespace tenon
