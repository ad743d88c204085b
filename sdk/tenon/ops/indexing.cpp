#include <tenon/ops/indexing.hpp>

#include <algorithm>
#include <cmath>

#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>
#include <tenon/ops/movement_internal.hpp>

namespace tenon {
namespace {

// ---- Gather ----

void append(std::vector<Dim>& dims, const Shape& shape, int64_t begin, int64_t end) {
  dims.insert(dims.end(), shape.dims().begin() + begin, shape.dims().begin() + end);
}

InferredTypes infer_gather(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  TENON_TRY(indices, context.tensor(1));
  if (!data.shape.ranked() || !indices.shape.ranked()) return one_type(data.element, Shape());
  TENON_TRY(axis, axis_attribute(context, "axis", 0, data.shape.rank()));
  std::vector<Dim> dims;
  append(dims, data.shape, 0, static_cast<int64_t>(axis));
  append(dims, indices.shape, 0, indices.shape.rank());
  append(dims, data.shape, static_cast<int64_t>(axis) + 1, data.shape.rank());
  return one_type(data.element, Shape(std::move(dims)));
}

std::optional<std::vector<Dim>> dims_of_gather(const InferContext& context) {
  const Type& type = context.type(1);
  if (!type.is_tensor() || !type.shape().ranked() || type.shape().rank() > 1) return std::nullopt;
  const auto data = context.dims_value(0);
  const auto indices = known_ints(context, 1);
  if (!data || !indices || indices->size() > kMostTracedDims) return std::nullopt;
  const auto count = static_cast<int64_t>(data->size());
  std::vector<Dim> out;
  for (const int64_t index : *indices) {
    if (index < -count || index >= count) return std::nullopt;
    out.push_back((*data)[static_cast<size_t>(index < 0 ? index + count : index)]);
  }
  return out;
}

Result<void> require_same_rank(const InferContext& context, size_t a, size_t b) {
  const Type& type = context.type(a);
  return type.is_tensor() && type.shape().ranked() ? require_rank(context, b, type.shape().rank()) : Result<void>();
}

// Checks that along each axis except the one that they address, the indices (operand 1) are no longer than the data
// (operand 0).
Result<void> require_places_inside(const InferContext& context, const Shape& indices, size_t axis) {
  TENON_TRY(data, context.tensor(0));
  for (size_t d = 0; indices.ranked() && d < indices.dims().size(); ++d) {
    const bool beyond =
        d != axis && indices[d].is_static() && data.shape[d].is_static() && indices[d].value() > data.shape[d].value();
    if (!beyond) continue;
    return error(Code::invalid_argument, context.op().describe(), " has indices for ", indices[d],
                 " places along axis ", d, " of ", context.type(0));
  }
  return {};
}

InferredTypes infer_gather_elements(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  TENON_TRY(indices, context.tensor(1));
  TENON_OK(require_same_rank(context, 0, 1));
  if (!data.shape.ranked()) return one_type(data.element, indices.shape);
  TENON_TRY(axis, axis_attribute(context, "axis", 0, data.shape.rank()));
  const Shape shape = indices.shape.ranked() ? indices.shape : unknown_shape(data.shape.rank());
  TENON_OK(require_places_inside(context, shape, axis));
  return one_type(data.element, shape);
}

// The number of axes of data that an ND operator's indices address; nullopt when not known.
Result<std::optional<int64_t>> addressed_axes(const InferContext& context, const Shape& data, const Shape& indices,
                                              int64_t batch) {
  if (!indices.ranked()) return std::optional<int64_t>();
  TENON_OK(require_rank_at_least(context, 1, batch + 1));
  const Dim& last = indices.dims().back();
  if (!last.is_static()) return std::optional<int64_t>();
  if (data.ranked() && batch + last.value() > data.rank()) {
    return error(Code::invalid_argument, context.op().describe(), " has indices of ", last, " positions for ",
                 context.type(0), batch ? str(" behind ", batch, " batch axes") : std::string());
  }
  return std::optional(last.value());
}

InferredTypes infer_gather_nd(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  TENON_TRY(indices, context.tensor(1));
  const auto batch = context.attr<int64_t>("batch_dims", 0);
  if (batch < 0) return error(Code::invalid_argument, "attribute 'batch_dims' of GatherND is ", batch);
  TENON_OK(require_rank_at_least(context, 0, batch + 1));
  TENON_TRY(addressed, addressed_axes(context, data.shape, indices.shape, batch));
  if (!addressed || !data.shape.ranked()) return one_type(data.element, Shape());
  for (int64_t d = 0; d < batch; ++d) {
    if (!certainly_differ(data.shape[d], indices.shape[d])) continue;
    return error(Code::invalid_argument, "batch axis ", d, " of GatherND is ", data.shape[d], " for data and ",
                 indices.shape[d], " for indices");
  }
  std::vector<Dim> dims;
  append(dims, indices.shape, 0, indices.shape.rank() - 1);
  append(dims, data.shape, batch + *addressed, data.shape.rank());
  return one_type(data.element, Shape(std::move(dims)));
}

// ---- Scatter ----

Result<void> require_reducible(const InferContext& context, ElementType element) {
  const auto reduction = context.attr<std::string>("reduction", "none");
  if (reduction == "none" || !element.valid() || element.is_number() || element.is_bool()) return {};
  return error(Code::invalid_argument, context.op().describe(), ": there is no '", reduction, "' of ", element);
}

InferredTypes infer_scatter_elements(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  TENON_TRY(indices, context.tensor(1));
  TENON_TRY(updates, context.tensor(2));
  TENON_OK(require_reducible(context, data.element));
  TENON_OK(require_same_rank(context, 0, 1));
  TENON_OK(merge(indices.shape, updates.shape), "indices and updates of ", context.op().describe());
  if (data.shape.ranked()) {
    TENON_TRY(axis, axis_attribute(context, "axis", 0, data.shape.rank()));
    TENON_OK(require_places_inside(context, indices.shape, axis));
  }
  return std::vector<Type>{context.type(0)};
}

InferredTypes infer_scatter_nd(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  TENON_TRY(indices, context.tensor(1));
  TENON_TRY(updates, context.tensor(2));
  TENON_OK(require_reducible(context, data.element));
  TENON_TRY(addressed, addressed_axes(context, data.shape, indices.shape, 0));
  if (addressed && data.shape.ranked()) {
    std::vector<Dim> dims;
    append(dims, indices.shape, 0, indices.shape.rank() - 1);
    append(dims, data.shape, *addressed, data.shape.rank());
    TENON_OK(merge(Shape(std::move(dims)), updates.shape), "updates of ", context.op().describe(),
             " against what its data and indices ask for");
  }
  return std::vector<Type>{context.type(0)};
}

InferredTypes infer_tensor_scatter(const InferContext& context) {
  TENON_TRY(cache, context.tensor(0));
  TENON_TRY(update, context.tensor(1));
  TENON_OK(require_same_rank(context, 0, 1));
  if (!cache.shape.ranked()) return std::vector<Type>{context.type(0)};
  TENON_TRY(axis, axis_attribute(context, "axis", -2, cache.shape.rank()));
  if (axis == 0) return error(Code::invalid_argument, "attribute 'axis' of TensorScatter is the batch axis 0");
  for (size_t d = 0; update.shape.ranked() && d < cache.shape.dims().size(); ++d) {
    if (d == axis || !certainly_differ(cache.shape[d], update.shape[d])) continue;
    return error(Code::invalid_argument, "axis ", d, " of TensorScatter is ", cache.shape[d], " for the cache and ",
                 update.shape[d], " for the update");
  }
  return std::vector<Type>{context.type(0)};
}

// ---- Compress, OneHot ----

InferredTypes infer_compress(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  TENON_OK(require_rank(context, 1, 1));
  Dim kept;
  if (const Tensor* condition = context.constant(1)) {
    int64_t count = 0;
    for (int64_t i = 0; i < condition->size(); ++i) count += condition->int_at(i);
    kept = count;
  }
  if (!context.op().attributes().has("axis")) return one_type(input.element, {kept});
  if (!input.shape.ranked()) return one_type(input.element, Shape());
  TENON_TRY(axis, axis_attribute(context, "axis", 0, input.shape.rank()));
  input.shape[axis] = kept;
  return one_type(input.element, std::move(input.shape));
}

// The single number of operand `i`, if it is known; an error if it is not a single number.
Result<Dim> single_number(const InferContext& context, size_t i) {
  if (const Tensor* tensor = context.constant(i)) {
    const bool one = tensor->size() == 1;
    if (one && !tensor->element().is_float()) return Dim(tensor->int_at(0));
    // Excludes NaN and values outside int64, for which the conversion is undefined.
    if (one && std::fabs(tensor->double_at(0)) < 0x1p63) return Dim(static_cast<int64_t>(tensor->double_at(0)));
    return error(Code::invalid_argument, "operand '", context.op().def()->operands()[i].name, "' of ",
                 context.op().describe(), " must be one number that fits 64 bits, it is ", *tensor,
                 one ? str(" holding ", tensor->double_at(0)) : std::string());
  }
  const auto dims = context.dims_value(i);
  return dims && dims->size() == 1 ? (*dims)[0] : Dim();
}

InferredTypes infer_one_hot(const InferContext& context) {
  TENON_TRY(indices, context.tensor(0));
  TENON_TRY(values, context.tensor(2));
  TENON_TRY(depth, single_number(context, 1));
  TENON_OK(require_rank(context, 2, 1));
  if (values.shape.ranked() && certainly_differ(values.shape[0], 2)) {
    return error(Code::invalid_argument, "operand 'values' of OneHot must hold two elements, off and on; it is ",
                 context.type(2));
  }
  if (depth.is_static() && depth.value() < 1)
    return error(Code::invalid_argument, "operand 'depth' of OneHot is ", depth);
  if (!indices.shape.ranked()) return one_type(values.element, Shape());
  TENON_TRY(axis, axis_attribute(context, "axis", -1, indices.shape.rank() + 1));
  std::vector<Dim> dims = indices.shape.dims();
  dims.insert(dims.begin() + static_cast<int64_t>(axis), depth);
  return one_type(values.element, Shape(std::move(dims)));
}

// ---- NonZero, Unique, TopK ----

InferredTypes infer_non_zero(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  return one_type(kI64, {x.shape.ranked() ? Dim(x.shape.rank()) : Dim(), Dim()});
}

InferredTypes infer_unique(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  Shape shape{Dim()};
  if (context.op().attributes().has("axis")) {
    shape = x.shape;
    if (shape.ranked()) {
      TENON_TRY(axis, axis_attribute(context, "axis", 0, shape.rank()));
      shape[axis] = Dim();
    }
  }
  const Type list(kI64, Shape{Dim()});
  return std::vector<Type>{Type(x.element, std::move(shape)), list, list, list};
}

InferredTypes infer_top_k(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(k, single_number(context, 1));
  if (x.shape.ranked()) {
    TENON_TRY(axis, axis_attribute(context, "axis", -1, x.shape.rank()));
    if (k.is_static() && (k.value() < 0 || (x.shape[axis].is_static() && k.value() > x.shape[axis].value()))) {
      return error(Code::invalid_argument, "TopK asks for ", k, " of ", x.shape[axis], " elements along axis ", axis,
                   " of ", context.type(0));
    }
    x.shape[axis] = k;
  }
  return std::vector<Type>{Type(x), Type(kI64, x.shape)};
}

// ---- Bounds ----

// The least and the greatest index in the box of `indices`, counted from the front; all positions if they are not
// known.
DimBounds gathered_range(const BoundsQuery& query, const Dim& extent, const Box& box) {
  const Tensor* indices = query.context.constant(1);
  const bool told = indices && indices->size() > 0 && extent.is_static();
  std::optional<int64_t> least, greatest;
  const auto inside = [&](int64_t element) {
    for (size_t d = box.size(); d-- > 0; element /= indices->dim(d)) {
      const Expr at(element % indices->dim(d));
      const bool out = (box[d].min.is_constant() && at < box[d].min) || (box[d].max.is_constant() && box[d].max < at);
      if (out) return false;
    }
    return true;
  };
  for (int64_t i = 0; told && i < indices->size(); ++i) {
    if (!inside(i)) continue;
    const int64_t index = indices->int_at(i), at = index < 0 ? index + extent.value() : index;
    least = std::min(least.value_or(at), at);
    greatest = std::max(greatest.value_or(at), at);
  }
  const bool numbers = std::ranges::all_of(
      box, [](const BoxRange& range) { return range.min.is_constant() && range.max.is_constant(); });
  if (!least) return whole_dim(extent, false);
  return numbers ? exactly({Expr(*least), Expr(*greatest)}) : at_most({Expr(*least), Expr(*greatest)});
}

Result<Bounds> gather_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape *data = ranked_shape(query.context, 0), *indices = ranked_shape(query.context, 1);
  if (!data || !indices) return bounds;
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, data->rank()));
  const auto at = query.box.begin() + static_cast<int64_t>(axis);
  const Box taken(at, at + indices->rank());
  std::vector<DimBounds> from, by;
  for (const BoxRange& range : taken) by.push_back(exactly(range));
  for (size_t d = 0; d < data->dims().size(); ++d) {
    const size_t place = d < axis ? d : d - 1 + taken.size();
    from.push_back(d == axis ? gathered_range(query, (*data)[d], taken) : exactly(query.box[place]));
  }
  bounds.operands[0] = boxed(std::move(from));
  bounds.operands[1] = boxed(std::move(by));
  return bounds;
}

