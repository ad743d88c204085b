#include <tenon/ops/loss.hpp>

#include <vector>

#include <tenon/reference/carrier.hpp>
#include <tenon/reference/softmax.hpp>

namespace tenon {
namespace {

struct Place {
  bool counts = true;  // its class is not ignore_index
  int64_t at = 0;      // index of the target class in the scores
  double weight = 0;
};

// For each position, the index of the target's score, and its weight.
Result<std::vector<Place>> places_of(EvalContext& context, const AxisView& classes) {
  const Tensor& wanted = context.tensor(1);
  const Attribute* ignored = context.op().attributes().find("ignore_index");
  const int64_t* ignore = ignored ? ignored->get_if<int64_t>() : nullptr;
  std::vector<Place> places(static_cast<size_t>(classes.lines()));
  for (int64_t i = 0; i < classes.lines(); ++i) {
    Place& place = places[static_cast<size_t>(i)];
    const int64_t c = wanted.int_at(i);
    place.counts = !ignore || c != *ignore;
    if (!place.counts) continue;
    if (c < 0 || c >= classes.extent) {
      return error(Code::invalid_argument, "class ", c, " at place ", i, " is outside [0, ", classes.extent,
                   ") and is not ignore_index");
    }
    place.at = classes.offset(i) + c * classes.inner;
    place.weight = context.has_operand(2) ? context.tensor(2).double_at(c) : 1;
  }
  return places;
}

// Stores losses from logarithms of probabilities, in f64.
Result<void> store_losses(EvalContext& context, const AxisView& classes, std::span<const double> logs) {
  TENON_TRY(places, places_of(context, classes));
  const auto reduction = context.attr<std::string>("reduction", "mean");
  TENON_TRY(out, context.output(0));
  TENON_TRY(losses, Tensor::zeros(kF64, out->dims()));
  const auto to = losses.mutable_as<double>();
  double sum = 0, weights = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    const double loss = place.counts ? -place.weight * logs[static_cast<size_t>(place.at)] : 0;
    if (reduction == "none") to[i] = loss;
    sum += loss;
    weights += place.weight;
  }
  if (reduction == "sum") to[0] = sum;
  if (reduction == "mean") to[0] = sum / weights;
  return store_converted(*out, losses);
}

Result<void> negative_log_likelihood(EvalContext& context) {
  TENON_TRY(logs, to_element(context.tensor(0), kF64));
  return store_losses(context, AxisView(logs.dims(), 1), logs.as<double>());
}

Result<void> softmax_cross_entropy(EvalContext& context) {
  TENON_TRY(scores, to_element(context.tensor(0), kF64));
  TENON_TRY(logs, Tensor::allocate(kF64, scores.dims()));
  const AxisView classes(scores.dims(), 1);
  const double* in = scores.as<double>().data();
  double* out = logs.mutable_as<double>().data();
  classes.run(context.parallel(), [&](int64_t, int64_t offset) {
    log_softmax_line(in + offset, out + offset, classes.extent, classes.inner);
  });
  if (context.wants(1)) {
    TENON_TRY(log_prob, context.output(1));
    TENON_OK(store_converted(*log_prob, logs));
  }
  return store_losses(context, classes, logs.as<double>());
}

const EvaluatorRegistration kLossRegistered({
    {NegativeLogLikelihoodLoss::kName, negative_log_likelihood},
    {SoftmaxCrossEntropyLoss::kName, softmax_cross_entropy},
});

}  // namespace
}  // namespace tenon
