#include <tenon/ops/attention.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

constexpr TypeSet kMask("floats, integers and booleans", [](ElementType e) { return e.is_number() || e.is_bool(); });

// [batch, heads, length, head size] of Q, K or V.
struct HeadShape {
  Dim batch, heads, length, size;
};

Result<HeadShape> head_shape(const InferContext& context, size_t operand, Name heads_attribute) {
  const Op& op = context.op();
  TENON_TRY(type, context.tensor(operand));
  if (!type.shape.ranked()) return HeadShape();
  if (type.shape.rank() == 4) return HeadShape{type.shape[0], type.shape[1], type.shape[2], type.shape[3]};
  const int64_t heads = op.attr<int64_t>(heads_attribute, 0);
  if (type.shape.rank() != 3) {
    return error(Code::invalid_argument, "operand ", operand, " of ", op.describe(), " is ", type.shape,
                 ", it needs rank 3 or 4");
  }
  if (heads < 1 || (type.shape[2].is_static() && type.shape[2].value() % heads != 0)) {
    return error(Code::invalid_argument, "operand ", operand, " of ", op.describe(), " is ", type.shape, ", ",
                 heads_attribute, " = ", heads, " does not divide its last axis");
  }
  return HeadShape{type.shape[0], Dim(heads), type.shape[1], floordiv(type.shape[2], Dim(heads))};
}

Result<void> heads_fit(const Op& op, const HeadShape& q, const HeadShape& k, const HeadShape& v) {
  if (certainly_differ(q.batch, k.batch) || certainly_differ(q.batch, v.batch)) {
    return error(Code::invalid_argument, op.describe(), ": Q has a batch of ", q.batch, ", K of ", k.batch, ", V of ",
                 v.batch);
  }
  if (certainly_differ(q.size, k.size)) {
    return error(Code::invalid_argument, op.describe(), ": the heads of Q have ", q.size, " elements, those of K ",
                 k.size);
  }
  if (certainly_differ(k.length, v.length) || certainly_differ(k.heads, v.heads)) {
    return error(Code::invalid_argument, op.describe(), ": K has ", k.heads, " heads of length ", k.length, ", V ",
                 v.heads, " of length ", v.length);
  }
  if (q.heads.is_static() && k.heads.is_static() && (k.heads.value() < 1 || q.heads.value() % k.heads.value() != 0)) {
    return error(Code::invalid_argument, op.describe(), ": ", q.heads, " query heads cannot share ", k.heads,
                 " key heads");
  }
  return {};
}

InferredTypes infer_attention(const InferContext& context) {
  const Op& op = context.op();
  TENON_TRY(q, head_shape(context, 0, "q_num_heads"));
  TENON_TRY(k, head_shape(context, 1, "kv_num_heads"));
  TENON_TRY(v, head_shape(context, 2, "kv_num_heads"));
  TENON_OK(heads_fit(op, q, k, v));
  const ElementType q_element = context.type(0).element();
  Dim length = k.length;
  if (given(context, 4) != given(context, 5))
    return error(Code::invalid_argument, op.describe(), " needs past_key and past_value, or neither");
  if (given(context, 4)) {
    TENON_OK(require_shape(context, 4, {k.batch, k.heads, Dim(), k.size}));
    TENON_TRY(past, context.tensor(4));
    const Dim before = past.shape.ranked() ? past.shape[2] : Dim();
    TENON_OK(require_shape(context, 5, {v.batch, v.heads, before, v.size}));
    length = before + length;
  }
  const Shape& q_shape = context.type(0).shape();
  Shape y;
  if (q_shape.ranked()) {
    y = q_shape.rank() == 4 ? Shape{q.batch, q.heads, q.length, v.size} : Shape{q.batch, q.length, q.heads * v.size};
  }
  const std::vector<Type> all{Type(q_element, y),
                              Type(context.type(1).element(), Shape{k.batch, k.heads, length, k.size}),
                              Type(context.type(2).element(), Shape{v.batch, v.heads, length, v.size}),
                              Type(q_element, Shape{q.batch, q.heads, q.length, length})};
  return std::vector<Type>(all.begin(), all.begin() + static_cast<int64_t>(op.result_count()));
}

