// The elementwise operators of the snippet dialect, implemented a second time in plain form.
#pragma once
#include <span>
#include <string_view>

#include <tenon/ir/attribute.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::test {

// f32 functions that emitters approximate: exact to well below an ulp of f32.
struct MathCase {
  std::string_view op;
  Attributes attributes = {};
  double (*unary)(double) = nullptr;
  double (*binary)(double, double) = nullptr;
};
std::span<const MathCase> math_cases();

// Operators whose results are exact or rounded once. `form`: operands and result, T for the tested type, b for bool:
// "TT>b". The oracle takes and returns the bits of lanes.
struct ExactCase {
  std::string_view op, form;
  uint64_t (*exact)(ElementType type, const uint64_t* operands) = nullptr;
};
std::span<const ExactCase> exact_cases();

}  // namespace tenon::test
