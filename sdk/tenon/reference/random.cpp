#include <tenon/ops/random.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include <tenon/reference/carrier.hpp>

namespace tenon {
namespace {

// Random numbers by position: there is no state, so any thread can generate any part.
class Stream {
 public:
  explicit Stream(EvalContext& context) : key_(context.random_seed()) {
    const Attribute* seed = context.op().attributes().find("seed");
    const float* value = seed ? seed->get_if<float>() : nullptr;
    if (value) key_ = scrambled(std::bit_cast<uint32_t>(*value));
  }
  // In [0, 1), with 53 bits.
  double uniform(int64_t position) const {
    return static_cast<double>(scrambled(key_ + static_cast<uint64_t>(position)) >> 11) * 0x1p-53;
  }
  // With mean 0 and standard deviation 1, by the transform of Box and Muller (Annals of Mathematical Statistics 29,
  // 1958).
  double normal(int64_t position) const {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(2 * position)));
    return radius * std::cos(2 * std::numbers::pi * uniform(2 * position + 1));
  }

 private:
  // SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
  static uint64_t scrambled(uint64_t counter) {
    uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t key_;
};

// Result 0 = f(i) for its elements i, converted from f64.
template <class F>
Result<void> generate(EvalContext& context, F f) {
  TENON_TRY(y, context.output(0));
  TENON_TRY(numbers, Tensor::allocate(kF64, y->dims()));
  double* out = numbers.mutable_as<double>().data();
  context.parallel().run(numbers.size(), kTaskElements / 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = f(i);
  });
  return store_converted(*y, numbers);
}

Result<void> random_normal(EvalContext& context) {
  const Stream stream(context);
  const double mean = context.attr<float>("mean", 0), scale = context.attr<float>("scale", 1);
  return generate(context, [&](int64_t i) { return mean + scale * stream.normal(i); });
}

Result<void> random_uniform(EvalContext& context) {
  const Stream stream(context);
  const double low = context.attr<float>("low", 0), high = context.attr<float>("high", 1);
  return generate(context, [&](int64_t i) { return low + (high - low) * stream.uniform(i); });
}

Result<void> bernoulli(EvalContext& context) {
  const Stream stream(context);
  TENON_TRY(probability, to_element(context.tensor(0), kF64));
  const double* p = probability.as<double>().data();
  return generate(context, [&](int64_t i) { return stream.uniform(i) < p[i] ? 1 : 0; });
}

Result<void> multinomial(EvalContext& context) {
  const Stream stream(context);
  TENON_TRY(logs, to_element(context.tensor(0), kF64));
  const int64_t batch = logs.dim(0), classes = logs.dim(1), samples = context.attr<int64_t>("sample_size", 1);
  if (classes == 0 && batch != 0 && samples != 0)
    return error(Code::invalid_argument, "there is no class to draw from");
  // Row by row, the running sums of the weights, scaled so that the greatest is 1 and the exponentials are finite.
  std::vector<double> sums(static_cast<size_t>(logs.size()));
  for (int64_t n = 0; n < batch; ++n) {
    const auto row = logs.as<double>().subspan(static_cast<size_t>(n * classes), static_cast<size_t>(classes));
    if (row.empty()) break;
    const double greatest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (size_t c = 0; c < row.size(); ++c)
      sums[static_cast<size_t>(n * classes) + c] = sum += std::exp(row[c] - greatest);
  }
  return generate(context, [&](int64_t i) {
    const auto first = sums.begin() + i / samples * classes, last = first + classes - 1;
    return static_cast<double>(std::upper_bound(first, last, stream.uniform(i) * *last) - first);
  });
}

const EvaluatorRegistration kRandomRegistered({
    {RandomNormal::kName, random_normal},
    {RandomUniform::kName, random_uniform},
    {RandomNormalLike::kName, random_normal},
    {RandomUniformLike::kName, random_uniform},
    {Bernoulli::kName, bernoulli},
    {Multinomial::kName, multinomial},
});

}  // namespace
}  // namespace tenon
