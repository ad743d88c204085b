// Slices.
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

// A bound of a slice, clamped to the axis; `last` is 0 for positive steps and -1 for negative ones, for which positions
// start at -1.
Expr clamped_bound(const Expr& bound, const Expr& axis, int64_t last) {
  if (!bound.is_constant()) return max(Expr(last), min(bound, axis + Expr(last)));
  const int64_t value = bound.constant();
  if (value > INT64_MAX / 2) return axis + Expr(last);  // "to the end"
  if (value < -(INT64_MAX / 2)) return Expr(last);
  const Expr from_front = value < 0 ? axis + bound : bound;
  return max(Expr(last), min(from_front, axis + Expr(last)));
}

Dim sliced_extent(const Dim& axis, const Dim& start, const Dim& end, int64_t step) {
  if (!axis.known() || !start.known() || !end.known()) return Dim();
  // A bound that may turn out negative would count from the back.
  for (const Dim& bound : {start, end}) {
    if (!bound.is_static() && !certainly_at_least(bound, 0)) return Dim();
  }
  const int64_t last = step > 0 ? 0 : -1;
  const Expr from = clamped_bound(start.expr(), axis.expr(), last), to = clamped_bound(end.expr(), axis.expr(), last);
  // A step beyond the axis takes one element, whatever its length, so the division cannot overflow.
  const int64_t most = axis.is_static() ? std::max<int64_t>(1, axis.value()) : INT32_MAX;
  const int64_t stride = std::clamp(step, -most, most);
  const Expr count = stride > 0 ? ceildiv(to - from, Expr(stride)) : ceildiv(from - to, Expr(-stride));
  return extent(max(Expr(0), count));
}

// The operands of a Slice, with one entry per sliced axis. Bounds may be unknown.
struct Cuts {
  std::vector<size_t> axes;
  std::vector<Dim> starts, ends;
  std::vector<std::optional<int64_t>> steps;
};

// nullopt if not even the axes are known.
Result<std::optional<Cuts>> cuts_of(const InferContext& context, int64_t rank) {
  const auto starts = context.dims_value(1), ends = context.dims_value(2);
  auto count = starts ? std::optional(static_cast<int64_t>(starts->size())) : static_length(context, 1);
  std::vector<int64_t> axes;
  if (context.has_operand(3)) {
    const auto given = known_ints(context, 3);
    if (!given) return std::optional<Cuts>();
    axes = *given;
    if (!count) count = static_cast<int64_t>(axes.size());
  } else if (count) {
    axes.resize(static_cast<size_t>(*count));
    std::iota(axes.begin(), axes.end(), int64_t{0});
  } else {
    return std::optional<Cuts>();
  }
  const auto steps = context.has_operand(4) ? known_ints(context, 4) : std::vector<int64_t>(axes.size(), 1);
  if (static_cast<int64_t>(axes.size()) != *count || (ends && ends->size() != axes.size()) ||
      (steps && steps->size() != axes.size())) {
    return error(Code::invalid_argument, context.op().describe(), " has ", *count, " starts, ", ends ? ends->size() : 0,
                 " ends, ", axes.size(), " axes and ", steps ? steps->size() : 0, " steps; they must be equally many");
  }
  TENON_TRY(normal, normalize_axes(axes, rank), "operand 'axes' of Slice");
  Cuts cuts{std::move(normal), std::vector<Dim>(axes.size()), std::vector<Dim>(axes.size()), {}};
  cuts.steps.resize(axes.size());
  for (size_t k = 0; k < axes.size(); ++k) {
    if (starts) cuts.starts[k] = (*starts)[k];
    if (ends) cuts.ends[k] = (*ends)[k];
    if (steps) cuts.steps[k] = (*steps)[k];
    if (cuts.steps[k] == 0) return error(Code::invalid_argument, "step 0 for axis ", axes[k], " of Slice");
  }
  return std::optional(std::move(cuts));
}

InferredTypes infer_slice(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  if (!data.shape.ranked()) return one_type(data.element, Shape());
  TENON_TRY(cuts, cuts_of(context, data.shape.rank()));
  if (!cuts) return one_type(data.element, unknown_shape(data.shape.rank()));
  for (size_t k = 0; k < cuts->axes.size(); ++k) {
    Dim& dim = data.shape[cuts->axes[k]];
    dim = cuts->steps[k] ? sliced_extent(dim, cuts->starts[k], cuts->ends[k], *cuts->steps[k]) : Dim();
  }
  return one_type(data.element, std::move(data.shape));
}

