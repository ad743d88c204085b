// KernelSource: how a target gives kernels to the lowering of graphs (from_graph.hpp).
//
//   class MyKernels final : public irgen::KernelSource {
//     std::string_view name() const override { return "mine"; }
//     Result<irgen::KernelChoice> kernel(const irgen::KernelRequest& request) const override {
//       if (!request.op.is("Relu")) return error(Code::unsupported, "no kernel for ", request.op.name());
//       return irgen::KernelChoice{.kernel = relu_, .in_place = {{.result = 0, .operand = 0}}};
//     }
//   };
//
// The call. A kernel is called with these operands, each a buffer with reversed dims (dims.hpp):
//   in       each operand of the operator that is there and not replaced by a constant (SubBoxOp::replaced), in order
//   out      each result of the operator, in order, used or not
//   out      a workspace u8[bytes], when KernelChoice::workspace_bytes is not 0: aligned to 64 bytes, contents
//   undefined
// They are dense (row-major tensors) unless KernelChoice::takes_strided; rings only where Kernel::takes_folded.
// An operand that is a result's memory is still given apart: two views of the same bytes.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include <tenon/expr/expr.hpp>
#include <tenon/ir/bounds_rule.hpp>
#include <tenon/ir/graph.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/type.hpp>

namespace tenon::irgen {

// What a kernel is wanted for. Borrowed for the question, except `op`: its graph outlives the kernel.
struct KernelRequest {
  const Op& op;
  // One for each operand and result of the operator; the unknown type for an absent operand. Tensors of
  // byte-addressable elements and ranked shapes, all dims known as numbers or expressions: a kernel for expressions
  // serves any extents that its views have. They may be better than the types that stand in the graph, and are those to
  // go by.
  std::vector<Type> operands, results;
  // A part of the operator instead: what it runs with on crops of its operands (sub_box_op of ir/bounds_rule.hpp).
  // `operands` and `results` then are those of the crops. Null: the operator as it is.
  const SubBoxOp* part = nullptr;
  // Of a part, by operand and result: calls give it without gaps, which needs no workspace to pack it. Where there is
  // no entry, nothing is known.
  std::vector<bool> dense_operands = {}, dense_results = {};
  // By result: the shape of the tensor as a part of which it is written, of as many dims. Elements then lie as far
  // apart as there, and the call's view begins where the part does. No entry, or an unranked shape: dense. Only of
  // sources whose choice says `writes_parts`; the choice has no `in_place` of such results.
  std::vector<Shape> result_wholes = {};

  // As the kernel has to take them: those of the part, if it is one.
  const Attributes& attributes() const { return part ? part->attributes : op.attributes(); }
  // Is operand `i` given to the call?
  bool passes(size_t i) const { return op.operand(i) && !(part && part->replaced.contains(i)); }
  bool is_dense_operand(size_t i) const { return i < dense_operands.size() && dense_operands[i]; }
  bool is_dense_result(size_t i) const { return i < dense_results.size() && dense_results[i]; }
  // Do all types have static shapes?
  TENON_API bool is_static() const;
};

// Result `result` may lie in the memory of `operand`, element for element, when nobody else needs the operand any more.
// Both have the same bytes per element and the same shape, which whoever asks checks.
struct InPlace {
  size_t result = 0;
  size_t operand = 0;
  bool operator==(const InPlace&) const = default;
};

struct KernelChoice {
  program::KernelHandle kernel;
  Expr workspace_bytes = 0;  // of one call; symbols as in the types
  std::vector<InPlace> in_place = {};
  // Takes operands and results that have gaps or are in another order. Otherwise whoever calls it with a crop packs.
  bool takes_strided = false;
  // The source may be asked for a kernel that writes results as parts of tensors (KernelRequest::result_wholes).
  bool writes_parts = false;
};

class TENON_API KernelSource {
 public:
  virtual ~KernelSource();
  // For messages and reports: the target's name.
  virtual std::string_view name() const = 0;
  // Code::unsupported with a reason ("kernel 33 exceeds 32") when there is none; the operator then is left to the host.
  // Any thread.
  virtual Result<KernelChoice> kernel(const KernelRequest& request) const = 0;
  // The operand whose value decides which kernel an operator has, where it is no constant: the axes of a reduction that
  // are an input. Such an operator is a step of its own, for which kernels are asked at runs, once for each value:
  // about the same operator with a constant in that place (late_part). Nothing: it is left to the host.
  virtual std::optional<size_t> late_operand(const Op& op) const;
};

// The request for an operator, with the types that stand in the graph unless there are better ones.
TENON_API KernelRequest request_for(const Op& op, const TypeSource& types = TypeSource());
// For the part of an operator that `box` of result `result` needs: types of the crops that sub_box_op gives, and of
// what the operator's shape rule makes of them: all results of the crops, of which the others are of no use. `types`:
// of all values, static. Code::unsupported when the rule does not take the crops or does not give the box.
TENON_API Result<KernelRequest> request_for_part(const Op& op, const SubBoxOp& part, const StaticBox& box,
                                                 size_t result = 0, const TypeSource& types = TypeSource());

}  // namespace tenon::irgen
