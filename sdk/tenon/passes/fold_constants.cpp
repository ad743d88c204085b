#include <set>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/local_internal.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon {
namespace {

// Constants may be of this size, or of the size of their operands; beyond it (ConstantOfShape, Expand, Range), the
// model would grow without benefit.
constexpr size_t kBudgetBytes = size_t{1} << 20;

bool is_folded(const Op& op) {
  static const Name kConstant("Constant");
  // Targets recognise quantised weights by this operator; folded, they would become floats.
  static const Name kDequantize("DequantizeLinear");
  if (op.is(kConstant) || op.is(kDequantize) || op.region_count() > 0 || !op.has_uses()) return false;
  return is_repeatable(op) && (find_evaluator(op.name()) || op.def()->decompose_fn());
}

// The operands, if all are constants.
std::optional<std::vector<Datum>> constant_operands(const Op& op) {
  std::vector<Datum> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Tensor* tensor = constant_of(op.operand(i));
    if (op.operand(i) && !tensor) return std::nullopt;
    operands.push_back(tensor ? Datum(*tensor) : Datum());
  }
  return operands;
}

size_t bytes_of(const std::vector<Datum>& data) {
  size_t bytes = 0;
  for (const Datum& datum : data) bytes += datum.is_tensor() ? datum.tensor().bytes() : 0;
  return bytes;
}

// False if the types show that the results would be too large; what they leave open is checked afterwards.
bool fits_budget(const Op& op, size_t budget) {
  size_t bytes = 0;
  for (size_t i = 0; i < op.result_count(); ++i) {
    const Type& type = op.result(i)->type();
    const auto dims = type.is_tensor() ? type.shape().static_dims() : std::nullopt;
    if (!dims) continue;
    const auto count = element_count(*dims);
    const auto size = count.ok() ? storage_bytes(type.element(), *count) : Result<size_t>(count.error());
    if (!size.ok() || *size > budget) return false;
    bytes += *size;
  }
  return bytes <= budget;
}

std::optional<std::vector<Datum>> folded(const Op& op) {
  auto operands = constant_operands(op);
  if (!operands) return std::nullopt;
  const size_t budget = std::max(kBudgetBytes, bytes_of(*operands));
  if (!fits_budget(op, budget)) return std::nullopt;
  auto results = evaluate(op.name(), *std::move(operands), op.attributes(), op.result_count());
  // What fails here (an index out of range) fails again in the run, if it is executed.
  if (!results.ok() || bytes_of(*results) > budget) return std::nullopt;
  for (const Datum& result : *results) {
    if (!result.is_tensor()) return std::nullopt;
  }
  return *std::move(results);
}

// The number of operators traced back. Small, because whatever is fully known is a constant by now, and each step may
// branch.
constexpr int kTracedOps = 8;

// The only result as known dims, although some operand is not known: Shape of a static shape, and what is computed from
// it.
std::optional<Tensor> folded_dims(const Op& op) {
  if (op.result_count() != 1 || !op.def()->infer_dims_fn()) return std::nullopt;
  const Type& type = op.result()->type();
  if (!type.is_tensor() || type.element() != kI64 || !type.shape().is_static() || type.shape().rank() > 1) {
    return std::nullopt;
  }
  static const TypeSource graph_types;
  const auto dims = op.def()->infer_dims_fn()(StaticInferContext(op, graph_types, kTracedOps));
  if (!dims) return std::nullopt;
  std::vector<int64_t> values;
  for (const Dim& dim : *dims) {
    if (!dim.is_static()) return std::nullopt;
    values.push_back(dim.value());
  }
  const Dims shape = *type.shape().static_dims();
  if (*element_count(shape) != static_cast<int64_t>(values.size())) return std::nullopt;
  return Tensor::of<int64_t>(shape, values);
}

std::set<const Value*> constants_read_by(const Op& op) {
  std::set<const Value*> constants;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (constant_of(op.operand(i))) constants.insert(op.operand(i));
  }
  return constants;
}

}  // namespace

Result<Change> fold_op(Op& op) {
  if (!is_folded(op)) return Change::no;
  std::vector<Datum> results;
  if (auto values = folded(op)) {
    results = *std::move(values);
  } else if (auto dims = folded_dims(op)) {
    results.emplace_back(*std::move(dims));
  } else {
    return Change::no;
  }
  Builder builder(*op.parent(), &op);
  builder.set_name_prefix(op.label());
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (!op.result(i)->used()) continue;
    Value* constant = builder.constant(results[i].tensor(), op.result(i)->name());
    constant->producer()->set_label(op.label());
    // A user's layout on the value is kept on the constant.
    constant->set_layout(op.result(i)->shared_layout());
    TENON_OK(replace_value(*op.result(i), *constant), "folding ", op.describe());
  }
  const std::set<const Value*> constants = constants_read_by(op);
  op.erase();
  // Immediately: otherwise large weights would be in memory in both forms until the end of the pass.
  for (const Value* constant : constants) {
    if (!constant->used()) constant->producer()->erase();
  }
  return Change::yes;
}

namespace {

// In order, so that a chain is folded in one traversal.
Result<bool> fold_in(Region& region) {
  bool changed = false;
  for (Op* op = region.first(); op && !region.is_return(*op);) {
    Op* next = op->next();
    for (size_t i = 0; i < op->region_count(); ++i) {
      TENON_TRY(inside, fold_in(op->region(i)));
      changed |= inside;
    }
    TENON_TRY(here, fold_op(*op));
    changed |= here == Change::yes;
    op = next;
  }
  return changed;
}

const PassRegistration kFoldConstantsRegistered({{
    .name = "fold-constants",
    .contract = "Operators on constants alone are computed now, as is shape arithmetic on static shapes.\n"
                "Needs inferred types; keeps names. Constants that only they used go with them.",
    .run = [](Graph& graph) -> Result<Change> {
      TENON_TRY(changed, fold_in(graph.body()));
      return Change{changed};
    },
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon
