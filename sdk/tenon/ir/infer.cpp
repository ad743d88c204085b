#include <tenon/ir/infer.hpp>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/signature_internal.hpp>
#include <tenon/support/caught.hpp>

namespace tenon {

const Type& StaticInferContext::type(size_t i) const {
  static const Type unknown;
  const Value* operand = op().operand(i);
  return operand ? source_.type_of(*operand) : unknown;
}

const Tensor* StaticInferContext::constant(size_t i) const { return constant_of(op().operand(i)); }

std::optional<std::vector<Dim>> StaticInferContext::dims_value(size_t i) const {
  const Value* value = op().operand(i);
  if (!value) return std::nullopt;
  if (const Tensor* tensor = constant_of(value)) return dims_of_tensor(*tensor);
  const Op* producer = value->producer();
  if (!producer || depth_ == 0 || value->index() != 0) return std::nullopt;
  const OpDef* def = producer->def();
  if (!def || !def->infer_dims_fn()) return std::nullopt;
  return def->infer_dims_fn()(StaticInferContext(*producer, source_, depth_ - 1));
}

std::optional<std::vector<Dim>> dims_of_tensor(const Tensor& tensor) {
  if (!tensor.element().is_int() || tensor.rank() > 1) return std::nullopt;
  std::vector<Dim> dims;
  for (const int64_t element : tensor.to_ints()) dims.emplace_back(element);
  return dims;
}

Result<std::vector<Type>> infer_types(const InferContext& context) {
  const Op& op = context.op();
  const OpDef* def = op.def();
  if (!def) return error(Code::not_found, "no operator '", op.name(), "' is defined; load the plugin that brings it");
  if (!def->infer_fn()) return error(Code::internal, "operator '", op.name(), "' has no shape rule");
  TENON_OK(signature::check(op, *def));  // rules rely on it
  TENON_TRY(types, caught([&] { return def->infer_fn()(context); }, "the rule"), "the shape rule of ", op.describe());
  if (types.size() < op.result_count()) {
    return error(Code::internal, "the shape rule of ", op.describe(), " gives ", types.size(), " types for ",
                 op.result_count(), " results");
  }
  return types;
}

bool may_be_left_out(const Op& op) {
  for (const Op* around = op.parent()->parent(); around; around = around->parent()->parent()) {
    if (around->def() && around->def()->has(Trait::conditional)) return true;
  }
  return false;
}

namespace {
const TypeSource& graph_types() {
  static const TypeSource source;
  return source;
}
}  // namespace

bool contradicts(const Op& op) {
  return may_be_left_out(op) && op.def() && op.def()->infer_fn() &&
         !infer_types(StaticInferContext(op, graph_types())).ok();
}

Result<std::vector<Type>> infer_types(const Op& op) {
  auto types = infer_types(StaticInferContext(op, graph_types()));
  if (types.ok() || !op.def() || !op.def()->infer_fn() || !may_be_left_out(op)) return types;
  TENON_OK(signature::check(op, *op.def()));
  TENON_OK(signature::check_type_vars(op, *op.def()));
  if (const VerifyFn& verify = op.def()->verify_fn()) TENON_OK(caught([&] { return verify(op); }, "its verifier"));
  if (auto open = signature::open_result_types(op, *op.def())) return *std::move(open);
  return types;
}

Result<Type> merge_at(const Op& op, const Type& inferred, const Type& declared) {
  if (inferred == declared) return inferred;
  auto merged = merge(inferred, declared);
  if (merged.ok() || !signature::same_kind(inferred, declared) || !may_be_left_out(op)) return merged;
  return inferred;
}

}  // namespace tenon
