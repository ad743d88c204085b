#include <tenon/ir/builder.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/local_internal.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/tensor/splat.hpp>

namespace tenon {
namespace {

// Whether another operand alone has the shape of the result, so that this one broadcasts nothing.
bool stretches_nothing(const Op& op, size_t operand) {
  for (size_t i = 0; i < op.operand_count(); ++i)
    if (op.operand(i) && op.operand(i) != op.operand(operand) &&
        have_same_shape(op.operand(i)->type(), op.result()->type()))
      return true;
  return false;
}

bool broadcasts(const Op& op) {
  return op.def() && op.def()->has(Trait::elementwise) && op.def()->has(Trait::broadcasting) && op.result_count() == 1;
}

Result<Change> narrow_constants(Graph& graph) {
  bool changed = false;
  Result<void> status;
  for_each_op(graph.body(), [&](Op& op) {
    if (!status.ok() || !broadcasts(op)) return;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      Value* const operand = op.operand(i);
      const Tensor* const constant = operand ? constant_of(operand) : nullptr;
      if (!constant || constant->element().is_string() || operand->shared_layout() || !stretches_nothing(op, i) ||
          !is_splat(*constant))
        continue;
      auto number = first_element(*constant);
      if (!number.ok()) return void(status = number.error());
      op.set_operand(i, Builder(*op.parent(), &op).constant(*std::move(number)));
      changed = true;
    }
  });
  TENON_OK(std::move(status), "narrowing constants");
  return Change{changed};
}

const PassRegistration kNarrowConstantsRegistered({{
    .name = "narrow-constants",
    .contract =
        "Constants that are one number everywhere become that number, of rank 0, where an operator broadcasts its\n"
        "operands and another one has the result's shape: nobody reads them, and targets have them in registers.\n"
        "Needs inferred types; keeps names. Leaves what is no longer read for remove-dead.",
    .run = narrow_constants,
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon
