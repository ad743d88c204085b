// Internal to the room: the importer. One per model.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/onnx/attribute_proto_internal.hpp>
#include <tenon/onnx/function_table_internal.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/onnx/tensor_proto_internal.hpp>
#include <tenon/onnx/upgrade_internal.hpp>

namespace tenon::onnx {

// The names that are visible to the nodes of one graph (or one function call).
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, Value*> values = {};
  std::unordered_map<std::string_view, const format::TypeProto*> declared = {};

  // Null when there is no such name; the value itself may be null: an input that the caller omitted.
  Value* const* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->outer) {
      if (const auto found = scope->values.find(name); found != scope->values.end()) return &found->second;
    }
    return nullptr;
  }
};

// One activation of a function, or the main graph.
struct Frame {
  // An attribute given by the call, with the scope and frame in which a graph in it is to be read.
  struct Binding {
    const format::AttributeProto* attribute;
    const Frame* frame;
    const Scope* scope;
  };
  const Opsets* opsets;
  std::map<std::string_view, Binding> attributes = {};
  std::string prefix = {};  // for labels and names that come from a function
  size_t depth = 0;
};

Result<void> check_text(std::string_view text, std::string_view what);

// Indices of nodes, producers first. The format requires this order, but many writers do not keep it. The order of the
// file is kept where it is valid. A cycle is an error naming its nodes.
Result<std::vector<int>> order_of(const NodeList& nodes);

// Checks that each input, initializer and node output has a unique name. An initializer may share its name with an
// input, whose value it is. Otherwise an error says where the two are. Graphs inside nodes are not checked.
Result<void> check_made_once(const format::GraphProto& graph);
Result<void> check_made_once(const format::FunctionProto& function);

class Importer {
 public:
  Importer(format::ModelProto& model, const ImportOptions& options, ExternalData* external);
  Result<std::unique_ptr<Graph>> run();

 private:
  using AttributeProto = format::AttributeProto;
  using FunctionProto = format::FunctionProto;
  using GraphProto = format::GraphProto;
  using NodeProto = format::NodeProto;

  Result<void> check_survey(const Opsets& opsets);
  Error over_budget(uint64_t nodes, uint64_t stored) const;
  void write_properties(Graph& graph, const Opsets& opsets) const;
  template <class Proto>
  Result<Tensor> taken(const Proto& proto, Result<Tensor> (*take)(Proto&, ExternalData*));

  // ---- Graphs ----

  // The name must be new in the scope, which check_made_once() ensures.
  Result<void> define(Scope& scope, std::string_view name, Value* value);
  Result<void> declare(Scope& scope, const GraphProto& graph);
  // Merges the value's type with what the file declares for its name.
  Result<void> apply_declared(const Scope& scope, std::string_view name, Value* value);
  Result<void> import_graph(const GraphProto& graph, Region& region, const Scope* outer, const Frame& frame,
                            size_t depth);
  // Whether a run may replace the initializer of an input. Before IR version 4, all initializers had to be listed as
  // inputs.
  bool stays_input() const;
  Result<void> import_inputs(const GraphProto& graph, Region& region, Scope& scope, const Frame& frame);
  Result<void> import_initializers(const GraphProto& graph, Region& region, Scope& scope, const Frame& frame);
  Result<void> import_nodes(const NodeList& nodes, Region& region, Scope& scope, const Frame& frame, size_t depth);

  // ---- Nodes ----

  Result<std::vector<Value*>> operands_of(const NodeProto& node, const Scope& scope);
  // The attribute itself, or what the enclosing call binds to the one that it refers to; null when the call gives none.
  static std::optional<Frame::Binding> resolve(const AttributeProto& attribute, const Frame& frame, const Scope& scope);
  struct NodeAttributes {
    Attributes plain;
    std::map<std::string, Frame::Binding> graphs;  // by name
  };
  Result<NodeAttributes> attributes_of(const NodeProto& node, const Frame& frame, const Scope& scope);
  // Up to the last named result; all of them for operators whose results are variadic.
  static size_t result_count(const NodeProto& node);
  Result<void> import_node(const NodeProto& node, Region& region, Scope& scope, const Frame& frame, size_t depth);
  Result<std::vector<Value*>> import_gradient(std::span<Value* const> operands, const Attributes& attributes,
                                              Builder& builder, const Scope& scope);
  // Defines the results under the node's output names and merges their types with the declared ones. Operands that are
  // returned unchanged keep their own names.
  Result<void> define_results(const NodeProto& node, std::span<Value* const> values, std::span<Value* const> operands,
                              Scope& scope, const Frame& frame);
  Result<void> infer(Op& op);
  Result<void> import_regions(Op& op, const std::map<std::string, Frame::Binding>& graphs, size_t depth);
  // Before opset 9, Scan ran once for each sample of a batch (axis 0) along axis 1. It is imported as a Scan along the
  // batch around a Scan along the sequence.
  Result<std::vector<Value*>> import_batched_scan(const UpgradeNode& node,
                                                  const std::map<std::string, Frame::Binding>& graphs, size_t depth);
  Result<void> inline_call(const NodeProto& call, const FunctionProto& function, Region& region, Scope& scope,
                           const Frame& frame, size_t depth);

  format::ModelProto& model_;
  const ImportOptions& options_;
  ExternalData* external_;
  TensorSource source_;
  FunctionTable functions_;
  std::unordered_map<const void*, Tensor> taken_;
  uint64_t budget_ = 0;
  uint64_t nodes_made_ = 0;
  size_t calls_ = 0;
};

}  // namespace tenon::onnx
