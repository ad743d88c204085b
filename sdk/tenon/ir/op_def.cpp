#include <tenon/ir/op_def.hpp>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace tenon {

// ---- Type sets ----

bool TypeSet::contains(const Type& type) const {
  switch (type.kind()) {
    case Type::Kind::tensor: return tensors_ && test_(type.element());
    case Type::Kind::sequence: return sequences_;
    case Type::Kind::optional: return optionals_;
    case Type::Kind::unknown: return false;
  }
  return false;
}

namespace {
bool any_element(ElementType) { return true; }
}  // namespace

const TypeSet kAnyTensor("tensors", any_element);
const TypeSet kAnyType("tensors, sequences and optionals", any_element, true, true);
const TypeSet kFloatTypes("float tensors", [](ElementType e) { return e.is_float(); });
const TypeSet kIntTypes("integer tensors", [](ElementType e) { return e.is_int(); });
const TypeSet kNumberTypes("float and integer tensors", [](ElementType e) { return e.is_number(); });
const TypeSet kBoolType("bool tensors", [](ElementType e) { return e.is_bool(); });
const TypeSet kStringType("string tensors", [](ElementType e) { return e.is_string(); });
const TypeSet kIndexTypes("i32 and i64 tensors", [](ElementType e) { return e == kI32 || e == kI64; });
const TypeSet kI64Type("i64 tensors", [](ElementType e) { return e == kI64; });
const TypeSet kSequenceTypes("sequences", any_element, true, false, false);
const TypeSet kOptionalTypes("optionals", any_element, false, true, false);

// ---- Inference context ----

std::vector<Type> InferContext::region_outputs(size_t i) const {
  std::vector<Type> types;
  const Region& region = op_.region(i);
  for (size_t k = 0; k < region.output_count(); ++k) {
    types.push_back(region.output(k) ? region.output(k)->type() : Type());
  }
  return types;
}

Result<TensorType> InferContext::tensor(size_t i) const {
  const Type& known = type(i);
  if (known.is_tensor()) return known.tensor();
  return error(Code::invalid_argument, "operand ", i, " of ", op_.describe(), " must be a tensor, it is ",
               has_operand(i) ? known.to_string() : "absent");
}

// ---- OpDef ----

OpDef& OpDef::summary(std::string text) { return summary_ = std::move(text), *this; }

OpDef& OpDef::operand(std::string name, std::string type_var, Arity arity) {
  operands_.push_back({std::move(name), std::move(type_var), arity});
  if (arity == Arity::required) min_operands_ = operands_.size();
  return *this;
}

OpDef& OpDef::variadic_operands(std::string name, std::string type_var, size_t at_least, bool homogeneous) {
  // A variadic operand that may be empty adds nothing to the required number if those before it may be absent.
  if (at_least > 0 || operands_.empty() || operands_.back().arity == Arity::required)
    min_operands_ = operands_.size() + at_least;
  operands_.push_back({std::move(name), std::move(type_var), Arity::variadic, homogeneous});
  return *this;
}

OpDef& OpDef::result(std::string name, std::string type_var, Arity arity) {
  results_.push_back({std::move(name), std::move(type_var), arity});
  if (arity == Arity::required) min_results_ = results_.size();
  return *this;
}

OpDef& OpDef::variadic_results(std::string name, std::string type_var, size_t at_least, bool homogeneous) {
  min_results_ = results_.size() + at_least;
  results_.push_back({std::move(name), std::move(type_var), Arity::variadic, homogeneous});
  return *this;
}

OpDef& OpDef::types(std::string type_var, const TypeSet& set) {
  type_vars_.insert_or_assign(std::move(type_var), set);
  return *this;
}

OpDef& OpDef::attribute(std::string_view name, Attribute fallback) {
  attributes_.push_back({Name(name), fallback.kind(), false, std::move(fallback), {}});
  return *this;
}

OpDef& OpDef::optional_attribute(std::string_view name, AttributeKind kind) {
  attributes_.push_back({Name(name), kind, false, std::nullopt, {}});
  return *this;
}

OpDef& OpDef::required_attribute(std::string_view name, AttributeKind kind) {
  attributes_.push_back({Name(name), kind, true, std::nullopt, {}});
  return *this;
}

OpDef& OpDef::one_of(std::vector<std::string> texts) {
  TENON_CHECK(!attributes_.empty(), name_, ": one_of before any attribute");
  attributes_.back().one_of = std::move(texts);
  return *this;
}

