// The frame of the lowering, and its first steps: declarations, nodes, and places of outputs.
#include <algorithm>

#include <tenon/ir/builder.hpp>
#include <tenon/irgen/lowering_internal.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/program/ir/program.hpp>

namespace tenon::irgen::detail {

Lowering::Lowering(const GraphPart& part, const GraphTypes& types, const OpPlans& plans, const KernelSource& kernels,
                   const LowerOptions& options)
    : part_(part),
      types_(types),
      plans_(plans),
      kernels_(kernels),
      options_(options),
      names_(types.names()),
      places_(types) {}

Result<GraphProgram> Lowering::run() {
  declare();
  TENON_OK(make_nodes());
  place_outputs();
  TENON_OK(order_nodes());
  number_uses();
  if (options_.share_memory) share_memory();
  if (options_.in_place) write_in_place();
  TENON_OK(emit());
  return std::move(made_);
}

void Lowering::declare() {
  made_.program.name = NameTable().fresh(part_.name);
  places_.reserve(part_.inputs.size() + part_.ops.size());
  nodes_.reserve(part_.ops.size());
  const auto buffer = [&](const Value& value, const std::string& name, program::Role role) {
    const Type& type = types_.type_of(value);
    return made_.program.add_buffer(
        {names_.fresh(name), type.element(), static_cast<int>(type.shape().rank()), role, "host"});
  };
  for (size_t i = 0; i < part_.inputs.size(); ++i) {
    const Value& value = *part_.inputs[i];
    made_.inputs.push_back(buffer(value, part_.input_names[i], program::Role::input));
    made_.input_types.push_back(types_.type_of(value));
    const StorageId id = places_.add(Storage::Kind::input, value);
    places_.storage(id).buffer = made_.inputs.back();
    places_.put(value, {id, 0});
  }
  for (size_t i = 0; i < part_.outputs.size(); ++i) {
    const Value& value = *part_.outputs[i];
    made_.outputs.push_back(buffer(value, part_.output_names[i], program::Role::output));
    made_.output_types.push_back(types_.type_of(value));
    is_output_.insert(&value);
  }
}

// A constant, declared once for all values with the same bytes.
void Lowering::put_boundary(const Value& value) {
  if (places_.has(value)) return;
  const Tensor* tensor = constant_of(&value);
  TENON_CHECK(tensor, "value '", value.name(), "' is used by a part that does not have it as an input");
  const auto known = constants_.find(tensor->data());
  if (known != constants_.end() && *places_.storage(known->second).type == types_.type_of(value)) {
    places_.put(value, {known->second, 0});
    return;
  }
  const StorageId id = places_.add(Storage::Kind::constant, value);
  const Type& type = types_.type_of(value);
  const program::BufferId buffer =
      made_.program.add_buffer({names_.fresh(value.name()), type.element(), static_cast<int>(type.shape().rank()),
                                program::Role::constant, "host"});
  made_.constants.push_back({buffer, *tensor});
  places_.storage(id).buffer = buffer;
  places_.put(value, {id, 0});
  if (tensor->bytes() > 0) constants_.emplace(tensor->data(), id);
}

Result<void> Lowering::choose_groups() {
  if (!options_.grouping || part_.ops.empty()) return {};
  TENON_TRY(groups, options_.grouping(part_.ops, kernels_, types_));
  groups_ = std::move(groups);
  for (const OpGroup& group : groups_)
    for (const Op* op : group.ops) group_of_[op] = &group;
  return {};
}

Result<void> Lowering::make_nodes() {
  TENON_OK(choose_groups());
  for (const Op* op : part_.ops) {
    const OpPlan& plan = plans_.at(op);
    if (!plan.in_program()) return error(Code::unsupported, "no program can say ", op->describe(), ": ", plan.why_not);
    const auto group = group_of_.find(op);
    if (group != group_of_.end()) {
      if (group->second->ops.front() == op) put_group_results(*group->second);
      if (group->second->ops.back() == op) add_group_node(*group->second);
    } else if (plan.form == OpForm::view) {
      put_view(*op);
    } else if (plan.form != OpForm::constant) {
      add_op_node(*op);
    }
  }
  for (const Value* output : part_.outputs) put_boundary(*output);
  return {};
}

void Lowering::put_view(const Op& op) {
  put_boundary(*op.operand(0));
  places_.put(*op.result(), places_.place(*op.operand(0)));
}

void Lowering::add_operand(Node& node, const Value& value) {
  put_boundary(value);
  node.operands.push_back({&value, places_.storage_of(value)});
}

void Lowering::add_op_node(const Op& op) {
  Node node;
  node.op = &op;
  node.plan = &plans_.at(&op);
  // The other operands are numbers, which the plan contains.
  const bool only_data = node.plan->form == OpForm::crop || node.plan->form == OpForm::expand;
  for (size_t i = 0; i < op.operand_count(); ++i)
    if (op.operand(i) && (i == 0 || !only_data)) add_operand(node, *op.operand(i));
  for (size_t i = 0; i < op.result_count(); ++i) {
    const StorageId id = places_.add(Storage::Kind::local, *op.result(i));
    places_.put(*op.result(i), {id, 0});
    node.results.push_back({op.result(i), id});
  }
  nodes_.push_back(std::move(node));
}

// Others may use them before the last operator of the group.
void Lowering::put_group_results(const OpGroup& group) {
  const std::unordered_set<const Op*> inside(group.ops.begin(), group.ops.end());
  for (const Op* op : group.ops) {
    for (size_t i = 0; i < op->result_count(); ++i) {
      const auto uses = op->result(i)->uses();
      if (std::ranges::any_of(uses, [&](const Use* use) { return !inside.contains(use->user()); }))
        places_.put(*op->result(i), {places_.add(Storage::Kind::local, *op->result(i)), 0});
    }
  }
}

void Lowering::add_group_node(const OpGroup& group) {
  Node node;
  node.group = &group;
  const std::unordered_set<const Op*> inside(group.ops.begin(), group.ops.end());
  std::unordered_set<const Value*> seen;
  for (const Op* op : group.ops) {
    for (size_t i = 0; i < op->operand_count(); ++i) {
      const Value* value = op->operand(i);
      if (value && !(value->producer() && inside.contains(value->producer())) && seen.insert(value).second)
        add_operand(node, *value);
    }
    for (size_t i = 0; i < op->result_count(); ++i)
      if (places_.has(*op->result(i))) node.results.push_back({op->result(i), places_.storage_of(*op->result(i))});
  }
  nodes_.push_back(std::move(node));
}

void Lowering::place_outputs() {
  for (size_t i = 0; i < part_.outputs.size(); ++i) {
    const Value& value = *part_.outputs[i];
    Storage& storage = places_.root(value);
    if (storage.kind == Storage::Kind::local && places_.covers_root(value)) {
      storage.kind = Storage::Kind::output;
      storage.buffer = made_.outputs[i];
      storage.type = &types_.type_of(value);
      continue;
    }
    Node copy;
    copy.output = i;
    copy.operands.push_back({&value, places_.storage_of(value)});
    nodes_.push_back(std::move(copy));
  }
}

}  // namespace tenon::irgen::detail
