#include <tenon/ops/quantize.hpp>

#include <optional>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {

Result<ScaleLayout> scale_layout(const Op& op, const Dims& x, const Dims& scale) {
  const auto rank = static_cast<int64_t>(x.size());
  const int64_t block = op.attr<int64_t>("block_size", 0);
  TENON_TRY(count, element_count(x));
  TENON_TRY(scales, element_count(scale));
  if (block == 0 && scales == 1 && scale.size() <= 1) return ScaleLayout{.outer = 1, .extent = 1, .inner = count};
  TENON_TRY(axis, normalize_axis(op.attr<int64_t>("axis", 1), rank), op.describe());
  const auto at = static_cast<size_t>(axis);
  ScaleLayout layout{.outer = 1, .extent = x[at], .inner = 1};
  for (size_t d = 0; d < at; ++d) layout.outer *= x[d];
  for (size_t d = at + 1; d < x.size(); ++d) layout.inner *= x[d];
  Dims wanted{x[at]};
  if (block > 0) {
    wanted = x;
    wanted[at] = x[at] / block + (x[at] % block != 0 ? 1 : 0);
    layout.block = block;
    layout.inner_step = 1;
    layout.outer_step = wanted[at] * layout.inner;
  }
  layout.axis_step = block > 0 ? layout.inner : 1;
  if (scale == wanted) return layout;
  return error(Code::invalid_argument, op.describe(), ": the scale has shape ", Shape(scale), "; for x of shape ",
               Shape(x), ", axis ", axis, " and block_size ", block, " it must be ", Shape(wanted),
               block > 0 ? "" : ", or a scalar");
}

namespace {

const TypeSet kQuantizable("float and i32 tensors", [](ElementType e) { return e.is_float() || e == kI32; });

// Checks the scale and the zero point against x as far as shapes are known.
Result<TensorType> checked_x(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(scale, context.tensor(1));
  if (const int64_t block = context.attr<int64_t>("block_size", 0); block < 0) {
    return error(Code::invalid_argument, context.op().describe(), ": block_size is ", block,
                 ", it must not be negative");
  }
  const auto x_dims = x.shape.static_dims(), scale_dims = scale.shape.static_dims();
  if (x_dims && scale_dims) TENON_OK(scale_layout(context.op(), *x_dims, *scale_dims));
  const auto zero_dims = context.type(2).is_tensor() ? context.type(2).shape().static_dims() : std::nullopt;
  if (scale_dims && zero_dims && *scale_dims != *zero_dims) {
    // A single number may have rank 0 or rank 1.
    TENON_TRY(scales, element_count(*scale_dims));
    TENON_TRY(zeros, element_count(*zero_dims));
    if (scales != 1 || zeros != 1) {
      return error(Code::invalid_argument, context.op().describe(), ": the scale has shape ", scale.shape,
                   " and the zero point ", context.type(2).shape(), "; they must be alike");
    }
  }
  return x;
}

// The element type in the attribute, else `fallback`.
ElementType type_attr(const InferContext& context, Name name, ElementType fallback) {
  const Type type = context.attr<Type>(name);
  return type.is_tensor() ? type.element() : fallback;
}

Result<std::vector<Type>> infer_quantize(const InferContext& context) {
  TENON_TRY(x, checked_x(context));
  const bool has_zero = context.has_operand(2) && context.type(2).is_tensor();
  const ElementType asked = type_attr(context, "output_dtype", ElementType());
  const ElementType zero = has_zero ? context.type(2).element() : ElementType();
  if (asked.valid() && zero.valid() && asked != zero) {
    return error(Code::invalid_argument, context.op().describe(), ": output_dtype is ", asked, ", the zero point is ",
                 zero, "; they must agree");
  }
  const ElementType element = has_zero ? zero : asked.valid() ? asked : kU8;
  return std::vector<Type>{Type(element, std::move(x.shape))};
}

Result<std::vector<Type>> infer_dequantize(const InferContext& context) {
  TENON_TRY(x, checked_x(context));
  TENON_TRY(scale, context.tensor(1));
  return std::vector<Type>{Type(type_attr(context, "output_dtype", scale.element), std::move(x.shape))};
}

Result<std::vector<Type>> infer_dynamic(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  return std::vector<Type>{Type(kU8, std::move(x.shape)), Type(kF32, Shape(Dims())), Type(kU8, Shape(Dims()))};
}

// ---- Bounds ----

// A scale or zero point: one number, one per position of the axis, or one per block along it.
Result<OperandBounds> scale_bounds(const BoundsQuery& query, size_t operand) {
  const Shape* shape = ranked_shape(query.context, operand);
  if (!shape || shape->rank() == 0) return whole_operand(query, operand);
  const int64_t block = query.context.attr<int64_t>("block_size", 0);
  const bool one = shape->rank() == 1 && block == 0 && (*shape)[0].is_static() && (*shape)[0].value() == 1;
  if (one) return boxed({whole_dim(Dim(1))});
  TENON_TRY(axis, axis_attribute(query.context, "axis", 1, query.shape.rank()));
  if (block == 0) return follow(query, operand, {static_cast<int>(axis)});
  OperandBounds bounds = follow(query, operand, each_dim(query.box.size()));
  if (bounds.dims.size() == query.box.size()) bounds.dims[axis] = exactly(outer_part(query.box[axis], Expr(block)));
  return bounds;
}

Result<Bounds> quantize_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  bounds.operands[0] = broadcast_to(query, 0);
  for (size_t i = 1; i < bounds.operands.size(); ++i) {
    TENON_TRY(scale, scale_bounds(query, i));
    bounds.operands[i] = std::move(scale);
  }
  return bounds;
}

