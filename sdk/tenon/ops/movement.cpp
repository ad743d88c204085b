// Permutation, concatenation and splitting.
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

// Each axis must occur once, counted from the front as in ONNX: readers of `perm` use its numbers unchanged.
Result<void> check_permutation(std::span<const int64_t> perm) {
  std::vector<bool> seen(perm.size());
  for (const int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(perm.size())) {
      return error(Code::invalid_argument, "axis ", axis, " in ", perm, " is outside [0, ",
                   static_cast<int64_t>(perm.size()) - 1, "]");
    }
    if (seen[static_cast<size_t>(axis)]) {
      return error(Code::invalid_argument, "axis ", axis, " stands twice in ", perm);
    }
    seen[static_cast<size_t>(axis)] = true;
  }
  return {};
}

InferredTypes infer_transpose(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  const auto perm = context.attr<Attribute::Integers>("perm");
  TENON_OK(check_permutation(perm), "attribute 'perm' of Transpose");
  if (!data.shape.ranked()) return one_type(data.element, perm.empty() ? Shape() : unknown_shape(perm.size()));
  std::vector<Dim> dims(data.shape.dims().rbegin(), data.shape.dims().rend());
  if (!perm.empty()) {
    if (perm.size() != dims.size()) {
      return error(Code::invalid_argument, "attribute 'perm' of Transpose names ", perm.size(), " axes of ",
                   context.type(0), ", it must name each once");
    }
    for (size_t d = 0; d < perm.size(); ++d) dims[d] = data.shape[static_cast<size_t>(perm[d])];
  }
  return one_type(data.element, Shape(std::move(dims)));
}

InferredTypes infer_concat(const InferContext& context) {
  TENON_TRY(first, context.tensor(0));
  Shape shape;
  Dim total = 0;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    TENON_TRY(next, context.tensor(i));
    if (!next.shape.ranked()) {
      total = Dim();
      continue;
    }
    TENON_TRY(axis, axis_attribute(context, "axis", 0, next.shape.rank()));
    total = total + next.shape[axis];
    next.shape[axis] = Dim();
    TENON_TRY(merged, merge(shape, next.shape), "operand ", i, " of ", context.op().describe(),
              " beside those before it");
    shape = std::move(merged);
  }
  if (shape.ranked()) {
    TENON_TRY(axis, axis_attribute(context, "axis", 0, shape.rank()));
    shape[axis] = total;
  }
  return one_type(first.element, std::move(shape));
}

std::optional<std::vector<Dim>> dims_of_concat(const InferContext& context) {
  std::vector<Dim> all;
  for (size_t i = 0; i < context.operand_count(); ++i) {
    const auto part = context.dims_value(i);
    if (!part || all.size() + part->size() > kMostTracedDims) return std::nullopt;
    all.insert(all.end(), part->begin(), part->end());
  }
  return all;
}

// The length of part `i` of an axis that is split into `count` parts.
Dim part_of(const Dim& whole, int64_t count, int64_t i) {
  if (!whole.known()) return Dim();
  const Expr part = ceildiv(whole.expr(), Expr(count));
  if (i == 0) return extent(part);
  return extent(min(part, max(Expr(0), whole.expr() - Expr(i) * part)));
}

InferredTypes infer_split(const InferContext& context) {
  TENON_TRY(input, context.tensor(0));
  const size_t count = context.op().result_count();
  if (!input.shape.ranked()) return std::vector<Type>(count, Type(input.element, Shape()));
  TENON_TRY(axis, axis_attribute(context, "axis", 0, input.shape.rank()));
  const Dim whole = input.shape[axis];
  std::vector<Dim> parts(count);
  if (context.has_operand(1)) {
    if (const auto given = context.dims_value(1)) {
      if (given->size() != count) {
        return error(Code::invalid_argument, "operand 'split' of ", context.op().describe(), " gives ", given->size(),
                     " lengths for ", count, " results");
      }
      parts = *given;
    }
    const Dim total = std::accumulate(parts.begin(), parts.end(), Dim(0));
    if (certainly_differ(total, whole)) {
      return error(Code::invalid_argument, "operand 'split' of ", context.op().describe(), " adds up to ", total,
                   ", axis ", axis, " of ", context.type(0), " has ", whole);
    }
    for (const Dim& part : parts) {
      if (part.is_static() && part.value() < 0) {
        return error(Code::invalid_argument, "operand 'split' of ", context.op().describe(),
                     " has the negative length ", part);
      }
      // The total may have overflowed; then it is not known to differ.
      if (part.is_static() && whole.is_static() && part.value() > whole.value()) {
        return error(Code::invalid_argument, "operand 'split' of ", context.op().describe(), " has the length ", part,
                     ", axis ", axis, " of ", context.type(0), " has ", whole);
      }
    }
  } else {
    const auto asked = context.attr<int64_t>("num_outputs", static_cast<int64_t>(count));
    if (asked != static_cast<int64_t>(count)) {
      return error(Code::invalid_argument, "attribute 'num_outputs' of ", context.op().describe(), " is ", asked,
                   ", it has ", count, " results");
    }
    for (size_t i = 0; i < count; ++i) parts[i] = part_of(whole, asked, static_cast<int64_t>(i));
  }
  std::vector<Type> types;
  for (const Dim& part : parts) {
    input.shape[axis] = part;
    types.emplace_back(input);
  }
  return types;
}

