// Evaluators: what each generic operator computes, written to be obviously correct. They are the oracle of every test
// and the fallback of every target, and constant folding runs them.
//
// One file per family, registered by name:
//
//   Result<void> relu(EvalContext& context) {
//     TENON_TRY(y, context.output(0));            // a tensor of the type that the shape rule gives
//     const Tensor& x = context.tensor(0);
//     ...
//   }
//   const EvaluatorRegistration kRegistered({{"Relu", relu}});
//
// Contract: operands have been verified against the definition and its shape rule with their actual types and values,
// so an evaluator checks only what depends on data (an index out of range). For operators with regions, the shape rule
// knows the declared types of the regions, not the actual ones: results that depend on what the regions return are
// created with output(i, element, dims) or set_output. An evaluator must not keep references to operands, must not
// write to them, and must produce every result for which wants(i) holds. Several threads may run it at once.
#pragma once
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <tenon/ir/graph.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>
#include <tenon/tensor/datum.hpp>

namespace tenon {

class TENON_API EvalContext {
 public:
  virtual ~EvalContext() = default;

  const Op& op() const { return *op_; }
  template <class T>
  T attr(Name name, T fallback = T()) const { return op_->attr<T>(name, fallback); }

  size_t operand_count() const { return op_->operand_count(); }
  bool has_operand(size_t i) const { return op_->operand(i) != nullptr; }
  const Datum& datum(size_t i) const { return *operands_[i]; }
  const Tensor& tensor(size_t i) const { return operands_[i]->tensor(); }

  size_t result_count() const { return op_->result_count(); }
  // Whether result `i` exists and is used.
  bool wants(size_t i) const { return i < op_->result_count() && (op_->result(i)->used()); }
  // The dims of result `i` by the shape rule for the actual operands; for views, which need no tensor to fill.
  virtual Result<Dims> result_dims(size_t i) const = 0;
  // The tensor to fill for result `i`, of the type that the shape rule gives for the actual operands. Uninitialised.
  // May be called for unused results.
  virtual Result<Tensor*> output(size_t i) = 0;
  // The same with a type that only the evaluator can determine (NonZero, Unique ...). Limited by tensor_bytes_limit().
  virtual Result<Tensor*> output(size_t i, ElementType element, Dims dims) = 0;
  // For sequences, optionals, and existing tensors.
  virtual void set_output(size_t i, Datum value) = 0;

  // Runs region `i` of the operator; outer values are those visible at the operator.
  virtual Result<std::vector<Datum>> run_region(size_t i, std::vector<Datum> inputs) = 0;

  virtual ParallelFor& parallel() = 0;
  // For random operators without a seed of their own: different in each call.
  virtual uint64_t random_seed() = 0;

 protected:
  const Op* op_ = nullptr;
  std::span<const Datum* const> operands_;  // never null: an absent operand points to an absent datum
};

using EvaluatorFn = Result<void> (*)(EvalContext&);

struct TENON_API EvaluatorRegistration {
  struct Entry {
    std::string_view op;
    EvaluatorFn evaluate;
  };
  EvaluatorRegistration(std::initializer_list<Entry> entries);
};
// Null when the operator has none. Any thread. Plugins may register evaluators for their own operators, which then run
// on every target; a name that already has one is Code::already_exists.
TENON_API EvaluatorFn find_evaluator(Name op);
TENON_API Result<void> register_evaluator(Name op, EvaluatorFn evaluate);

}  // namespace tenon
