#include <tenon/ops/cast.hpp>

#include <cstring>

#include <tenon/reference/evaluator.hpp>

namespace tenon {
namespace {

Result<void> cast_to(EvalContext& context, ElementType to) {
  const Tensor& input = context.tensor(0);
  if (input.element() == to) {
    context.set_output(0, input);
    return {};
  }
  TENON_TRY(converted, convert(input, to, convert_options_of(context.op())));
  context.set_output(0, std::move(converted));
  return {};
}

Result<void> cast(EvalContext& context) { return cast_to(context, context.attr<Type>("to").element()); }
Result<void> cast_like(EvalContext& context) { return cast_to(context, context.tensor(1).element()); }

Result<void> bit_cast(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  TENON_TRY(output, context.output(0));
  if (input.bytes() != 0) std::memcpy(output->mutable_data(), input.data(), input.bytes());
  if (output->element().is_bool()) {
    for (uint8_t& truth : output->mutable_as<uint8_t>()) truth = truth != 0;
  }
  return {};
}

const EvaluatorRegistration kCastRegistered({{Cast::kName, cast},
                                             {CastLike::kName, cast_like},
                                             {BitCast::kName, bit_cast}});

}  // namespace
}  // namespace tenon
