#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_view.hpp>
#include <tenon/ops/cast.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/local_internal.hpp>
#include <tenon/passes/pass_manager.hpp>

namespace tenon {
namespace {

bool all_are(const std::optional<std::vector<int64_t>>& values, int64_t wanted) {
  return values && std::all_of(values->begin(), values->end(), [&](int64_t v) { return v == wanted; });
}

bool always(const Op&) { return true; }

bool has_one_operand(const Op& op) { return op.operand_count() == 1; }

// Inference: operand 2, training_mode, is absent or false. The mask would be all true, but must be produced if it is
// used.
bool drops_nothing(const Op& op) {
  if (op.result_count() > 1 && op.result(1)->used()) return false;
  const Tensor* training = constant_of(op.operand(2));
  return !op.operand(2) || (training && training->size() == 1 && training->int_at(0) == 0);
}

bool keeps_element(const Op& op) {
  const Type& from = op.operand(0)->type();
  return from.is_tensor() && from.element().valid() && from.element() == op.attr<Type>("to").element();
}

// Whether all extents equal those of operand 0, including extents known only at run time.
bool keeps_shape(const Op& op) { return have_same_shape(op.operand(0)->type(), op.result()->type()); }

bool permutes_nothing(const Op& op) {
  const auto perm = op.attr<Attribute::Integers>("perm");
  if (perm.empty()) {  // reversed
    const Type& type = op.operand(0)->type();
    return type.is_tensor() && type.shape().ranked() && type.shape().rank() <= 1;
  }
  return std::is_sorted(perm.begin(), perm.end());
}

bool pads_nothing(const Op& op) { return all_are(constant_ints_of(op.operand(1)), 0); }

bool repeats_once(const Op& op) { return all_are(constant_ints_of(op.operand(1)), 1); }

// Whether it starts at or before the first element and goes in steps of one to the end or beyond. A start of 0 and the
// largest end cut off nothing, whatever the extent.
bool slices_all(const Op& op) {
  const auto starts = constant_ints_of(op.operand(1)), ends = constant_ints_of(op.operand(2));
  if (!all_are(starts, 0) || !ends) return false;
  if (op.operand(4) && !all_are(constant_ints_of(op.operand(4)), 1)) return false;
  return all_are(ends, INT64_MAX) || keeps_shape(op);
}

// Whether it expands to ones only, in no more axes than the operand has.
bool expands_nothing(const Op& op) {
  const Type& from = op.operand(0)->type();
  const auto shape = constant_ints_of(op.operand(1));
  const bool ranked = from.is_tensor() && from.shape().ranked();
  if (ranked && all_are(shape, 1) && static_cast<int64_t>(shape->size()) <= from.shape().rank()) return true;
  return keeps_shape(op);
}

// Operators whose result 0 is operand 0, bit for bit, if the test holds.
struct Row {
  Name op;
  bool (*is_identity)(const Op&);
};
const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {"Identity", always},        {"Dropout", drops_nothing},
      {"Cast", keeps_element},     {"Transpose", permutes_nothing},
      {"Pad", pads_nothing},       {"Tile", repeats_once},
      {"Slice", slices_all},       {"Expand", expands_nothing},
      {"Concat", has_one_operand}, {"Sum", has_one_operand},
      {"Mean", has_one_operand},   {"Max", has_one_operand},
      {"Min", has_one_operand},
  };
  return rows;
}

Result<bool> remove_identities(Graph& graph) {
  std::unordered_map<Name, bool (*)(const Op&)> tests;
  for (const Row& row : table()) tests.emplace(row.op, row.is_identity);
  bool changed = false;
  Result<void> status;
  for_each_op(graph.body(), [&](Op& op) {
    const auto row = tests.find(op.name());
    if (!status.ok() || row == tests.end() || !op.def() || !op.operand(0) || !row->second(op) || contradicts(op))
      return;
    status = replace_value(*op.result(), *op.operand(0));
    if (!status.ok()) return;
    op.erase();
    changed = true;
  });
  TENON_OK(std::move(status));
  return changed;
}

const PassRegistration kRemoveIdentityRegistered({{
    .name = "remove-identity",
    .contract = "Operators that give their first operand back, bit for bit: users take that operand.\n"
                "Needs inferred types; keeps output names. Leaves their other operands for remove-dead.",
    .run = [](Graph& graph) -> Result<Change> {
      TENON_TRY(changed, remove_identities(graph));
      return Change{changed};
    },
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon
