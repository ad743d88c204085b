#include <tenon-ext/quant/averages_internal.hpp>

#include <algorithm>

#include <tenon-ext/fused/epilogue.hpp>
#include <tenon-ext/fused/pooling.hpp>
#include <tenon/ops/pooling.hpp>

namespace tenon::quant {
namespace {

// The window of a mean: kernel_shape, strides, pads, dilations; nullopt if elements have different weights.
Result<std::optional<Attributes>> mean_window(const Op& op, const Shape& x) {
  if (isa<AveragePool>(op)) {
    const auto kernel = op.attr<Attribute::Integers>("kernel_shape");
    TENON_TRY(window, explicit_window(op, {kernel.begin(), kernel.end()}, x, op.result()->type().shape()));
    if (!window) return window;
    const auto& pads = *window->find("pads")->get_if<Attribute::Integers>();
    const bool padded = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
    // With ceil_mode, what is beyond the stated padding is still not counted.
    if (padded && (op.attr<int64_t>("count_include_pad", 0) == 0 || op.attr<int64_t>("ceil_mode", 0) != 0)) {
      return std::optional<Attributes>();
    }
    window->set("kernel_shape", kernel);
    return window;
  }
  Attribute::Integers kernel;
  for (size_t d = 2; d < x.dims().size(); ++d) kernel.push_back(x[d].value());
  return std::optional<Attributes>(Attributes{{"kernel_shape", kernel}});
}

// multiplier / 2^shift, as close to `ratio` as 15 bits and the accumulators allow: sums are at most `elements` * 128.
struct Fraction {
  int64_t multiplier = 0, shift = 0;
};
std::optional<Fraction> fraction_of(double ratio, int64_t elements) {
  for (int64_t shift = fused::kMostShift; shift >= 0; --shift) {
    const double multiplier = std::nearbyint(std::ldexp(ratio, static_cast<int>(shift)));
    const int64_t room = INT32_MAX - (shift > 0 ? int64_t{1} << (shift - 1) : 0);
    if (multiplier >= 1 && multiplier <= 32767 && multiplier <= static_cast<double>(room / 128 / elements)) {
      return Fraction{static_cast<int64_t>(multiplier), shift};
    }
  }
  return std::nullopt;
}

int64_t elements_of(const Attributes& window) {
  int64_t elements = 1;
  for (const int64_t extent : *window.find("kernel_shape")->get_if<Attribute::Integers>()) elements *= extent;
  return elements;
}

}  // namespace

Result<std::optional<Quantised>> quantised_mean(Builder& builder, const Op& op, const ClipRange& clip,
                                                int64_t exponent) {
  const auto x = quantised(op.operand(0));
  const Shape& shape = op.operand(0)->type().shape();
  if (!x || !shape.ranked()) return std::optional<Quantised>();
  for (size_t d = 2; d < shape.dims().size(); ++d) {
    if (!shape[d].is_static()) return std::optional<Quantised>();
  }
  TENON_TRY(window, mean_window(op, shape));
  if (!window) return std::optional<Quantised>();
  const int64_t elements = elements_of(*window);
  const double ratio = std::ldexp(1.0, static_cast<int>(x->exponent - exponent)) / static_cast<double>(elements);
  const auto fraction = fraction_of(ratio, elements);
  if (!fraction) return std::optional<Quantised>();
  window->set("multiplier", fraction->multiplier);
  set_epilogue(*window, fraction->shift, clip, exponent);
  TENON_TRY(y, builder.op(fused::QAvgPool::name(), {x->value}, *std::move(window)));
  return std::optional<Quantised>(Quantised{y, exponent});
}

}  // namespace tenon::quant
