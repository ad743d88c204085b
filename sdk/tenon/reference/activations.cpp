#include <tenon/ops/activations.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <type_traits>

#include <tenon/reference/carrier.hpp>

namespace tenon {
namespace {

// ---- Formulas, in f64 ----

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// ln(1 + e^x) without overflow for large x, and exact to the last bits for small e^x.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double softsign(double x) { return x / (1 + std::abs(x)); }
double mish(double x) { return x * std::tanh(softplus(x)); }
double hard_swish(double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }
double swish(double x, double alpha) { return x * sigmoid(alpha * x); }
// 1 + erf(z) is erfc(-z), which is accurate where erf(z) is near -1; likewise, 1 + tanh(u) = 2 sigmoid(2u).
double gelu(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }
// Hendrycks and Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415, section 2.
double gelu_by_tanh(double x) { return x * sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }

// ---- Evaluators ----

// y = f(x), computed in f64 and rounded once.
template <class F>
Result<void> in_double(EvalContext& context, F f) {
  return map_floats(context, [f](auto x) { return static_cast<decltype(x)>(f(static_cast<double>(x))); });
}
template <double (*F)(double)>
Result<void> function(EvalContext& context) {
  return in_double(context, F);
}

double alpha_of(EvalContext& context, float fallback) { return context.attr<float>("alpha", fallback); }

Result<void> relu(EvalContext& context) {
  return map_numbers(context, [](auto x) { return x < 0 ? decltype(x){0} : x; });
}

Result<void> leaky_relu(EvalContext& context) {
  return in_double(context, [alpha = alpha_of(context, 0.01f)](double x) { return x >= 0 ? x : alpha * x; });
}

Result<void> elu(EvalContext& context) {
  return in_double(context, [alpha = alpha_of(context, 1)](double x) { return x >= 0 ? x : alpha * std::expm1(x); });
}

Result<void> selu(EvalContext& context) {
  const double alpha = alpha_of(context, 1.67326319217681884765625f);
  const double gamma = context.attr<float>("gamma", 1.05070102214813232421875f);
  return in_double(context, [=](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

Result<void> celu(EvalContext& context) {
  return in_double(context, [alpha = alpha_of(context, 1)](double x) {
    if (std::isnan(x)) return x;
    return std::max(0.0, x) + std::min(0.0, alpha * std::expm1(x / alpha));
  });
}

Result<void> thresholded_relu(EvalContext& context) {
  return in_double(context, [alpha = alpha_of(context, 1)](double x) { return x > alpha || std::isnan(x) ? x : 0; });
}

Result<void> hard_sigmoid(EvalContext& context) {
  const double alpha = alpha_of(context, 0.2f), beta = context.attr<float>("beta", 0.5f);
  return in_double(context, [=](double x) { return std::clamp(alpha * x + beta, 0.0, 1.0); });
}

Result<void> swish_of(EvalContext& context) {
  return in_double(context, [alpha = alpha_of(context, 1)](double x) { return swish(x, alpha); });
}

Result<void> gelu_of(EvalContext& context) {
  return in_double(context, context.attr<std::string>("approximate") == "tanh" ? gelu_by_tanh : gelu);
}

Result<void> shrink(EvalContext& context) {
  const double bias = context.attr<float>("bias", 0), lambd = context.attr<float>("lambd", 0.5f);
  TENON_TRY(x, to_element(context.tensor(0), kF64));
  TENON_TRY(y, context.output(0));
  TENON_TRY(shrunk, Tensor::allocate(kF64, y->dims()));
  map_elements(context.parallel(), x.as<double>().data(), shrunk.mutable_as<double>().data(), x.size(), [=](double v) {
    if (std::isnan(v)) return v;
    return v < -lambd ? v + bias : v > lambd ? v - bias : 0;
  });
  return store_converted(*y, shrunk);
}

Result<void> prelu(EvalContext& context) {
  return map_number_pairs(context, []<class T>(T x, T slope) -> T {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return x >= 0 ? x : static_cast<T>(static_cast<U>(x) * static_cast<U>(slope));
    } else {
      return x < 0 ? x * slope : x;
    }
  });
}

Result<void> swiglu(EvalContext& context) {
  const double alpha = alpha_of(context, 1);
  return map_number_pairs(context, [alpha]<class T>(T a, T b) -> T {
    if constexpr (std::is_integral_v<T>)
      return a;  // floats only
    else
      return static_cast<T>(swish(a, alpha) * static_cast<double>(b));
  });
}

Result<void> clip(EvalContext& context) {
  std::optional<Tensor> low, high;
  for (const size_t i : {1, 2}) {
    if (!context.has_operand(i)) continue;
    TENON_TRY(bound, to_carrier(context.tensor(i)));
    (i == 1 ? low : high) = std::move(bound);
  }
  TENON_TRY(x, to_carrier(context.tensor(0)));
  TENON_TRY(y, CarrierOutput::open(context, 0));
  with_carrier(x.element(), [&]<class T>() {
    using Limits = std::numeric_limits<T>;
    const T least = low ? low->as<T>()[0] : Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    const T greatest = high ? high->as<T>()[0] : Limits::has_infinity ? Limits::infinity() : Limits::max();
    map_elements(context.parallel(), x.as<T>().data(), y.data<T>(), x.size(), [=](T value) {
      const T raised = value < least ? least : value;
      return raised > greatest ? greatest : raised;
    });
  });
  return y.close();
}

const EvaluatorRegistration kActivationsRegistered({
    {Relu::kName, relu},
    {LeakyRelu::kName, leaky_relu},
    {Elu::kName, elu},
    {Selu::kName, selu},
    {Celu::kName, celu},
    {ThresholdedRelu::kName, thresholded_relu},
    {Sigmoid::kName, function<sigmoid>},
    {HardSigmoid::kName, hard_sigmoid},
    {HardSwish::kName, function<hard_swish>},
    {Swish::kName, swish_of},
    {Mish::kName, function<mish>},
    {Softplus::kName, function<softplus>},
    {Softsign::kName, function<softsign>},
    {Tanh::kName, function<std::tanh>},
    {Erf::kName, function<std::erf>},
    {Gelu::kName, gelu_of},
    {Shrink::kName, shrink},
    {PRelu::kName, prelu},
    {Clip::kName, clip},
    {SwiGLU::kName, swiglu},
    {Sin::kName, function<std::sin>},
    {Cos::kName, function<std::cos>},
    {Tan::kName, function<std::tan>},
    {Asin::kName, function<std::asin>},
    {Acos::kName, function<std::acos>},
    {Atan::kName, function<std::atan>},
    {Sinh::kName, function<std::sinh>},
    {Cosh::kName, function<std::cosh>},
    {Asinh::kName, function<std::asinh>},
    {Acosh::kName, function<std::acosh>},
    {Atanh::kName, function<std::atanh>},
});

}  // namespace
}  // namespace tenon
