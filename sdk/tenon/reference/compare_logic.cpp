#include <tenon/ops/compare_logic.hpp>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <string>

#include <tenon/reference/carrier.hpp>

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

// Of booleans: f takes and gives truth. Of floats: f takes the carrier.
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

// ---- Where ---------------------------------------------------------------------------------------------------------

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

struct Bytes16 {
  uint64_t low, high;
};

// Bit by bit, for elements that do not fill bytes.
void choose_bits(const BroadcastPlan<3>& plan, const Tensor& condition, const Tensor& x, const Tensor& y, Tensor& out) {
  const int bits = out.element().bits();
  const auto steps = plan.inner_strides();
  plan.for_runs(0, plan.count(), [&](int64_t first, int64_t count, const auto& offsets) {
    for (int64_t i = 0; i < count; ++i) {
      const bool truth = condition.as<uint8_t>()[static_cast<size_t>(offsets[0] + i * steps[0])] != 0;
      const size_t from = truth ? 1 : 2;
      const Tensor& source = truth ? x : y;
      store_bits(out.mutable_data(), bits, first + i, load_bits(source.data(), bits, offsets[from] + i * steps[from]));
    }
  });
}

Result<void> where(EvalContext& context) {
  const Tensor &condition = context.tensor(0), &x = context.tensor(1), &y = context.tensor(2);
  TENON_TRY(out, context.output(0));
  const BroadcastPlan<3> plan(out->dims(), {condition.dims(), x.dims(), y.dims()});
  const auto by_type = [&]<class T>() {
    choose(context, plan, reinterpret_cast<const T*>(x.data()), reinterpret_cast<const T*>(y.data()),
           reinterpret_cast<T*>(out->mutable_data()));
  };
  if (x.element().is_string())
    by_type.template operator()<std::string>();
  else if (x.element().bits() == 8)
    by_type.template operator()<uint8_t>();
  else if (x.element().bits() == 16)
    by_type.template operator()<uint16_t>();
  else if (x.element().bits() == 32)
    by_type.template operator()<uint32_t>();
  else if (x.element().bits() == 64)
    by_type.template operator()<uint64_t>();
  else if (x.element().bits() == 128)
    by_type.template operator()<Bytes16>();
  else
    choose_bits(plan, condition, x, y, *out);
  return {};
}

const EvaluatorRegistration kRegistered({
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
