// Linear quantisation, per tensor, per axis and per block, to and from integers of 8 and 16 bits (from 32 bits as
// well).
#include <algorithm>
#include <numeric>
#include <optional>

#include <tenon/snippet/canonical/rebuild_internal.hpp>

namespace tenon::snippet {
namespace {

bool holds_one(const Shape& shape) {
  return std::all_of(shape.dims().begin(), shape.dims().end(),
                     [](const Dim& d) { return d.is_static() && d.value() == 1; });
}

// Axes of x and of its scale.
struct QuantizedAxes {
  ValueAxes x, scale;
};

// One number, or one per position along the axis.
Result<QuantizedAxes> axes_of_axis(const Op& op, const Shape& shape, const Shape& scale, Space& space) {
  TENON_TRY(axes, space.add_shape(shape));
  ValueAxes of_scale(scale.dims().size());
  if (holds_one(scale)) return QuantizedAxes{axes, of_scale};
  TENON_TRY(axis, normalize_axis(op.attr<int64_t>("axis", 1), shape.rank()));
  if (scale.rank() != 1 || !scale[0].same_extent(shape[static_cast<size_t>(axis)]))
    return error(Code::unsupported, op.describe(), " has scales of shape ", scale, " for ", shape);
  of_scale[0] = axes[static_cast<size_t>(axis)];
  return QuantizedAxes{axes, of_scale};
}

// One number per block of `block` positions along the axis; blocks must be complete.
Result<QuantizedAxes> axes_of_blocks(const Op& op, const Shape& shape, const Shape& scale, int64_t block,
                                     Space& space) {
  TENON_TRY(place, normalize_axis(op.attr<int64_t>("axis", 1), shape.rank()));
  const auto axis = static_cast<size_t>(place);
  if (block < 1 || !shape[axis].is_static() || shape[axis].value() % block != 0 || scale.rank() != shape.rank())
    return error(Code::unsupported, op.describe(), " has blocks of ", block, " in ", shape[axis]);
  std::vector<Dim> split(shape.dims());
  split[axis] = shape[axis].value() / block;
  split.insert(split.begin() + place + 1, Dim(block));
  TENON_TRY(axes, space.add_shape(Shape(split)));
  ValueAxes of_scale = axes;
  of_scale.erase(of_scale.begin() + place + 1);
  axes[axis].insert(axes[axis].end(), axes[axis + 1].begin(), axes[axis + 1].end());
  axes.erase(axes.begin() + place + 1);
  return QuantizedAxes{axes, of_scale};
}

Result<Space> quantize_space(const Op& op) {
  const Shape &shape = op.operand(0)->type().shape(), &scale = op.operand(1)->type().shape();
  if (!shape.ranked() || !scale.ranked())
    return error(Code::unsupported, op.describe(), " quantises a tensor of unknown rank");
  Space space;
  const int64_t block = op.attr<int64_t>("block_size", 0);
  auto made = block == 0 ? axes_of_axis(op, shape, scale, space) : axes_of_blocks(op, shape, scale, block, space);
  if (!made.ok()) return made.error();
  const auto& [axes, of_scale] = *made;
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

// y varies as x does; scale and zero point are scalars that depend on all of x.
Result<Space> dynamic_space(const Op& op) {
  std::vector<size_t> all(op.operand(0)->type().shape().dims().size());
  std::iota(all.begin(), all.end(), size_t{0});
  TENON_TRY(space, folding_space(op, all));
  TENON_OK(space.set(*op.result(0), *space.find(*op.operand(0))));
  for (const size_t i : {1, 2}) {
    if (i >= op.result_count()) continue;
    TENON_OK(space.set(*op.result(i), ValueAxes(op.result(i)->type().shape().dims().size())));
  }
  return space;
}

ValueId clamp(Rebuild& r, ValueId x, ValueId low, ValueId high) {
  return r.node("ClampHigh", {r.node("ClampLow", {x, low}), high});
}

// `otherwise` instead of NaN.
ValueId number_or(Rebuild& r, ValueId x, ValueId otherwise) {
  return r.node("Where", {r.compare("NotEqual", x, x), otherwise, x});
}

// x / scale, rounded to `precision`.
ValueId quotient(Rebuild& r, ElementType precision) {
  const bool wide = r.lane(r.in(0)) != kF32 || r.lane(r.in(1)) != kF32;
  const ElementType lane = wide ? kF64 : kF32;
  const ValueId q = r.node("Div", {r.convert(r.in(0), lane), r.convert(r.in(1), lane)});
  return r.cast(q, lane, precision);
}

// The integer of `to` nearest to q, plus `zero`; for NaN, which becomes the integer 0, `zero` itself. Between integral
// bounds, clamping before rounding gives the same result as after it, and the sum needs no second clamp.
ValueId saturated(Rebuild& r, ValueId q, std::optional<ValueId> zero, ElementType to) {
  const auto bound = [&](double number) {
    const ValueId limit = r.scalar_like(q, number);
    return zero ? r.node("Sub", {limit, r.convert(*zero, r.lane(q))}) : limit;
  };
  const ValueId clamped = clamp(r, q, bound(least_of(to)), bound(greatest_of(to)));
  const ValueId integer = r.convert(r.node("RoundEven", {clamped}), kI32);
  return r.convert(zero ? r.node("Add", {integer, r.convert(*zero, kI32)}) : integer, codegen::lane_type(to));
}

Result<ValueId> quantize(Rebuild& r) {
  const ElementType to = r.out();
  if (!to.is_int() || to.bits() > 16) return error(Code::unsupported, r.op().describe(), " makes ", to);
  const Type asked = r.op().attr<Type>("precision");
  const ElementType precision = asked.is_tensor() ? asked.element() : r.element(1);
  return saturated(r, quotient(r, precision), r.has(2) ? std::optional(r.in(2)) : std::nullopt, to);
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

// The range of x, extended to include 0, is mapped to 0 .. 255; NaN is ignored.
Result<ValueId> dynamic_quantize(Rebuild& r) {
  const ValueId x = r.in(0), zero = r.scalar_like(x, 0), known = number_or(r, x, zero);
  const ValueId least = r.node("ClampHigh", {r.reduce("ReduceMin", known, 0), zero});
  const ValueId greatest = r.node("ClampLow", {r.reduce("ReduceMax", known, 0), zero});
  const ValueId step = r.node("Div", {r.node("Sub", {greatest, least}), r.scalar_like(x, 255)});
  const ValueId scale = r.node("Where", {r.compare("Greater", greatest, least), step, r.scalar_like(x, 1)});
  const ValueId place = r.node("RoundEven", {r.node("Div", {r.node("Neg", {least}), scale})});
  const ValueId zero_point = clamp(r, number_or(r, place, zero), zero, r.scalar_like(x, 255));
  if (r.op().result_count() > 1) r.set(1, scale);
  if (r.op().result_count() > 2) r.set(2, r.convert(zero_point, kU32));
  return saturated(r, r.node("Div", {x, scale}), zero_point, kU8);
}

}  // namespace

DecomposeRows quantize_rows() {
  return {
      {.op = "QuantizeLinear", .space = quantize_space, .rebuild = quantize, .exact = true},
      {.op = "DequantizeLinear", .space = quantize_space, .rebuild = dequantize, .exact = true},
      {.op = "DynamicQuantizeLinear", .space = dynamic_space, .rebuild = dynamic_quantize, .exact = true},
  };
}

}  // namespace tenon::snippet