Result<void> modifiers_fit(const InferContext& context) {
  const Type scores;  // unknown: the region declares their type
  for (const size_t modifier : {size_t{0}, size_t{1}}) TENON_OK(check_region(context, modifier, {&scores, 1}, 1));
  return {};
}

InferredTypes infer_flex_attention(const InferContext& context) {
  TENON_OK(modifiers_fit(context));
  for (const size_t operand : {size_t{0}, size_t{1}, size_t{2}}) TENON_OK(require_rank(context, operand, 4));
  return infer_attention(context);
}

InferredTypes infer_rotary(const InferContext& context) {
  const Op& op = context.op();
  TENON_TRY(x, head_shape(context, 0, "num_heads"));
  const int64_t rotated = op.attr<int64_t>("rotary_embedding_dim", 0);
  const int64_t size = rotated > 0 ? rotated : x.size.is_static() ? x.size.value() : 0;
  if (rotated < 0 || size % 2 != 0 || (x.size.is_static() && size > x.size.value())) {
    return error(Code::invalid_argument, op.describe(), " turns ", size, " elements of heads of ", x.size,
                 ": it must be even and fit");
  }
  const bool looked_up = given(context, 3);
  for (const size_t operand : {size_t{1}, size_t{2}}) {
    TENON_OK(require_rank(context, operand, looked_up ? 2 : 3));
    const Shape& cache = context.type(operand).shape();
    if (size > 0 && cache.ranked() && certainly_differ(cache.dims().back(), Dim(size / 2))) {
      return error(Code::invalid_argument, "operand ", operand, " of ", op.describe(), " is ", cache,
                   ", its last axis must be ", size / 2);
    }
  }
  const Shape& cosines = context.type(1).shape();
  if (cosines.ranked()) TENON_OK(require_shape(context, 2, cosines));
  if (looked_up) TENON_OK(require_shape(context, 3, {x.batch, x.length}));
  return same_as_operand(0)(context);
}

InferredTypes infer_linear_attention(const InferContext& context) {
  const Op& op = context.op();
  for (const size_t operand : {size_t{0}, size_t{1}, size_t{2}}) TENON_OK(require_rank(context, operand, 3));
  TENON_TRY(q, head_shape(context, 0, "q_num_heads"));
  TENON_TRY(k, head_shape(context, 1, "kv_num_heads"));
  TENON_TRY(v, head_shape(context, 2, "kv_num_heads"));
  TENON_OK(heads_fit(op, q, k, v));
  const auto rule = op.attr<std::string>("update_rule", "gated_delta");
  if (given(context, 4) != (rule == "gated" || rule == "gated_delta") ||
      given(context, 5) != (rule == "delta" || rule == "gated_delta")) {
    return error(Code::invalid_argument, op.describe(), " with update_rule '", rule, "' has decay: ", given(context, 4),
                 ", beta: ", given(context, 5), "; gated rules need decay, delta rules beta, others neither");
  }
  if (certainly_differ(q.length, k.length)) {
    return error(Code::invalid_argument, op.describe(), ": query has ", q.length, " steps, key ", k.length);
  }
  if (given(context, 3)) TENON_OK(require_shape(context, 3, {k.batch, k.heads, k.size, v.size}));
  // decay: one number for all heads, one per head, or one per element of a head's key; beta: one of the former two.
  for (const size_t operand : {size_t{4}, size_t{5}}) {
    if (!given(context, operand)) continue;
    TENON_OK(require_shape(context, operand, {k.batch, k.length, Dim()}));
    const Shape& shape = context.type(operand).shape();
    if (!shape.ranked() || !certainly_differ(shape[2], Dim(1)) || !certainly_differ(shape[2], k.heads) ||
        (operand == 4 && !certainly_differ(shape[2], k.heads * k.size)))
      continue;
    return error(Code::invalid_argument, "operand ", operand, " of ", op.describe(), " is ", shape,
                 ", its last axis must be 1 or ", k.heads, operand == 4 ? str(" or ", k.heads * k.size) : "");
  }
  const Dim heads(op.attr<int64_t>("q_num_heads", 0));
  const ElementType state =
      given(context, 3) && context.type(3).is_tensor() ? context.type(3).element() : context.type(0).element();
  std::vector<Type> types{Type(context.type(0).element(), Shape{q.batch, q.length, heads * v.size})};
  if (op.result_count() > 1) types.emplace_back(state, Shape{q.batch, k.heads, k.size, v.size});
  return types;
}

