#include <tenon/irgen/reference_strips.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include <tenon/ir/op_def.hpp>

namespace tenon::irgen {
namespace {

// Seconds on one thread. Products are blocked, and pack their factors in each call; elementwise kernels traverse their
// operands in order; all others process element by element, with an index for each.
constexpr ArithmeticCost kProduct{1e-9, 0.12e-9, 1.2e-9};
constexpr ArithmeticCost kElementwise{0.9e-9, 0};
constexpr ArithmeticCost kRow{9e-9, 0};
constexpr ArithmeticCost kMoved{4.6e-9, 0};  // one element each, of all that an index may select
constexpr ArithmeticCost kOther{0, 4.6e-9};
// One element depends on all of its row, but each row is processed once.
constexpr std::array<std::string_view, 9> kRowOperators = {"Softmax",
                                                           "LogSoftmax",
                                                           "Hardmax",
                                                           "LayerNormalization",
                                                           "RMSNormalization",
                                                           "LpNormalization",
                                                           "GroupNormalization",
                                                           "InstanceNormalization",
                                                           "MeanVarianceNormalization"};
// Waking threads and waiting for them, in each call.
constexpr double kSecondsPerFork = 10e-6;

bool is_product(const Op& op) {
  if (op.is("MatMul") || op.is("Gemm")) return true;
  if (!op.is("Conv") && !op.is("ConvTranspose")) return false;
  if (op.attr<int64_t>("group", 1) == 1) return true;
  // Groups of several channels are products, too; groups of one channel are not.
  const Type& weights = op.operand(1)->type();
  const auto dims = weights.is_tensor() ? weights.shape().static_dims() : std::nullopt;
  return dims && dims->size() > 1 && (op.is("Conv") ? (*dims)[1] : (*dims)[0] / op.attr<int64_t>("group", 1)) > 1;
}

ArithmeticCost arithmetic_of(const Op& op) {
  if (is_product(op)) return kProduct;
  if (std::ranges::any_of(kRowOperators, [&](std::string_view name) { return op.is(name); })) return kRow;
  if (!op.def()) return kOther;
  return op.def()->has(Trait::elementwise) ? kElementwise : op.def()->has(Trait::movement) ? kMoved : kOther;
}

}  // namespace

StripOptions reference_strips(const TargetDescription& target, int64_t threads) {
  StripOptions options;
  options.model = strip_model(target);
  if (threads > 1) options.model.seconds_per_call += kSecondsPerFork;
  options.arithmetic = [share = 1.0 / static_cast<double>(std::max<int64_t>(threads, 1))](const Op& op) {
    const ArithmeticCost one = arithmetic_of(op);
    return ArithmeticCost{one.seconds_per_element * share, one.seconds_per_read * share,
                          one.seconds_per_reread * share};
  };
  return options;
}

}  // namespace tenon::irgen
