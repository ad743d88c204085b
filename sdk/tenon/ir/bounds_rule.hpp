// Bounds rules: which elements of its operands an operator reads to compute a part of a result. They let a graph
// operator be a stage of a pipeline; an operator without a rule cannot be one.
//
//   TENON_TRY(bounds, operand_bounds(context, 0, shape, {{0, 0}, {0, m}, {row, row + 7}, {0, w}}));
//   bounds.operands[0].dims[2]     // Conv, 3 rows, padded by 1: max(0, row - 1) .. min(h - 1, row + 8)
//   TENON_TRY(part, sub_box_op(context, 0, {1, 8, 32, 32}, {{0, 0}, {0, 7}, {0, 7}, {0, 31}}));
//   part.attributes                // Conv with pads [1, 1, 0, 1]: how it runs on the crop to rows 0 .. 8
//
// Boxes are inclusive at both ends: position p of a dim is inside when min <= p <= max; max < min is the empty range.
// Positions count from 0, the first element of the whole value. A rule may assume that the given box is not empty and
// lies inside the result; otherwise its answer may be too large, or outside.
//
// Expressions contain only the symbols of the operator's shapes and those of the box. In all rules here, wherever the
// operator reads monotonically, the ends are non-decreasing in the ends of the box along one dim, so that sliding
// windows can be proved.
//
// Threads: rules are pure; any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/attribute.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/shape.hpp>
#include <tenon/tensor/tensor.hpp>

namespace tenon {

class InferContext;

// ---- What is read ----

struct BoxRange {
  Expr min, max;
  bool operator==(const BoxRange&) const = default;
};
using Box = std::vector<BoxRange>;  // one per dim

// The range that is read along one dim of an operand.
struct DimBounds {
  Expr min, max;
  // The whole dim. If its extent is not known, min and max are meaningless.
  bool whole = false;
  // The first and the last position both affect the result for some data, unless the range is empty. Otherwise the
  // range may be larger than what is read, because a box cannot express it or because it depends on data.
  bool exact = true;
  bool operator==(const DimBounds&) const = default;
};

struct OperandBounds {
  enum class Kind : uint8_t {
    nothing,  // no element: the operand is absent, or only its type and shape matter
    box,      // given by `dims`
    whole,    // every element, or no better bound is known
  };
  Kind kind = Kind::nothing;
  std::vector<DimBounds> dims;  // one per dim, for `box` only
  bool operator==(const OperandBounds&) const = default;
};

struct Bounds {
  std::vector<OperandBounds> operands;  // one for each operand of the operator
  // One per dim of the result: whether it may be computed in strips along this dim without repeated work. Strips may
  // read the same elements, as those of a convolution do. False along an axis that is normalised or scanned.
  std::vector<bool> splits;
  // A part that is computed on its own has the same bits as in the whole result.
  bool same_bits = true;
};

struct BoundsQuery {
  const InferContext& context;  // types of operands, static or symbolic; values as far as they are known
  size_t result;
  const Shape& shape;  // of the result; ranked
  const Box& box;      // of the result
};
using BoundsFn = std::function<Result<Bounds>(const BoundsQuery&)>;

// ---- Running on a part ----

struct StaticRange {
  int64_t min, max;
  int64_t extent() const { return max < min ? 0 : max - min + 1; }
  bool operator==(const StaticRange&) const = default;
};
using StaticBox = std::vector<StaticRange>;

// An operator that computes a box of a result from crops of the operands.
struct SubBoxOp {
  Attributes attributes;              // replace the operator's
  std::vector<StaticBox> operands;    // the crop of each; empty for absent operands and those that are no tensors
  std::map<size_t, Tensor> replaced;  // constants that replace operands, such as the pads of Pad; may add operands
};

struct SubBoxQuery {
  const InferContext& context;
  size_t result;
  const Dims& shape;     // of the whole result
  const StaticBox& box;  // of it; never empty
  const Bounds& bounds;  // the rule's answer for it
};
// Changes `op`, which holds the operator's attributes and the crops that its bounds require. Code::unsupported with the
// reason when the operator cannot run on that part.
using SubBoxFn = std::function<Result<void>(const SubBoxQuery& query, SubBoxOp& op)>;

// Part of an OpDef. Without `bounds`, the operator cannot be a stage; without `sub_box`, it runs only on the whole.
struct BoundsRule {
  BoundsFn bounds;
  SubBoxFn sub_box;
};

// ---- Queries ----

// What the operator reads to compute `box` of result number `result`, which has the shape `shape`. Code::unsupported,
// naming the operator, when it has no rule; Code::invalid_argument for a box or shape that does not fit.
TENON_API Result<Bounds> operand_bounds(const InferContext& context, size_t result, const Shape& shape, const Box& box);

// How the operator computes exactly `box` of its result from crops of its operands. Its other results are then those
// for the crops, and meaningless. Code::unsupported with the reason when it cannot; it always can for the whole result.
// The operands' shapes must be static.
TENON_API Result<SubBoxOp> sub_box_op(const InferContext& context, size_t result, const Dims& shape,
                                      const StaticBox& box);

// The box of a whole shape with known extents; an unknown extent is an error naming the dim.
TENON_API Result<Box> whole_box(const Shape& shape);
TENON_API Box to_box(const StaticBox& box);

}  // namespace tenon
