// Checks a graph with layouts: it must compute the same as without them, whatever the content of padding.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <tenon/ir/verify.hpp>
#include <tenon/passes/assign_layouts.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/runtime/thread_pool.hpp>

namespace tenon::testing {

inline Result<std::vector<Datum>> run_poisoned(const Graph& graph, std::span<const Datum> inputs,
                                               PoisonPadding poison) {
  TENON_TRY(interpreter, Interpreter::prepare(graph, {.poison_padding = poison}));
  return interpreter->run(inputs, default_pool());
}

// The largest difference between outputs divided by the largest element, or infinity if one of them is NaN.
inline double difference(const Tensor& wanted, const Tensor& got) {
  if (wanted.element() != got.element() || wanted.dims() != got.dims()) return INFINITY;
  double most = 0, scale = 1e-30;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    const double a = wanted.double_at(i), b = got.double_at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
    most = std::max(most, std::abs(a - b));
    scale = std::max(scale, std::abs(a));
  }
  return most / std::max(scale, 1.0);
}

// Verifies `laid`, and runs it with all bits 1 and with NaN in dirty padding: an error if that has an effect. Sums over
// padded channels group their terms differently, so 1e-5 allows for rounding; 0 requires equal bits.
inline Result<void> check_laid_out(const Graph& laid, const AssignLayoutsOptions& options,
                                   std::span<const Datum> inputs, std::span<const Datum> wanted,
                                   double tolerance = 1e-5) {
  TENON_OK(verify(laid));
  TENON_OK(verify_layouts(laid, options));
  for (const PoisonPadding poison : {PoisonPadding::ones, PoisonPadding::nan}) {
    TENON_TRY(got, run_poisoned(laid, inputs, poison));
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double off = difference(wanted[i].tensor(), got[i].tensor());
      if (off > tolerance) {
        return error(Code::internal, "output ", i, " ('", laid.body().output_name(i), "') differs by ", off,
                     poison == PoisonPadding::nan ? " with NaN" : " with ones", " in padding");
      }
    }
  }
  return {};
}

}  // namespace tenon::testing