std::optional<std::vector<Dim>> dims_of_slice(const InferContext& context) {
  const auto data = context.dims_value(0);
  const auto cuts = cuts_of(context, 1);
  if (!data || !cuts.ok() || !*cuts) return std::nullopt;
  if ((*cuts)->axes.empty()) return data;
  const Dim &start = (*cuts)->starts[0], &end = (*cuts)->ends[0];
  const auto step = (*cuts)->steps[0];
  if (!start.is_static() || !end.is_static() || !step) return std::nullopt;
  const auto count = static_cast<int64_t>(data->size());
  const Dim length = sliced_extent(Dim(count), start, end, *step);
  const int64_t last = *step > 0 ? 0 : -1;
  const int64_t first = clamped_bound(start.expr(), Expr(count), last).constant();
  std::vector<Dim> out;
  for (int64_t i = 0; i < length.value(); ++i) out.push_back((*data)[static_cast<size_t>(first + i * *step)]);
  return out;
}

// ---- Bounds ----

// Position 0 of a slice, as an expression; nothing if it is not known.
std::optional<Expr> slice_start(const Dim& axis, const Dim& start, int64_t step) {
  if (!axis.known() || !start.known()) return std::nullopt;
  if (!start.is_static() && !certainly_at_least(start, 0)) return std::nullopt;
  return clamped_bound(start.expr(), axis.expr(), step > 0 ? 0 : -1);
}

Result<Bounds> slice_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* data = ranked_shape(query.context, 0);
  if (!data) return bounds;
  TENON_TRY(cuts, cuts_of(query.context, data->rank()));
  if (!cuts) return bounds;
  bounds.operands[0] = follow(query, 0, each_dim(query.box.size()));
  for (size_t k = 0; k < cuts->axes.size(); ++k) {
    const size_t axis = cuts->axes[k];
    const auto start = cuts->steps[k] ? slice_start((*data)[axis], cuts->starts[k], *cuts->steps[k]) : std::nullopt;
    DimBounds& dim = bounds.operands[0].dims[axis];
    if (!start) {
      dim = whole_dim((*data)[axis], false);
      continue;
    }
    const Expr step(*cuts->steps[k]);
    const Expr first = *start + query.box[axis].min * step, last = *start + query.box[axis].max * step;
    dim = *cuts->steps[k] > 0 ? exactly({first, last}) : exactly({last, first});
  }
  return bounds;
}

// From the first position of the crop to its last one; with a negative step, from the last to the first.
Result<void> slice_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  TENON_TRY(cuts, cuts_of(query.context, static_cast<int64_t>(query.box.size())));
  const bool told = cuts && std::ranges::all_of(cuts->steps, [](const auto& step) { return step.has_value(); });
  if (!told) return error(Code::unsupported, "its axes and steps are not known");
  const ElementType index = query.context.type(1).element();
  const int64_t far = index == kI32 ? INT32_MAX : INT64_MAX;
  std::vector<int64_t> starts, ends;
  for (const auto& step : cuts->steps) {
    starts.push_back(*step > 0 ? 0 : -1);
    ends.push_back(*step > 0 ? far : -far);
  }
  for (size_t k = 0; k < cuts->axes.size(); ++k) {
    const size_t axis = cuts->axes[k];
    if (query.bounds.operands[0].dims[axis].whole && query.shape[axis] > 1) TENON_OK(require_whole(query, axis));
  }
  op.replaced[1] = ints_tensor(starts, index);
  op.replaced[2] = ints_tensor(ends, index);
  return {};
}

// ---- Definitions ----

const OpRegistration kMovementSliceRegistered({
    mover(Slice::kName, "Every steps[k]-th element of axis axes[k] from starts[k] up to ends[k]", "data")
        .types("Tind", kIndexTypes)
        .operand("starts", "Tind")
        .operand("ends", "Tind")
        .optional_operand("axes", "Tind")
        .optional_operand("steps", "Tind")
        .infer(infer_slice)
        .bounds({slice_bounds, slice_sub_box})
        .infer_dims(dims_of_slice),
});

}  // namespace
}  // namespace tenon
