#include <tenon/snippet/canonical/rebuild_internal.hpp>

#include <cmath>

#include <tenon/ir/builder.hpp>

namespace tenon::snippet {

// ---- The table ----

namespace {

struct Table {
  DecomposeRows rows;
  std::unordered_map<Name, const DecomposeRow*> by_name;

  Table() {
    for (const auto family : {arithmetic_rows, logic_rows, activation_rows, cast_rows, reduce_rows, normalization_rows,
                              quantize_rows, view_rows}) {
      for (const DecomposeRow& row : family()) rows.push_back(row);
    }
    for (const DecomposeRow& row : rows) by_name.emplace(row.op, &row);
  }
};
const Table& table() {
  static const Table made;
  return made;
}

}  // namespace

const DecomposeRow* find_decomposition(Name op) {
  const auto found = table().by_name.find(op);
  return found == table().by_name.end() ? nullptr : found->second;
}

std::vector<const DecomposeRow*> all_decompositions() {
  std::vector<const DecomposeRow*> rows;
  for (const DecomposeRow& row : table().rows) rows.push_back(&row);
  return rows;
}

// ---- Numbers ----

double least_of(ElementType element) { return element.is_signed_int() ? -std::ldexp(1.0, element.bits() - 1) : 0; }
double greatest_of(ElementType element) {
  return std::ldexp(1.0, element.bits() - (element.is_signed_int() ? 1 : 0)) - 1;
}

// ---- Nodes ----

std::optional<double> Rebuild::constant(size_t i) const {
  const Tensor* tensor = constant_of(op_.operand(i));
  if (!tensor || tensor->size() != 1) return std::nullopt;
  return tensor->double_at(0);
}

ValueId Rebuild::node_of(ElementType lane, Name name, std::vector<ValueId> operands, Attributes attributes) {
  DimSet varies = 0;
  for (const ValueId operand : operands) varies |= this->varies(operand);
  return body_.append({.op = name, .attributes = std::move(attributes), .operands = std::move(operands)},
                      {lane, varies}, body_.nodes);
}

ValueId Rebuild::node(Name name, std::initializer_list<ValueId> operands, Attributes attributes) {
  const ElementType last = lane(*(operands.end() - 1));
  return node_of(last, name, operands, std::move(attributes));
}

ValueId Rebuild::scalar_bits(ElementType lane, uint64_t bits) {
  const auto [first, last] = scalars_.equal_range(bits);
  for (auto known = first; known != last; ++known) {
    if (this->lane(known->second) == lane) return known->second;
  }
  body_.nodes.push_back(body_.make_scalar(lane, bits));
  const ValueId made = body_.nodes.back().result;
  scalars_.emplace(bits, made);
  return made;
}

ValueId Rebuild::scalar(ElementType lane, double number) { return scalar_bits(lane, lane_bits(lane, number)); }

ValueId Rebuild::convert(ValueId value, ElementType to) {
  return lane(value) == to ? value : node_of(to, "Convert", {value});
}

ValueId Rebuild::spread(ValueId value, ValueId like) {
  if (lane(like) == kBool) like = convert(like, kI32);
  return node("Where", {compare("Equal", like, like), value, value});
}

// ---- Reductions ----

ValueId Rebuild::reduce(Name name, ValueId value, double initial) {
  if (!folds_) return value;
  const auto bits = static_cast<int64_t>(lane_bits(lane(value), initial));
  const ValueId result = node(name, {value}, {{"initial", bits}});
  body_.values[static_cast<size_t>(result)].varies &= ~body_.reduced_dims();
  return result;
}

ValueId Rebuild::count(ElementType lane) { return folds_ ? node_of(lane, "ReducedCount", {}) : scalar(lane, 1); }

// ---- Element types ----

ValueId Rebuild::fit(ValueId value, ElementType element) {
  if (element == kF16 || element == kBF16) return node("Round", {value}, {{"to", element.to_string()}});
  if (element.is_int() && element.bits() < 32) return node("Wrap", {value}, {{"to", element.to_string()}});
  return value;
}

ValueId Rebuild::cast(ValueId value, ElementType from, ElementType to) {
  if (from == to) return value;
  if (to.is_bool()) return compare("NotEqual", value, scalar_like(value, 0));
  if (from.is_bool()) return convert(value, codegen::lane_type(to));
  return from.is_float() ? cast_from_float(value, from, to) : cast_from_int(value, from, to);
}

ValueId Rebuild::cast_from_float(ValueId value, ElementType from, ElementType to) {
  const ElementType lane = codegen::lane_type(to);
  if (to.is_float()) {
    // From f16 to f32 and f64 the conversion is exact. Otherwise it is rounded before the conversion: from f64, once.
    const bool widens = to == kF64 || (to == kF32 && from != kF64);
    return convert(widens || to == kF32 ? value : fit(value, to), lane);
  }
  if (to.bits() < 32) {
    value = node("ClampLow", {value, scalar_like(value, least_of(to))});
    value = node("ClampHigh", {value, scalar_like(value, greatest_of(to))});
  }
  return convert(value, lane);
}

// `value`, but where its magnitude is at least 2^from_bit the last `dropped` bits are replaced by one sticky bit that
// is set if any of them was. A later rounding to fewer bits then gives the same result as a single rounding.
ValueId Rebuild::sticky(ValueId value, int dropped, int from_bit) {
  const ElementType type = lane(value);
  const uint64_t low = (uint64_t{1} << dropped) - 1, all = type == kI64 || type == kU64 ? ~uint64_t{0} : 0xffffffffu;
  const ValueId zero = scalar(type, 0);
  const ValueId rest = node("BitwiseAnd", {value, scalar_bits(type, low)});
  const ValueId flag = node("Where", {compare("Equal", rest, zero), zero, scalar_bits(type, (low + 1) / 2)});
  const ValueId cut = node("BitwiseOr", {node("BitwiseAnd", {value, scalar_bits(type, all & ~low)}), flag});
  const double limit = std::ldexp(1.0, from_bit);
  ValueId large = compare("GreaterOrEqual", value, scalar(type, limit));
  if (type.is_signed_int()) large = node_of(kBool, "Or", {large, compare("LessOrEqual", value, scalar(type, -limit))});
  return node("Where", {large, cut, value});
}

ValueId Rebuild::cast_from_int(ValueId value, ElementType from, ElementType to) {
  const ElementType lane = codegen::lane_type(to);
  if (to.is_int()) {
    value = convert(value, lane);
    const bool holds = from.bits() < to.bits() && (from.is_unsigned_int() || to.is_signed_int());
    return holds ? value : fit(value, to);
  }
  // f32 represents 16 bits exactly, and rounds only what is beyond f16's range; bf16 would be rounded twice.
  if (to != kBF16 || from.bits() < 32) return fit(convert(value, lane), to);
  if (from.bits() == 32) return fit(convert(sticky(value, 9, 24), lane), to);
  return convert(fit(convert(sticky(value, 12, 53), kF64), to), lane);
}

// ---- Spaces ----

Result<void> add_broadcast(Space& space, const Value& value, const ValueAxes& wide, const Shape& shape) {
  const Shape& mine = value.type().shape();
  if (!mine.ranked() || mine.rank() > shape.rank())
    return error(Code::unsupported, "%", value.name(), " of ", value.type(), " does not broadcast to ", shape);
  ValueAxes axes(static_cast<size_t>(mine.rank()));
  const size_t missing = wide.size() - axes.size();
  for (size_t d = 0; d < axes.size(); ++d) {
    if (mine[d].is_static() && mine[d].value() == 1) continue;
    if (!mine[d].same_extent(shape[missing + d])) {
      return error(Code::unsupported, "%", value.name(), " of ", value.type(), " against ", shape,
                   ": which extents are 1 is not known");
    }
    axes[d] = wide[missing + d];
  }
  return space.set(value, std::move(axes));
}

Result<Space> broadcast_space(const Op& op) {
  Space space;
  const Shape& shape = op.result(0)->type().shape();
  TENON_TRY(wide, space.add_shape(shape));
  for (const Value* operand : op.operands()) {
    if (operand) TENON_OK(add_broadcast(space, *operand, wide, shape));
  }
  for (size_t i = 0; i < op.result_count(); ++i) TENON_OK(space.set(*op.result(i), wide));
  return space;
}

Result<Space> folding_space(const Op& op, const std::vector<size_t>& folded) {
  Space space;
  TENON_TRY(axes, space.add_shape(op.operand(0)->type().shape()));
  for (const size_t d : folded) {
    for (const AxisId id : axes[d]) space.fold(id);
  }
  TENON_OK(space.set(*op.operand(0), std::move(axes)));
  return space;
}

}  // namespace tenon::snippet