std::string_view OpDef::domain() const {
  const auto dot = name_.view().rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name_.view().substr(0, dot);
}

size_t OpDef::max_operands() const {
  return !operands_.empty() && operands_.back().arity == Arity::variadic ? SIZE_MAX : operands_.size();
}

size_t OpDef::max_results() const {
  return !results_.empty() && results_.back().arity == Arity::variadic ? SIZE_MAX : results_.size();
}

const AttributeDef* OpDef::attribute(Name name) const {
  for (const auto& attribute : attributes_) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

// ---- Registry ----

namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<Name, std::unique_ptr<const OpDef>> ops;
};

Registry& registry() {
  static auto* instance = new Registry;  // never destroyed: definitions are read until the end of the process
  return *instance;
}

Result<void> check_slots(const OpDef& def, const std::vector<OperandDef>& slots, std::string_view what) {
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto& slot = slots[i];
    if (slot.arity == Arity::variadic && i + 1 != slots.size()) {
      return error(Code::invalid_argument, "definition of ", def.name(), ": variadic ", what, " '", slot.name,
                   "' must be the last");
    }
    if (slot.arity == Arity::required && i > 0 && slots[i - 1].arity == Arity::optional && what == "operand") {
      return error(Code::invalid_argument, "definition of ", def.name(), ": required operand '", slot.name,
                   "' stands behind an optional one");
    }
    if (def.type_vars().contains(slot.type_var)) continue;
    auto fixed = parse_type(slot.type_var + "[*]");
    if (!fixed.ok()) fixed = parse_type(slot.type_var);
    if (!fixed.ok()) {
      return error(Code::invalid_argument, "definition of ", def.name(), ": ", what, " '", slot.name, "' has type '",
                   slot.type_var, "', which is neither a type variable with types nor an element type");
    }
  }
  return {};
}

}  // namespace

const OpDef* find_op(Name name) {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  const auto found = r.ops.find(name);
  return found == r.ops.end() ? nullptr : found->second.get();
}

std::vector<const OpDef*> all_ops() {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  std::vector<const OpDef*> out;
  for (const auto& [name, def] : r.ops) out.push_back(def.get());
  std::sort(out.begin(), out.end(), [](const OpDef* a, const OpDef* b) { return a->name() < b->name(); });
  return out;
}

Result<void> register_op(OpDef def) {
  TENON_OK(check_slots(def, def.operands(), "operand"));
  TENON_OK(check_slots(def, def.results(), "result"));
  for (const auto& attribute : def.attributes()) {
    if (def.attribute(attribute.name) != &attribute) {
      return error(Code::invalid_argument, "definition of ", def.name(), ": attribute '", attribute.name,
                   "' stands twice");
    }
  }
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  const Name name = def.name();
  if (!r.ops.emplace(name, std::make_unique<const OpDef>(std::move(def))).second) {
    return error(Code::already_exists, "operator '", name, "' is defined already; give it a domain of its own");
  }
  return {};
}

Result<void> register_ops(OpDefs defs) {
  for (auto& def : defs) TENON_OK(register_op(std::move(def)));
  return {};
}

OpRegistration::OpRegistration(OpDefs defs) {
  const auto registered = register_ops(std::move(defs));
  TENON_CHECK(registered.ok(), registered.error().to_string());
}

// ---- Shared shape rules ----

InferFn same_as_operand(size_t i) {
  return [i](const InferContext& context) -> Result<std::vector<Type>> {
    return std::vector<Type>(context.op().result_count(), context.type(i));
  };
}

namespace {

Result<std::vector<Type>> broadcast_types(const InferContext& context, ElementType element) {
  TENON_TRY(first, context.tensor(0));
  Shape shape = first.shape;
  for (size_t i = 1; i < context.operand_count(); ++i) {
    if (!context.has_operand(i)) continue;
    TENON_TRY(next, context.tensor(i));
    TENON_TRY(wider, broadcast(shape, next.shape), "operand ", i, " of ", context.op().describe());
    shape = std::move(wider);
  }
  return std::vector<Type>{Type(element.valid() ? element : first.element, std::move(shape))};
}

}  // namespace

InferFn broadcast_operands() {
  return [](const InferContext& context) { return broadcast_types(context, ElementType()); };
}
InferFn broadcast_operands_to(ElementType element) {
  return [element](const InferContext& context) { return broadcast_types(context, element); };
}

}  // namespace tenon
