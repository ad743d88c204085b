// Helpers shared by the shape rules of many families: results, axes, integer operands, extents as expressions, and
// rules for operators that are used in shape arithmetic (infer_dims).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon {

using InferredTypes = Result<std::vector<Type>>;

// Traits of operators that compute each element from those of the operands at the same position.
inline constexpr Trait kElementwise = Trait::pure | Trait::elementwise | Trait::layout_oblivious;

// For integer products.
inline constexpr TypeSet kByteTypes("8-bit integers", [](ElementType e) { return e == kI8 || e == kU8; });
inline constexpr TypeSet kInt32Types("i32", [](ElementType e) { return e == kI32; });

// The types of an operator with one result.
inline std::vector<Type> one_type(ElementType element, Shape shape) { return {Type(element, std::move(shape))}; }

// ---- Shapes ----

// `rank` unknown extents.
TENON_API Shape unknown_shape(int64_t rank);
// The product of the dims; unknown if any of them is.
TENON_API Dim product_of(std::span<const Dim> dims);
// The numbers, if every dim is a known number.
TENON_API std::optional<std::vector<int64_t>> numbers_of(std::span<const Dim> dims);
// An extent computed from other extents, simplified under the assumption that no symbol is negative.
TENON_API Dim extent(const Expr& e);
// Both are known and differ for all values of the symbols.
TENON_API bool certainly_differ(const Dim& a, const Dim& b);
// Known, and at least `bound` for all (non-negative) values of the symbols.
TENON_API bool certainly_at_least(const Dim& dim, int64_t bound);
// The number of elements of an operand of rank 1, such as a list of axes or extents. nullopt when not known.
TENON_API std::optional<int64_t> static_length(const InferContext& context, size_t operand);

// False when a tensor of this shape cannot have exactly one element: for operands that hold one number.
TENON_API bool may_be_one_number(const Shape& shape);

// Whether the optional operand is given. Trailing ones need not be listed.
TENON_API bool given(const InferContext& context, size_t operand);

// An error naming the operator and operand, unless the operand's rank is unknown or is (at least) `rank`.
TENON_API Result<void> require_rank(const InferContext& context, size_t operand, int64_t rank);
TENON_API Result<void> require_rank_at_least(const InferContext& context, size_t operand, int64_t rank);
// An error, unless the operand has this shape as far as both are known.
TENON_API Result<void> require_shape(const InferContext& context, size_t operand, const Shape& wanted);

// ---- A value with either of two types ----

// What is known about a value that has either type: extents that agree, and the rank if it agrees. Unknown when one is
// unknown. Different kinds or element types are an error naming both.
TENON_API Result<Type> join(const Type& a, const Type& b);

// ---- Regions ----

// Checks that region `region` has one input per type in `given`, each declared with a kind and element type that agree
// where both are known, and `outputs` outputs. A value that is given as an optional may be declared as its content
// type, and vice versa; shapes are not checked by any run.
TENON_API Result<void> check_region(const InferContext& context, size_t region, std::span<const Type> given,
                                    size_t outputs);
// `rule`, which takes an InferContext, as a verify rule of a definition. Shape rules of operators that a run might not
// execute are ignored (see may_be_left_out), verify rules are not. For rules that never fail because of shapes: no run
// can correct regions, or kinds and element types.
template <class Rule>
VerifyFn verified_by(Rule rule) {
  return [rule](const Op& op) -> Result<void> {
    static const TypeSource graph_types;
    TENON_OK(rule(StaticInferContext(op, graph_types)));
    return {};
  };
}

// ---- Axes ----

// The attribute `name` as an axis of a tensor of `rank`; an error naming the attribute.
TENON_API Result<size_t> axis_attribute(const InferContext& context, Name name, int64_t fallback, int64_t rank);
// Converts each from [-rank, rank) to non-negative; an error for one outside, or one that occurs twice.
TENON_API Result<std::vector<size_t>> normalize_axes(std::span<const int64_t> axes, int64_t rank);

// ---- Integer operands ----

// The elements of an integer operand, if all of them are known numbers.
TENON_API std::optional<std::vector<int64_t>> known_ints(const InferContext& context, size_t operand);

// ---- Rules for shape arithmetic ----

// Longer lists than any shape are not traced: nullopt instead.
inline constexpr size_t kMostTracedDims = 256;

// The result has operand `i`'s elements in the same order (Identity, Reshape, Squeeze, Unsqueeze ...).
TENON_API InferDimsFn dims_of_operand(size_t i);

// Integer division, which rounds towards zero: unknown unless the operands' signs make it equal to floor division.
TENON_API Dim truncating_div(const Dim& a, const Dim& b);

}  // namespace tenon
