#include <optional>
#include <unordered_map>

#include <tenon/ir/builder.hpp>
#include <tenon/ops/cast.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/ops/convolution.hpp>
#include <tenon/ops/matmul.hpp>
#include <tenon/tensor/numeric.hpp>

#include "nvdla/passes.hpp"
#include "nvdla/select.hpp"

namespace tenon::nvdla {
namespace {

// One pass over the body. A value is converted to f16 once, however many operators read it.
class HalfPreparation {
 public:
  HalfPreparation(Graph& graph, const Machine& machine) : graph_(graph), machine_(machine) {}

  Result<Change> run() {
    for (Op* op : graph_.body().ops())
      if (is_candidate(*op)) TENON_OK(try_one(*op), op->describe());
    return changed_;
  }

 private:
  static bool is_f32(const Value* value) {
    return value && value->type().is_tensor() && value->type().element() == kF32;
  }
  bool is_candidate(const Op& op) const {
    if (op.region_count() > 0 || op.result_count() == 0 || !is_f32(op.operand(0)) || !is_f32(op.result())) return false;
    // Converting a view alone gains nothing.
    return is_view(op) ? halves_.contains(op.operand(0)) : is_selectable(op);
  }

  // Replaces the operator unless the machine refuses its form in f16.
  Result<void> try_one(Op& op) {
    Builder builder(graph_.body(), &op);
    Op* const before = op.previous();
    TENON_TRY(operands, half_operands(builder, op));
    auto made = is_view(op) ? builder.op(op.name(), operands, op.attributes()) : half_form(builder, op, operands);
    if (!made.ok() || refusal(*(*made)->producer(), machine_)) {
      take_back(before, op);
      return {};
    }
    (*made)->producer()->set_label(op.label());
    return replace(builder, op, *made);
  }

  // Products become the machine's own operators, which define the order of their sums. Others do not depend on an
  // order, and keep their operators.
  Result<Value*> half_form(Builder& builder, const Op& op, const std::vector<Value*>& operands) {
    const bool sums = isa<tenon::Conv>(op) || isa<Gemm>(op) || isa<MatMul>(op);
    return sums ? select(builder, op, operands, machine_.hardware) : builder.op(op.name(), operands, op.attributes());
  }

  Result<void> replace(Builder& builder, Op& op, Value* half) {
    Value* const old = op.result();
    TENON_TRY(full, builder.op(Cast::name(), {half}, {{"to", Type(kF32, Shape())}}));
    half->set_name(old->name());
    full->set_name(old->name());
    halves_[full] = half;
    for (size_t i = 0; i < graph_.body().output_count(); ++i)
      if (graph_.body().output(i) == old) full->set_name(graph_.body().output_name(i));
    old->replace_all_uses_with(full);
    op.erase();
    changed_ = Change::yes;
    return {};
  }

  Result<std::vector<Value*>> half_operands(Builder& builder, const Op& op) {
    std::vector<Value*> operands;
    for (Value* operand : op.operands()) {
      if (!is_f32(operand)) {
        operands.push_back(operand);
        continue;
      }
      TENON_TRY(half, half_of(builder, operand));
      operands.push_back(half);
    }
    return operands;
  }

  Result<Value*> half_of(Builder& builder, Value* value) {
    if (const auto known = halves_.find(value); known != halves_.end()) return known->second;
    if (const Tensor* constant = constant_of(value)) {
      TENON_TRY(rounded, convert(*constant, kF16));
      return builder.constant(rounded, value->name());
    }
    TENON_TRY(half, builder.op(Cast::name(), {value}, {{"to", Type(kF16, Shape())}}));
    return half;
  }

  // Erases what was built between `before` and `op`, from the last to the first.
  static void take_back(const Op* before, Op& op) {
    while (op.previous() != before) op.previous()->erase();
  }

  Graph& graph_;
  const Machine& machine_;
  Change changed_ = Change::no;
  std::unordered_map<const Value*, Value*> halves_;  // f32 -> f16
};

}  // namespace

Pass prepare_half_pass(MachinePtr machine) {
  return {.name = "prepare-half",
          .contract =
              "Operators of f32 that the machine runs in f16 become that, with casts where values come from f32 "
              "or go there;\nproducts become nvdla.Conv, whose order of sums is stated. Needs inferred types; "
              "changes numbers by rounding to f16.",
          .run = [machine](Graph& graph) { return HalfPreparation(graph, *machine).run(); },
          .needs = {"infer-types"}};
}

}  // namespace tenon::nvdla
