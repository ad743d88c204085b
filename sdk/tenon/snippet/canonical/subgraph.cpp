#include <tenon/snippet/canonical/subgraph.hpp>

#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/reference/evaluator.hpp>

namespace tenon::snippet {
namespace {

// ---- Types ----

// Types of the values in a region, derived from those of its inputs.
class RegionTypes : public TypeSource {
 public:
  const Type& type_of(const Value& value) const override {
    const auto known = types_.find(&value);
    return known == types_.end() ? value.type() : known->second;
  }
  void set(const Value& value, Type type) { types_[&value] = std::move(type); }

 private:
  std::unordered_map<const Value*, Type> types_;
};

Result<void> check_counts(const Op& op) {
  if (op.region_count() != 1)
    return error(Code::invalid_argument, op.describe(), " has ", op.region_count(), " regions");
  const Region& body = op.region(0);
  if (body.input_count() == op.operand_count() && body.output_count() == op.result_count()) return {};
  return error(Code::invalid_argument, "the region of ", op.describe(), " has ", body.input_count(), " inputs and ",
               body.output_count(), " outputs, the operator ", op.operand_count(), " operands and ", op.result_count(),
               " results");
}

// Propagates what is known of the operands through the region, operator by operator.
Result<std::vector<Type>> infer(const InferContext& context) {
  const Op& op = context.op();
  TENON_OK(check_counts(op));
  const Region& body = op.region(0);
  RegionTypes types;
  for (size_t i = 0; i < body.input_count(); ++i) {
    TENON_TRY(type, merge(body.input(i)->type(), context.type(i)), "input ", i, " of the region of ", op.describe());
    types.set(*body.input(i), std::move(type));
  }
  for (const Op& inner : body) {
    TENON_TRY(results, infer_types(StaticInferContext(inner, types)), "in ", op.describe());
    for (size_t i = 0; i < results.size(); ++i) {
      TENON_TRY(type, merge(inner.result(i)->type(), results[i]), inner.describe());
      types.set(*inner.result(i), std::move(type));
    }
  }
  std::vector<Type> outputs;
  for (size_t i = 0; i < body.output_count(); ++i) outputs.push_back(types.type_of(*body.output(i)));
  return outputs;
}

// ---- Verification ----

Result<void> verify_subgraph(const Op& op) {
  TENON_OK(check_counts(op));
  const Region& body = op.region(0);
  std::unordered_set<const Value*> inside;
  for (size_t i = 0; i < body.input_count(); ++i) {
    if (!op.operand(i)) return error(Code::invalid_argument, "operand ", i, " is absent");
    inside.insert(body.input(i));
  }
  for (const Op& inner : body) {
    if (inner.region_count() != 0)
      return error(Code::invalid_argument, inner.describe(), " has regions of its own, which a snippet cannot hold");
    for (const Value* operand : inner.operands()) {
      if (operand && !inside.contains(operand))
        return error(Code::invalid_argument, inner.describe(), " uses %", operand->name(),
                     " from around the region; it must enter as an operand");
    }
    for (size_t i = 0; i < inner.result_count(); ++i) inside.insert(inner.result(i));
  }
  for (size_t i = 0; i < body.output_count(); ++i) {
    if (!inside.contains(body.output(i)))
      return error(Code::invalid_argument, "output ", i, " of the region is a value from around it");
  }
  return {};
}

// ---- Meaning ----

// The operators of the region replace the snippet.
Result<std::vector<Value*>> decompose(Builder& b, const Op& op) {
  const Region& body = op.region(0);
  ValueMap map;
  for (size_t i = 0; i < body.input_count(); ++i) map[body.input(i)] = op.operand(i);
  for (const Op& inner : body) {
    std::vector<Value*> operands;
    for (Value* operand : inner.operands()) operands.push_back(operand ? map.at(operand) : nullptr);
    TENON_TRY(results, b.ops(inner.name(), operands, inner.result_count(), inner.attributes()), "inlining ",
              op.describe());
    if (!results.empty()) results[0]->producer()->set_label(inner.label());
    for (size_t i = 0; i < results.size(); ++i) {
      results[i]->set_name(inner.result(i)->name());
      map[inner.result(i)] = results[i];
    }
  }
  std::vector<Value*> outputs;
  for (size_t i = 0; i < body.output_count(); ++i) outputs.push_back(map.at(body.output(i)));
  return outputs;
}

Result<void> evaluate(EvalContext& context) {
  std::vector<Datum> inputs;
  for (size_t i = 0; i < context.operand_count(); ++i) inputs.push_back(context.datum(i));
  TENON_TRY(outputs, context.run_region(0, std::move(inputs)));
  for (size_t i = 0; i < outputs.size(); ++i) context.set_output(i, std::move(outputs[i]));
  return {};
}

const OpRegistration kSubgraphRegistered({
    OpDef(Subgraph::kName)
        .summary("What its region computes of the operands, as one kernel; the region sees no other values")
        .variadic_operands("inputs", "T", 0, /*homogeneous=*/false)
        .variadic_results("outputs", "T", 1, /*homogeneous=*/false)
        .types("T", kAnyTensor)
        .regions(1)
        .traits(Trait::pure)
        .infer(infer)
        .verify(verify_subgraph)
        .decompose(decompose),
});
const EvaluatorRegistration kEvaluator({{Subgraph::kName, evaluate}});

}  // namespace
}  // namespace tenon::snippet
