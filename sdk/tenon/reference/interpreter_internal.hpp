// Internal to the interpreter: the plan (interpreter_plan.cpp), the run (interpreter_run.cpp), and steps whose values
// have layouts (laid_out_run.cpp, laid_out_padded.cpp).
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <tenon/ir/infer.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/reference/laid_out.hpp>
#include <tenon/runtime/arena_plan.hpp>
#include <tenon/support/memory.hpp>
#include <tenon/tensor/declared.hpp>

namespace tenon::interpreter {

inline constexpr size_t kNowhere = SIZE_MAX;

// One operator to run. Values have slots, numbered over the whole graph: a region is never active twice at a time.
struct Step {
  const Op* op = nullptr;
  EvaluatorFn evaluate = nullptr;
  size_t operands = 0;  // first of its operands in Plan::operand_slots
  size_t results = 0;   // slot of result 0; the others follow
  // The operands' types and every value that the shape rule asks for were known when the plan was made, and the rule
  // accepted them.
  bool checked = false;
  // An operand or a result has a layout: see run_laid_out().
  bool laid_out = false;
  std::vector<Type> types;              // of the results, when checked
  std::vector<size_t> dead;             // slots to free afterwards
  std::vector<std::vector<Step>> regions;
};

struct RegionPlan {
  std::vector<size_t> inputs, outputs;  // slots
};

struct Planned {
  size_t slot;
  size_t offset;
  TensorType type;
};

// What is common to all runs.
struct Plan {
  std::vector<Step> steps;
  std::unordered_map<const Region*, RegionPlan> regions;
  std::vector<size_t> operand_slots;  // kNowhere: absent
  size_t slots = 0;
  std::vector<std::pair<size_t, Tensor>> constants;
  std::vector<Planned> planned;
  std::vector<bool> in_arena;   // by slot
  std::vector<size_t> loose;    // slots that are neither in the arena nor constants
  ArenaPlan arena;
  std::vector<const Value*> laid_values;  // by slot; null: row-major
  std::vector<LaidOutPointer> laid_out;   // by slot; also null where the shape is known only at run time
  Poison poison = Poison::none;
  std::vector<bool> copy_output;  // outputs whose bytes may be those of an input or a constant
};

// Fills `plan`, whose member `poison` must be set.
Result<void> make_plan(const Graph& graph, Plan& plan);

// The state of one run at a time; kept for the next run.
struct RunContext {
  AlignedBytes arena;
  std::vector<Datum> slots;
  // For slots with a layout, with the shape of this run. Their data are the physical bytes, u8[n].
  std::vector<LaidOutPointer> laid_out;
  // The plans of layout.Reorder, valid while the layouts of both sides are unchanged.
  struct Reorder {
    LaidOutPointer from, to;
    ReorderPlan plan;
  };
  std::unordered_map<const Op*, Reorder> reorders;
  std::vector<const Datum*> operands;  // as Plan::operand_slots

  static Result<std::unique_ptr<RunContext>> make(const Plan& plan);

  bool holds(const Tensor& tensor, const Plan& plan) const {
    return tensor.data() >= arena.get() && tensor.data() < arena.get() + std::max<size_t>(plan.arena.bytes, 1);
  }
};

class Runner {
 public:
  Runner(const Plan& plan, RunContext& memory, ParallelFor& parallel, Interpreter::Observer* observer)
      : plan_(plan), memory_(memory), parallel_(parallel), observer_(observer) {}

  Result<void> run(std::span<const Step> steps);
  Result<std::vector<Datum>> run_region(const Region& region, std::span<const Step> steps, std::vector<Datum> inputs);

  // The outputs of the graph's body, row-major, and not in the arena.
  Result<std::vector<Datum>> outputs(const RegionPlan& body) const;

  // The value in row-major form, whatever the layout of the slot.
  Result<Datum> logical(size_t slot) const;
  // Stores the value of an input of a region.
  Result<void> store(size_t slot, Datum value);

