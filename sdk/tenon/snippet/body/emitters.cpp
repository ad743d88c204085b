#include <tenon/snippet/body/emitters.hpp>

#include <algorithm>

#include <tenon/support/inline_vector.hpp>
#include <tenon/support/str.hpp>

namespace tenon::snippet {
namespace {

// Types of a node's operands and result; borrowed by its signature.
struct NodeTypes {
  InlineVector<ElementType, 4> in, out;
  NodeTypes(const Body& body, const BodyNode& node) {
    const auto type = [&](ValueId id) { return body.values[static_cast<size_t>(id)].element; };
    for (const ValueId operand : node.operands) in.push_back(type(operand));
    out.push_back(type(node.result));
  }
};

}  // namespace

const codegen::JitterRow* find_node_row(const codegen::Signature& node, const codegen::JitterTable& table,
                                        const TargetDescription& target) {
  const std::optional<Name> fold = fold_of(node.op);
  if (!fold) return table.find(node, target);
  const ElementType twice[] = {node.in.front(), node.in.front()};
  return table.find({*fold, twice, node.out, node.attributes}, target);
}

bool can_emit_node(const codegen::Signature& node, const codegen::JitterTable& table, const TargetDescription& target) {
  return node.op == "Scalar" || node.op == "ReducedCount" || find_node_row(node, table, target);
}

const codegen::JitterRow* row_of_node(const Body& body, const BodyNode& node, const codegen::JitterTable& table,
                                      const TargetDescription& target) {
  const NodeTypes types(body, node);
  return find_node_row({node.op, types.in, types.out, node.attributes}, table, target);
}

std::string why_not_emit(const Body& body, const codegen::JitterTable& table, const TargetDescription& target) {
  for (const BodyNode& node : body.nodes) {
    const NodeTypes types(body, node);
    if (can_emit_node({node.op, types.in, types.out, node.attributes}, table, target)) continue;
    return str("no emitter for ", node.op, " from ", types.in, " to ", types.out[0]);
  }
  return {};
}

double cycles_of_node(const Body& body, const BodyNode& node, const codegen::JitterTable& table,
                      const TargetDescription& target) {
  const codegen::JitterRow* row = row_of_node(body, node, table, target);
  return row ? row->cycles : 0;
}

double cycles_per_element(const Body& body, int lanes, const codegen::JitterTable& table,
                          const TargetDescription& target) {
  const DimSet all = body.all_dims();
  const auto each = [&](ValueId id) { return body.values[static_cast<size_t>(id)].varies == all; };
  double cycles = 0;
  // A reduction's operand is the one that varies.
  for (const BodyNode& node : body.nodes)
    if (each(node.result) || std::any_of(node.operands.begin(), node.operands.end(), each))
      cycles += cycles_of_node(body, node, table, target);
  for (const std::vector<BodyPort>* ports : {&body.inputs, &body.outputs})
    for (const BodyPort& port : *ports) cycles += each(port.value);
  return cycles / lanes;
}

}  // namespace tenon::snippet