// ---- Bounds ----

Result<Bounds> transpose_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const auto rank = static_cast<int>(query.box.size());
  const auto perm = query.context.attr<Attribute::Integers>("perm");
  std::vector<int> to(query.box.size());
  for (int d = 0; d < rank; ++d) {
    const int64_t from = perm.empty() ? rank - 1 - d : perm[static_cast<size_t>(d)];
    to[static_cast<size_t>(from)] = d;
  }
  bounds.operands[0] = follow(query, 0, to);
  return bounds;
}

// Each operand's part of the box; empty for operands outside it.
Result<Bounds> concat_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, query.shape.rank()));
  Dim before = 0;
  for (size_t i = 0; i < bounds.operands.size(); ++i) {
    const Shape* shape = ranked_shape(query.context, i);
    const Dim own = shape ? (*shape)[axis] : Dim();
    if (shape) {
      std::vector<DimBounds> dims;
      for (const BoxRange& range : query.box) dims.push_back(exactly(range));
      const bool told = before.known() && own.known();
      dims[axis] = told ? clamped(shifted(query.box[axis], -before.expr()), own) : whole_dim(own, false);
      bounds.operands[i] = boxed(std::move(dims));
    }
    before = before + own;
  }
  return bounds;
}

// Operands of which nothing is needed are concatenated with extent 0.
Result<void> concat_sub_box(const SubBoxQuery&, SubBoxOp&) { return {}; }

// The position on the axis of extent `whole` at which result `result` of a Split begins; unknown if not determined.
Dim part_begin(const InferContext& context, const Dim& whole, size_t result) {
  if (result == 0) return 0;
  const size_t count = context.op().result_count();
  if (context.has_operand(1)) {
    const auto given = context.dims_value(1);
    if (!given || given->size() != count) return Dim();
    return std::accumulate(given->begin(), given->begin() + static_cast<int64_t>(result), Dim(0));
  }
  if (!whole.known()) return Dim();
  // The sum of part_of() of the results before it.
  const Expr part = ceildiv(whole.expr(), Expr(static_cast<int64_t>(count)));
  return extent(min(Expr(static_cast<int64_t>(result)) * part, whole.expr()));
}

Result<Bounds> split_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, query.shape.rank()));
  const Shape* input = ranked_shape(query.context, 0);
  if (!input) return bounds;
  const Dim before = part_begin(query.context, (*input)[axis], query.result);
  bounds.operands[0] = follow(query, 0, each_dim(query.box.size()));
  bounds.operands[0].dims[axis] =
      before.known() ? exactly(shifted(query.box[axis], before.expr())) : whole_dim((*input)[axis], false);
  return bounds;
}

// The crop is all of that one result; the others get nothing.
Result<void> split_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  TENON_TRY(axis, axis_attribute(query.context, "axis", 0, static_cast<int64_t>(query.box.size())));
  std::vector<int64_t> lengths(query.context.op().result_count(), 0);
  lengths[query.result] = query.box[axis].extent();
  op.attributes.erase("num_outputs");
  op.replaced[1] = ints_tensor(lengths);
  return {};
}

// ---- Definitions ----

const OpRegistration kMovementRegistered({
    mover(Transpose::kName, "Axis d of the result is axis perm[d] of `data`", "data")
        .optional_attribute("perm", AttributeKind::integers)
        .infer(infer_transpose)
        .bounds({transpose_bounds, runs_as_it_is()}),
    OpDef(Concat::kName)
        .summary("The operands one behind the other along `axis`")
        .variadic_operands("inputs", "T", 1)
        .result("concat_result", "T")
        .types("T", kAnyTensor)
        .required_attribute("axis", AttributeKind::integer)
        .traits(kMoves)
        .infer(infer_concat)
        .bounds({concat_bounds, concat_sub_box})
        .infer_dims(dims_of_concat),
    OpDef(Split::kName)
        .summary("`input` cut along `axis` into parts of the lengths `split`, or into equal ones")
        .operand("input", "T")
        .optional_operand("split", "i64")
        .variadic_results("outputs", "T", 1)
        .types("T", kAnyTensor)
        .attribute("axis", int64_t{0})
        .optional_attribute("num_outputs", AttributeKind::integer)
        .traits(kMoves)
        .infer(infer_split)
        .bounds({split_bounds, split_sub_box}),
});

}  // namespace
}  // namespace tenon
