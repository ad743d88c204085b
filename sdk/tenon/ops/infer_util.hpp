// What the shape rules of many families share: results, axes, integer operands, extents as expressions, and the rules
// for operators that stand in shape arithmetic (infer_dims).
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

// What computes each element from those of the operands at the same place.
inline constexpr Trait kElementwise = Trait::pure | Trait::elementwise | Trait::layout_oblivious;

// Of integer products.
inline constexpr TypeSet kByteTypes("8-bit integers", [](ElementType e) { return e == kI8 || e == kU8; });
inline constexpr TypeSet kInt32Types("i32", [](ElementType e) { return e == kI32; });

// The types of an operator with one result.
inline std::vector<Type> one_type(ElementType element, Shape shape) { return {Type(element, std::move(shape))}; }

// ---- Shapes ----

// `rank` unknown extents.
TENON_API Shape unknown_shape(int64_t rank);
// The product of the dims; unknown when one is.
TENON_API Dim product_of(std::span<const Dim> dims);
// The numbers, when every dim is one.
TENON_API std::optional<std::vector<int64_t>> numbers_of(std::span<const Dim> dims);
// An extent computed from other extents, simplified with what holds for all extents: no symbol is negative.
TENON_API Dim extent(const Expr& e);
// Both known and certainly different.
TENON_API bool certainly_differ(const Dim& a, const Dim& b);
// Known, and `bound` or more whatever the symbols are (which are not negative).
TENON_API bool certainly_at_least(const Dim& dim, int64_t bound);
// How many elements an operand of rank 1 has: how long a list of axes or extents is. nullopt when not known.
TENON_API std::optional<int64_t> static_length(const InferContext& context, size_t operand);

// False when a tensor of this shape certainly has other than one element: for operands that hold one number.
TENON_API bool may_be_one_number(const Shape& shape);

// Is the optional operand there? Those at the end need not be listed.
TENON_API bool given(const InferContext& context, size_t operand);

// An error naming the operator and operand unless the operand's rank is unknown, or is `rank`, or is at least `rank`.
TENON_API Result<void> require_rank(const InferContext& context, size_t operand, int64_t rank);
TENON_API Result<void> require_rank_at_least(const InferContext& context, size_t operand, int64_t rank);
// An error unless the operand is of this shape as far as both are known.
TENON_API Result<void> require_shape(const InferContext& context, size_t operand, const Shape& wanted);

// ---- One of two types ----

// What holds for a value that is of either type: extents that agree, the rank if it agrees. Unknown when one is
// unknown. Kinds or element types that differ: an error naming both.
TENON_API Result<Type> join(const Type& a, const Type& b);

// ---- Regions ----

// Region `region` takes as many inputs as it is `given`, declares each of a kind and element type that agree with it
// where both are known, and has `outputs` outputs. A value that is given as an optional may be declared as what it
// holds, and the other way round; shapes are asked by no run.
TENON_API Result<void> check_region(const InferContext& context, size_t region, std::span<const Type> given,
                                    size_t outputs);
// `rule`, which takes an InferContext, as what a definition verifies. Shape rules of operators that a run may leave out
// are not heard (see may_be_left_out), what is verified is. For rules that refuse nothing for the sake of shapes: no
// run makes regions fit, or kinds and element types.
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
// Each in [-rank, rank) made non-negative; an error for one outside, or for one that stands twice.
TENON_API Result<std::vector<size_t>> normalize_axes(std::span<const int64_t> axes, int64_t rank);

// ---- Integer operands ----

// The elements of an integer operand when all of them are numbers that are known.
TENON_API std::optional<std::vector<int64_t>> known_ints(const InferContext& context, size_t operand);

// ---- Rules for shape arithmetic ----

// More elements than any shape has are not traced: nullopt instead.
inline constexpr size_t kMostTracedDims = 256;

// The result has operand `i`'s elements in their order (Identity, Reshape, Squeeze, Unsqueeze ...).
TENON_API InferDimsFn dims_of_operand(size_t i);

// Division of integers, which rounds towards zero: unknown unless the operands' signs make that a floor.
TENON_API Dim truncating_div(const Dim& a, const Dim& b);

}  // namespace tenon