// ---- Bounds ----

// The heads, and elements of a head, in a box of [B, H, L, D] or [B, L, H * D].
struct HeadBox {
  BoxRange batch, heads, length, size;
};

// `size`: of one head of the value that the box belongs to.
HeadBox head_box(const BoundsQuery& query, const Expr& size) {
  const Box& box = query.box;
  if (box.size() == 4) return {box[0], box[1], box[2], box[3]};
  return {box[0], outer_part(box[2], size), box[1], inner_part(box[2], size)};
}

// The part of Q, K or V that contains `box`; whole heads with `whole_size`, all positions with `whole_length`.
OperandBounds of_heads(const BoundsQuery& query, size_t operand, const HeadBox& box, const HeadShape& head,
                       bool whole_length, bool whole_size) {
  const Shape& shape = *ranked_shape(query.context, operand);
  if (shape.rank() == 4) {
    return boxed({exactly(box.batch), exactly(box.heads), whole_length ? whole_dim(shape[2]) : exactly(box.length),
                  whole_size ? whole_dim(shape[3]) : exactly(box.size)});
  }
  const BoxRange last = whole_size ? groups(box.heads, head.size.expr())
                                   : BoxRange{box.heads.min * head.size.expr() + box.size.min,
                                              box.heads.max * head.size.expr() + box.size.max};
  return boxed({exactly(box.batch), whole_length ? whole_dim(shape[1]) : exactly(box.length), exactly(last)});
}

bool all_known(const HeadShape& head) {
  return head.batch.known() && head.heads.known() && head.length.known() && head.size.known();
}

// A box of present_key or present_value: its part of the past, followed by that of K or V.
void present_bounds(const BoundsQuery& query, const HeadShape& head, Bounds& bounds) {
  const size_t operand = query.result, past_at = operand + 3;
  const Shape* past = ranked_shape(query.context, past_at);
  HeadBox box = head_box(query, head.size.expr());
  const Dim before = past ? (*past)[2] : Dim(0);
  if (!before.known()) return;
  if (past) {
    bounds.operands[past_at] =
        boxed({exactly(box.batch), exactly(box.heads), clamped(box.length, before), exactly(box.size)});
  }
  const DimBounds own = clamped(shifted(box.length, -before.expr()), head.length);
  box.length = {own.min, own.max};
  bounds.operands[operand] = of_heads(query, operand, box, head, false, false);
}

