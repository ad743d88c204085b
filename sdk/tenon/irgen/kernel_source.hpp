// KernelSource: how a target provides kernels to the lowering of graphs (from_graph.hpp).
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
//   in       each present operand of the operator that no constant replaces (SubBoxOp::replaced), in order
//   out      each result of the operator, in order, used or not
//   out      a workspace u8[bytes], when KernelChoice::workspace_bytes is not 0: aligned to 64 bytes, contents
//            undefined
// They are dense (row-major tensors) unless KernelChoice::takes_strided is set, and ring buffers only where
// Kernel::takes_folded is. An operand that shares the memory of a result is still passed separately: two views of the
// same bytes.
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

// What a kernel is requested for. Borrowed for the call, except `op`: its graph outlives the kernel.
struct KernelRequest {
  const Op& op;
  // One per operand and result of the operator; the unknown type for an absent operand. They are tensors of
  // byte-addressable elements with ranked shapes whose dims are all known, as numbers or expressions; a kernel for
  // expressions serves any extents that its views have. They may be more precise than the types in the graph, and take
  // precedence.
  std::vector<Type> operands, results;
  // A part of the operator instead: how it runs on crops of its operands (sub_box_op of ir/bounds_rule.hpp). `operands`
  // and `results` are then the types of the crops. Null: the whole operator.
  const SubBoxOp* part = nullptr;
  // For a part, by operand and result: calls pass it without gaps, so that no workspace is needed to pack it. Without
  // an entry, nothing is known.
  std::vector<bool> dense_operands = {}, dense_results = {};
  // By result: the shape of the tensor of which the result is written as a part, with as many dims. The strides are
  // then those of that tensor, and the call's view begins where the part does. No entry, or an unranked shape: dense.
  // Used only for sources whose choice sets `writes_parts`; the choice then has no `in_place` for such results.
  std::vector<Shape> result_wholes = {};

  // The attributes that the kernel has to use: those of the part, if the request is for one.
  const Attributes& attributes() const { return part ? part->attributes : op.attributes(); }
  // Whether operand `i` is passed to the call.
  bool passes(size_t i) const { return op.operand(i) && !(part && part->replaced.contains(i)); }
  bool is_dense_operand(size_t i) const { return i < dense_operands.size() && dense_operands[i]; }
  bool is_dense_result(size_t i) const { return i < dense_results.size() && dense_results[i]; }
  // Whether all types have static shapes.
  TENON_API bool is_static() const;
};

// Result `result` may share the memory of `operand`, element for element, when the operand has no later reader. Both
// must have the same bytes per element and the same shape; the caller of kernel() checks this.
struct InPlace {
  size_t result = 0;
  size_t operand = 0;
  bool operator==(const InPlace&) const = default;
};

struct KernelChoice {
  program::KernelHandle kernel;
  Expr workspace_bytes = 0;  // per call; symbols as in the types
  std::vector<InPlace> in_place = {};
  // Accepts operands and results that have gaps or are permuted. Otherwise the caller packs crops.
  bool takes_strided = false;
  // The source may be asked for a kernel that writes results as parts of tensors (KernelRequest::result_wholes).
  bool writes_parts = false;
};

class TENON_API KernelSource {
 public:
  virtual ~KernelSource();
  // The target's name, for messages and reports.
  virtual std::string_view name() const = 0;
  // Code::unsupported with a reason ("kernel 33 exceeds 32") when there is none; the operator is then left to the host.
  // Thread-safe.
  virtual Result<KernelChoice> kernel(const KernelRequest& request) const = 0;
  // The operand whose value determines the operator's kernel but is not constant, for example the axes of a reduction
  // that are an input. Such an operator is a step of its own (late_part). Its kernels are requested during runs, once
  // per value, for the same operator with a constant as that operand. Empty: the operator is left to the host.
  virtual std::optional<size_t> late_operand(const Op& op) const;
};

// The request for an operator, with the types in the graph unless `types` has more precise ones.
TENON_API KernelRequest request_for(const Op& op, const TypeSource& types = TypeSource());
// The request for the part of an operator that `box` of result `result` needs. The types are those of the crops that
// sub_box_op gives, and those that the operator's shape rule derives from them for all results, of which only `result`
// matters. `types`: of all values, static. Code::unsupported when the rule rejects the crops or does not give the box.
TENON_API Result<KernelRequest> request_for_part(const Op& op, const SubBoxOp& part, const StaticBox& box,
                                                 size_t result = 0, const TypeSource& types = TypeSource());

}  // namespace tenon::irgen
