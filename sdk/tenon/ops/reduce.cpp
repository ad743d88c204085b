#include <tenon/ops/reduce.hpp>

#include <algorithm>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {

Result<std::vector<bool>> folded_axes(const Op& op, int64_t rank, const std::vector<int64_t>& axes) {
  std::vector<bool> folded(static_cast<size_t>(rank), false);
  if (axes.empty() && op.attr<int64_t>("noop_with_empty_axes", 0) == 0) folded.assign(folded.size(), true);
  for (const int64_t axis : axes) {
    TENON_TRY(at, normalize_axis(axis, rank), "the axes of ", op.describe());
    folded[static_cast<size_t>(at)] = true;
  }
  return folded;
}

namespace {

constexpr Trait kReduction = Trait::pure | Trait::reduction | Trait::layout_aware;

const TypeSet kComparedTypes("number and bool tensors", [](ElementType e) { return e.is_number() || e.is_bool(); });

// ---- Shape rules ----

Shape without(const Shape& shape, const std::vector<bool>& folded, bool keep) {
  std::vector<Dim> dims;
  for (size_t d = 0; d < folded.size(); ++d) {
    if (!folded[d])
      dims.push_back(shape[d]);
    else if (keep)
      dims.push_back(1);
  }
  return Shape(std::move(dims));
}

// The result's shape if the reduced axes are not known.
Shape after_unknown_axes(const InferContext& context, const Shape& shape, bool keep) {
  const auto unknown = [](int64_t rank) { return Shape(std::vector<Dim>(static_cast<size_t>(rank))); };
  if (keep) return unknown(shape.rank());
  const auto axes = context.type(1).is_tensor() ? context.type(1).shape().static_dims() : std::nullopt;
  // An empty list may mean all axes; a repeated axis is reduced only once, but ONNX forbids it.
  if (!axes || axes->size() != 1 || (*axes)[0] == 0 || (*axes)[0] > shape.rank()) return {};
  return unknown(shape.rank() - (*axes)[0]);
}

Result<std::vector<Type>> infer_reduce(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  const bool keep = context.attr<int64_t>("keepdims", 1) != 0;
  if (!data.shape.ranked()) return std::vector<Type>{Type(data.element, Shape())};
  std::vector<int64_t> axes;
  if (context.has_operand(1)) {
    const Tensor* known = context.constant(1);
    if (!known) return std::vector<Type>{Type(data.element, after_unknown_axes(context, data.shape, keep))};
    axes = known->to_ints();
  }
  TENON_TRY(folded, folded_axes(context.op(), data.shape.rank(), axes));
  return std::vector<Type>{Type(data.element, without(data.shape, folded, keep))};
}

Result<std::vector<Type>> infer_arg(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  if (!data.shape.ranked()) return std::vector<Type>{Type(kI64, Shape())};
  TENON_TRY(axis, normalize_axis(context.attr<int64_t>("axis", 0), data.shape.rank()), context.op().describe());
  std::vector<bool> folded(data.shape.dims().size(), false);
  folded[static_cast<size_t>(axis)] = true;
  const Dim& extent = data.shape[static_cast<size_t>(axis)];
  if (extent.is_static() && extent.value() == 0) {
    return error(Code::invalid_argument, context.op().describe(), ": axis ", axis, " of ", data.shape,
                 " is empty, it has no extreme");
  }
  return std::vector<Type>{Type(kI64, without(data.shape, folded, context.attr<int64_t>("keepdims", 1) != 0))};
}

Result<std::vector<Type>> infer_cumulative(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  if (context.type(1).is_tensor() && !may_be_one_number(context.type(1).shape())) {
    return error(Code::invalid_argument, context.op().describe(), ": the axis must be one number, it has shape ",
                 context.type(1).shape());
  }
  const Tensor* axis = context.constant(1);
  if (axis && x.shape.ranked()) TENON_OK(normalize_axis(axis->int_at(0), x.shape.rank()), context.op().describe());
  return std::vector<Type>{Type(x)};
}

// ---- Bounds ----

// A reduced axis is read whole; the others follow the dims that the result keeps.
void follow_unfolded(const BoundsQuery& query, const std::vector<bool>& folded, Bounds& bounds) {
  const bool keep = query.context.attr<int64_t>("keepdims", 1) != 0;
  std::vector<int> to;
  int next = 0;
  for (const bool folds : folded) {
    to.push_back(folds ? kWhole : next);
    if (!folds || keep) ++next;
  }
  bounds.operands[0] = follow(query, 0, to);
}

Result<Bounds> reduce_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* data = ranked_shape(query.context, 0);
  const auto axes = query.context.has_operand(1) ? known_ints(query.context, 1) : std::vector<int64_t>();
  if (!data || !axes) return bounds;
  TENON_TRY(folded, folded_axes(query.context.op(), data->rank(), *axes));
  follow_unfolded(query, folded, bounds);
  return bounds;
}

Result<Bounds> arg_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape* data = ranked_shape(query.context, 0);
  if (!data) return bounds;
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, data->rank()));
  std::vector<bool> folded(data->dims().size(), false);
  folded[axis] = true;
  follow_unfolded(query, folded, bounds);
  return bounds;
}

// Up to the last requested position, or from the first one on with `reverse`; an `exclusive` scan omits that one.
Result<Bounds> scan_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query, false);
  const auto given = known_ints(query.context, 1);
  if (!given || given->size() != 1) return bounds;
  TENON_TRY(axis, normalize_axis((*given)[0], query.shape.rank()));
  const auto at = static_cast<size_t>(axis);
  bounds.operands[0] = follow(query, 0, each_dim(query.box.size()));
  bounds.splits.assign(query.box.size(), true);
  bounds.splits[at] = false;
  const bool reverse = query.context.attr<int64_t>("reverse", 0) != 0;
  const Expr left_out(query.context.attr<int64_t>("exclusive", 0) != 0 ? 1 : 0);
  const BoxRange& range = query.box[at];
  if (!query.shape[at].known()) {
    bounds.operands[0].dims[at] = whole_dim(query.shape[at], false);
  } else if (reverse) {
    bounds.operands[0].dims[at] = exactly({range.min + left_out, query.shape[at].expr() - Expr(1)});
  } else {
    bounds.operands[0].dims[at] = exactly({Expr(0), range.max - left_out});
  }
  return bounds;
}

// An exclusive scan has one more position than it reads.
Result<void> scan_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  for (size_t d = 0; d < query.box.size(); ++d) {
    if (query.bounds.splits[d]) continue;
    TENON_OK(require_whole(query, d));
    op.operands[0][d] = query.box[d];
  }
  return {};
}

// ---- Shape arithmetic ----

// A shape vector reduced to one extent (the number of elements of x, its longest dim ...).
using FoldExprs = Expr (*)(std::span<const Expr>);
InferDimsFn folded_dims(FoldExprs fold) {
  return [fold](const InferContext& context) -> std::optional<std::vector<Dim>> {
    const auto dims = context.dims_value(0);
    if (!dims || dims->empty() || dims->size() > kMostTracedDims) return std::nullopt;
    if (!context.type(0).is_tensor() || !context.type(0).shape().ranked()) return std::nullopt;
    const auto axes = context.has_operand(1) ? known_ints(context, 1) : std::optional(std::vector<int64_t>());
    const auto folds =
        axes ? folded_axes(context.op(), context.type(0).shape().rank(), *axes) : Result(std::vector<bool>());
    if (!axes || !folds.ok()) return std::nullopt;
    if (std::ranges::find(*folds, true) == folds->end()) return dims;
    std::vector<Expr> exprs;
    for (const Dim& dim : *dims) {
      if (!dim.known()) return std::vector<Dim>{Dim()};
      exprs.push_back(dim.expr());
    }
    return std::vector<Dim>{extent(fold(exprs))};
  };
}

// ---- Definitions ----

OpDef reducer(Name name, std::string summary, const TypeSet& types = kNumberTypes) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("data", "T")
      .optional_operand("axes", "i64")
      .result("reduced", "T")
      .types("T", types)
      .attribute("keepdims", int64_t{1})
      .attribute("noop_with_empty_axes", int64_t{0})
      .traits(kReduction)
      .infer(infer_reduce)
      .bounds({reduce_bounds, runs_as_it_is()});
}

OpDef arg(Name name, std::string summary) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("data", "T")
      .result("reduced", "i64")
      .types("T", kNumberTypes)
      .attribute("axis", int64_t{0})
      .attribute("keepdims", int64_t{1})
      .attribute("select_last_index", int64_t{0})
      .traits(kReduction)
      .infer(infer_arg)
      .bounds({arg_bounds, runs_as_it_is()});
}

OpDef scan(Name name, std::string summary) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("x", "T")
      .operand("axis", "T2")
      .result("y", "T")
      .types("T", kNumberTypes)
      .types("T2", kIndexTypes)
      .attribute("exclusive", int64_t{0})
      .attribute("reverse", int64_t{0})
      .traits(Trait::pure | Trait::layout_aware)
      .infer(infer_cumulative)
      .bounds({scan_bounds, scan_sub_box});
}

const OpRegistration kReduceRegistered({
    reducer(ReduceSum::kName, "The sum over `axes`").infer_dims(folded_dims(sum)),
    reducer(ReduceMean::kName, "The mean over `axes`"),
    reducer(ReduceMax::kName, "The greatest element over `axes`", kComparedTypes).infer_dims(folded_dims(max)),
    reducer(ReduceMin::kName, "The least element over `axes`", kComparedTypes).infer_dims(folded_dims(min)),
    reducer(ReduceProd::kName, "The product over `axes`").infer_dims(folded_dims(product)),
    reducer(ReduceL1::kName, "The sum of |data| over `axes`"),
    reducer(ReduceL2::kName, "The square root of the sum of data^2 over `axes`"),
    reducer(ReduceLogSum::kName, "The logarithm of the sum over `axes`"),
    reducer(ReduceLogSumExp::kName, "The logarithm of the sum of e^data over `axes`"),
    reducer(ReduceSumSquare::kName, "The sum of data^2 over `axes`"),
    arg(ArgMax::kName, "Where the greatest element stands along `axis`"),
    arg(ArgMin::kName, "Where the least element stands along `axis`"),
    scan(CumSum::kName, "The running sum along the axis"),
    scan(CumProd::kName, "The running product along the axis"),
});

}  // namespace
}  // namespace tenon
