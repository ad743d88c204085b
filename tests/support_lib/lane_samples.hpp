// Values for testing emitters, and the error of a result.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <tenon/tensor/element_type.hpp>

namespace tenon::test {

// Lanes of one operand or result: the bits of a lane type in the low part of each word; 0 or 1 for bool.
struct Column {
  ElementType element;
  std::vector<uint64_t> bits;
};

// Every element type that a lane may have, except bool.
inline constexpr std::array kLaneNumbers{kF32, kF64, kI32, kU32, kI64, kU64};
// Values at which operators are prone to errors: zeros, units, limits, halves, denormals, infinities, NaN; then seeded
// random ones of all magnitudes; `count` in all.
std::vector<uint64_t> sample(ElementType element, size_t count, uint32_t seed);
// Columns of `operands` operands of one type: every pair of the special values of `element` in the first two, then
// random ones.
std::vector<Column> sample_columns(ElementType element, size_t operands, uint32_t seed);

// |got - exact| in units in the last place of f32 at `exact`; 0 for NaN and NaN and for equal infinities, infinite if
// one of them is not finite and the other differs. A value that overflows when rounded counts as infinite.
double ulp_error(float got, double exact);

// The lanes as a tensor, converted to one type after another by the tensor library: the bits of the last.
std::vector<uint64_t> converted(const Column& column, std::span<const ElementType> route);
bool is_nan(ElementType element, uint64_t bits);

}  // namespace tenon::test
