#include <tenon/ops/training.hpp>

#include <array>
#include <cmath>

#include <tenon/reference/carrier.hpp>

namespace tenon {
namespace {

// One element of a tensor with `States` states.
template <size_t States>
struct Element {
  double x, gradient;
  std::array<double, States> state;
};

// Calls step(element) for every element of every tensor, in f64; it updates x and the state.
template <size_t States, class Step>
Result<void> optimise(EvalContext& context, Step step) {
  const size_t count = (context.operand_count() - 2) / (States + 2);
  for (size_t i = 0; i < count; ++i) {
    std::array<Tensor, States + 2> in;  // x, gradient, state
    for (size_t group = 0; group < in.size(); ++group) {
      TENON_TRY(tensor, to_element(context.tensor(2 + group * count + i), kF64));
      in[group] = std::move(tensor);
    }
    std::array<Tensor, States + 1> out;  // x, state
    for (Tensor& tensor : out) {
      TENON_TRY(made, Tensor::allocate(kF64, in[0].dims()));
      tensor = std::move(made);
    }
    const auto from = [&](size_t group) { return in[group].template as<double>().data(); };
    const auto into = [&](size_t group) { return out[group].template mutable_as<double>().data(); };
    for (int64_t n = 0; n < in[0].size(); ++n) {
      Element<States> element{from(0)[n], from(1)[n], {}};
      for (size_t s = 0; s < States; ++s) element.state[s] = from(s + 2)[n];
      step(element);
      into(0)[n] = element.x;
      for (size_t s = 0; s < States; ++s) into(s + 1)[n] = element.state[s];
    }
    for (size_t group = 0; group < out.size(); ++group) {
      TENON_TRY(result, context.output(group * count + i));
      TENON_OK(store_converted(*result, out[group]));
    }
  }
  return {};
}

double rate_of(EvalContext& context) { return context.tensor(0).double_at(0); }
int64_t steps_of(EvalContext& context) { return context.tensor(1).int_at(0); }

Result<void> adagrad(EvalContext& context) {
  const double norm = context.attr<float>("norm_coefficient", 0), epsilon = context.attr<float>("epsilon", 1e-6f);
  const double decay = context.attr<float>("decay_factor", 0);
  const double rate = rate_of(context) / (1 + static_cast<double>(steps_of(context)) * decay);
  return optimise<1>(context, [=](Element<1>& element) {
    const double g = norm * element.x + element.gradient;
    element.state[0] += g * g;
    element.x -= rate * g / (std::sqrt(element.state[0]) + epsilon);
  });
}

Result<void> adam(EvalContext& context) {
  const double norm = context.attr<float>("norm_coefficient", 0), epsilon = context.attr<float>("epsilon", 1e-6f);
  const double after = 1 - static_cast<double>(context.attr<float>("norm_coefficient_post", 0));
  const double alpha = context.attr<float>("alpha", 0.9f), beta = context.attr<float>("beta", 0.999f);
  const auto steps = static_cast<double>(steps_of(context));
  const double correction = steps > 0 ? std::sqrt(1 - std::pow(beta, steps)) / (1 - std::pow(alpha, steps)) : 1;
  const double rate = rate_of(context) * correction;
  return optimise<2>(context, [=](Element<2>& element) {
    const double g = norm * element.x + element.gradient;
    auto& [v, h] = element.state;
    v = alpha * v + (1 - alpha) * g;
    h = beta * h + (1 - beta) * g * g;
    element.x = after * (element.x - rate * v / (std::sqrt(h) + epsilon));
  });
}

Result<void> momentum(EvalContext& context) {
  const double norm = context.attr<float>("norm_coefficient", 0), alpha = context.attr<float>("alpha");
  const double beta = steps_of(context) > 0 ? context.attr<float>("beta") : 1, rate = rate_of(context);
  const bool nesterov = context.attr<std::string>("mode") == "nesterov";
  return optimise<1>(context, [=](Element<1>& element) {
    const double g = norm * element.x + element.gradient;
    double& v = element.state[0];
    v = alpha * v + beta * g;
    element.x -= rate * (nesterov ? g + alpha * v : v);
  });
}

const EvaluatorRegistration kTrainingRegistered({{Adagrad::kName, adagrad},
                                                 {Adam::kName, adam},
                                                 {Momentum::kName, momentum}});

}  // namespace
}  // namespace tenon
