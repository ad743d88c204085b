#include <set>

#include <tenon/ir/infer.hpp>
#include <tenon/onnx/import_internal.hpp>
#include <tenon/onnx/regions_internal.hpp>
#include <tenon/onnx/type_proto_internal.hpp>

namespace tenon::onnx {

Result<void> Importer::define(Scope& scope, std::string_view name, Value* value) {
  TENON_OK(check_text(name, "the value name"));
  scope.values.emplace(name, value);
  return {};
}

Result<void> Importer::declare(Scope& scope, const GraphProto& graph) {
  for (const auto& info : graph.value_info()) scope.declared.emplace(info.name(), &info.type());
  for (const auto& info : graph.output()) scope.declared.emplace(info.name(), &info.type());
  return {};
}

Result<void> Importer::apply_declared(const Scope& scope, std::string_view name, Value* value) {
  const auto found = scope.declared.find(name);
  if (found == scope.declared.end()) return {};
  TENON_TRY(declared, read_type(*found->second), "the declared type of ", quote(name));
  const Op* op = value->producer();
  TENON_TRY(merged, op ? merge_at(*op, value->type(), declared) : merge(value->type(), declared), "value ", quote(name),
            ": its type against the declared one");
  value->set_type(std::move(merged));
  return {};
}

Result<void> Importer::import_graph(const GraphProto& graph, Region& region, const Scope* outer, const Frame& frame,
                                    size_t depth) {
  if (depth > options_.max_depth) {
    return error(Code::resource_exhausted, "subgraphs are nested more than ", options_.max_depth, " deep");
  }
  TENON_OK(check_text(graph.name(), "the graph name"));
  TENON_OK(check_made_once(graph), "graph '", graph.name(), "'");
  Scope scope{outer};
  TENON_OK(declare(scope, graph));
  TENON_OK(import_inputs(graph, region, scope, frame));
  TENON_OK(import_initializers(graph, region, scope, frame));
  TENON_OK(import_nodes(graph.node(), region, scope, frame, depth));
  std::set<std::string_view> names;
  for (const auto& output : graph.output()) {
    Value* const* value = scope.find(output.name());
    if (!value || !*value) {
      return error(Code::invalid_argument, "output ", quote(output.name()), " of graph '", graph.name(),
                   "' is made by nothing");
    }
    if (!names.insert(output.name()).second) {
      return error(Code::invalid_argument, "output ", quote(output.name()), " of graph '", graph.name(),
                   "' is there twice");
    }
    // What a branch declares about an outer value holds only in that branch.
    if ((*value)->region() == &region) TENON_OK(apply_declared(scope, output.name(), *value));
    region.add_output(*value, frame.prefix + output.name());
  }
  return {};
}

bool Importer::stays_input() const { return options_.keep_overridable_inputs && model_.ir_version() >= 4; }

Result<void> Importer::import_inputs(const GraphProto& graph, Region& region, Scope& scope, const Frame& frame) {
  std::set<std::string_view> initialized;
  if (!stays_input()) {
    for (const auto& tensor : graph.initializer()) initialized.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) initialized.insert(tensor.values().name());
  }
  for (const auto& input : graph.input()) {
    TENON_TRY(declared, read_type(input.type()), "the type of input ", quote(input.name()));
    if (initialized.contains(input.name())) {
      scope.declared.emplace(input.name(), &input.type());
      continue;
    }
    if (region.parent()) {
      TENON_TRY(merged, merge(declared, region_input_type(*region.parent(), region.input_count())), "input ",
                quote(input.name()), " of graph '", graph.name(), "'");
      declared = std::move(merged);
    }
    Value* value = region.add_input(frame.prefix + input.name(), std::move(declared));
    TENON_OK(define(scope, input.name(), value), "input ", region.input_count() - 1);
  }
  return {};
}

Result<void> Importer::import_initializers(const GraphProto& graph, Region& region, Scope& scope, const Frame& frame) {
  Builder builder(region);
  const auto add = [&](const std::string& name, Tensor tensor) -> Result<void> {
    Value* value = builder.constant(std::move(tensor), frame.prefix + name);
    TENON_OK(define(scope, name, value), "initializer");
    return apply_declared(scope, name, value);
  };
  for (const auto& proto : graph.initializer()) {
    if (stays_input() && scope.values.contains(proto.name())) continue;
    TENON_TRY(tensor, source_.tensor(proto), "initializer of graph '", graph.name(), "'");
    TENON_OK(add(proto.name(), std::move(tensor)));
  }
  for (const auto& proto : graph.sparse_initializer()) {
    if (stays_input() && scope.values.contains(proto.values().name())) continue;
    const std::string& name = proto.values().name();  // scopes hold views of the names in the message
    TENON_TRY(tensor, source_.sparse(proto), "sparse initializer of graph '", graph.name(), "'");
    TENON_OK(add(name, std::move(tensor)));
  }
  return {};
}

Result<void> Importer::import_nodes(const NodeList& nodes, Region& region, Scope& scope, const Frame& frame,
                                    size_t depth) {
  TENON_TRY(order, order_of(nodes));
  for (const int i : order) {
    const NodeProto& node = nodes[i];
    const FunctionProto* function = functions_.find(node);
    TENON_OK(function ? inline_call(node, *function, region, scope, frame, depth)
                      : import_node(node, region, scope, frame, depth),
             describe_node(node, i));
  }
  return {};
}

}  // namespace tenon::onnx
