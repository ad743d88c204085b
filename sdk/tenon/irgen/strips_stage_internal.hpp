// Inside the room: the kernel of one stage of a chain, composed of the kernels that a source has for parts of its
// operator.
//
// The first strip of a padded convolution is padded above, those in the middle are not, the last one is padded below:
// few kernels serve all strips. Which kernel computes which box is determined beforehand, by a run without data.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/irgen/chains.hpp>
#include <tenon/irgen/kernel_source.hpp>
#include <tenon/program/ir/copy_plan.hpp>
#include <tenon/program/ir/kernel.hpp>

namespace tenon::irgen {

// The boxes of one call, as boxes of tensors: what it may read of each operand that the stage passes, and what it
// writes.
struct StageCall {
  std::vector<StaticBox> reads;
  StaticBox result;
};

// What stages are made from.
struct StageSource {
  const KernelSource& kernels;
  const TypeSource& types;
  // Values outside of the chain, dense: its inputs and its result.
  std::span<const Value* const> outside;
};

// Immutable once made; run() is thread-safe.
class StripStage {
 public:
  // Finds a kernel for each call. `passed`: operands of the operator that are operands of the calls, in order.
  // Code::unsupported with the reason when some part has none.
  static Result<std::shared_ptr<const StripStage>> make(const ChainOp& op, const std::vector<size_t>& passed,
                                                        const std::vector<StageCall>& calls, const StageSource& from);

  // Bytes that each call takes as its last operand: copies of operands with gaps, and the kernel's own workspace.
  int64_t workspace_bytes() const { return workspace_bytes_; }
  size_t variants() const { return variants_.size(); }
  // State of the kernels between calls.
  std::unique_ptr<program::KernelState> make_state() const;
  // Operands: those passed, the result, and a workspace where there is one.
  Result<void> run(program::CallContext& context) const;

 private:
  // A kernel for boxes of some extents.
  struct Variant {
    SubBoxOp part;
    std::vector<size_t> operands;           // indices among those passed, in the order of the kernel's operands
    std::vector<Dims> extents;              // of these, then of the result
    std::vector<program::CopyPlan> copies;  // between them and dense ones
    std::vector<Type> unused;               // the operator's other results: written to the workspace
    std::vector<bool> is_dense;             // by index in `extents`: the kernel may rely on it
    KernelChoice choice;
    int64_t kernel_bytes = 0;
  };
  // What to do for one box of the result.
  struct Box {
    std::vector<int64_t> key;  // min and extent of the dims of the result that loops move
    size_t variant = 0;
    std::vector<int64_t> mins;  // of all dims of all operands of the variant
  };

  Result<void> add(const ChainOp& op, const std::vector<size_t>& passed, const StageCall& call,
                   const StageSource& from);
  Result<size_t> variant_for(const ChainOp& op, const std::vector<size_t>& passed, const StaticBox& result,
                             SubBoxOp part, const StageSource& from);
  // Sizes the workspace of the variant's calls: packed views, unused results, and the kernel's own workspace.
  Result<void> size_up(Variant& v, const std::vector<ElementType>& elements);
  const Box* find(const program::BufferView& result) const;

  size_t passed_ = 0;       // operands of a call before the result
  size_t result_ = 0;       // index among the operator's results
  std::vector<int> moved_;  // dims of the result's buffer, in the order of the key
  std::vector<Variant> variants_;
  std::vector<Box> boxes_;  // sorted by key
  int64_t workspace_bytes_ = 0;
};

}  // namespace tenon::irgen
