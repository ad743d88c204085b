// Comparison of results, with the position and size of the worst difference.
#pragma once
#include <cstdint>
#include <string>

#include <tenon/support/export.hpp>
#include <tenon/tensor/datum.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

// Elementwise |got - expected| <= atol + rtol * |expected|; NaN equals NaN, infinities must agree in sign (the
// semantics of numpy.testing.assert_allclose). Applies to integers and booleans too; strings must be equal.
struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-7;
};

struct Comparison {
  bool equal = true;
  // The first reason: types, shapes, or the worst element: "element [1,2]: 0.5 against 0.25, |difference| 0.25 >
  // 0.00025; 3 of 24 elements differ".
  std::string difference;
  double max_abs = 0;       // largest |got - expected| over finite elements
  // max|got - expected| / max|expected|: the measure for whole networks. Infinite when types, shapes, strings or
  // non-finite elements disagree.
  double relative_max = 0;
  int64_t mismatches = 0;
};
TENON_API Comparison compare(const Tensor& got, const Tensor& expected, const Tolerance& tolerance = {});
TENON_API Comparison compare(const Datum& got, const Datum& expected, const Tolerance& tolerance = {});

// Distance in units in the last place of f32, f64, f16 or bf16; NaN to NaN is 0, NaN to a number is INT64_MAX. For
// different signs: the sum of the distances to zero.
TENON_API int64_t ulp_distance(ElementType format, double a, double b);

}  // namespace tenon