// Blocks are counted from the first position.
Result<void> quantize_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  const int64_t block = query.context.attr<int64_t>("block_size", 0);
  if (block > 0) {
    TENON_TRY(axis, axis_attribute(query.context, "axis", 1, static_cast<int64_t>(query.box.size())));
    if (query.box[axis].min % block != 0) {
      return error(Code::unsupported, "position ", query.box[axis].min, " of axis ", axis, " begins no block of ",
                   block);
    }
  }
  return runs_as_it_is()(query, op);
}

constexpr Trait kQuantising = Trait::pure | Trait::layout_aware;

const OpRegistration kQuantizeRegistered({
    OpDef(QuantizeLinear::kName)
        .summary("saturate(round(x / y_scale) + y_zero_point)")
        .operand("x", "T1")
        .operand("y_scale", "T2")
        .optional_operand("y_zero_point", "T3")
        .result("y", "T3")
        .types("T1", kQuantizable)
        .types("T2", kQuantizable)
        .types("T3", kNumberTypes)
        .attribute("axis", int64_t{1})
        .attribute("block_size", int64_t{0})
        .optional_attribute("output_dtype", AttributeKind::type)
        .optional_attribute("precision", AttributeKind::type)
        .attribute("saturate", int64_t{1})
        .traits(kQuantising)
        .infer(infer_quantize)
        .bounds({quantize_bounds, quantize_sub_box}),
    OpDef(DequantizeLinear::kName)
        .summary("(x - x_zero_point) * x_scale")
        .operand("x", "T1")
        .operand("x_scale", "T2")
        .optional_operand("x_zero_point", "T1")
        .result("y", "T3")
        .types("T1", kNumberTypes)
        .types("T2", kFloatTypes)
        .types("T3", kFloatTypes)
        .attribute("axis", int64_t{1})
        .attribute("block_size", int64_t{0})
        .optional_attribute("output_dtype", AttributeKind::type)
        .traits(kQuantising)
        .infer(infer_dequantize)
        .bounds({quantize_bounds, quantize_sub_box}),
    OpDef(DynamicQuantizeLinear::kName)
        .summary("x quantised to u8 by its own range; also the scale and the zero point")
        .operand("x", "T1")
        .result("y", "u8")
        .result("y_scale", "f32")
        .result("y_zero_point", "u8")
        .types("T1", kFloatTypes)
        .traits(kQuantising | Trait::reduction)
        .infer(infer_dynamic)
        .bounds(whole_operands()),
});

}  // namespace
}  // namespace tenon
