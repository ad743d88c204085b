#include <tenon/ir/bounds_rule.hpp>

#include <tenon/ir/op_def.hpp>

namespace tenon {
namespace {

Result<const BoundsRule*> rule_of(const Op& op) {
  const OpDef* def = op.def();
  if (!def) return error(Code::not_found, "no operator '", op.name(), "' is defined; load the plugin that brings it");
  if (def->bounds_fn()) return &def->bounds_rule();
  return error(Code::unsupported, op.describe(), " has no bounds rule, so it is no stage of a pipeline");
}

Result<void> check_result(const Op& op, size_t result, int64_t rank, size_t box_rank) {
  if (result >= op.result_count()) {
    return error(Code::invalid_argument, op.describe(), " has ", op.result_count(), " results, there is no result ",
                 result);
  }
  if (static_cast<size_t>(rank) == box_rank) return {};
  return error(Code::invalid_argument, "a box of ", box_rank, " dims is asked of result ", result, " of ",
               op.describe(), ", which has ", rank);
}

// Checks the answer of a rule, because those of plugins are not trusted.
Result<void> check_answer(const BoundsQuery& query, const Bounds& bounds) {
  const Op& op = query.context.op();
  bool fits = bounds.operands.size() == op.operand_count() && bounds.splits.size() == query.box.size();
  for (size_t i = 0; fits && i < op.operand_count(); ++i) {
    const Type& type = query.context.type(i);
    if (bounds.operands[i].kind != OperandBounds::Kind::box) continue;
    fits = type.is_tensor() && type.shape().ranked() && type.shape().dims().size() == bounds.operands[i].dims.size();
  }
  if (fits) return {};
  return error(Code::internal, "the bounds rule of ", op.describe(), " does not answer for its ", op.operand_count(),
               " operands and the ", query.box.size(), " dims of its result");
}

Result<int64_t> number(const Expr& e) {
  if (e.is_constant()) return e.constant();
  return error(Code::unsupported, e, " is no number; a part is run with static shapes only");
}

Result<StaticBox> whole_operand(const InferContext& context, size_t operand) {
  const Type& type = context.type(operand);
  if (!type.is_tensor()) return StaticBox();
  const auto dims = type.shape().static_dims();
  if (!dims) {
    return error(Code::unsupported, "operand ", operand, " is ", type, "; a part is run with static shapes only");
  }
  StaticBox box;
  for (const int64_t dim : *dims) box.push_back({0, dim - 1});
  return box;
}

Result<StaticBox> crop_of(const InferContext& context, size_t operand, const OperandBounds& bounds) {
  TENON_TRY(box, whole_operand(context, operand));
  if (bounds.kind != OperandBounds::Kind::box) return box;
  for (size_t d = 0; d < box.size(); ++d) {
    if (bounds.dims[d].whole) continue;
    TENON_TRY(min, number(bounds.dims[d].min));
    TENON_TRY(max, number(bounds.dims[d].max));
    box[d] = max < min ? StaticRange{0, -1} : StaticRange{min, max};
  }
  return box;
}

bool is_whole(const Dims& shape, const StaticBox& box) {
  for (size_t d = 0; d < box.size(); ++d) {
    if (box[d].min > 0 || box[d].max < shape[d] - 1) return false;
  }
  return true;
}

Result<void> check_static_box(const Op& op, const Dims& shape, const StaticBox& box) {
  for (size_t d = 0; d < box.size(); ++d) {
    if (box[d].min >= 0 && box[d].min <= box[d].max && box[d].max < shape[d]) continue;
    return error(Code::invalid_argument, "the part [", box[d].min, ", ", box[d].max, "] of dim ", d,
                 " of the result of ", op.describe(), " is empty or outside its extent ", shape[d]);
  }
  return {};
}

}  // namespace

Result<Box> whole_box(const Shape& shape) {
  if (!shape.ranked()) return error(Code::invalid_argument, "a shape of unknown rank has no box");
  Box box;
  for (size_t d = 0; d < shape.dims().size(); ++d) {
    if (!shape[d].known()) return error(Code::invalid_argument, "dim ", d, " of ", shape, " has no known extent");
    box.push_back({Expr(0), shape[d].expr() - Expr(1)});
  }
  return box;
}

Box to_box(const StaticBox& box) {
  Box out;
  for (const StaticRange& range : box) out.push_back({Expr(range.min), Expr(range.max)});
  return out;
}

Result<Bounds> operand_bounds(const InferContext& context, size_t result, const Shape& shape, const Box& box) {
  const Op& op = context.op();
  TENON_TRY(rule, rule_of(op));
  if (!shape.ranked()) {
    return error(Code::invalid_argument, "the rank of result ", result, " of ", op.describe(), " is not known");
  }
  TENON_OK(check_result(op, result, shape.rank(), box.size()));
  const BoundsQuery query{context, result, shape, box};
  TENON_TRY(bounds, rule->bounds(query), "the bounds rule of ", op.describe());
  TENON_OK(check_answer(query, bounds));
  return bounds;
}

Result<SubBoxOp> sub_box_op(const InferContext& context, size_t result, const Dims& shape, const StaticBox& box) {
  const Op& op = context.op();
  TENON_TRY(rule, rule_of(op));
  TENON_OK(check_result(op, result, static_cast<int64_t>(shape.size()), box.size()));
  SubBoxOp part{op.attributes(), {}, {}};
  if (is_whole(shape, box)) {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      TENON_TRY(crop, whole_operand(context, i), op.describe());
      part.operands.push_back(std::move(crop));
    }
    return part;
  }
  TENON_OK(check_static_box(op, shape, box));
  if (!rule->sub_box) return error(Code::unsupported, op.describe(), " runs on the whole of its operands only");
  TENON_TRY(bounds, operand_bounds(context, result, Shape(shape), to_box(box)));
  for (size_t i = 0; i < op.operand_count(); ++i) {
    TENON_TRY(crop, crop_of(context, i, bounds.operands[i]), op.describe());
    part.operands.push_back(std::move(crop));
  }
  TENON_OK(rule->sub_box({context, result, shape, box, bounds}, part), "a part of result ", result, " of ",
           op.describe());
  return part;
}

}  // namespace tenon