 private:
  friend class StepContext;
  friend class LaidContext;
  friend class LaidStep;
  bool lies_in_layout(size_t slot) const { return slot != kNowhere && plan_.laid_values[slot] != nullptr; }
  // The layout of the slot for this shape; remembered for the next run.
  Result<const LaidOut*> lay_out(size_t slot, ElementType element, const Dims& dims);
  // The memory for its physical bytes.
  Result<Tensor*> physical(size_t slot, const LaidOut& laid_out);
  // Stores result `i` of the operator, produced elsewhere, in a row-major slot.
  Result<void> place(const Op& op, size_t i, size_t slot, const Datum& value);
  // Whether its data, or those of one of its elements, are in the arena.
  bool is_lent(const Datum& datum) const;
  // A copy of data in the arena, which later operators may overwrite.
  Result<Datum> own(const Datum& datum) const;
  Result<void> observe(const Step& step);

  const Plan& plan_;
  RunContext& memory_;
  ParallelFor& parallel_;
  Interpreter::Observer* observer_;
};

// A step with an operand or a result that has a layout. Tried in this order:
//   layout.Reorder, layout.Scrub   physical to physical
//   padded boxes                   for an operator with the kernel "padded": run_padded()
//   flat                           elementwise operators whose slots all have the same layout: over all slots, with
//                                  padding
//   logical                        operands are unpacked, results packed
// Operands are found through Plan::operand_slots.
class LaidStep {
 public:
  LaidStep(Runner& runner, const Step& step) : runner_(runner), step_(step), op_(*step.op) {}
  Result<void> run();

 private:
  size_t operand_slot(size_t i) const { return runner_.plan_.operand_slots[step_.operands + i]; }
  size_t result_slot(size_t i) const { return step_.results + i; }
  // Null: row-major.
  const LaidOut* operand_layout(size_t i) const;
  Type operand_type(size_t i) const;  // logical
  // What the shape rule gives, without elements of operands that have layouts.
  Result<std::vector<Type>> result_types() const;
  Result<const LaidOut*> result_layout(size_t i, const Type& type);
  Error in_result(size_t i, Error error) const;

  Result<void> reorder();
  Result<const ReorderPlan*> reorder_plan(size_t from, size_t to);
  Result<void> scrub();
  // These return false where they do not apply.
  Result<bool> run_flat();
  Result<bool> run_padded();
  Result<void> run_logical();

  Result<void> store_logical(size_t i, const Datum& made);
  Result<Tensor> padded_operand(size_t i, const Dims& dims) const;
  Result<bool> store_padded(size_t i, const Tensor& made, const Type& type);

  Runner& runner_;
  const Step& step_;
  const Op& op_;
};

// The extents over which a blocked kernel runs: from those of the operands and of their padded boxes (equal for an
// operand without padding), extents between the two, or beyond them (zeros). Nothing for operators without such a
// kernel.
struct PaddedExtents {
  std::vector<Dims> logical, boxes;  // empty for what is not a tensor
};
std::optional<std::vector<Dims>> padded_extents(const Op& op, const PaddedExtents& extents);

// A context with operands and results of its own, for an operator that does not run on the slots.
class LaidContext final : public EvalContext {
 public:
  LaidContext(Runner& runner, const Step& step, std::vector<Datum> operands);
  // Runs the shape rule on these operands.
  Result<void> infer();
  // Sets the results to write to; the shape rule is not used.
  void set_results(std::vector<Datum> results);

  Result<Dims> result_dims(size_t i) const override;
  Result<Tensor*> output(size_t i) override;
  Result<Tensor*> output(size_t i, ElementType element, Dims dims) override;
  void set_output(size_t i, Datum value) override;
  Result<std::vector<Datum>> run_region(size_t i, std::vector<Datum> inputs) override;
  ParallelFor& parallel() override { return runner_.parallel_; }
  uint64_t random_seed() override;

  Datum& result(size_t i) { return results_[i]; }

 private:
  Runner& runner_;
  const Step& step_;
  std::vector<Datum> owned_, results_;
  std::vector<const Datum*> pointers_;
  std::vector<Type> types_;
  bool preset_ = false;
};

// Actual operands, for shape rules at run time.
class ActualContext final : public InferContext {
 public:
  ActualContext(const Op& op, std::span<const Datum* const> operands);
  const Type& type(size_t i) const override;
  const Tensor* constant(size_t i) const override;
  std::optional<std::vector<Dim>> dims_value(size_t i) const override;
  // Only what operands do not determine: the element type of an empty sequence or an absent optional.
  Type declared(size_t i) const override;

 private:
  std::span<const Datum* const> operands_;
  std::vector<Type> types_;
};

}  // namespace tenon::interpreter