// Indices count from the first position of the axis, so the axis must stay whole.
Result<void> gather_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  const Shape& data = query.context.type(0).shape();
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, data.rank()));
  op.operands[0][axis] = {0, data[axis].value() - 1};
  return {};
}

Result<Bounds> gather_elements_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, query.shape.rank()));
  bounds.operands[1] = follow(query, 1, each_dim(query.box.size()));
  bounds.operands[0] = inexact(follow(query, 0, each_dim(query.box.size(), {axis})));
  return bounds;
}

// Batch dims and trailing dims follow; the positions in addressed dims depend on data.
Result<Bounds> gather_nd_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const Shape *data = ranked_shape(query.context, 0), *indices = ranked_shape(query.context, 1);
  if (!data || !indices) return bounds;
  const auto batch = static_cast<size_t>(query.context.attr<int64_t>("batch_dims", 0));
  std::vector<int> to(data->dims().size(), kWhole), places = each_dim(indices->dims().size() - 1);
  for (size_t d = 0; d < batch; ++d) to[d] = static_cast<int>(d);
  const size_t trailing = query.box.size() - places.size();
  for (size_t d = 0; d < trailing; ++d) {
    to[to.size() - trailing + d] = static_cast<int>(places.size() + d);
  }
  places.push_back(kWhole);
  bounds.operands[0] = inexact(follow(query, 0, to));
  bounds.operands[1] = follow(query, 1, places);
  return bounds;
}

