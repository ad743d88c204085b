// Bounds rules: which elements of its operands an operator reads to compute a part of a result. They are what makes a
// graph operator a stage of a pipeline; an operator without a rule is no stage.
//
//   TENON_TRY(bounds, operand_bounds(context, 0, shape, {{0, 0}, {0, m}, {row, row + 7}, {0, w}}));
//   bounds.operands[0].dims[2]     // Conv, 3 rows, padded by 1: max(0, row - 1) .. min(h - 1, row + 8)
//   TENON_TRY(part, sub_box_op(context, 0, {1, 8, 32, 32}, {{0, 0}, {0, 7}, {0, 7}, {0, 31}}));
//   part.attributes                // Conv with pads [1, 1, 0, 1]: how it runs on the crop to rows 0 .. 8
//
// Boxes are inclusive at both ends: position p of a dim is in it when min <= p <= max; max < min is the empty range.
// Positions count from 0, the first element of the whole value. A rule may assume that the box asked for is not empty
// and lies inside the result; for another one its answer may be too large, or outside.
//
// Expressions may hold the symbols of the operator's shapes and those of the box, and nothing else. All rules here give
// ends that are non-decreasing in the ends of the box along one dim wherever the operator reads that way, so that
// sliding windows can be proved.
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
using Box = std::vector<BoxRange>;  // one a dim

// What is read of one dim of an operand.
struct DimBounds {
  Expr min, max;
  // All of the dim. Where its extent is not known, min and max say nothing.
  bool whole = false;
  // The first and the last position each matter for some data, unless the range is empty. Else there may be more than
  // what is read, as where a box cannot express it, or which part is read depends on data.
  bool exact = true;
  bool operator==(const DimBounds&) const = default;
};

struct OperandBounds {
  enum class Kind : uint8_t {
    nothing,  // no element: the operand is absent, or only its type and shape count
    box,      // `dims`
    whole,    // every element, or nothing more is known
  };
  Kind kind = Kind::nothing;
  std::vector<DimBounds> dims;  // one a dim, for `box` only
  bool operator==(const OperandBounds&) const = default;
};

struct Bounds {
  std::vector<OperandBounds> operands;  // one for each operand of the operator
  // One for each dim of the result: may it be computed in strips along this dim, no strip repeating work of another?
  // Strips may read the same elements (a convolution's do); they do not along an axis that is normalised or scanned.
  std::vector<bool> splits;
  // A part that is computed by itself has the bits that it has in the whole.
  bool same_bits = true;
};

struct BoundsQuery {
  const InferContext& context;  // types of operands, static or symbolic; values as far as they are known
  size_t result;
  const Shape& shape;  // of the result; ranked
  const Box& box;      // of the result
};
using BoundsFn = std::function<Result<Bounds>(const BoundsQuery&)>;

// ---- How to run on a part ----

struct StaticRange {
  int64_t min, max;
  int64_t extent() const { return max < min ? 0 : max - min + 1; }
  bool operator==(const StaticRange&) const = default;
};
using StaticBox = std::vector<StaticRange>;

// The operator that gives a box of a result from crops of its operands.
struct SubBoxOp {
  Attributes attributes;             // in place of the operator's
  std::vector<StaticBox> operands;   // what each is cropped to; an absent operand and one that is no tensor have none
  std::map<size_t, Tensor> replaced; // constants in place of operands, such as the pads of Pad; may add operands
};

struct SubBoxQuery {
  const InferContext& context;
  size_t result;
  const Dims& shape;     // of the whole result
  const StaticBox& box;  // of it; never empty
  const Bounds& bounds;  // the rule's answer for it
};
// Changes `op`, which holds the operator's attributes and the crops that its bounds ask for. Code::unsupported with the
// reason when the operator cannot run on that part.
using SubBoxFn = std::function<Result<void>(const SubBoxQuery& query, SubBoxOp& op)>;

// What an OpDef holds. Without `bounds`: no stage. Without `sub_box`: runs on the whole only.
struct BoundsRule {
  BoundsFn bounds;
  SubBoxFn sub_box;
};

// ---- Asking ----

// What the operator reads for `box` of its result `result`, which has `shape`. Code::unsupported, naming the operator,
// when it has no rule; Code::invalid_argument for a box or shape that does not fit.
TENON_API Result<Bounds> operand_bounds(const InferContext& context, size_t result, const Shape& shape, const Box& box);

// How the operator gives exactly `box` of its result when it runs on crops of its operands. Its other results are then
// those of the crops and of no use. Code::unsupported with the reason when it cannot: for a box that is the whole
// result it always can. The operands' shapes must be static.
TENON_API Result<SubBoxOp> sub_box_op(const InferContext& context, size_t result, const Dims& shape,
                                      const StaticBox& box);

// All of a shape with known extents; an unknown one is an error naming the dim.
TENON_API Result<Box> whole_box(const Shape& shape);
TENON_API Box to_box(const StaticBox& box);

}  // namespace tenon
