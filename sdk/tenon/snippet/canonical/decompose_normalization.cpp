// Normalisations. Variances are population variances about the mean: two passes, no cancellation.
#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/snippet/canonical/rebuild_internal.hpp>

namespace tenon::snippet {
namespace {

// ---- Spaces ----

const Shape& shape_of(const Op& op, size_t operand) { return op.operand(operand)->type().shape(); }

// Operands from `first` on are vectors with one element per channel.
Result<void> add_channels(Space& space, const Op& op, size_t first, const AxisList& channels) {
  for (size_t i = first; i < op.operand_count(); ++i) {
    if (!op.operand(i)) continue;
    if (!shape_of(op, i).ranked() || shape_of(op, i).rank() != 1)
      return error(Code::unsupported, "operand ", i, " of ", op.describe(), " is not of rank 1");
    TENON_OK(space.set(*op.operand(i), {channels}));
  }
  return {};
}

Result<Space> by_channel(const Op& op, std::vector<size_t> folded) {
  TENON_TRY(space, folding_space(op, folded));
  const ValueAxes axes = *space.find(*op.operand(0));
  TENON_OK(add_channels(space, op, 1, axes.size() > 1 ? axes[1] : AxisList()));
  TENON_OK(space.set(*op.result(0), axes));
  return space;
}

// In training mode all axes but the channels are folded, and the running moments are results.
bool is_training(const Op& op) { return op.attr<int64_t>("training_mode", 0) != 0; }

Result<Space> batch_space(const Op& op) {
  std::vector<size_t> folded;
  for (size_t d = 0; is_training(op) && d < shape_of(op, 0).dims().size(); ++d)
    if (d != 1) folded.push_back(d);
  TENON_TRY(space, by_channel(op, folded));
  for (size_t i = 1; i < op.result_count(); ++i) TENON_OK(space.set(*op.result(i), *space.find(*op.operand(i + 2))));
  return space;
}

std::vector<size_t> from_axis(size_t axis, size_t rank) {
  std::vector<size_t> axes;
  for (; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Result<Space> instance_space(const Op& op) { return by_channel(op, from_axis(2, shape_of(op, 0).dims().size())); }

// C is split into groups and the channels of one.
Result<Space> group_space(const Op& op) {
  const Shape& shape = shape_of(op, 0);
  const auto groups = op.attr<int64_t>("num_groups");
  if (!shape.ranked() || shape.rank() < 2 || groups < 1 || !shape[1].known())
    return error(Code::unsupported, op.describe(), " has no known channels");
  std::vector<Dim> split(shape.dims());
  split[1] = groups;
  split.insert(split.begin() + 2, floordiv(shape[1], Dim(groups)));
  Space space;
  TENON_TRY(axes, space.add_shape(Shape(split)));
  for (size_t d = 2; d < axes.size(); ++d) {
    for (const AxisId id : axes[d]) space.fold(id);
  }
  axes[1].insert(axes[1].end(), axes[2].begin(), axes[2].end());
  axes.erase(axes.begin() + 2);
  TENON_OK(add_channels(space, op, 1, axes[1]));
  TENON_OK(space.set(*op.operand(0), axes));
  TENON_OK(space.set(*op.result(0), axes));
  return space;
}

// Layer and RMS normalisation: the axes from `axis` on; scale and bias broadcast.
Result<Space> rows_space(const Op& op) {
  const Shape& shape = shape_of(op, 0);
  TENON_TRY(axis, normalize_axis(op.attr<int64_t>("axis", -1), static_cast<int64_t>(shape.dims().size())));
  TENON_TRY(space, folding_space(op, from_axis(static_cast<size_t>(axis), shape.dims().size())));
  const ValueAxes axes = *space.find(*op.operand(0));
  for (size_t i = 1; i < op.operand_count(); ++i) {
    if (op.operand(i)) TENON_OK(add_broadcast(space, *op.operand(i), axes, shape));
  }
  TENON_OK(space.set(*op.result(0), axes));
  ValueAxes statistics = axes;
  for (size_t d = static_cast<size_t>(axis); d < axes.size(); ++d) statistics[d].clear();
  for (size_t i = 1; i < op.result_count(); ++i) TENON_OK(space.set(*op.result(i), statistics));
  return space;
}

Result<Space> over_axes(const Op& op, const Attribute::Integers& stated) {
  std::vector<size_t> folded;
  for (const int64_t axis : stated) {
    TENON_TRY(place, normalize_axis(axis, static_cast<int64_t>(shape_of(op, 0).dims().size())));
    folded.push_back(static_cast<size_t>(place));
  }
  TENON_TRY(space, folding_space(op, folded));
  TENON_OK(space.set(*op.result(0), *space.find(*op.operand(0))));
  return space;
}
Result<Space> lp_space(const Op& op) { return over_axes(op, {op.attr<int64_t>("axis", -1)}); }
Result<Space> mean_variance_space(const Op& op) {
  return over_axes(op, op.attr<Attribute::Integers>("axes", {0, 2, 3}));
}

// ---- Formulas ----

ValueId squared(Rebuild& r, ValueId x) { return r.node("Mul", {x, x}); }

// 1 / sqrt(variance + epsilon)
ValueId inverse_deviation(Rebuild& r, ValueId variance) {
  const ValueId raised = r.node("Add", {variance, r.scalar_like(variance, r.real("epsilon", 1e-5f))});
  return r.node("Div", {r.scalar_like(raised, 1), r.node("Sqrt", {raised})});
}

// Parameters may have a wider type than x; the computation uses the lane type of x.
ValueId parameter(Rebuild& r, size_t i) { return r.convert(r.in(i), r.lane(r.in(0))); }

// (x - mean) * (scale * inverse deviation) + bias; operands 1 and 2 are scale and bias.
ValueId scaled_by_channel(Rebuild& r, ValueId centred, ValueId variance) {
  const ValueId factor = r.node("Mul", {parameter(r, 1), inverse_deviation(r, variance)});
  return r.node("Add", {r.node("Mul", {centred, factor}), parameter(r, 2)});
}

// momentum * running + (1 - momentum) * own, for result `i` and operand `i + 2`.
void set_running(Rebuild& r, size_t i, ValueId own) {
  if (i >= r.op().result_count()) return;
  const ValueId running = parameter(r, i + 2);
  const double momentum = r.real("momentum", 0.9f);
  const ValueId kept = r.node("Mul", {running, r.scalar_like(running, momentum)});
  const ValueId sum = r.node("Add", {kept, r.node("Mul", {own, r.scalar_like(own, 1 - momentum)})});
  r.set(i, r.cast(sum, r.lane(sum), r.out(i)));
}

Result<ValueId> batch(Rebuild& r) {
  if (!is_training(r.op())) return scaled_by_channel(r, r.node("Sub", {r.in(0), parameter(r, 3)}), parameter(r, 4));
  const ValueId mean = r.mean(r.in(0)), centred = r.node("Sub", {r.in(0), mean});
  const ValueId variance = r.mean(squared(r, centred));
  set_running(r, 1, mean);
  set_running(r, 2, variance);
  return scaled_by_channel(r, centred, variance);
}

Result<ValueId> of_group(Rebuild& r) {
  const ValueId centred = r.node("Sub", {r.in(0), r.mean(r.in(0))});
  return scaled_by_channel(r, centred, r.mean(squared(r, centred)));
}

// As specified by ONNX, the normalised value is rounded before it is scaled where X is narrower than f32.
ValueId scaled_row(Rebuild& r, ValueId normalised) {
  const ValueId rounded = r.fit(normalised, r.element(0));
  return r.node("Mul", {rounded, parameter(r, 1)});
}

Result<ValueId> layer(Rebuild& r) {
  const ValueId mean = r.mean(r.in(0)), centred = r.node("Sub", {r.in(0), mean});
  const ValueId inverse = inverse_deviation(r, r.mean(squared(r, centred)));
  for (size_t i = 1; i < r.op().result_count(); ++i) r.set(i, r.cast(i == 1 ? mean : inverse, r.lane(mean), r.out(i)));
  const ValueId y = scaled_row(r, r.node("Mul", {centred, inverse}));
  return r.has(2) ? r.node("Add", {y, parameter(r, 2)}) : y;
}

Result<ValueId> root_mean_square(Rebuild& r) {
  const ValueId inverse = inverse_deviation(r, r.mean(squared(r, r.in(0))));
  return scaled_row(r, r.node("Mul", {r.in(0), inverse}));
}

// 0 where the norm is 0.
Result<ValueId> lp(Rebuild& r) {
  const ValueId x = r.in(0), zero = r.scalar_like(x, 0);
  const bool absolute = r.op().attr<int64_t>("p", 2) == 1;
  const ValueId sum = r.sum(absolute ? r.node("Abs", {x}) : squared(r, x));
  const ValueId norm = absolute ? sum : r.node("Sqrt", {sum});
  return r.node("Where", {r.compare("Equal", norm, zero), zero, r.node("Div", {x, norm})});
}

Result<ValueId> mean_variance(Rebuild& r) {
  const ValueId centred = r.node("Sub", {r.in(0), r.mean(r.in(0))});
  const ValueId deviation = r.node("Sqrt", {r.mean(squared(r, centred))});
  return r.node("Div", {centred, r.node("Add", {deviation, r.scalar_like(deviation, 1e-9)})});
}

//  // ---- Dropout that drops nothing ----

// Whether operand `i` is the constant 0.
bool is_zero(const Op& op, size_t i) {
  const Tensor* constant = op.operand(i) ? constant_of(op.operand(i)) : nullptr;
  return constant && constant->size() == 1 && constant->double_at(0) == 0;
}

// Not in training mode, or with a ratio of 0.
Result<Space> dropout_space(const Op& op) {
  if (op.operand(2) && !is_zero(op, 2) && !is_zero(op, 1))
    return error(Code::unsupported, op.describe(), " may be in training mode");
  TENON_TRY(space, folding_space(op, {}));
  for (size_t i = 0; i < op.result_count(); ++i) TENON_OK(space.set(*op.result(i), *space.find(*op.operand(0))));
  return space;
}

Result<ValueId> dropout(Rebuild& r) {
  if (r.op().result_count() > 1) r.set(1, r.spread(r.scalar_bits(kBool, 1), r.in(0)));
  return r.in(0);
}

}  // namespace

DecomposeRows normalization_rows() {
  return {
      {.op = "BatchNormalization", .space = batch_space, .rebuild = batch},
      {.op = "InstanceNormalization", .space = instance_space, .rebuild = of_group},
      {.op = "GroupNormalization", .space = group_space, .rebuild = of_group},
      {.op = "LayerNormalization", .space = rows_space, .rebuild = layer},
      {.op = "RMSNormalization", .space = rows_space, .rebuild = root_mean_square},
      {.op = "LpNormalization", .space = lp_space, .rebuild = lp},
      {.op = "MeanVarianceNormalization", .space = mean_variance_space, .rebuild = mean_variance},
      {.op = "Dropout", .space = dropout_space, .rebuild = dropout, .exact = true, .view = true},
  };
}

}  // namespace tenon::snippet
