// Evaluators of the quantisation operators.
#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/quant/operators.hpp>
#include <tenon-ext/quant/scales.hpp>
#include <tenon/ops/quantize.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/reference/loops.hpp>

namespace tenon::quant {
namespace {

Datum scale_of(EvalContext& context) {
  return Tensor::scalar<float>(
      static_cast<float>(step_of(context.attr<int64_t>("exponent"), context.op().attr<float>("factor", 1))));
}

Result<Datum> quantized(EvalContext& context) {
  TENON_TRY(made, evaluate(QuantizeLinear::name(), {context.datum(0), scale_of(context), Tensor::scalar<int8_t>(0)}, {},
                           1, context.parallel()));
  return std::move(made[0]);
}
Result<Datum> dequantized(EvalContext& context, Datum x) {
  TENON_TRY(made, evaluate(DequantizeLinear::name(), {std::move(x), scale_of(context)}, {}, 1, context.parallel()));
  return std::move(made[0]);
}

Result<void> quantize(EvalContext& context) {
  TENON_TRY(y, quantized(context));
  context.set_output(0, std::move(y));
  return {};
}
Result<void> dequantize(EvalContext& context) {
  TENON_TRY(y, dequantized(context, context.datum(0)));
  context.set_output(0, std::move(y));
  return {};
}
Result<void> round(EvalContext& context) {
  TENON_TRY(narrow, quantized(context));
  TENON_TRY(y, dequantized(context, std::move(narrow)));
  context.set_output(0, std::move(y));
  return {};
}

template <class T>
void requantize_as(EvalContext& context, Tensor& y) {
  const fused::Epilogue epilogue = fused::Epilogue::of(context.op());
  const int64_t left = context.attr<int64_t>("left_shift", 0);
  const T* const x = context.tensor(0).as<T>().data();
  int8_t* const out = y.mutable_as<int8_t>().data();
  context.parallel().run(y.size(), kTaskElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = epilogue(static_cast<uint32_t>(int32_t{x[i]}) << left);
  });
}
Result<void> requantize(EvalContext& context) {
  TENON_TRY(y, context.output(0));
  if (context.tensor(0).element() == kI8)
    requantize_as<int8_t>(context, *y);
  else
    requantize_as<int32_t>(context, *y);
  return {};
}

const EvaluatorRegistration kEvaluateRegistered({
    {Quantize::kName, quantize},
    {Dequantize::kName, dequantize},
    {Round::kName, round},
    {Requantize::kName, requantize},
});

}  // namespace
}  // namespace tenon::quant
