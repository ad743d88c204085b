// The f32 functions that emitters approximate, in f64: one list for code that computes single values (lane_oracles.cpp)
// and code that computes blocks with other compiler options (bench/accuracy_walk_blocks.cpp).
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>

#include <tenon/ir/attribute.hpp>

namespace tenon::test {

// Calls visit(operator, attributes, function of one or two doubles) for each; the functions hold nothing. Unit: a type
// of the calling file's unnamed namespace, so that no two files share machine code.
template <class Unit, class Visit>
void each_math_function(const Visit& visit) {
  struct In : Unit {
    static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
    static double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
  };
  visit("Exp", {}, [](double x) { return std::exp(x); });
  visit("Expm1", {}, [](double x) { return std::expm1(x); });
  visit("Tanh", {}, [](double x) { return std::tanh(x); });
  visit("Sigmoid", {}, [](double x) { return In::sigmoid(x); });
  visit("Log", {}, [](double x) { return std::log(x); });
  visit("Sin", {}, [](double x) { return std::sin(x); });
  visit("Cos", {}, [](double x) { return std::cos(x); });
  visit("Tan", {}, [](double x) { return std::tan(x); });
  visit("Asin", {}, [](double x) { return std::asin(x); });
  visit("Acos", {}, [](double x) { return std::acos(x); });
  visit("Atan", {}, [](double x) { return std::atan(x); });
  visit("Sinh", {}, [](double x) { return std::sinh(x); });
  visit("Cosh", {}, [](double x) { return std::cosh(x); });
  visit("Pow", {}, [](double x, double y) { return std::pow(x, y); });
  visit("Softplus", {}, [](double x) { return In::softplus(x); });
  visit("Asinh", {}, [](double x) { return std::asinh(x); });
  visit("Acosh", {}, [](double x) { return std::acosh(x); });
  visit("Atanh", {}, [](double x) { return std::atanh(x); });
  visit("Erf", {}, [](double x) { return std::erf(x); });
  visit("Swish", {}, [](double x) { return x * In::sigmoid(x); });
  visit("Swish", {{"alpha", 1.702f}}, [](double x) { return x * In::sigmoid(1.702f * x); });
  visit("Swish", {{"alpha", -0.3f}}, [](double x) { return x * In::sigmoid(-0.3f * x); });
  visit("Mish", {}, [](double x) { return x * std::tanh(In::softplus(x)); });
  visit("Gelu", {{"approximate", "none"}}, [](double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); });
  visit("Gelu", {{"approximate", "tanh"}},
        [](double x) { return x * In::sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); });
}

}  // namespace tenon::test
