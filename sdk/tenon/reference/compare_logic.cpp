#include <tenon/ops/compare_logic.hpp>

#include <cmath>
#include <complex>
#include <functional>
#include <string>

#include <tenon/reference/carrier.hpp>
#include <tenon/reference/elements.hpp>

namespace tenon {
namespace {

// result = f(a, b), elements viewed as T, into booleans.
template <class T, class F>
Result<void> to_booleans(EvalContext& context, const Tensor& a, const Tensor& b, F f) {
  TENON_TRY(y, context.output(0));
  const BroadcastPlan<2> plan(y->dims(), {a.dims(), b.dims()});
  map_elements(context.parallel(), plan, a.as<T>().data(), b.as<T>().data(), y->mutable_as<uint8_t>().data(),
               [f](const T& x, const T& y) { return static_cast<uint8_t>(f(x, y)); });
  return {};
}

template <class F>
Result<void> compare_numbers(EvalContext& context, F f) {
  TENON_TRY(a, to_carrier(context.tensor(0)));
  TENON_TRY(b, to_carrier(context.tensor(1)));
  return with_carrier(a.element(), [&]<class T>() { return to_booleans<T>(context, a, b, f); });
}

Result<void> equal(EvalContext& context) {
  const Tensor &a = context.tensor(0), &b = context.tensor(1);
  if (a.element().is_string()) return to_booleans<std::string>(context, a, b, std::equal_to<>());
  if (a.element() == kC64) return to_booleans<std::complex<float>>(context, a, b, std::equal_to<>());
  if (a.element() == kC128) return to_booleans<std::complex<double>>(context, a, b, std::equal_to<>());
  return compare_numbers(context, std::equal_to<>());
}

template <class Compare>
Result<void> compared(EvalContext& context) {
  return compare_numbers(context, Compare());
}
template <class Combine>
Result<void> combined(EvalContext& context) {
  return to_booleans<uint8_t>(context, context.tensor(0), context.tensor(1), Combine());
}

// For booleans: f maps truth values. For floats: f takes the carrier.
template <class F>
Result<void> test_floats(EvalContext& context, F f) {
  TENON_TRY(x, to_carrier(context.tensor(0)));
  TENON_TRY(y, context.output(0));
  with_float_carrier(x.element(), [&]<class T>() {
    map_elements(context.parallel(), x.as<T>().data(), y->mutable_as<uint8_t>().data(), x.size(),
                 [f](T value) { return static_cast<uint8_t>(f(value)); });
  });
  return {};
}

Result<void> negate(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  TENON_TRY(y, context.output(0));
  map_elements(context.parallel(), x.as<uint8_t>().data(), y->mutable_as<uint8_t>().data(), x.size(),
               [](uint8_t truth) { return static_cast<uint8_t>(truth == 0); });
  return {};
}

Result<void> is_nan(EvalContext& context) {
  return test_floats(context, [](auto x) { return std::isnan(x); });
}

Result<void> is_inf(EvalContext& context) {
  const bool positive = context.attr<int64_t>("detect_positive", 1) != 0;
  const bool negative = context.attr<int64_t>("detect_negative", 1) != 0;
  return test_floats(context, [=](auto x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

// ---- Where ----

template <class T>
void choose(EvalContext& context, const BroadcastPlan<3>& plan, const T* x, const T* y, T* out) {
  const uint8_t* condition = context.tensor(0).as<uint8_t>().data();
  const auto [step_c, step_x, step_y] = plan.inner_strides();
  plan.run(context.parallel(),
           [=, step_c = step_c, step_x = step_x, step_y = step_y](int64_t first, int64_t count, const auto& offsets) {
             for (int64_t i = 0; i < count; ++i) {
               const bool truth = condition[offsets[0] + i * step_c] != 0;
               out[first + i] = truth ? x[offsets[1] + i * step_x] : y[offsets[2] + i * step_y];
             }
           });
}

Result<void> where(EvalContext& context) {
  TENON_TRY(x, spread(context.tensor(1)));
  TENON_TRY(y, spread(context.tensor(2)));
  TENON_TRY(out, SpreadOutput::open(context, 0));
  const BroadcastPlan<3> plan(out.dims(), {context.tensor(0).dims(), x.dims(), y.dims()});
  dispatch_storage(x.element(), [&]<class T>() {
    choose(context, plan, storage_of_elements<T>(x), storage_of_elements<T>(y), storage_of_elements<T>(out.tensor()));
  });
  return out.close();
}

const EvaluatorRegistration kCompareLogicRegistered({
    {Equal::kName, equal},
    {Less::kName, compared<std::less<>>},
    {LessOrEqual::kName, compared<std::less_equal<>>},
    {Greater::kName, compared<std::greater<>>},
    {GreaterOrEqual::kName, compared<std::greater_equal<>>},
    {And::kName, combined<std::bit_and<>>},
    {Or::kName, combined<std::bit_or<>>},
    {Xor::kName, combined<std::bit_xor<>>},
    {Not::kName, negate},
    {Where::kName, where},
    {IsNaN::kName, is_nan},
    {IsInf::kName, is_inf},
});

}  // namespace
}  // namespace tenon
