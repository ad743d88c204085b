#include <tenon/ops/normalization.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

// The element type whose ONNX number is in stash_type.
Result<ElementType> stash_element(const Op& op) {
  const int64_t number = op.attr<int64_t>("stash_type", 1);
  switch (number) {
    case 1: return kF32;
    case 10: return kF16;
    case 11: return kF64;
    case 16: return kBF16;
    default:
      return error(Code::invalid_argument, "stash_type of ", op.describe(), " is ", number,
                   ", it must be 1 (float), 10 (float16), 11 (double) or 16 (bfloat16)");
  }
}

// Checks that operand `operand` is a vector with one element per channel of x.
Result<void> one_per_channel(const InferContext& context, size_t operand, const Shape& x) {
  TENON_OK(require_rank(context, operand, 1));
  const Type& type = context.type(operand);
  if (!type.is_tensor() || !type.shape().ranked() || !x.ranked()) return {};
  const Dim channels = x.rank() > 1 ? x[1] : Dim(1);
  if (!certainly_differ(type.shape()[0], channels)) return {};
  return error(Code::invalid_argument, "operand ", operand, " of ", context.op().describe(), " has ", type.shape()[0],
               " elements, X has ", channels, " channels");
}

InferredTypes infer_by_channel(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  for (const size_t operand : {size_t{1}, size_t{2}}) TENON_OK(one_per_channel(context, operand, x.shape));
  return one_type(x.element, x.shape);
}

InferredTypes infer_batch(const InferContext& context) {
  TENON_TRY(types, infer_by_channel(context));
  for (const size_t operand : {size_t{3}, size_t{4}}) {
    TENON_OK(one_per_channel(context, operand, types[0].shape()));
    if (context.op().result_count() > operand - 2) types.push_back(context.type(operand));
  }
  return types;
}

InferredTypes infer_group(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 2));
  TENON_TRY(types, infer_by_channel(context));
  const int64_t groups = context.attr<int64_t>("num_groups");
  const Shape& x = types[0].shape();
  if (groups < 1 || (x.ranked() && x[1].is_static() && x[1].value() % groups != 0)) {
    return error(Code::invalid_argument, "num_groups of ", context.op().describe(), " is ", groups, ", X ", x,
                 " needs a divisor of its channels");
  }
  return types;
}

InferredTypes infer_layer(const InferContext& context) {
  const Op& op = context.op();
  TENON_TRY(x, context.tensor(0));
  TENON_TRY(stash, stash_element(op));
  Shape statistics = x.shape;
  if (x.shape.ranked()) {
    TENON_TRY(axis, axis_attribute(context, "axis", -1, x.shape.rank()));
    for (size_t i = axis; i < statistics.dims().size(); ++i) statistics[i] = Dim(1);
    for (const size_t operand : {size_t{1}, size_t{2}}) {
      if (operand >= context.operand_count() || !context.has_operand(operand) || !context.type(operand).is_tensor())
        continue;
      const Shape& shape = context.type(operand).shape();
      TENON_TRY(joined, broadcast(x.shape, shape), "operand ", operand, " of ", op.describe());
      if (shape.ranked() && shape.rank() > x.shape.rank()) {
        return error(Code::invalid_argument, "operand ", operand, " of ", op.describe(), " is ", shape,
                     ", which does not broadcast to X ", x.shape);
      }
      for (size_t i = 0; joined.ranked() && i < joined.dims().size(); ++i) {
        if (certainly_differ(joined[i], x.shape[i])) {
          return error(Code::invalid_argument, "operand ", operand, " of ", op.describe(), " is ", shape,
                       ", which does not broadcast to X ", x.shape);
        }
      }
    }
  }
  std::vector<Type> types{Type(x.element, x.shape)};
  while (types.size() < op.result_count()) types.emplace_back(stash, statistics);
  return types;
}

InferredTypes infer_along_axis(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  if (x.shape.ranked()) TENON_OK(axis_attribute(context, "axis", -1, x.shape.rank()));
  return one_type(x.element, x.shape);
}