// Lines along the axis are independent, as far as there are indices for them.
Result<Bounds> scatter_elements_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, query.shape.rank()));
  bounds.operands[0] = inexact(follow(query, 0, each_dim(query.box.size())));
  bounds.splits[axis] = false;
  for (const size_t i : {1, 2}) {
    const Shape* shape = ranked_shape(query.context, i);
    for (size_t d = 0; shape && d < query.box.size(); ++d) {
      if (d != axis) bounds.operands[i].dims[d] = clamped(query.box[d], (*shape)[d], false);
    }
  }
  return bounds;
}

// Lines without an index keep the values of data.
Result<void> scatter_elements_sub_box(const SubBoxQuery& query, SubBoxOp&) {
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, static_cast<int64_t>(query.box.size())));
  return require_whole(query, axis);
}

// Only the dims that no index addresses are independent.
Result<Bounds> scatter_nd_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query, false);
  bounds.operands[0] = inexact(follow(query, 0, each_dim(query.box.size())));
  const Shape *indices = ranked_shape(query.context, 1), *updates = ranked_shape(query.context, 2);
  if (!indices || !updates || !indices->dims().back().is_static()) return bounds;
  const auto addressed = static_cast<size_t>(indices->dims().back().value());
  const size_t places = indices->dims().size() - 1;
  for (size_t d = addressed; d < query.box.size(); ++d) {
    bounds.splits[d] = true;
    bounds.operands[2].dims[places + d - addressed] = at_most(query.box[d]);
  }
  return bounds;
}

