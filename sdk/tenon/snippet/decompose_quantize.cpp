// Linear quantisation, per tensor and per axis, to and from integers of 8 and 16 bits (back also from 32).
#include <algorithm>

#include <tenon/snippet/decompose.hpp>

namespace tenon::snippet {
namespace {

bool holds_one(const Shape& shape) {
  return std::all_of(shape.dims().begin(), shape.dims().end(),
                     [](const Dim& d) { return d.is_static() && d.value() == 1; });
}

// Scale and zero point: one number, or one for each position along the axis.
Result<Space> quantize_space(const Op& op) {
  const Shape &shape = op.operand(0)->type().shape(), &scale = op.operand(1)->type().shape();
  if (!shape.ranked() || !scale.ranked() || op.attr<int64_t>("block_size", 0) != 0)
    return error(Code::unsupported, op.describe(), " is quantised by blocks, or of unknown rank");
  Space space;
  TENON_TRY(axes, space.add_shape(shape));
  ValueAxes of_scale(scale.dims().size());
  if (!holds_one(scale)) {
    TENON_TRY(axis, normalize_axis(op.attr<int64_t>("axis", 1), shape.rank()));
    if (scale.rank() != 1 || !scale[0].same_extent(shape[static_cast<size_t>(axis)]))
      return error(Code::unsupported, op.describe(), " has scales of shape ", scale, " for ", shape);
    of_scale[0] = axes[static_cast<size_t>(axis)];
  }
  TENON_OK(space.set(*op.operand(1), of_scale));
  if (op.operand(2)) {
    if (op.operand(2)->type().shape().dims().size() != of_scale.size())
      return error(Code::unsupported, op.describe(), " has scales and zero points of two shapes");
    TENON_OK(space.set(*op.operand(2), of_scale));
  }
  TENON_OK(space.set(*op.operand(0), axes));
  TENON_OK(space.set(*op.result(0), axes));
  return space;
}

// x / scale, rounded to `precision`.
ValueId quotient(Rebuild& r, ElementType precision) {
  const bool wide = r.lane(r.in(0)) != kF32 || r.lane(r.in(1)) != kF32;
  const ElementType lane = wide ? kF64 : kF32;
  const ValueId q = r.node("Div", {r.convert(r.in(0), lane), r.convert(r.in(1), lane)});
  return r.cast(q, lane, precision);
}

Result<ValueId> quantize(Rebuild& r) {
  const ElementType to = r.out();
  if (!to.is_int() || to.bits() > 16) return error(Code::unsupported, r.op().describe(), " makes ", to);
  const Type asked = r.op().attr<Type>("precision");
  const ElementType precision = asked.is_tensor() ? asked.element() : r.element(1);
  const ValueId integer = r.node("RoundEven", {quotient(r, precision)});
  const ValueId zero =
      r.has(2) ? r.convert(r.in(2), r.lane(integer)) : r.scalar_like(integer, 0);
  ValueId y = r.node("Add", {integer, zero});
  y = r.node("ClampLow", {y, r.scalar_like(y, least_of(to))});
  y = r.node("ClampHigh", {y, r.scalar_like(y, greatest_of(to))});
  y = r.node("Where", {r.compare("NotEqual", integer, integer), zero, y});
  return r.convert(y, codegen::lane_type(to));
}

// (x - zero) * scale: of integers up to 16 bits the difference is exact in f32.
Result<ValueId> dequantize(Rebuild& r) {
  const ElementType from = r.element(0);
  if (!from.is_int() || from.bits() > 32) return error(Code::unsupported, r.op().describe(), " reads ", from);
  const bool wide = from.bits() > 16 || r.lane(r.in(1)) != kF32;
  const ElementType lane = wide ? kF64 : kF32;
  ValueId x = r.convert(r.in(0), lane);
  if (r.has(2)) x = r.node("Sub", {x, r.convert(r.in(2), lane)});
  return r.cast(r.node("Mul", {x, r.convert(r.in(1), lane)}), lane, r.out());
}

}  // namespace

DecomposeRows quantize_rows() {
  return {
      {.op = "QuantizeLinear", .space = quantize_space, .rebuild = quantize, .exact = true},
      {.op = "DequantizeLinear", .space = quantize_space, .rebuild = dequantize, .exact = true},
  };
}

}  // namespace tenon::snippet