InferredTypes infer_along_axes(const InferContext& context) {
  TENON_TRY(x, context.tensor(0));
  const auto axes = context.attr<Attribute::Integers>("axes", {0, 2, 3});
  if (x.shape.ranked()) TENON_OK(normalize_axes(axes, x.shape.rank()), "axes of ", context.op().describe());
  return one_type(x.element, x.shape);
}

InferredTypes infer_lrn(const InferContext& context) {
  TENON_OK(require_rank_at_least(context, 0, 2));
  const int64_t size = context.attr<int64_t>("size");
  // As for windows: sums with it must fit 64 bits.
  if (size < 1 || size > INT32_MAX) {
    return error(Code::invalid_argument, "size of ", context.op().describe(), " is ", size, ", which is outside [1, ",
                 INT32_MAX, "]");
  }
  return same_as_operand(0)(context);
}

InferredTypes infer_dropout(const InferContext& context) {
  TENON_TRY(data, context.tensor(0));
  std::vector<Type> types{Type(data.element, data.shape)};
  if (context.op().result_count() > 1) types.emplace_back(kBool, data.shape);
  return types;
}

// ---- Bounds ----

// The dim of the channels, 1; a tensor of rank 1 has one channel.
std::vector<int> channel_dim(const BoundsQuery& query) { return {query.box.size() > 1 ? 1 : kWhole}; }

// Parameters per channel; X position by position. In training, the moments are those of whole channels.
Result<Bounds> batch_bounds(const BoundsQuery& query) {
  const bool training = query.context.attr<int64_t>("training_mode", 0) != 0;
  Bounds bounds = all_whole(query);
  if (query.result > 0) {
    std::vector<int> by_channel;
    if (const Shape* x = ranked_shape(query.context, 0)) by_channel.assign(x->dims().size(), kWhole);
    if (by_channel.size() > 1) by_channel[1] = 0;
    const OperandBounds x = follow(query, 0, by_channel);
    bounds.operands[0] = training ? x : inexact(x);
    for (size_t i = 1; i < bounds.operands.size(); ++i) {
      bounds.operands[i] = i == query.result + 2 ? follow(query, i, {0}) : inexact(follow(query, i, {0}));
    }
    return bounds;
  }
  std::vector<int> to = each_dim(query.box.size());
  for (size_t d = 0; training && d < to.size(); ++d) {
    if (d == 1) continue;
    to[d] = kWhole;
    bounds.splits[d] = false;
  }
  bounds.operands[0] = follow(query, 0, to);
  for (size_t i = 1; i < bounds.operands.size(); ++i) {
    const OperandBounds parameter = follow(query, i, channel_dim(query));
    bounds.operands[i] = training && i > 2 ? inexact(parameter) : parameter;
  }
  return bounds;
}

// Images and channels are normalised independently.
Result<Bounds> instance_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  std::vector<int> to = each_dim(query.box.size());
  for (size_t d = 2; d < to.size(); ++d) {
    to[d] = kWhole;
    bounds.splits[d] = false;
  }
  bounds.operands[0] = follow(query, 0, to);
  for (const size_t i : {1, 2}) bounds.operands[i] = follow(query, i, channel_dim(query));
  return bounds;
}

// The groups of channels that overlap the box.
Result<Bounds> group_bounds(const BoundsQuery& query) {
  TENON_TRY(bounds, instance_bounds(query));
  bounds.splits[1] = false;
  const Dim& channels = query.shape[1];
  if (bounds.operands[0].kind != OperandBounds::Kind::box) return bounds;
  DimBounds& read = bounds.operands[0].dims[1];
  if (!channels.known()) {
    read = whole_dim(channels, false);
  } else {
    const Expr size = floordiv(channels.expr(), Expr(query.context.attr<int64_t>("num_groups")));
    read = exactly(groups(outer_part(query.box[1], size), size));
  }
  return bounds;
}