Result<Bounds> tensor_scatter_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", -2, query.shape.rank()));
  bounds.operands[0] = inexact(follow(query, 0, each_dim(query.box.size())));
  bounds.operands[1] = inexact(follow(query, 1, each_dim(query.box.size(), {axis})));
  if (ranked_shape(query.context, 2)) bounds.operands[2] = inexact(follow(query, 2, {0}));
  bounds.splits[axis] = false;
  return bounds;
}

Result<Bounds> compress_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query, false);
  if (!query.context.op().attributes().has("axis")) return bounds;
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, query.shape.rank()));
  bounds.operands[0] = inexact(follow(query, 0, each_dim(query.box.size(), {axis})));
  bounds.splits.assign(query.box.size(), true);
  bounds.splits[axis] = false;
  return bounds;
}

Result<Bounds> one_hot_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", -1, query.shape.rank()));
  std::vector<int> to = each_dim(query.box.size());
  to.erase(to.begin() + static_cast<int64_t>(axis));
  bounds.operands[0] = follow(query, 0, to);
  return bounds;
}

Result<void> one_hot_sub_box(const SubBoxQuery& query, SubBoxOp&) {
  TENON_TRY(axis, axis_attribute(query.context, "axis", -1, static_cast<int64_t>(query.box.size())));
  return require_whole(query, axis);
}

