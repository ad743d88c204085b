// What the fused operators compute: accumulators by the evaluator of the corresponding generic operator, then one loop
// for the rest. QMaxPool needs none: its decomposition is a single operator.
#include <tenon-ext/fused/convolution.hpp>
#include <tenon-ext/fused/dense.hpp>
#include <tenon-ext/fused/elementwise.hpp>
#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/fused/pooling.hpp>
#include <tenon-ext/fused/window_internal.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/ops/pooling.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/reference/loops.hpp>

namespace tenon::fused {
namespace {

const Tensor* operand_or_null(EvalContext& context, size_t i) {
  return context.has_operand(i) ? &context.tensor(i) : nullptr;
}

// y[i] = epilogue(acc(i)) for all elements, in parallel. acc returns an uint32_t: sums modulo 2^32.
template <class Acc>
Result<void> finish(EvalContext& context, Acc acc) {
  TENON_TRY(y, context.output(0));
  const Epilogue epilogue = Epilogue::of(context.op());
  int8_t* const out = y->mutable_as<int8_t>().data();
  context.parallel().run(y->size(), kTaskElements, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = epilogue(acc(i));
  });
  return {};
}

uint32_t shifted(int8_t value, int64_t shift) { return static_cast<uint32_t>(int32_t{value}) << shift; }

// Finishes products in `acc`, with bias[i / inner % channels] and the residual.
Result<void> finish_products(EvalContext& context, const Tensor& acc, int64_t channels, int64_t inner) {
  const Tensor *bias = operand_or_null(context, 2), *residual = operand_or_null(context, 3);
  const int32_t* const products = acc.as<int32_t>().data();
  const int32_t* const biases = bias ? bias->as<int32_t>().data() : nullptr;
  const int8_t* const residuals = residual ? residual->as<int8_t>().data() : nullptr;
  const int64_t shift = context.attr<int64_t>("residual_shift", 0);
  return finish(context, [=](int64_t i) {
    uint32_t sum = static_cast<uint32_t>(products[i]);
    if (biases) sum += static_cast<uint32_t>(biases[i / inner % channels]);
    if (residuals) sum += shifted(residuals[i], shift);
    return sum;
  });
}

Result<Tensor> convolved(EvalContext& context, const Tensor& x, const Tensor& w, const Attributes& window) {
  TENON_TRY(made, evaluate(ConvInteger::name(), {Datum(x), Datum(w)}, window, 1, context.parallel()));
  return made[0].tensor();
}

Result<void> convolution(EvalContext& context) {
  TENON_TRY(acc, convolved(context, context.tensor(0), context.tensor(1), window_attributes(context.op(), {"group"})));
  int64_t inner = 1;
  for (int64_t d = 2; d < acc.rank(); ++d) inner *= acc.dim(static_cast<size_t>(d));
  return finish_products(context, acc, acc.dim(1), inner);
}

Result<void> dense(EvalContext& context) {
  TENON_TRY(w, evaluate("Transpose", {Datum(context.tensor(1))}, {{"perm", Attribute::Integers{1, 0}}}, 1,
                        context.parallel()));
  TENON_TRY(made, evaluate(MatMulInteger::name(), {Datum(context.tensor(0)), w[0]}, {}, 1, context.parallel()));
  return finish_products(context, made[0].tensor(), made[0].tensor().dim(1), 1);
}

Result<void> add(EvalContext& context) {
  const int8_t* const a = context.tensor(0).as<int8_t>().data();
  const int8_t* const b = context.tensor(1).as<int8_t>().data();
  const int64_t a_shift = context.attr<int64_t>("a_shift", 0), b_shift = context.attr<int64_t>("b_shift", 0);
  return finish(context, [=](int64_t i) { return shifted(a[i], a_shift) + shifted(b[i], b_shift); });
}

Result<void> average_pool(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  TENON_TRY(ones, window_of_ones(context.op(), x.dim(1)));
  Attributes window = window_attributes(context.op(), {});
  window.set("group", x.dim(1));
  TENON_TRY(sums, convolved(context, x, ones, window));
  const int32_t* const sum = sums.as<int32_t>().data();
  const uint32_t multiplier = static_cast<uint32_t>(context.attr<int64_t>("multiplier", 1));
  return finish(context, [=](int64_t i) { return static_cast<uint32_t>(sum[i]) * multiplier; });
}

Result<void> max_pool(EvalContext& context) {
  TENON_TRY(made, evaluate(MaxPool::name(), {context.datum(0)}, window_attributes(context.op(), {"kernel_shape"}), 1,
                           context.parallel()));
  context.set_output(0, std::move(made[0]));
  return {};
}

const EvaluatorRegistration kEvaluateRegistered({
    {QConv::kName, convolution},
    {QDense::kName, dense},
    {QAdd::kName, add},
    {QAvgPool::kName, average_pool},
    {QMaxPool::kName, max_pool},
});

}  // namespace
}  // namespace tenon::fused
