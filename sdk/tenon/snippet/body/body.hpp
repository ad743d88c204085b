// Body: what a snippet computes, as operators of the dialect over one iteration space. It is made from the region of a
// Subgraph (canonical.hpp) and lowered to a linear kernel (lower.hpp). Plain data.
//
//   softmax over the last axis of f32[N,C]:
//     dims    n: kept   c: reduced
//     %0 = input 0            varies over n c
//     %1 = ReduceMax %0       varies over n
//     %2 = Sub %0, %1         varies over n c
//     %3 = Exp %2             varies over n c
//     %4 = ReduceSum %3       varies over n
//     %5 = Div %3, %4         varies over n c    output 0
//
// All values are lanes, elements of vector registers (codegen/register.hpp: lane_type). f16 is computed in f32 and
// rounded by a Round after each operator of the graph. Narrow integers are computed in 32 bits, with a Wrap where an
// operator can leave their range. The results of a snippet are therefore those of its operators one by one, whatever is
// fused.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/attribute.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/name.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/element_type.hpp>

namespace tenon::snippet {

using ValueId = int;
inline constexpr int kMaxDims = 32;

// The dims of the iteration space that a value depends on: bit d is dim d.
using DimSet = uint32_t;

// Where a run finds an extent: in dim `dim` of input or output `port`.
struct ExtentSource {
  size_t port = 0;
  int dim = 0;
  bool operator==(const ExtentSource&) const = default;
};

// One dim of the iteration space. Adjacent dims of the tensors over which all ports are contiguous, or all are
// broadcast, are merged into one; dims of extent 1 are dropped.
struct BodyDim {
  Expr extent;  // what is known at compile time
  // In a run, the extent is factor * product of sources / divisor.
  std::vector<ExtentSource> sources;
  int64_t factor = 1, divisor = 1;
  bool reduced = false;  // reductions reduce it
  // For at most one dim, which is `reduced`: chunks of a call reduce parts of this dim, each part into outputs of its
  // own, stored one after the other (CallPlan::split_fold). Its extent is open, and the dim before it is not reduced.
  bool parted = false;
};

struct BodyValue {
  ElementType element;  // a lane type
  DimSet varies = 0;
};

// Operators: the elementwise ones have the names of the generic operators (Add, Exp, Where ...), on operands of lane
// types. The others are
//   Scalar          no operands; attribute `bits`: the lane's bits
//   Round           f32 to the nearest f16 or bf16 value; attribute `to`: its name
//   Wrap            i32 or u32 to the low bits of a narrow integer, sign- or zero-extended; attribute `to`
//   Convert         between lane types, as ONNX casts; attribute `saturate`
//   ReduceSum, ReduceProd, ReduceMax, ReduceMin   reduce all reduced dims of the space, also those that the operand
//                   does not vary over
//   ReducedCount    no operands: the number of elements that a reduction covers, as a lane
//   Spread          the operand, broadcast to dims that it does not vary over; no instruction
struct BodyNode {
  Name op;
  Attributes attributes;
  std::vector<ValueId> operands;
  ValueId result = -1;
  std::string label;  // the graph operator that it comes from: "Softmax attn/softmax_3"
};

// The operator that accumulates one more value into a reduction: Add for ReduceSum, and Mul, Max, Min; nothing for
// other operators.
TENON_API std::optional<Name> fold_of(Name op);
inline const Name kSpread("Spread");
inline bool is_reduction(Name op) { return fold_of(op).has_value(); }

// The elements [begin, begin + box) of one dim of a tensor, which has `whole` elements, are read or written. The dims
// of the body from `dim` on are the cut dim of the tensor and the dims further in; together they have, inside the box,
// a multiple of `box` elements. The dims before `dim` are further out. rank(): nothing is further in.
struct PortCut {
  int dim = 0;
  int64_t begin = 0, box = 0, whole = 0;
  bool operator==(const PortCut&) const = default;
};

// Whether the elements of a port that varies over `set` are contiguous along the innermost of these dims.
TENON_API bool lanes_follow(const std::vector<PortCut>& cuts, DimSet set);

// A tensor that the snippet reads or writes, row-major over the dims that its value varies over. The stride along one
// of these is the product of the extents of those further in; a cut in between counts with the whole of what it cuts.
// The stride along any other dim is 0.
struct BodyPort {
  ValueId value = -1;
  // Of the elements in memory. lane_type(element) is the value's type, unless the target loads into another lane type.
  ElementType element;
  std::vector<PortCut> cuts = {};  // innermost first
};

struct TENON_API Body {
  std::string name;
  std::vector<BodyDim> dims;  // outermost first
  std::vector<BodyValue> values;
  std::vector<BodyNode> nodes;  // operands before users
  std::vector<BodyPort> inputs, outputs;

  size_t rank() const { return dims.size(); }
  DimSet all_dims() const { return dims.size() == kMaxDims ? ~DimSet{0} : (DimSet{1} << dims.size()) - 1; }
  DimSet reduced_dims() const;
  bool reduces() const { return reduced_dims() != 0; }
  // The first dim of a row: the innermost dim, or, where that is reduced, the outermost of the reduced dims that end
  // with it. rank(): there is no dim.
  size_t first_of_row() const;
  // Whether any input or output is a part of a tensor with gaps.
  bool has_cuts() const;
  // A new value that no node computes yet.
  ValueId add_value(BodyValue like);
  // A Scalar with a new value; the caller inserts it before its users.
  BodyNode make_scalar(ElementType lane, uint64_t bits, std::string label = {});
  // Appends `node`, with a new value like `like`, to `into`, which is `nodes` or their replacement.
  ValueId append(BodyNode node, BodyValue like, std::vector<BodyNode>& into);
  // Text that shows everything, for tests and dumps; one line a value, as above.
  std::string to_string() const;
};

// The bits of a lane that holds `number`; for integers out of range, the nearest end of i64 or u64.
TENON_API uint64_t lane_bits(ElementType lane, double number);

// Checks the rules stated above; an error names the node and value that break one.
TENON_API Result<void> verify(const Body& body);

}  // namespace tenon::snippet