// Rows of Q need all of K and V of their heads. Key heads are shared by groups of query heads.
Result<Bounds> attention_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query, false);
  for (const size_t operand : {size_t{0}, size_t{1}, size_t{2}}) {
    if (!ranked_shape(query.context, operand)) return bounds;
  }
  TENON_TRY(q, head_shape(query.context, 0, "q_num_heads"));
  TENON_TRY(k, head_shape(query.context, 1, "kv_num_heads"));
  TENON_TRY(v, head_shape(query.context, 2, "kv_num_heads"));
  if (!all_known(q) || !all_known(k) || !all_known(v)) return bounds;
  if (query.result == 1 || query.result == 2) {
    present_bounds(query, query.result == 1 ? k : v, bounds);
    return bounds;
  }
  const HeadBox rows = head_box(query, v.size.expr());
  HeadBox keys = rows;
  keys.heads = outer_part(rows.heads, floordiv(q.heads.expr(), k.heads.expr()));
  const bool scores = query.result == 3;
  bounds.operands[0] = of_heads(query, 0, rows, q, false, true);
  bounds.operands[1] = of_heads(query, 1, keys, k, true, true);
  bounds.operands[2] = of_heads(query, 2, keys, v, true, scores);
  if (scores) bounds.operands[2] = inexact(bounds.operands[2]);
  const BoxRange size = keys.size;
  for (const size_t past : {size_t{4}, size_t{5}}) {
    const Shape* shape = ranked_shape(query.context, past);
    if (!shape) continue;
    const DimBounds last = past == 4 || scores ? whole_dim((*shape)[3]) : exactly(size);
    bounds.operands[past] = boxed({exactly(keys.batch), exactly(keys.heads), whole_dim((*shape)[2]), last});
    if (scores) bounds.operands[past] = inexact(bounds.operands[past]);
  }
  if (const Shape* mask = ranked_shape(query.context, 3)) {
    const BoxRange by_dim[] = {rows.batch, rows.heads, rows.length};
    const size_t rank = mask->dims().size();
    for (size_t d = 0; d + 1 < rank && rank <= 4; ++d) {
      const bool one = (*mask)[d].is_static() && (*mask)[d].value() == 1;
      const bool follows = (*mask)[d].is_static() && !one;
      if (follows) bounds.operands[3].dims[d] = at_most(by_dim[4 - rank + d]);
    }
  }
  if (ranked_shape(query.context, 6)) bounds.operands[6] = boxed({at_most(rows.batch)});
  bounds.splits.assign(query.box.size(), true);
  bounds.splits.back() = false;
  // Rows that see nothing, or not everything, read less than all keys.
  for (const size_t operand : {size_t{1}, size_t{2}, size_t{4}, size_t{5}}) {
    if (operand < bounds.operands.size()) bounds.operands[operand] = inexact(bounds.operands[operand]);
  }
  return bounds;
}

// Causal rows count from the first one, so rows must not be split; nor must query heads that share keys.
Result<void> attention_sub_box(const SubBoxQuery& query, SubBoxOp& op) {
  if (query.result != 0) return error(Code::unsupported, "only parts of Y are computed by themselves");
  const bool by_heads = query.box.size() == 4;
  if (query.context.attr<int64_t>("is_causal", 0) != 0) TENON_OK(require_whole(query, by_heads ? 2 : 1));
  if (by_heads) {
    const int64_t q = query.context.type(0).shape()[1].value(), k = query.context.type(1).shape()[1].value();
    const StaticRange& heads = query.box[1];
    if (q != k && (heads.min % (q / k) != 0 || (heads.max + 1) % (q / k) != 0)) {
      return error(Code::unsupported, "the heads [", heads.min, ", ", heads.max,
                   "] cut through those that share a key");
    }
  }
  return runs_as_it_is()(query, op);
}

// Pairs are within one head; all other dims are independent.
Result<Bounds> rotary_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(head, head_shape(query.context, 0, "num_heads"));
  const size_t rank = query.box.size();
  bounds.splits.back() = false;
  bounds.operands[0] = follow(query, 0, each_dim(rank, {rank - 1}));
  if (rank == 3 && bounds.operands[0].kind == OperandBounds::Kind::box && head.size.known()) {
    bounds.operands[0].dims[2] = exactly(groups(outer_part(query.box[2], head.size.expr()), head.size.expr()));
  }
  // With rotary_embedding_dim, some elements of a head are only copied.
  bounds.operands[0] = inexact(bounds.operands[0]);
  const int length = rank == 4 ? 2 : 1;
  if (ranked_shape(query.context, 3)) {
    bounds.operands[3] = inexact(follow(query, 3, {0, length}));
  } else {
    for (const size_t cache : {size_t{1}, size_t{2}})
      bounds.operands[cache] = inexact(follow(query, cache, {0, length, kWhole}));
  }
  return bounds;
}

