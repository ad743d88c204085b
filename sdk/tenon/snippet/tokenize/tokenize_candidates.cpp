#include <tenon/snippet/tokenize/tokenize_candidates_internal.hpp>

#include <algorithm>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/decompose.hpp>

namespace tenon::snippet {
namespace {

// Values that must be row-major: those with a layout of their own are left to kernels that support it.
bool is_plain_tensor(const Value& value) {
  return value.type().is_tensor() && value.type().shape().ranked() && !value.layout();
}

// Extents on their way to a shape operand: traversals of the graph follow them operator by operator.
bool is_shape_arithmetic(const Op& op) {
  const OpDef* def = op.def();
  if (!def || !def->infer_dims_fn() || op.result_count() != 1) return false;
  const Type& type = op.result(0)->type();
  if (!type.element().is_int() || type.shape().rank() > 1) return false;
  const TypeSource types;
  return def->infer_dims_fn()(StaticInferContext(op, types)).has_value();
}

// Operators of the dialect that are implemented as series or tables.
bool is_function(Name op) {
  static const std::unordered_set<Name> kFunctions = {
      "Exp", "Expm1", "Log", "Erf",  "Tanh", "Sigmoid", "Softplus", "Mish", "Swish", "Gelu",  "Pow",
      "Sin", "Cos",   "Tan", "Asin", "Acos", "Atan",    "Sinh",     "Cosh", "Asinh", "Acosh", "Atanh"};
  return kFunctions.contains(op);
}

template <class T>
void append(std::string& key, T value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_type(std::string& key, const Value* value) {
  const ElementType element = value && value->type().is_tensor() ? value->type().element() : ElementType();
  append(key, static_cast<uint8_t>(element.kind()));
  append(key, static_cast<uint8_t>(element.bits()));
}

}  // namespace

bool is_view(const Op& op) {
  const DecomposeRow* row = find_decomposition(op.name());
  return row && row->view && op.result_count() == 1;
}

std::optional<Space> Candidates::space_of(const Op& op) {
  const DecomposeRow* row = find_decomposition(op.name());
  if (!row || op.region_count() != 0) return std::nullopt;
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (!is_plain_tensor(*op.result(i))) return std::nullopt;
  }
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (op.operand(i) && !is_plain_tensor(*op.operand(i))) return std::nullopt;
  }
  if (is_shape_arithmetic(op) || (options_.may_take && !options_.may_take(op))) return std::nullopt;
  auto space = row->space(op);
  if (!space.ok()) return std::nullopt;
  const Verdict verdict = verdict_on(op, *space);
  if (!verdict.taken) return std::nullopt;
  if (verdict.costly) space->set_costly();
  return *std::move(space);
}

Candidates::Verdict Candidates::verdict_on(const Op& op, const Space& space) {
  std::string key;
  append(key, op.name().hash());
  append(key, space.folds());
  for (size_t i = 0; i < op.operand_count(); ++i) {
    append_type(key, op.operand(i));
    const Tensor* constant = constant_of(op.operand(i));
    const bool one = constant && constant->size() == 1 && constant->element().is_number();
    if (one) append(key, constant->double_at(0));
  }
  key += '|';
  for (size_t i = 0; i < op.result_count(); ++i) append_type(key, op.result(i));
  for (const auto& [name, value] : op.attributes()) append(key, name.hash() ^ value.hash());
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_[key] = judge(op);
}

Candidates::Verdict Candidates::judge(const Op& op) const {
  const auto body = make_body(op);
  if (!body.ok()) return {};
  const auto accessible = [&](const BodyPort& port) {
    return !options_.can_access || options_.can_access(port.element);
  };
  const auto emittable = [&](const BodyNode& node) {
    std::vector<ElementType> in;
    for (const ValueId operand : node.operands) in.push_back(body->values[static_cast<size_t>(operand)].element);
    const ElementType out[] = {body->values[static_cast<size_t>(node.result)].element};
    return !options_.can_emit || options_.can_emit({node.op, in, out, node.attributes});
  };
  Verdict verdict;
  verdict.taken = std::all_of(body->inputs.begin(), body->inputs.end(), accessible) &&
                  std::all_of(body->outputs.begin(), body->outputs.end(), accessible) &&
                  std::all_of(body->nodes.begin(), body->nodes.end(), emittable);
  verdict.costly =
      std::any_of(body->nodes.begin(), body->nodes.end(), [](const BodyNode& node) { return is_function(node.op); });
  return verdict;
}

}  // namespace tenon::snippet