// ---- Definitions ----

using detail::kMoves;
constexpr Trait kFinds = Trait::pure | Trait::layout_aware | Trait::data_dependent;
const TypeSet kOrderedTypes("number, bool and string tensors", [](ElementType e) { return !e.is_complex(); });

// data and indices first, result last, for gathering and scattering.
OpDef indexed(std::string_view name, std::string_view summary) {
  return OpDef(name)
      .summary(std::string(summary))
      .operand("data", "T")
      .operand("indices", "Tind")
      .result("output", "T")
      .types("T", kAnyTensor)
      .types("Tind", kIndexTypes)
      .traits(kMoves);
}
OpDef scattering(std::string_view name, std::string_view summary) {
  return indexed(name, summary)
      .operand("updates", "T")
      .attribute("reduction", "none")
      .one_of({"none", "add", "mul", "max", "min"})
      .traits(Trait::pure | Trait::layout_aware);
}

const OpRegistration kIndexingRegistered({
    indexed(Gather::kName, "The slices of `data` along `axis` that `indices` names")
        .attribute("axis", int64_t{0})
        .infer(infer_gather)
        .bounds({gather_bounds, gather_sub_box})
        .infer_dims(dims_of_gather),
    indexed(GatherElements::kName, "y[i] = data[i with i[axis] replaced by indices[i]]")
        .attribute("axis", int64_t{0})
        .infer(infer_gather_elements)
        .bounds({gather_elements_bounds, runs_as_it_is()}),
    indexed(GatherND::kName, "The slices of `data` at the positions that the last axis of `indices` holds")
        .attribute("batch_dims", int64_t{0})
        .infer(infer_gather_nd)
        .bounds({gather_nd_bounds, runs_as_it_is()}),
    scattering(ScatterElements::kName, "data with y[i with i[axis] replaced by indices[i]] = updates[i]")
        .attribute("axis", int64_t{0})
        .infer(infer_scatter_elements)
        .bounds({scatter_elements_bounds, scatter_elements_sub_box}),
    scattering(ScatterND::kName, "data with `updates` put at the positions that the last axis of `indices` holds")
        .infer(infer_scatter_nd)
        .bounds({scatter_nd_bounds, runs_as_it_is()}),
    OpDef(TensorScatter::kName)
        .summary("`past_cache` with `update` written from write_indices[batch] on along `axis`")
        .operand("past_cache", "T")
        .operand("update", "T")
        .optional_operand("write_indices", "i64")
        .result("present_cache", "T")
        .types("T", kAnyTensor)
        .attribute("axis", int64_t{-2})
        .attribute("mode", "linear")
        .one_of({"linear", "circular"})
        .traits(kMoves)
        .infer(infer_tensor_scatter)
        .bounds({tensor_scatter_bounds, runs_as_it_is()}),
    OpDef(Compress::kName)
        .summary("The slices of `input` along `axis`, or its elements, where `condition` holds")
        .operand("input", "T")
        .operand("condition", "bool")
        .result("output", "T")
        .types("T", kAnyTensor)
        .optional_attribute("axis", AttributeKind::integer)
        .traits(kFinds | Trait::movement)
        .infer(infer_compress)
        .bounds({compress_bounds, runs_as_it_is()}),
    OpDef(OneHot::kName)
        .summary("values[1] where the position along the inserted axis is the index, else values[0]")
        .operand("indices", "T1")
        .operand("depth", "T2")
        .operand("values", "T3")
        .result("output", "T3")
        .types("T1", kNumberTypes)
        .types("T2", kNumberTypes)
        .types("T3", kAnyTensor)
        .attribute("axis", int64_t{-1})
        .infer(infer_one_hot)
        .bounds({one_hot_bounds, one_hot_sub_box}),
    OpDef(NonZero::kName)
        .summary("The indices of the elements that are not zero, one column each")
        .operand("X", "T")
        .result("Y", "i64")
        .types("T", kAnyTensor)
        .traits(kFinds)
        .infer(infer_non_zero)
        .bounds(whole_operands()),
    OpDef(Unique::kName)
        .summary(
            "The different elements, or slices along `axis`; where each is first, which each is, how often each occurs")
        .operand("X", "T")
        .result("Y", "T")
        .result("indices", "i64", Arity::optional)
        .result("inverse_indices", "i64", Arity::optional)
        .result("counts", "i64", Arity::optional)
        .types("T", kOrderedTypes)
        .optional_attribute("axis", AttributeKind::integer)
        .attribute("sorted", int64_t{1})
        .traits(kFinds)
        .infer(infer_unique)
        .bounds(whole_operands()),
    OpDef(TopK::kName)
        .summary("The K largest or smallest elements along `axis`, and their indices")
        .operand("X", "T")
        .operand("K", "i64")
        .result("Values", "T")
        .result("Indices", "i64")
        .types("T", kNumberTypes)
        .attribute("axis", int64_t{-1})
        .attribute("largest", int64_t{1})
        .attribute("sorted", int64_t{1})
        .traits(Trait::pure | Trait::layout_aware | Trait::reduction)
        .infer(infer_top_k)
        .bounds(whole_along("axis", -1)),
});

}  // namespace
}  // namespace tenon
