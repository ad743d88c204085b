// Building blocks of bounds rules (ir/bounds_rule.hpp): ranges of one dim, operands that follow dims of the result, and
// complete rules shared by many operators.
//
//   OpDef("Softmax")....bounds(whole_along("axis", -1))
//   OpDef("Relu")....bounds(pointwise())
//   Result<Bounds> matmul(const BoundsQuery& query) {        // Y[i, j] of A[i, k], B[k, j]
//     Bounds bounds = all_whole(query);
//     bounds.operands = {follow(query, 0, {0, kWhole}), follow(query, 1, {kWhole, 1})};
//     return bounds;
//   }
#pragma once
#include <span>
#include <vector>

#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>

namespace tenon {

// ---- One dim ----

inline DimBounds exactly(BoxRange range) { return {std::move(range.min), std::move(range.max)}; }
inline DimBounds at_most(BoxRange range) { return {std::move(range.min), std::move(range.max), false, false}; }
// [0, extent - 1].
TENON_API DimBounds whole_dim(const Dim& extent, bool exact = true);
// The range cropped to [0, extent - 1], for operators that pad by themselves; whole if the extent is not known.
TENON_API DimBounds clamped(const BoxRange& range, const Dim& extent, bool exact = true);

inline BoxRange shifted(const BoxRange& range, const Expr& by) { return {range.min + by, range.max + by}; }
// For positions outer * inner_extent + inner: the outer part, and the inner part, which is the whole range once the
// range spans more than one outer position.
TENON_API BoxRange outer_part(const BoxRange& range, const Expr& inner_extent);
TENON_API BoxRange inner_part(const BoxRange& range, const Expr& inner_extent);
// The same for groups: [min of the first group, max of the last one].
inline BoxRange groups(const BoxRange& range, const Expr& size) {
  return {range.min * size, range.max * size + size - Expr(1)};
}

// ---- One operand ----

inline OperandBounds boxed(std::vector<DimBounds> dims) { return {OperandBounds::Kind::box, std::move(dims)}; }
inline OperandBounds unread() { return {}; }
// Every element, as a box if the rank is known; nothing when the operand is absent.
TENON_API OperandBounds whole_operand(const BoundsQuery& query, size_t operand);

// The operand's shape; null when it is absent, not a tensor, or of unknown rank.
TENON_API const Shape* ranked_shape(const InferContext& context, size_t operand);

// Dim d of the operand is read at the positions computed in dim to[d] of the result (to[d] = kWhole: everywhere). The
// extents are equal, or the operand's is 1 and read for all. Whole if its rank differs or is not known.
inline constexpr int kWhole = -1;
TENON_API OperandBounds follow(const BoundsQuery& query, size_t operand, std::span<const int> to);
inline OperandBounds follow(const BoundsQuery& query, size_t operand, std::initializer_list<int> to) {
  return follow(query, operand, std::span<const int>(to.begin(), to.size()));
}
// The same for an operand that broadcasts as in NumPy: its last dims follow the result's last ones.
TENON_API OperandBounds broadcast_to(const BoundsQuery& query, size_t operand);
// One dim of such an operand, of `extent`; whole where that may turn out to be 1.
TENON_API DimBounds broadcast_dim(const BoundsQuery& query, const Dim& extent, size_t result_dim);
// 0, 1, ... rank - 1, with those in `whole` replaced by kWhole.
TENON_API std::vector<int> each_dim(size_t rank, std::initializer_list<size_t> whole = {});
// The operand with all its ranges marked as inexact.
TENON_API OperandBounds inexact(OperandBounds bounds);

// ---- Answers ----

// All operands whole, the result split along every dim or none.
TENON_API Bounds all_whole(const BoundsQuery& query, bool splits = true);
// Whether all of dim `dim` of the result is requested, as far as its extent is known.
TENON_API bool asks_whole(const BoundsQuery& query, size_t dim);
// Whether float sums, which are blocked by the number of positions in the dims `blocked`, keep their bits: only with
// all of these positions.
TENON_API bool keeps_sums(const BoundsQuery& query, std::span<const size_t> blocked);

// ---- Rules ----

// For operators that compute the box when they run on the crops with unchanged attributes: where the result may be
// split, or is whole.
TENON_API SubBoxFn runs_as_it_is();
// Code::unsupported when the box does not contain all of dim `dim`.
TENON_API Result<void> require_whole(const SubBoxQuery& query, size_t dim);
// Code::unsupported when operand `operand` would read only padding.
TENON_API Result<void> require_elements(const SubBoxOp& op, size_t operand);

// Result element i reads operand elements i; operands broadcast. `only_type`: operands of which no element is read.
TENON_API BoundsRule pointwise(std::vector<size_t> only_type = {});
// Operand 0 is read along the whole axis that an attribute names, and position by position along the others; every
// result has its shape, or extent 1 on that axis.
TENON_API BoundsRule whole_along(Name attribute, int64_t fallback);
// Every part reads everything.
TENON_API BoundsRule whole_operands();
// The elements of operand 0 in row-major order under another shape: a box if the shapes nest, else the box around the
// rows that contain it.
TENON_API Result<Bounds> view_bounds(const BoundsQuery& query);

// ---- Sub-boxes ----

// The extents of a box, as dims and as an operand that gives a shape.
TENON_API Dims extents_of(const StaticBox& box);
TENON_API Tensor ints_tensor(const std::vector<int64_t>& values, ElementType element = kI64);

}  // namespace tenon
