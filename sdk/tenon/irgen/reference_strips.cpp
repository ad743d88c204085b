#include <tenon/irgen/reference_strips.hpp>

#include <algorithm>

#include <tenon/ir/op_def.hpp>

namespace tenon::irgen {
namespace {

// Seconds on one thread. Products are blocked; elementwise kernels take their operands in order; all others go element
// by element, with an index for each.
constexpr ArithmeticCost kProduct{1e-9, 0.12e-9};
constexpr ArithmeticCost kElementwise{0.9e-9, 0};
constexpr ArithmeticCost kOther{0, 4.6e-9};
// Threads that are woken and waited for, in each call.
constexpr double kSecondsPerFork = 10e-6;

bool is_product(const Op& op) {
  if (op.is("MatMul") || op.is("Gemm")) return true;
  return (op.is("Conv") || op.is("ConvTranspose")) && op.attr<int64_t>("group", 1) == 1;
}

ArithmeticCost arithmetic_of(const Op& op) {
  if (is_product(op)) return kProduct;
  return op.def() && op.def()->has(Trait::elementwise) ? kElementwise : kOther;
}

}  // namespace

StripOptions reference_strips(const TargetDescription& target, int64_t threads) {
  StripOptions options;
  options.model = strip_model(target);
  if (threads > 1) options.model.seconds_per_call += kSecondsPerFork;
  options.arithmetic = [share = 1.0 / static_cast<double>(std::max<int64_t>(threads, 1))](const Op& op) {
    const ArithmeticCost one = arithmetic_of(op);
    return ArithmeticCost{one.seconds_per_element * share, one.seconds_per_read * share};
  };
  return options;
}

}  // namespace tenon::irgen
