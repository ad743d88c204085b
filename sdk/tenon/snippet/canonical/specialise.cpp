#include <tenon/snippet/canonical/specialise.hpp>

#include <algorithm>
#include <unordered_map>

#include <tenon/ir/builder.hpp>
#include <tenon/snippet/canonical/canonical.hpp>
#include <tenon/snippet/canonical/decompose.hpp>

namespace tenon::snippet {

std::optional<size_t> unknown_operand(const Op& op) {
  const DecomposeRow* row = find_decomposition(op.name());
  if (!row || row->value_operand >= op.operand_count()) return std::nullopt;
  const Value* value = op.operand(row->value_operand);
  if (!value || constant_of(value)) return std::nullopt;
  return row->value_operand;
}

namespace {

// The values that replace those that the operator reads: some exist, constants are copied, others become inputs.
using Copies = std::unordered_map<const Value*, Value*>;

Result<std::unique_ptr<Graph>> rebuilt(std::unique_ptr<Graph> graph, const Op& op, Copies made,
                                       const TypeSource& types) {
  Region& body = graph->body();
  Builder builder(body);
  made[nullptr] = nullptr;
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

// Unknown extents become symbols of their own.
class OpenTypes final : public TypeSource {
 public:
  const Type& type_of(const Value& value) const override {
    const auto [known, fresh] = made_.try_emplace(&value, value.type());
    if (fresh && has_open(value.type())) known->second = named(value.type());
    return known->second;
  }
  static bool has_open(const Type& type) {
    return type.is_tensor() && type.shape().ranked() && !std::ranges::all_of(type.shape().dims(), &Dim::known);
  }

 private:
  Type named(const Type& type) const {
    std::vector<Dim> dims(type.shape().dims());
    for (Dim& dim : dims)
      if (!dim.known()) dim = Dim(Expr::symbol(str("open", count_++)));
    return Type(type.element(), Shape(std::move(dims)));
  }
  mutable std::unordered_map<const Value*, Type> made_;
  mutable int count_ = 0;
};

}  // namespace

Result<std::unique_ptr<Graph>> with_value(const Op& op, size_t operand, const Tensor& value, const TypeSource& types) {
  auto graph = std::make_unique<Graph>(op.name().str());
  Value* constant = Builder(graph->body()).constant(value);
  return rebuilt(std::move(graph), op, {{op.operand(operand), constant}}, types);
}

Result<std::unique_ptr<Graph>> with_types(const Op& op, const TypeSource& types) {
  return rebuilt(std::make_unique<Graph>(op.name().str()), op, {}, types);
}

const Op& only_op(const Graph& graph) {
  const Op* last = nullptr;  // constants are before it
  for (const Op& op : graph.body()) last = &op;
  TENON_CHECK(last, "graph '", graph.name(), "' holds no operator");
  return *last;
}

Result<Body> usual_body(const Op& op) {
  const auto open = [](const Value* value) { return value && OpenTypes::has_open(value->type()); };
  const auto operand = unknown_operand(op);
  const bool known = !operand && !std::ranges::any_of(op.operands(), open);
  if (known || op.region_count() != 0 || op.result_count() == 0) return make_body(op);
  const OpenTypes types;
  if (!operand) {
    TENON_TRY(alone, with_types(op, types));
    return make_body(only_op(*alone));
  }
  if (!op.operand(0)->type().shape().ranked())
    return error(Code::unsupported, op.describe(), " takes a tensor of unknown rank");
  TENON_TRY(alone, with_value(op, *operand, find_decomposition(op.name())->usual_value(op), types));
  return make_body(only_op(*alone));
}

}  // namespace tenon::snippet
