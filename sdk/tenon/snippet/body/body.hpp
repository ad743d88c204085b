// Body: what a snippet computes, as operators of the dialect over one iteration space. Made from a Subgraph's region
// (canonical.hpp), lowered to a linear kernel (lower.hpp). Plain data.
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
// All values are lanes (codegen/register.hpp: lane_type): f16 is computed in f32 and rounded by a Round after each
// operator of the graph, narrow integers in 32 bits with a Wrap where an operator can leave their range. So the results
// of a snippet are those of its operators one by one, whatever is fused.
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

// Which dims of the iteration space a value depends on: bit d is dim d.
using DimSet = uint32_t;

// Where a run finds an extent: dim `dim` of input or output `port`.
struct ExtentSource {
  size_t port = 0;
  int dim = 0;
  bool operator==(const ExtentSource&) const = default;
};

// One dim of the iteration space. Dims of the tensors over which all ports are contiguous, or all broadcast, are one
// dim here; dims of extent 1 are none.
struct BodyDim {
  Expr extent;  // what is known at compile time
  // At a run it is factor * product of sources / divisor.
  std::vector<ExtentSource> sources;
  int64_t factor = 1, divisor = 1;
  bool reduced = false;  // reductions fold it
  // With `reduced`, of one dim at most: chunks of a call fold parts of it, each into outputs of its own, which lie one
  // behind the other (CallPlan::split_fold). Its extent is open, and the dim before it is not reduced.
  bool parted = false;
};

struct BodyValue {
  ElementType element;  // a lane type
  DimSet varies = 0;
};

// Operators: elementwise ones by the names of the generic operators (Add, Exp, Where ...) on operands of lane types,
// and
//   Scalar          no operands; attribute `bits`: the lane's bits
//   Round           f32 to the nearest f16 or bf16 value; attribute `to`: its name
//   Wrap            i32 or u32 to the low bits of a narrow integer, sign- or zero-extended; attribute `to`
//   Convert         between lane types, as ONNX casts; attribute `saturate`
//   ReduceSum, ReduceProd, ReduceMax, ReduceMin   fold all reduced dims of the space, whether the operand varies or not
//   ReducedCount    no operands: how many elements a reduction folds, as a lane
//   Spread          the operand, for each element of what varies over more; no instruction
struct BodyNode {
  Name op;
  Attributes attributes;
  std::vector<ValueId> operands;
  ValueId result = -1;
  std::string label;  // the graph's operator that it comes from: "Softmax attn/softmax_3"
};

// The operator that takes one more value into a reduction: Add for ReduceSum, Mul, Max, Min; nothing for other
// operators.
TENON_API std::optional<Name> fold_of(Name op);
inline const Name kSpread("Spread");
inline bool is_reduction(Name op) { return fold_of(op).has_value(); }

// Of one dim of a tensor the elements [begin, begin + box) of `whole` are read, or written. What follows from it lies
// between the body's dims from `dim` on, which are that dim of the tensor and those further in (as many elements, in
// the box, as a multiple of `box`), and those before. rank(): the tensor has nothing further in.
struct PortCut {
  int dim = 0;
  int64_t begin = 0, box = 0, whole = 0;
  bool operator==(const PortCut&) const = default;
};

// Do elements of a port that varies over `set` lie side by side along the innermost of these dims?
TENON_API bool lanes_follow(const std::vector<PortCut>& cuts, DimSet set);

// A tensor that the snippet reads or writes: row-major over the dims that its value varies over. The stride along one
// of them is the product of the extents of those further in, where cuts lie between by the whole of what they cut;
// along any other dim it is 0.
struct BodyPort {
  ValueId value = -1;
  // In memory; lane_type(element) is the value's, but for a target that loads into lanes of another type.
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
  // Of a row: the innermost dim, and where that is folded also the folded ones around it. rank(): there is no dim.
  size_t first_of_row() const;
  // Is any input or output a part of a tensor with gaps?
  bool has_cuts() const;
  // A value that no node makes yet.
  ValueId add_value(BodyValue like);
  // A Scalar with a new value, that is to come before its users.
  BodyNode make_scalar(ElementType lane, uint64_t bits, std::string label = {});
  // Puts `node`, with a new value like `like`, behind `into`: `nodes`, or what is to take their place.
  ValueId append(BodyNode node, BodyValue like, std::vector<BodyNode>& into);
  // Text that shows all of it, for tests and dumps; one line a value, as above.
  std::string to_string() const;
};

// The bits of a lane that holds `number`; of integers the nearest end of i64 or u64 where it is beyond.
TENON_API uint64_t lane_bits(ElementType lane, double number);

// An error names the node and value that break what is said above.
TENON_API Result<void> verify(const Body& body);

}  // namespace tenon::snippet
