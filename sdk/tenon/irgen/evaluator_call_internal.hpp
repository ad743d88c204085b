// Inside the room: evaluators of the reference as kernels of programs.
#pragma once
#include <memory>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/program/ir/kernel.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/support/inline_vector.hpp>

namespace tenon::irgen::detail {

// An evaluator and the operator that it runs: one of the graph, or one made for a part.
struct EvaluatorWork {
  const Op* op = nullptr;
  EvaluatorFn evaluate = nullptr;
  std::unique_ptr<Graph> own;
  // Per operand of the operator: absent, passed by the call, or a constant.
  enum class From : uint8_t { absent, call, constant };
  std::vector<From> from;
  std::vector<Tensor> constants;  // per operand
  bool packs = false;             // the last operand of a call is workspace for boxes that are not dense
};

// One call site of a program: the operands and results of its calls as tensors over their memory. Calls with the same
// views as the previous call, as those outside of loops have, cost little more than the evaluator.
class EvaluatorCall final : public program::KernelState, public EvalContext {
 public:
  // `work` must outlive it.
  explicit EvaluatorCall(const EvaluatorWork& work);
  // Operands as kernel_source.hpp states.
  Result<void> run(program::CallContext& call);

  Result<Dims> result_dims(size_t i) const override { return results_[i].dims(); }
  Result<Tensor*> output(size_t i) override { return &results_[i]; }
  Result<Tensor*> output(size_t i, ElementType element, Dims dims) override;
  void set_output(size_t i, Datum value) override;
  Result<std::vector<Datum>> run_region(size_t i, std::vector<Datum> inputs) override;
  ParallelFor& parallel() override { return call_->pool(); }
  uint64_t random_seed() override;

 private:
  // A box with gaps, and its dense copy in the workspace.
  struct Packed {
    size_t view = 0;  // index among those of the call
    std::byte* memory = nullptr;
  };

  // Whether all views are the same as in the previous call: base, then extent, stride and fold of each dim. They are
  // compared in one contiguous array, since with hundreds of operators each further array costs a cache miss.
  bool has_seen(std::span<const program::BufferView> views) const;
  void remember(std::span<const program::BufferView> views);
  // Makes tensors over the views, or over places in the workspace.
  Result<void> take(std::span<const program::BufferView> views);
  Result<void> take(size_t number, const program::BufferView& view, Tensor& tensor, std::vector<Packed>& packed);

  const EvaluatorWork& work_;
  program::CallContext* call_ = nullptr;
  std::vector<Datum> operand_data_;
  InlineVector<const Datum*, 3> pointers_;
  InlineVector<size_t, 3> given_;  // operands that calls pass, in order
  std::vector<Tensor> results_;
  std::vector<int64_t> seen_;  // the views for which the tensors were made; empty: none
  std::byte* workspace_ = nullptr;
  std::vector<Packed> packed_operands_, packed_results_;
  Result<void> delivered_;
};

}  // namespace tenon::irgen::detail
