#include <tenon/ir/builder.hpp>

#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon {
namespace {

const Name& constant_name() {
  static const Name name("Constant");
  return name;
}
const Name& value_name() {
  static const Name name("value");
  return name;
}

}  // namespace

Result<void> infer_result_types(Op& op) {
  TENON_TRY(types, infer_types(op));
  for (size_t i = 0; i < op.result_count(); ++i) {
    TENON_TRY(merged, merge_at(op, types[i], op.result(i)->type()), "result ", i, " of ", op.describe(),
              ": inferred against declared type");
    op.result(i)->set_type(std::move(merged));
  }
  return {};
}

Op& Builder::create(Name name, std::span<Value* const> operands, size_t results, Attributes attributes) {
  Op& op = region_->create(name, operands, std::vector<Type>(results), std::move(attributes), before_);
  op.set_label(prefix_);
  return op;
}

Result<std::vector<Value*>> Builder::ops(Name name, std::span<Value* const> operands, size_t results,
                                         Attributes attributes) {
  Op& made = create(name, operands, results, std::move(attributes));
  auto inferred = infer_result_types(made);
  if (inferred.ok()) inferred = verify(made);
  // A contradiction that is tolerated when a model is read is an error for code that builds inside a branch.
  static const TypeSource graph_types;
  if (inferred.ok() && contradicts(made)) inferred = infer_types(StaticInferContext(made, graph_types)).error();
  if (!inferred.ok()) {
    made.erase();
    return std::move(inferred).error();
  }
  std::vector<Value*> values;
  for (size_t i = 0; i < results; ++i) values.push_back(made.result(i));
  return values;
}

Result<Value*> Builder::op(Name name, std::span<Value* const> operands, Attributes attributes) {
  TENON_TRY(values, ops(name, operands, 1, std::move(attributes)));
  return values[0];
}

Result<Value*> Builder::op(Name name, std::initializer_list<Value*> operands, Attributes attributes) {
  return op(name, std::span<Value* const>(operands.begin(), operands.size()), std::move(attributes));
}

Result<Value*> Builder::layout(Value* value, std::string_view text, std::string_view dims) {
  TENON_OK(set_layout(*value, text, dims));
  return value;
}

Value* Builder::constant(Tensor value, std::string name) {
  Type type(value.type());
  Op& made = region_->create(constant_name(), {}, {std::move(type)}, {{value_name(), std::move(value)}}, before_);
  made.result()->set_name(std::move(name));
  return made.result();
}

Value* Builder::constant_ints(const std::vector<int64_t>& values) {
  return constant(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}
Value* Builder::constant_int(int64_t value) { return constant(Tensor::scalar<int64_t>(value)); }

Value* Builder::constant_scalar(ElementType element, double value) {
  auto tensor = Tensor::zeros(element, {});
  TENON_CHECK(tensor.ok(), tensor.error().to_string());
  tensor->set_double(0, value);
  return constant(*std::move(tensor));
}

const Tensor* constant_of(const Value* value) {
  if (!value || !value->producer() || !value->producer()->is(constant_name())) return nullptr;
  const Attribute* attribute = value->producer()->attributes().find(value_name());
  return attribute ? attribute->get_if<Tensor>() : nullptr;
}

std::optional<std::vector<int64_t>> constant_ints_of(const Value* value) {
  const Tensor* tensor = constant_of(value);
  if (!tensor || !tensor->element().is_int()) return std::nullopt;
  return tensor->to_ints();
}

}  // namespace tenon