// Rows from `axis` on are normalised independently; Scale and B broadcast. The statistics of a row have extent 1 there.
Result<Bounds> layer_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  TENON_TRY(axis, axis_attribute(query.context, "axis", -1, query.shape.rank()));
  std::vector<int> to = each_dim(query.box.size());
  for (size_t d = axis; d < to.size(); ++d) {
    to[d] = kWhole;
    bounds.splits[d] = false;
  }
  bounds.operands[0] = follow(query, 0, to);
  for (size_t i = 1; i < bounds.operands.size(); ++i) {
    bounds.operands[i] = broadcast_to(query, i);
    if (query.result == 0) continue;
    // Not read, but the operator that runs has it, for the whole row.
    const Shape* shape = ranked_shape(query.context, i);
    for (size_t d = 0; shape && d < shape->dims().size(); ++d) {
      DimBounds& dim = bounds.operands[i].dims[d];
      dim = query.box.size() - shape->dims().size() + d >= axis ? whole_dim((*shape)[d], false) : dim;
    }
    bounds.operands[i] = inexact(bounds.operands[i]);
  }
  return bounds;
}

Result<Bounds> axes_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const auto axes = query.context.attr<Attribute::Integers>("axes", {0, 2, 3});
  TENON_TRY(normal, normalize_axes(axes, query.shape.rank()));
  std::vector<int> to = each_dim(query.box.size());
  for (const size_t axis : normal) {
    to[axis] = kWhole;
    bounds.splits[axis] = false;
  }
  bounds.operands[0] = follow(query, 0, to);
  return bounds;
}

// The `size` nearest channels of each; an even size has one more above.
Result<Bounds> lrn_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const int64_t size = query.context.attr<int64_t>("size");
  bounds.operands[0] = follow(query, 0, each_dim(query.box.size()));
  const BoxRange& channels = query.box[1];
  if (bounds.operands[0].kind != OperandBounds::Kind::box) return bounds;
  bounds.operands[0].dims[1] =
      clamped({channels.min - Expr((size - 1) / 2), channels.max + Expr(size / 2)}, query.shape[1]);
  return bounds;
}

Result<void> lrn_sub_box(const SubBoxQuery& query, SubBoxOp&) { return require_whole(query, 1); }

// In training, whether an element is dropped depends on a random number given by its position in the whole.
Result<Bounds> dropout_bounds(const BoundsQuery& query) {
  const Tensor* training = query.context.has_operand(2) ? query.context.constant(2) : nullptr;
  const bool may_train =
      query.context.has_operand(2) && !(training && training->size() == 1 && training->int_at(0) == 0);
  if (may_train) {
    return error(Code::unsupported, query.context.op().describe(),
                 " drops elements at random, or is not known not to; parts of it are not parts of the whole");
  }
  Bounds bounds = all_whole(query);
  bounds.operands[0] = query.result == 0 ? broadcast_to(query, 0) : inexact(broadcast_to(query, 0));
  return bounds;
}

