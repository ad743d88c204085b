#include <tenon/ir/signature_internal.hpp>

#include <algorithm>

#include <tenon/ir/layout_kernel.hpp>

namespace tenon::signature {

std::string hint(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : str("; did you mean '", near, "'?");
}

bool fully_known(const Type& type) {
  if (!type.known()) return false;
  return type.is_tensor() ? type.element().valid() : fully_known(type.inner());
}

bool same_kind(const Type& a, const Type& b) {
  if (!a.known() || !b.known()) return true;
  if (a.kind() != b.kind()) return false;
  if (!a.is_tensor()) return same_kind(a.inner(), b.inner());
  return a.element() == b.element() || !a.element().valid() || !b.element().valid();
}

namespace {

const OperandDef& slot_of(const std::vector<OperandDef>& slots, size_t i) {
  return slots[std::min(i, slots.size() - 1)];  // the last one is variadic
}

Result<void> check_count(const Op& op, std::string_view what, size_t count, size_t least, size_t most) {
  if (count >= least && count <= most) return {};
  const std::string wanted = most == SIZE_MAX ? str(least, " or more")
                             : least == most  ? str(least)
                                              : str(least, " to ", most);
  return wrong(op, "it has ", count, " ", what, ", its definition wants ", wanted);
}

Result<void> check_counts(const Op& op, const OpDef& def) {
  TENON_OK(check_count(op, "operands", op.operand_count(), def.min_operands(), def.max_operands()));
  TENON_OK(check_count(op, "results", op.result_count(), def.min_results(), def.max_results()));
  TENON_OK(check_count(op, "regions", op.region_count(), def.region_count(), def.region_count()));
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const OperandDef& slot = slot_of(def.operands(), i);
    if (!op.operand(i) && slot.arity != Arity::optional) {
      return wrong(op, "operand ", i, " ('", slot.name, "') is absent, and is not optional");
    }
  }
  return {};
}

Result<void> check_attribute(const Op& op, const OpDef& def, Name name, const Attribute& value) {
  const AttributeDef* known = def.attribute(name);
  if (!known && name == kLayoutKernelAttribute && value.get_if<std::string>()) return {};
  if (!known) {
    std::vector<std::string> names;
    for (const auto& attribute : def.attributes()) names.push_back(attribute.name.str());
    return wrong(op, "there is no attribute '", name, "'", hint(name.view(), names));
  }
  if (value.kind() != known->kind) {
    return wrong(op, "attribute '", name, "' is of kind ", attribute_kind_name(value.kind()), ", its definition wants ",
                 attribute_kind_name(known->kind));
  }
  const auto* text = value.get_if<std::string>();
  const auto& allowed = known->one_of;
  if (!text || allowed.empty() || std::find(allowed.begin(), allowed.end(), *text) != allowed.end()) return {};
  return wrong(op, "attribute '", name, "' is ", quote(*text), ", allowed are ", allowed);
}

Result<void> check_attributes(const Op& op, const OpDef& def) {
  for (const auto& [name, value] : op.attributes()) TENON_OK(check_attribute(op, def, name, value));
  for (const auto& attribute : def.attributes()) {
    if (attribute.required && !op.attributes().has(attribute.name)) {
      return wrong(op, "attribute '", attribute.name, "' is missing");
    }
  }
  return {};
}

// The type that each type variable stands for, and where it was bound.
struct Binding {
  const Type* type;
  std::string_view by;
};
using Bindings = std::vector<std::pair<std::string_view, Binding>>;

Result<void> check_fixed_type(const Op& op, const OperandDef& slot, const Type& type) {
  bool fits = false;
  if (const auto element = ElementType::parse(slot.type_var)) {
    fits = same_kind(type, Type(*element, Shape()));
  } else {
    TENON_TRY(fixed, parse_type(slot.type_var), "the definition of ", op.name());
    fits = same_kind(type, fixed);
  }
  if (fits) return {};
  return wrong(op, "'", slot.name, "' has type ", type, ", its definition wants ", slot.type_var);
}

Result<void> check_slot(const Op& op, const OpDef& def, const OperandDef& slot, const Type& type, Bindings& bindings) {
  if (!fully_known(type)) return {};
  const auto variable = def.type_vars().find(slot.type_var);
  if (variable == def.type_vars().end()) return check_fixed_type(op, slot, type);
  if (!variable->second.contains(type)) {
    return wrong(op, "'", slot.name, "' has type ", type, ", allowed are ", variable->second.text());
  }
  if (!slot.homogeneous) return {};
  for (const auto& [name, binding] : bindings) {
    if (name != slot.type_var) continue;
    if (same_kind(*binding.type, type)) return {};
    return wrong(op, "'", slot.name, "' has type ", type, " and '", binding.by, "' has type ", *binding.type,
                 "; both must be the same ", slot.type_var);
  }
  bindings.push_back({slot.type_var, {&type, slot.name}});
  return {};
}

Type with_open_shapes(const Type& type) {
  if (type.is_tensor()) return Type(type.element(), Shape());
  if (!type.known()) return type;
  const Type inner = with_open_shapes(type.inner());
  return type.is_sequence() ? Type::sequence(inner) : Type::optional(inner);
}

// The type to which the operands bind a slot's type variable; unknown when none does.
Type bound_type(const Op& op, const OpDef& def, const OperandDef& slot) {
  if (!slot.homogeneous) return Type();
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const OperandDef& other = slot_of(def.operands(), i);
    if (!op.operand(i) || !other.homogeneous || other.type_var != slot.type_var) continue;
    if (fully_known(op.operand(i)->type())) return with_open_shapes(op.operand(i)->type());
  }
  return Type();
}

// For a slot without a variable: "i64", "seq(T)" and the like.
Type fixed_type(const OperandDef& slot) {
  if (const auto element = ElementType::parse(slot.type_var)) return Type(*element, Shape());
  const auto parsed = parse_type(slot.type_var);
  return parsed.ok() ? with_open_shapes(*parsed) : Type();
}

}  // namespace

std::optional<std::vector<Type>> open_result_types(const Op& op, const OpDef& def) {
  std::vector<Type> types;
  for (size_t i = 0; i < op.result_count(); ++i) {
    const OperandDef& slot = slot_of(def.results(), i);
    Type type = def.type_vars().contains(slot.type_var) ? bound_type(op, def, slot) : fixed_type(slot);
    if (!fully_known(type)) type = with_open_shapes(op.result(i)->type());
    if (!fully_known(type)) return std::nullopt;
    types.push_back(std::move(type));
  }
  return types;
}

Result<void> check(const Op& op, const OpDef& def) {
  TENON_OK(check_counts(op, def));
  return check_attributes(op, def);
}

Result<void> check_type_vars(const Op& op, const OpDef& def) {
  Bindings bindings;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (const Value* operand = op.operand(i)) {
      TENON_OK(check_slot(op, def, slot_of(def.operands(), i), operand->type(), bindings));
    }
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    TENON_OK(check_slot(op, def, slot_of(def.results(), i), op.result(i)->type(), bindings));
  }
  return {};
}

}  // namespace tenon::signature
