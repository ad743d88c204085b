#include <algorithm>
#include <numeric>
#include <optional>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ops/movement.hpp>
#include <tenon/passes/change.hpp>
#include <tenon/passes/rewrite.hpp>

namespace tenon {
namespace {

using Perm = Attribute::Integers;

std::optional<size_t> rank_of(const Value& value) {
  if (!value.type().is_tensor() || !value.type().shape().ranked()) return std::nullopt;
  return static_cast<size_t>(value.type().shape().rank());
}

// The permutation of a Transpose; nothing if it reverses an unknown number of axes, or does not match its operand's
// axes.
std::optional<Perm> perm_of(const Op& op) {
  if (contradicts(op)) return std::nullopt;
  Perm perm = op.attr<Perm>("perm");
  if (!perm.empty()) return perm;
  const auto rank = rank_of(*op.operand(0));
  if (!rank) return std::nullopt;
  perm.resize(*rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  return perm;
}

bool is_identity(const Perm& perm) { return std::is_sorted(perm.begin(), perm.end()); }

// `first`, followed by `second`: axis d of the result is axis second[d] of the intermediate value.
Perm composed(const Perm& first, const Perm& second) {
  Perm perm;
  for (const int64_t axis : second) perm.push_back(first[static_cast<size_t>(axis)]);
  return perm;
}

Result<Value*> transposed(Builder& builder, Value* value, const Perm& perm) {
  if (is_identity(perm)) return value;
  return builder.op(Transpose::name(), {value}, {{"perm", perm}});
}

// Whether the result is the same for any order of axes that all operands share.
bool is_oblivious(const Op& op) {
  return op.def() && op.def()->has(Trait::elementwise) && op.def()->has(Trait::layout_oblivious) && is_repeatable(op) &&
         op.region_count() == 0 && op.result_count() == 1;
}

// Whether it is a constant that broadcasts to every element, and so needs no transposition.
bool is_single(const Value& value) {
  const Tensor* tensor = constant_of(&value);
  return tensor && tensor->size() == 1;
}

// ---- A Transpose behind elementwise operators is taken up to other Transposes ----

// The tree of elementwise operators above a Transpose, and the cost of transposing at its leaves instead.
class Lift {
 public:
  Lift(const Region& region, const Perm& perm) : region_(region), perm_(perm) {}

  // The change in the number of Transposes if `value` is computed in the new order; negative: fewer. Nothing: not
  // possible.
  std::optional<int> cost(const Value& value) {
    if (constant_of(&value)) return fits_constant(value) ? std::optional(0) : std::nullopt;
    if (rank_of(value) != perm_.size()) return std::nullopt;
    const Op* op = value.producer();
    if (op && isa<Transpose>(op)) {
      const auto inner = perm_of(*op);
      if (!inner) return std::nullopt;
      return (is_identity(composed(*inner, perm_)) ? 0 : 1) - (value.has_one_use() ? 1 : 0);
    }
    if (!op || op->parent() != &region_ || !is_oblivious(*op) || !value.has_one_use() || ++ops_ > kMostOps) return 1;
    int sum = 0;
    for (size_t i = 0; i < op->operand_count(); ++i) {
      if (!op->operand(i)) continue;
      const auto more = cost(*op->operand(i));
      if (!more) return 1;
      sum += *more;
    }
    inside_.push_back(op);
    return sum;
  }

  Result<Value*> lifted(Builder& builder, Value* value) {
    Op* op = value->producer();
    if (const Tensor* tensor = constant_of(value)) {
      if (tensor->size() == 1 || tensor->rank() == 0) return value;
      Dims dims(perm_.size() - tensor->dims().size(), 1);
      dims.insert(dims.end(), tensor->dims().begin(), tensor->dims().end());
      TENON_TRY(full, builder.op("Reshape", {value, builder.constant_ints(dims)}, {{"allowzero", 1}}));
      return transposed(builder, full, perm_);
    }
    if (op && isa<Transpose>(op)) return transposed(builder, op->operand(0), composed(*perm_of(*op), perm_));
    if (!op || std::find(inside_.begin(), inside_.end(), op) == inside_.end()) {
      return transposed(builder, value, perm_);
    }
    std::vector<Value*> operands = op->operands();
    for (Value*& operand : operands) {
      if (!operand) continue;
      TENON_TRY(other, lifted(builder, operand));
      operand = other;
    }
    TENON_TRY(made, builder.op(op->name(), operands, op->attributes()));
    made->producer()->set_label(op->label());
    return made;
  }

 private:
  static constexpr int kMostOps = 64;  // so that a large tree is not traversed from each of many Transposes

  bool fits_constant(const Value& value) const {
    const Tensor& tensor = *constant_of(&value);
    return tensor.size() == 1 || static_cast<size_t>(tensor.rank()) <= perm_.size();
  }

  const Region& region_;
  const Perm& perm_;
  int ops_ = 0;
  std::vector<const Op*> inside_;
};

Result<Value*> lift_transpose(Builder& builder, const Match& match) {
  const auto perm = perm_of(match.root());
  Value* value = match.value("x");
  if (!perm || !value->producer() || isa<Transpose>(value->producer())) return nullptr;
  Lift lift(*match.root().parent(), *perm);
  const auto more = lift.cost(*value);
  // The Transpose itself is removed.
  if (!more || *more - 1 >= 0) return nullptr;
  return lift.lifted(builder, value);
}

// ---- Elementwise on Transposes ----

// The common permutation of all operands, if two or more Transposes without other users can become one.
std::optional<Perm> common_perm(const Op& op) {
  std::optional<Perm> common;
  int transposes = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Value* operand = op.operand(i);
    if (!operand || is_single(*operand)) continue;
    const Op* producer = operand->producer();
    if (!producer || !isa<Transpose>(producer) || rank_of(*operand) != rank_of(*op.result())) return std::nullopt;
    const auto perm = perm_of(*producer);
    if (!perm || (common && *common != *perm)) return std::nullopt;
    common = perm;
    transposes += operand->has_one_use();
  }
  return transposes >= 2 ? common : std::nullopt;
}

Result<Value*> sink_transposes(Builder& builder, const Match& match) {
  Op& root = match.root();
  if (!is_oblivious(root)) return nullptr;
  const auto perm = common_perm(root);
  if (!perm) return nullptr;
  std::vector<Value*> operands = root.operands();
  for (Value*& operand : operands) {
    if (operand && !is_single(*operand)) operand = operand->producer()->operand(0);
  }
  TENON_TRY(made, builder.op(root.name(), operands, root.attributes()));
  return transposed(builder, made, *perm);
}

// ---- The pass ----

Result<Value*> compose_transposes(Builder& builder, const Match& match) {
  const auto first = perm_of(match.op("inner")), second = perm_of(match.root());
  if (!first || !second) return nullptr;
  return transposed(builder, match.value("x"), composed(*first, *second));
}

Result<Value*> drop_identity(Builder&, const Match& match) {
  const auto perm = perm_of(match.root());
  return perm && is_identity(*perm) ? match.value("x") : nullptr;
}

std::vector<Name> elementwise_ops() {
  std::vector<Name> names;
  for (const OpDef* def : all_ops()) {
    if (def->has(Trait::elementwise) && def->has(Trait::layout_oblivious)) names.push_back(def->name());
  }
  return names;
}

Result<Change> fold_transpose(Graph& graph) {
  using namespace pattern;
  const Name kTranspose = Transpose::name();
  const std::vector<Rewrite> rewrites = {
      Rewrite("identity").match(op(kTranspose, {any("x")})).with(drop_identity),
      Rewrite("compose")
          .match(op(kTranspose, {op(kTranspose, {any("x")}).as("inner").shared()}))
          .with(compose_transposes),
      Rewrite("lift").match(op(kTranspose, {any("x")})).with(lift_transpose),
      // Made here, because plugins may have registered operators since the last run.
      Rewrite("sink").match(op_among(elementwise_ops(), {any()}).and_more()).with(sink_transposes),
  };
  return apply_rewrites(graph, rewrites);
}

const PassRegistration kFoldTransposeRegistered({{
    .name = "fold-transpose",
    .contract =
        "Transposes of Transposes become one or none; through elementwise operators they go where one becomes less.\n"
        "Needs inferred types; keeps output names. Leaves Transposes of constants for fold-constants.",
    .run = fold_transpose,
    .needs = {"infer-types"},
}});

}  // namespace
}  // namespace tenon
