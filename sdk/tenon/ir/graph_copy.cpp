#include <tenon/ir/graph.hpp>

namespace tenon {
namespace {

Value* mapped(const ValueMap& map, Value* value) {
  const auto found = value ? map.find(value) : map.end();
  return found == map.end() ? value : found->second;
}

void clone_into(const Region& from, Region& into, ValueMap& map) {
  for (size_t i = 0; i < from.input_count(); ++i) {
    const Value* input = from.input(i);
    Value* copy = into.add_input(input->name(), input->type());
    copy->set_layout(input->shared_layout());
    map[input] = copy;
  }
  for (const Op& op : from) clone_op(op, into, nullptr, map);
  for (size_t i = 0; i < from.output_count(); ++i) into.add_output(mapped(map, from.output(i)), from.output_name(i));
}

}  // namespace

Op& clone_op(const Op& op, Region& into, Op* before, ValueMap& map) {
  std::vector<Value*> operands = op.operands();
  for (Value*& operand : operands) operand = mapped(map, operand);
  std::vector<Type> types;
  for (size_t i = 0; i < op.result_count(); ++i) types.push_back(op.result(i)->type());
  Op& copy = into.create(op.name(), operands, std::move(types), op.attributes(), before);
  copy.set_label(op.label());
  for (size_t i = 0; i < op.result_count(); ++i) {
    copy.result(i)->set_name(op.result(i)->name());
    copy.result(i)->set_layout(op.result(i)->shared_layout());
    map[op.result(i)] = copy.result(i);
  }
  for (size_t i = 0; i < op.region_count(); ++i) clone_into(op.region(i), copy.add_region(), map);
  return copy;
}

std::vector<Value*> clone_body(const Region& from, std::span<Value* const> inputs, Region& into, Op* before) {
  TENON_CHECK(inputs.size() == from.input_count(), inputs.size(), " inputs for a region of ", from.input_count());
  ValueMap map;
  for (size_t i = 0; i < inputs.size(); ++i) map[from.input(i)] = inputs[i];
  for (const Op& op : from) clone_op(op, into, before, map);
  std::vector<Value*> outputs;
  for (size_t i = 0; i < from.output_count(); ++i) outputs.push_back(mapped(map, from.output(i)));
  return outputs;
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>(name_);
  copy->properties_ = properties_;
  ValueMap map;
  clone_into(*body_, *copy->body_, map);
  return copy;
}

}  // namespace tenon