// Batch entries are independent; steps need those before them.
Result<Bounds> linear_attention_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query, false);
  bounds.splits[0] = true;
  for (size_t i = 0; i < bounds.operands.size(); ++i) {
    const Shape* shape = ranked_shape(query.context, i);
    if (!shape || shape->rank() == 0) continue;
    std::vector<DimBounds>& dims = bounds.operands[i].dims;
    dims[0] = at_most(query.box[0]);
    const bool steps = i != 3 && shape->rank() == 3 && query.result == 0;
    if (steps) dims[1] = at_most({Expr(0), query.box[1].max});
  }
  return bounds;
}

const OpRegistration kAttentionRegistered({
    OpDef(AttentionOp::kName)
        .summary("Y = softmax(softcap(scale * Q K') + bias) V, by heads")
        .operand("Q", "T1")
        .operand("K", "T1")
        .operand("V", "T2")
        .optional_operand("attn_mask", "U")
        .optional_operand("past_key", "T1")
        .optional_operand("past_value", "T2")
        .optional_operand("nonpad_kv_seqlen", "I")
        .result("Y", "T1")
        .result("present_key", "T1", Arity::optional)
        .result("present_value", "T2", Arity::optional)
        .result("qk_matmul_output", "T1", Arity::optional)
        .types("T1", kFloatTypes)
        .types("T2", kFloatTypes)
        .types("U", kMask)
        .types("I", kI64Type)
        .attribute("is_causal", int64_t{0})
        .optional_attribute("kv_num_heads", AttributeKind::integer)
        .optional_attribute("q_num_heads", AttributeKind::integer)
        .attribute("qk_matmul_output_mode", int64_t{0})
        .optional_attribute("scale", AttributeKind::real)
        .attribute("softcap", 0.0f)
        .optional_attribute("softmax_precision", AttributeKind::integer)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_attention)
        .bounds({attention_bounds, attention_sub_box}),
    OpDef(FlexAttention::kName)
        .summary("Y = prob_mod(softmax(score_mod(scale * Q K'))) V, by heads")
        .operand("Q", "T1")
        .operand("K", "T1")
        .operand("V", "T2")
        .result("Y", "T1")
        .types("T1", kFloatTypes)
        .types("T2", kFloatTypes)
        .optional_attribute("scale", AttributeKind::real)
        .optional_attribute("softmax_precision", AttributeKind::integer)
        .regions(2)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_flex_attention)
        .verify(verified_by(modifiers_fit)),
    OpDef(RotaryEmbedding::kName)
        .summary("Y = X with pairs of elements of each head turned by the angle of their position")
        .operand("X", "T")
        .operand("cos_cache", "T")
        .operand("sin_cache", "T")
        .optional_operand("position_ids", "M")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .types("M", kI64Type)
        .attribute("interleaved", int64_t{0})
        .optional_attribute("num_heads", AttributeKind::integer)
        .attribute("rotary_embedding_dim", int64_t{0})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_rotary)
        .bounds({rotary_bounds, runs_as_it_is()}),
    OpDef(LinearAttention::kName)
        .summary("output = scale * S' q, with a state S that each step decays and adds to")
        .operand("query", "T")
        .operand("key", "T")
        .operand("value", "T")
        .optional_operand("past_state", "S")
        .optional_operand("decay", "T")
        .optional_operand("beta", "T")
        .result("output", "T")
        .result("present_state", "S", Arity::optional)
        .types("T", kFloatTypes)
        .types("S", kFloatTypes)
        .attribute("chunk_size", int64_t{64})
        .required_attribute("kv_num_heads", AttributeKind::integer)
        .required_attribute("q_num_heads", AttributeKind::integer)
        .attribute("scale", 0.0f)
        .attribute("update_rule", "gated_delta")
        .one_of({"linear", "gated", "delta", "gated_delta"})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_linear_attention)
        .bounds({linear_attention_bounds, runs_as_it_is()}),
});

}  // namespace
}  // namespace tenon