const OpRegistration kNormalizationRegistered({
    OpDef(BatchNormalization::kName)
        .summary("Y = (X - mean) / sqrt(var + epsilon) * scale + B, by channel")
        .operand("X", "T")
        .operand("scale", "T1")
        .operand("B", "T1")
        .operand("input_mean", "T2")
        .operand("input_var", "T2")
        .result("Y", "T")
        .result("running_mean", "T2", Arity::optional)
        .result("running_var", "T2", Arity::optional)
        .types("T", kFloatTypes)
        .types("T1", kFloatTypes)
        .types("T2", kFloatTypes)
        .attribute("epsilon", 1e-5f)
        .attribute("momentum", 0.9f)
        .attribute("training_mode", int64_t{0})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_batch)
        .bounds({batch_bounds, runs_as_it_is()}),
    OpDef(InstanceNormalization::kName)
        .summary("output = (input - mean) / sqrt(var + epsilon) * scale + B, by channel and image")
        .operand("input", "T")
        .operand("scale", "T")
        .operand("B", "T")
        .result("output", "T")
        .types("T", kFloatTypes)
        .attribute("epsilon", 1e-5f)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_by_channel)
        .bounds({instance_bounds, runs_as_it_is()}),
    OpDef(GroupNormalization::kName)
        .summary("Y = (X - mean) / sqrt(var + epsilon) * scale + bias, by group of channels and image")
        .operand("X", "T")
        .operand("scale", "T")
        .operand("bias", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("epsilon", 1e-5f)
        .required_attribute("num_groups", AttributeKind::integer)
        .attribute("stash_type", int64_t{1})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_group)
        .bounds({group_bounds, runs_as_it_is()}),
    OpDef(LayerNormalization::kName)
        .summary("Y = (X - Mean) * InvStdDev * Scale + B over the axes from `axis` on")
        .operand("X", "T")
        .operand("Scale", "T")
        .optional_operand("B", "T")
        .result("Y", "T")
        .result("Mean", "U", Arity::optional)
        .result("InvStdDev", "U", Arity::optional)
        .types("T", kFloatTypes)
        .types("U", kFloatTypes)
        .attribute("axis", int64_t{-1})
        .attribute("epsilon", 1e-5f)
        .attribute("stash_type", int64_t{1})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_layer)
        .bounds({layer_bounds, runs_as_it_is()}),
    OpDef(RMSNormalization::kName)
        .summary("Y = X / sqrt(mean(X^2) + epsilon) * scale over the axes from `axis` on")
        .operand("X", "T")
        .operand("scale", "V")
        .result("Y", "V")
        .types("T", kFloatTypes)
        .types("V", kFloatTypes)
        .attribute("axis", int64_t{-1})
        .attribute("epsilon", 1e-5f)
        .attribute("stash_type", int64_t{1})
        .traits(Trait::pure | Trait::layout_aware)
        .infer([](const InferContext& context) -> InferredTypes {
          TENON_TRY(types, infer_layer(context));
          TENON_TRY(scale, context.tensor(1));
          return one_type(scale.element, types[0].shape());
        })
        .bounds({layer_bounds, runs_as_it_is()}),
    OpDef(LpNormalization::kName)
        .summary("output = input / (its p-norm along `axis`)")
        .operand("input", "T")
        .result("output", "T")
        .types("T", kFloatTypes)
        .attribute("axis", int64_t{-1})
        .attribute("p", int64_t{2})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_along_axis)
        .bounds(whole_along("axis", -1))
        .verify([](const Op& op) -> Result<void> {
          const int64_t p = op.attr<int64_t>("p", 2);
          if (p == 1 || p == 2) return {};
          return error(Code::invalid_argument, "p of ", op.describe(), " is ", p, ", it must be 1 or 2");
        }),
    OpDef(MeanVarianceNormalization::kName)
        .summary("Y = (X - mean) / (sqrt(var) + 1e-9) over `axes`")
        .operand("X", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("axes", Attribute::Integers{0, 2, 3})
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_along_axes)
        .bounds({axes_bounds, runs_as_it_is()}),
    OpDef(LRN::kName)
        .summary("Y = X / (bias + alpha / size * sum of X^2 over `size` channels around)^beta")
        .operand("X", "T")
        .result("Y", "T")
        .types("T", kFloatTypes)
        .attribute("alpha", 0.0001f)
        .attribute("beta", 0.75f)
        .attribute("bias", 1.0f)
        .required_attribute("size", AttributeKind::integer)
        .traits(Trait::pure | Trait::layout_aware)
        .infer(infer_lrn)
        .bounds({lrn_bounds, lrn_sub_box}),
    OpDef(Dropout::kName)
        .summary("output = data, or in training elements set to 0 at random and the rest scaled")
        .operand("data", "T")
        .optional_operand("ratio", "T1")
        .optional_operand("training_mode", "T2")
        .result("output", "T")
        .result("mask", "T2", Arity::optional)
        .types("T", kFloatTypes)
        .types("T1", kFloatTypes)
        .types("T2", kBoolType)
        .optional_attribute("seed", AttributeKind::integer)
        .traits(Trait::random | Trait::layout_oblivious)
        .infer(infer_dropout)
        .bounds({dropout_bounds, runs_as_it_is()}),
});

}  // namespace
}  // namespace tenon
