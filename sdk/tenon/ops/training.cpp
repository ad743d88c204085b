#include <tenon/ops/training.hpp>

#include <tenon/ir/op_def.hpp>
#include <tenon/ops/bounds_rules.hpp>
#include <tenon/ops/infer_util.hpp>

namespace tenon {
namespace {

// The number of tensors. Operands are R and T, then for each tensor itself, its gradient and `states` states; results
// omit R, T and the gradients.
size_t tensors_of(const Op& op, size_t states) {
  return op.operand_count() < 2 ? 0 : (op.operand_count() - 2) / (states + 2);
}

template <size_t States>
Result<std::vector<Type>> infer_step(const InferContext& context) {
  for (const size_t i : {0, 1}) {
    if (!context.type(i).is_tensor() || may_be_one_number(context.type(i).shape())) continue;
    return error(Code::invalid_argument, context.op().describe(), ": '", i == 0 ? "R" : "T",
                 "' must be one number, it has shape ", context.type(i).shape());
  }
  const size_t count = tensors_of(context.op(), States);
  std::vector<Type> tensors;  // combined from x, its gradient and its state
  for (size_t i = 0; i < count; ++i) {
    Type tensor;
    for (size_t group = 0; group < States + 2; ++group) {
      TENON_TRY(merged, merge(tensor, context.type(2 + group * count + i)), "tensor ", i + 1, " of ",
                context.op().describe());
      tensor = std::move(merged);
    }
    tensors.push_back(std::move(tensor));
  }
  std::vector<Type> types;
  for (size_t group = 0; group < States + 1; ++group) types.insert(types.end(), tensors.begin(), tensors.end());
  return types;
}

// Result i for a tensor reads that tensor, its gradient and its state, elementwise, and nothing of the others.
template <size_t States>
Result<Bounds> step_bounds(const BoundsQuery& query) {
  Bounds bounds = all_whole(query);
  const size_t count = tensors_of(query.context.op(), States);
  for (size_t i = 2; count > 0 && i < bounds.operands.size(); ++i) {
    const bool own = (i - 2) % count == query.result % count;
    // The state of one kind does not need that of the other.
    bounds.operands[i] = own ? inexact(broadcast_to(query, i)) : unread();
  }
  return bounds;
}

template <size_t States>
Result<void> verify_step(const Op& op) {
  const size_t count = tensors_of(op, States);
  if (count > 0 && op.operand_count() == 2 + count * (States + 2) && op.result_count() == count * (States + 1))
    return {};
  return error(Code::invalid_argument, op.describe(), " has ", op.operand_count(), " operands and ", op.result_count(),
               " results; for n tensors it takes R, T and ", States + 2, " n operands and makes ", States + 1,
               " n results");
}

template <size_t States>
OpDef optimiser(Name name, std::string summary) {
  return OpDef(name)
      .summary(std::move(summary))
      .operand("R", "T1")
      .operand("T", "i64")
      .variadic_operands("inputs", "T3", States + 2, /*homogeneous=*/false)
      .variadic_results("outputs", "T3", States + 1, /*homogeneous=*/false)
      .types("T1", kFloatTypes)
      .types("T3", kFloatTypes)
      .attribute("norm_coefficient", 0.0f)
      .infer(infer_step<States>)
      .bounds({step_bounds<States>, runs_as_it_is()})
      .verify(verify_step<States>);
}

const OpRegistration kTrainingRegistered({
    optimiser<1>(Adagrad::kName, "One step of Adagrad for n tensors")
        .attribute("decay_factor", 0.0f)
        .attribute("epsilon", 1e-6f),
    optimiser<2>(Adam::kName, "One step of Adam for n tensors")
        .attribute("alpha", 0.9f)
        .attribute("beta", 0.999f)
        .attribute("epsilon", 1e-6f)
        .attribute("norm_coefficient_post", 0.0f),
    optimiser<1>(Momentum::kName, "One step of descent with momentum for n tensors")
        .required_attribute("alpha", AttributeKind::real)
        .required_attribute("beta", AttributeKind::real)
        .required_attribute("mode", AttributeKind::text)
        .one_of({"standard", "nesterov"}),
});

}  // namespace
}  // namespace tenon
