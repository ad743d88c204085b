#include <tenon/snippet/specialise.hpp>

#include <unordered_map>

#include <tenon/ir/builder.hpp>
#include <tenon/snippet/canonical.hpp>
#include <tenon/snippet/decompose.hpp>

namespace tenon::snippet {

std::optional<size_t> unknown_operand(const Op& op) {
  const DecomposeRow* row = find_decomposition(op.name());
  if (!row || row->value_operand >= op.operand_count()) return std::nullopt;
  const Value* value = op.operand(row->value_operand);
  if (!value || constant_of(value)) return std::nullopt;
  return row->value_operand;
}

Result<std::unique_ptr<Graph>> with_value(const Op& op, size_t operand, const Tensor& value, const TypeSource& types) {
  auto graph = std::make_unique<Graph>(op.name().str());
  Region& body = graph->body();
  Builder builder(body);
  std::unordered_map<const Value*, Value*> made = {{nullptr, nullptr}};
  made[op.operand(operand)] = builder.constant(value);
  std::vector<Value*> operands;
  for (const Value* from : op.operands()) {
    Value*& to = made.try_emplace(from, nullptr).first->second;
    if (from && !to) {
      const Tensor* constant = constant_of(from);
      to = constant ? builder.constant(*constant) : body.add_input(from->name(), types.type_of(*from));
    }
    operands.push_back(to);
  }
  TENON_TRY(results, builder.ops(op.name(), operands, op.result_count(), op.attributes()));
  results[0]->producer()->set_label(op.label());
  for (size_t i = 0; i < results.size(); ++i) {
    results[i]->set_name(op.result(i)->name());
    if (op.result(i)->used()) body.add_output(results[i], op.result(i)->name());
  }
  return graph;
}

Result<Body> usual_body(const Op& op) {
  const auto operand = unknown_operand(op);
  if (!operand) return make_body(op);
  if (!op.operand(0)->type().shape().ranked())
    return error(Code::unsupported, op.describe(), " takes a tensor of unknown rank");
  TENON_TRY(alone, with_value(op, *operand, find_decomposition(op.name())->usual_value(op)));
  const Op* made = nullptr;  // the last one, behind the constants
  for (const Op& each : alone->body()) made = &each;
  return make_body(*made);
}

}  // namespace tenon::snippet
