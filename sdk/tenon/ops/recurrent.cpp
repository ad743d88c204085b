#include <tenon/ops/recurrent.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

constexpr TypeSet kLengths("i32", [](ElementType e) { return e == kI32; });

// The shape of operand `operand`, `rank` unknown extents when it is absent or not known.
Result<Shape> ranked_operand(const InferContext& context, size_t operand, int64_t rank) {
  if (operand >= context.operand_count() || !context.has_operand(operand)) return unknown_shape(rank);
  TENON_OK(require_rank(context, operand, rank));
  TENON_TRY(type, context.tensor(operand));
  return type.shape.ranked() ? type.shape : unknown_shape(rank);
}

Result<void> extent_is(const InferContext& context, const char* what, const Shape& shape, size_t axis,
                       const Dim& expected) {
  if (!certainly_differ(shape[axis], expected)) return {};
  return error(Code::invalid_argument, what, " of ", context.op().describe(), " is ", shape, ", axis ", axis,
               " must be ", expected);
}

InferFn recurrent(int64_t gates) {
  return [gates](const InferContext& context) -> InferredTypes {
    const Op& op = context.op();
    TENON_TRY(x, ranked_operand(context, 0, 3));
    TENON_TRY(w, ranked_operand(context, 1, 3));
    TENON_TRY(r, ranked_operand(context, 2, 3));
    TENON_TRY(b, ranked_operand(context, 3, 2));
    const Dim directions(op.attr<std::string>("direction", "forward") == "bidirectional" ? 2 : 1);
    const int64_t stated = op.attr<int64_t>("hidden_size", 0);
    const Dim hidden = stated > 0 ? Dim(stated) : r[2];
    const bool batch_first = op.attr<int64_t>("layout", 0) != 0;
    const Dim batch = x[batch_first ? 0 : 1], time = x[batch_first ? 1 : 0];
    for (const auto& [what, shape] : {std::pair{"W", &w}, {"R", &r}}) {
      TENON_OK(extent_is(context, what, *shape, 0, directions));
      TENON_OK(extent_is(context, what, *shape, 1, hidden * Dim(gates)));
    }
    TENON_OK(extent_is(context, "W", w, 2, x[2]));
    TENON_OK(extent_is(context, "R", r, 2, hidden));
    TENON_OK(extent_is(context, "B", b, 0, directions));
    TENON_OK(extent_is(context, "B", b, 1, hidden * Dim(2 * gates)));
    const Shape state = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
    for (const size_t operand : {size_t{5}, size_t{6}}) {
      if (gates != 4 && operand == 6) continue;
      TENON_TRY(initial, ranked_operand(context, operand, 3));
      for (size_t axis = 0; axis < 3; ++axis)
        TENON_OK(extent_is(context, "an initial state", initial, axis, state[axis]));
    }
    const ElementType element = context.type(0).element();
    std::vector<Type> types{
        Type(element, batch_first ? Shape{batch, time, directions, hidden} : Shape{time, directions, batch, hidden})};
    while (types.size() < op.result_count()) types.emplace_back(element, state);
    return types;
  };
}

// Batch entries are independent, each through all its steps; a forward layer needs no step after the last requested
// one.
Result<Bounds> recurrent_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query, false);
  const bool batch_first = query.context.attr<int64_t>("layout", 0) != 0;
  const int batch = batch_first ? 0 : query.result == 0 ? 2 : 1;
  const size_t time = batch_first ? 1 : 0;
  const auto along_batch = [&](size_t operand, size_t rank, size_t at) {
    if (!ranked_shape(query.context, operand)) return;
    std::vector<int> to(rank, kWhole);
    to[at] = batch;
    // The valid steps and directions depend on data.
    bounds.operands[operand] = inexact(follow(query, operand, to));
  };
  along_batch(0, 3, batch_first ? 0 : 1);
  along_batch(4, 1, 0);
  for (const size_t state : {size_t{5}, size_t{6}}) along_batch(state, 3, batch_first ? 0 : 1);
  const bool forward = query.context.attr<std::string>("direction", "forward") == "forward";
  if (query.result == 0 && forward && bounds.operands[0].kind == OperandBounds::Kind::box) {
    bounds.operands[0].dims[time] = at_most({Expr(0), query.box[time].max});
  }
  bounds.splits[static_cast<size_t>(batch)] = true;
  return bounds;
}

OpDef recurrent_def(std::string_view name, int64_t gates, Attribute::Texts activations) {
  OpDef def{Name(name)};
  def.operand("X", "T")
      .operand("W", "T")
      .operand("R", "T")
      .optional_operand("B", "T")
      .optional_operand("sequence_lens", "T1")
      .optional_operand("initial_h", "T")
      .result("Y", "T", Arity::optional)
      .result("Y_h", "T", Arity::optional)
      .types("T", kFloatTypes)
      .types("T1", kLengths)
      .optional_attribute("activation_alpha", AttributeKind::reals)
      .optional_attribute("activation_beta", AttributeKind::reals)
      .attribute("activations", std::move(activations))
      .optional_attribute("clip", AttributeKind::real)
      .attribute("direction", "forward")
      .one_of({"forward", "reverse", "bidirectional"})
      .optional_attribute("hidden_size", AttributeKind::integer)
      .attribute("layout", int64_t{0})
      .traits(Trait::pure | Trait::layout_aware)
      .infer(recurrent(gates))
      .bounds({recurrent_bounds, runs_as_it_is()});
  return def;
}

const OpRegistration kRecurrentRegistered({
    recurrent_def(RNN::kName, 1, {"Tanh"}).summary("A recurrent layer: H = f(x W' + h R' + b)"),
    recurrent_def(GRU::kName, 3, {"Sigmoid", "Tanh"})
        .summary("A layer of gated recurrent units")
        .attribute("linear_before_reset", int64_t{0}),
    recurrent_def(LSTM::kName, 4, {"Sigmoid", "Tanh", "Tanh"})
        .summary("A layer of long short-term memory cells")
        .optional_operand("initial_c", "T")
        .optional_operand("P", "T")
        .result("Y_c", "T", Arity::optional)
        .attribute("input_forget", int64_t{0}),
});

}  // namespace
}  // namespace tenon
