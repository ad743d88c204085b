#include <tenon/ops/constant.hpp>
#include <tenon/ops/layout.hpp>
#include <tenon/reference/evaluator.hpp>

namespace tenon {
namespace {

Result<void> constant(EvalContext& context) {
  context.set_output(0, *context.op().attributes().find("value")->get_if<Tensor>());
  return {};
}

Result<void> identity(EvalContext& context) {
  context.set_output(0, context.datum(0));
  return {};
}

const EvaluatorRegistration kConstantRegistered({{Constant::kName, constant},
                                                 {Identity::kName, identity},
                                                 {LayoutReorder::kName, identity},
                                                 {LayoutScrub::kName, identity}});

}  // namespace
}  // namespace tenon
