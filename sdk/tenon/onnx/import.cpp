#include <tenon/onnx/import.hpp>

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/onnx/attribute_proto_internal.hpp>
#include <tenon/onnx/function_table_internal.hpp>
#include <tenon/onnx/gradient_internal.hpp>
#include <tenon/onnx/model_file_internal.hpp>
#include <tenon/onnx/regions_internal.hpp>
#include <tenon/onnx/tensor_proto_internal.hpp>
#include <tenon/onnx/type_proto_internal.hpp>
#include <tenon/onnx/upgrade_internal.hpp>

namespace tenon {
namespace onnx {
namespace {

using format::AttributeProto;
using format::FunctionProto;
using format::GraphProto;
using format::ModelProto;
using format::NodeProto;

constexpr int64_t kOldestIr = 3, kNewestIr = 13;
// A file may ask for this many times its own nodes, or this many in all, whichever is more.
constexpr uint64_t kInlineFactor = 64, kInlineFloor = 20'000;

const Name kScan("Scan");
constexpr int64_t kUnbatchedScan = 9;

// The names that the nodes of one graph (or one function call) may use.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, Value*> values = {};
  std::unordered_map<std::string_view, const format::TypeProto*> declared = {};

  // Null when nothing of that name is there; the value itself may be null: an input that the caller left out.
  Value* const* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->outer) {
      if (const auto found = scope->values.find(name); found != scope->values.end()) return &found->second;
    }
    return nullptr;
  }
};

// One activation of a function, or the main graph.
struct Frame {
  // An attribute that the call gives, with the surroundings in which a graph in it is to be read.
  struct Binding {
    const AttributeProto* attribute;
    const Frame* frame;
    const Scope* scope;
  };
  const Opsets* opsets;
  std::map<std::string_view, Binding> attributes = {};
  std::string prefix = {};  // for labels and names of what comes from a function
  size_t depth = 0;
};

Result<void> check_text(std::string_view text, std::string_view what) {
  if (!is_utf8(text)) return error(Code::parse, what, " ", quote(text), " is not UTF-8");
  return {};
}

// ---- The order of nodes ----

void names_read(const GraphProto& graph, std::vector<std::string_view>& out);
// Of a node and the graphs inside it.
void names_read(const NodeProto& node, std::vector<std::string_view>& out) {
  for (const auto& name : node.input()) out.push_back(name);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) names_read(attribute.g(), out);
    for (const auto& graph : attribute.graphs()) names_read(graph, out);
  }
}
// What a graph takes from around it: names that it makes itself are its own, even where they are used outside, too.
void names_read(const GraphProto& graph, std::vector<std::string_view>& out) {
  std::unordered_set<std::string_view> made;
  for (const auto& input : graph.input()) made.insert(input.name());
  for (const auto& tensor : graph.initializer()) made.insert(tensor.name());
  std::vector<std::string_view> read;
  for (const auto& node : graph.node()) {
    made.insert(node.output().begin(), node.output().end());
    names_read(node, read);
  }
  for (const auto& output : graph.output()) read.push_back(output.name());
  std::copy_if(read.begin(), read.end(), std::back_inserter(out),
               [&](std::string_view name) { return !made.contains(name); });
}

// The format asks for producers first; many writers forget. The order of the file is kept where it is good.
Result<std::vector<int>> order_of(const NodeList& nodes) {
  std::unordered_map<std::string_view, int> makers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const auto& name : nodes[i].output()) {
      if (!name.empty()) makers.emplace(name, i);
    }
  }
  std::vector<std::vector<int>> users(static_cast<size_t>(nodes.size()));
  std::vector<int> waits(static_cast<size_t>(nodes.size()), 0);
  bool in_order = true;
  std::vector<std::string_view> read;
  for (int i = 0; i < nodes.size(); ++i) {
    read.clear();
    names_read(nodes[i], read);
    for (const std::string_view name : read) {
      const auto maker = makers.find(name);
      if (maker == makers.end()) continue;
      in_order = in_order && maker->second < i;
      users[static_cast<size_t>(maker->second)].push_back(i);
      ++waits[static_cast<size_t>(i)];
    }
  }
  std::vector<int> order;
  order.reserve(static_cast<size_t>(nodes.size()));
  if (in_order) {
    for (int i = 0; i < nodes.size(); ++i) order.push_back(i);
    return order;
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (waits[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const int user : users[static_cast<size_t>(next)]) {
      if (--waits[static_cast<size_t>(user)] == 0) ready.push(user);
    }
  }
  if (static_cast<int>(order.size()) == nodes.size()) return order;
  std::string names;
  int shown = 0;
  for (int i = 0; i < nodes.size() && shown < 4; ++i) {
    if (waits[static_cast<size_t>(i)] > 0) names += str(shown++ ? ", " : "", describe_node(nodes[i], i));
  }
  return error(Code::invalid_argument, "the graph has a cycle: each of these waits for the others: ", names);
}

// ---- The importer ----

class Importer {
 public:
  Importer(ModelProto& model, const ImportOptions& options, ExternalData* external)
      : model_(model), options_(options), external_(external) {
    // Tensors are taken out of the message; one that is met again (in a function called twice) is shared.
    source_.tensor = [this](const format::TensorProto& proto) { return taken(proto, take_tensor); };
    source_.sparse = [this](const format::SparseTensorProto& proto) { return taken(proto, take_sparse_tensor); };
  }

  Result<std::unique_ptr<Graph>> run() {
    if (!model_.has_graph()) return error(Code::parse, "it has no graph: it is no ONNX model");
    if (model_.ir_version() < kOldestIr || model_.ir_version() > kNewestIr) {
      return error(Code::unsupported, "IR version ", model_.ir_version(), " is outside ", kOldestIr, " to ", kNewestIr);
    }
    TENON_TRY(opsets, read_opsets(model_.opset_import()));
    if (opsets.empty()) return error(Code::invalid_argument, "it imports no operator set");
    TENON_TRY(functions, FunctionTable::build(model_));
    functions_ = std::move(functions);
    TENON_OK(check_survey(opsets));

    auto graph = std::make_unique<Graph>(model_.graph().name());
    write_properties(*graph, opsets);
    const Frame frame{&opsets};
    TENON_OK(import_graph(model_.graph(), graph->body(), nullptr, frame, 0));
    TENON_OK(verify(*graph, {.allow_unknown_ops = options_.allow_unknown_ops, .require_types = false}),
             "checking the graph");
    return graph;
  }

 private:
  Result<void> check_survey(const Opsets& opsets) {
    TENON_TRY(survey, functions_.survey(model_.graph().node(), opsets, options_.max_depth));
    budget_ =
        options_.max_inlined_nodes ? options_.max_inlined_nodes : std::max(kInlineFloor, kInlineFactor * survey.stored);
    if (survey.nodes > budget_) return over_budget(survey.nodes, survey.stored);
    if (!survey.unknown_ops.empty() && !options_.allow_unknown_ops) {
      std::string names;
      for (const std::string& op : survey.unknown_ops) names += (names.empty() ? "" : ", ") + op;
      return error(Code::unsupported, "no operator ", names, "; load the plugin that brings it");
    }
    return {};
  }

  Error over_budget(uint64_t nodes, uint64_t stored) const {
    return error(Code::resource_exhausted, "inlining its functions makes ", nodes, " nodes of ", stored,
                 "; the budget is ", budget_, " (ImportOptions::max_inlined_nodes raises it)");
  }

  void write_properties(Graph& graph, const Opsets& opsets) const {
    auto& properties = graph.properties();
    const auto note = [&](const std::string& key, const std::string& text) {
      if (!text.empty()) properties[key] = text;
    };
    note("ir_version", str(model_.ir_version()));
    for (const auto& [domain, version] : opsets) note("opset." + (domain.empty() ? "ai.onnx" : domain), str(version));
    note("producer_name", model_.producer_name());
    note("producer_version", model_.producer_version());
    note("domain", model_.domain());
    if (model_.has_model_version()) note("model_version", str(model_.model_version()));
    note("doc_string", model_.doc_string());
    note("graph.doc_string", model_.graph().doc_string());
    for (const auto& entry : model_.metadata_props()) properties["metadata." + entry.key()] = entry.value();
  }

  template <class Proto>
  Result<Tensor> taken(const Proto& proto, Result<Tensor> (*take)(Proto&, ExternalData*)) {
    if (const auto found = taken_.find(&proto); found != taken_.end()) return found->second;
    // The message is ours (model_), only the way to it is const.
    TENON_TRY(tensor, take(const_cast<Proto&>(proto), external_));
    taken_.emplace(&proto, tensor);
    return tensor;
  }

  // ---- Graphs ----

  Result<void> define(Scope& scope, std::string_view name, Value* value) {
    TENON_OK(check_text(name, "the value name"));
    if (!scope.values.emplace(name, value).second) {
      return error(Code::invalid_argument, "value ", quote(name), " is made twice in one graph");
    }
    return {};
  }

  Result<void> declare(Scope& scope, const GraphProto& graph) {
    for (const auto& info : graph.value_info()) scope.declared.emplace(info.name(), &info.type());
    for (const auto& info : graph.output()) scope.declared.emplace(info.name(), &info.type());
    return {};
  }

  // The value's type, joined with what the file declares for its name.
  Result<void> apply_declared(const Scope& scope, std::string_view name, Value* value) {
    const auto found = scope.declared.find(name);
    if (found == scope.declared.end()) return {};
    TENON_TRY(declared, read_type(*found->second), "the declared type of ", quote(name));
    const Op* op = value->producer();
    TENON_TRY(merged, op ? merge_at(*op, value->type(), declared) : merge(value->type(), declared), "value ",
              quote(name), ": its type against the declared one");
    value->set_type(std::move(merged));
    return {};
  }

  Result<void> import_graph(const GraphProto& graph, Region& region, const Scope* outer, const Frame& frame,
                            size_t depth) {
    if (depth > options_.max_depth) {
      return error(Code::resource_exhausted, "subgraphs are nested more than ", options_.max_depth, " deep");
    }
    TENON_OK(check_text(graph.name(), "the graph name"));
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
      // What a branch says of a value from around it holds in that branch alone.
      if ((*value)->region() == &region) TENON_OK(apply_declared(scope, output.name(), *value));
      region.add_output(*value, frame.prefix + output.name());
    }
    return {};
  }

  // Is the initializer of this name one that a run may replace? Before IR version 4 all of them had to be listed as
  // inputs.
  bool stays_input() const { return options_.keep_overridable_inputs && model_.ir_version() >= 4; }

  Result<void> import_inputs(const GraphProto& graph, Region& region, Scope& scope, const Frame& frame) {
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

  Result<void> import_initializers(const GraphProto& graph, Region& region, Scope& scope, const Frame& frame) {
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

  Result<void> import_nodes(const NodeList& nodes, Region& region, Scope& scope, const Frame& frame, size_t depth) {
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

  // ---- Nodes ----

  Result<std::vector<Value*>> operands_of(const NodeProto& node, const Scope& scope) {
    std::vector<Value*> operands;
    for (const auto& name : node.input()) {
      Value* const* value = name.empty() ? nullptr : scope.find(name);
      if (!name.empty() && !value) return error(Code::invalid_argument, "input ", quote(name), " is made by nothing");
      operands.push_back(value ? *value : nullptr);
    }
    while (!operands.empty() && !operands.back()) operands.pop_back();
    return operands;
  }

  // The attribute itself, or what the call around binds to the one that it refers to; null when the call gives none.
  static std::optional<Frame::Binding> resolve(const AttributeProto& attribute, const Frame& frame,
                                               const Scope& scope) {
    if (attribute.ref_attr_name().empty()) return Frame::Binding{&attribute, &frame, &scope};
    const auto found = frame.attributes.find(attribute.ref_attr_name());
    if (found == frame.attributes.end()) return std::nullopt;
    return found->second;
  }

  struct NodeAttributes {
    Attributes plain;
    std::map<std::string, Frame::Binding> graphs;  // by name
  };
  Result<NodeAttributes> attributes_of(const NodeProto& node, const Frame& frame, const Scope& scope) {
    NodeAttributes out;
    std::set<std::string_view> names;
    for (const auto& attribute : node.attribute()) {
      TENON_OK(check_text(attribute.name(), "the attribute name"));
      if (!names.insert(attribute.name()).second) {
        return error(Code::invalid_argument, "attribute ", quote(attribute.name()), " is there twice");
      }
      const auto binding = resolve(attribute, frame, scope);
      if (!binding) continue;
      if (holds_graphs(*binding->attribute)) {
        if (!binding->attribute->has_g())
          return error(Code::unsupported, "attribute '", attribute.name(), "' is a list of graphs");
        out.graphs.emplace(attribute.name(), *binding);
        continue;
      }
      TENON_TRY(value, read_attribute(*binding->attribute, source_), "attribute '", attribute.name(), "'");
      out.plain.set(attribute.name(), std::move(value));
    }
    return out;
  }

  // Up to the last that is named; all where each of any number counts.
  static size_t result_count(const NodeProto& node) {
    int count = node.output_size();
    const OpDef* def = find_op(full_name(node.domain(), node.op_type()));
    if (def && def->max_results() == SIZE_MAX) return static_cast<size_t>(count);
    while (count > 0 && node.output(count - 1).empty()) --count;
    return static_cast<size_t>(count);
  }

  Result<void> import_node(const NodeProto& node, Region& region, Scope& scope, const Frame& frame, size_t depth) {
    TENON_OK(check_text(node.op_type(), "the operator name"));
    TENON_OK(check_text(node.name(), "the node name"));
    if (node.op_type().empty()) return error(Code::invalid_argument, "it has no operator");
    if (++nodes_made_ > budget_) return over_budget(nodes_made_, budget_);
    const std::string_view domain = plain_domain(node.domain());
    const auto opset = frame.opsets->find(domain);
    if (opset == frame.opsets->end()) {
      return error(Code::invalid_argument, "its domain '", domain.empty() ? "ai.onnx" : domain,
                   "' is not among the operator sets imported");
    }
    TENON_TRY(operands, operands_of(node, scope));
    TENON_TRY(attributes, attributes_of(node, frame, scope));

    Builder builder(region);
    builder.set_name_prefix(frame.prefix + node.name());
    if (full_name(domain, node.op_type()) == kGradientOp) {
      TENON_TRY(gradients, import_gradient(operands, attributes.plain, builder, scope));
      return define_results(node, gradients, operands, scope, frame);
    }
    UpgradeNode upgraded{Name(full_name(domain, node.op_type())),
                         opset->second,
                         std::move(operands),
                         std::move(attributes.plain),
                         result_count(node),
                         static_cast<size_t>(node.output_size()),
                         builder};
    TENON_OK(upgrade(upgraded), "upgrading it from opset ", opset->second);
    if (!upgraded.made.empty()) return define_results(node, upgraded.made, upgraded.operands, scope, frame);
    if (upgraded.op == kScan && upgraded.version < kUnbatchedScan) {
      TENON_TRY(results, import_batched_scan(upgraded, attributes.graphs, depth));
      return define_results(node, results, {}, scope, frame);
    }

    while (!upgraded.operands.empty() && !upgraded.operands.back()) upgraded.operands.pop_back();
    TENON_OK(numbers_to_types(upgraded.op, upgraded.attributes));
    Op& op = builder.create(upgraded.op, upgraded.operands, upgraded.results, std::move(upgraded.attributes));
    TENON_OK(import_regions(op, attributes.graphs, depth));
    std::vector<Value*> results;
    for (size_t i = 0; i < op.result_count(); ++i) results.push_back(op.result(i));
    TENON_OK(define_results(node, results, {}, scope, frame));
    return infer(op);
  }

  Result<std::vector<Value*>> import_gradient(std::span<Value* const> operands, const Attributes& attributes,
                                              Builder& builder, const Scope& scope) {
    const auto named = [&](const std::string& name) -> Result<Value*> {
      Value* const* value = scope.find(name);
      if (!value || !*value)
        return error(Code::invalid_argument, "it names value ", quote(name), ", which is made by nothing before it");
      return *value;
    };
    const auto list = [&](Name attribute) -> Result<std::vector<Value*>> {
      std::vector<Value*> values;
      const Attribute* names = attributes.find(attribute);
      if (!names || !names->get_if<Attribute::Texts>()) return values;
      for (const std::string& name : *names->get_if<Attribute::Texts>()) {
        TENON_TRY(value, named(name));
        values.push_back(value);
      }
      return values;
    };
    TENON_TRY(xs, list("xs"));
    TENON_TRY(zs, list("zs"));
    const Attribute* target = attributes.find("y");
    if (!target || !target->get_if<std::string>())
      return error(Code::invalid_argument, "it has no text in its attribute 'y'");
    TENON_TRY(y, named(*target->get_if<std::string>()));
    return expand_gradient(builder, xs, zs, y, operands);
  }

  // Defines the results under the node's output names and joins their types with the declared ones. Operands that come
  // out as they are keep their own names.
  Result<void> define_results(const NodeProto& node, std::span<Value* const> values, std::span<Value* const> operands,
                              Scope& scope, const Frame& frame) {
    for (size_t i = 0; i < values.size() && i < static_cast<size_t>(node.output_size()); ++i) {
      const std::string& name = node.output(static_cast<int>(i));
      if (name.empty() || !values[i]) continue;
      TENON_OK(define(scope, name, values[i]), "output ", i);
      const bool passed = std::find(operands.begin(), operands.end(), values[i]) != operands.end();
      if (!passed) values[i]->set_name(frame.prefix + name);
      TENON_OK(apply_declared(scope, name, values[i]));
    }
    return {};
  }

  Result<void> infer(Op& op) {
    if (options_.allow_unknown_ops) {
      bool known = op.def() != nullptr;
      for (const Value* operand : op.operands()) known = known && (!operand || operand->type().known());
      if (!known) return {};
    }
    return infer_result_types(op);
  }

  Result<void> import_regions(Op& op, const std::map<std::string, Frame::Binding>& graphs, size_t depth) {
    const auto import_one = [&](const std::string& name, const Frame::Binding& binding) -> Result<void> {
      TENON_OK(import_graph(binding.attribute->g(), op.add_region(), binding.scope, *binding.frame, depth + 1),
               "graph '", name, "'");
      return {};
    };
    const auto names = region_names(op.name());
    if (!names) {
      for (const auto& [name, binding] : graphs) TENON_OK(import_one(name, binding));
      return {};
    }
    for (const RegionName& name : *names) {
      const auto found = graphs.find(std::string(name.attribute));
      if (found != graphs.end()) {
        TENON_OK(import_one(found->first, found->second));
      } else if (name.optional) {
        Region& region = op.add_region();
        region.add_output(region.add_input("x", left_out_input_type(op)), "x");
      } else {
        return error(Code::invalid_argument, "it has no graph '", name.attribute, "'");
      }
    }
    return {};
  }

  // Before opset 9, Scan ran once for each sample of a batch (axis 0) along axis 1. Now it is a Scan along the batch
  // around a Scan along the sequence.
  Result<std::vector<Value*>> import_batched_scan(const UpgradeNode& node,
                                                  const std::map<std::string, Frame::Binding>& graphs, size_t depth) {
    if (node.operand(0)) return error(Code::unsupported, "Scan of opset 8 with sequence_lens is not supported");
    if (node.operands.empty()) return error(Code::invalid_argument, "it has no operands");
    const std::vector<Value*> operands(node.operands.begin() + 1, node.operands.end());
    Op& batch = node.builder.create(kScan, operands, node.results, {{"num_scan_inputs", operands.size()}});
    Region& body = batch.add_region();
    for (size_t i = 0; i < operands.size(); ++i) body.add_input(str("sample_", i), region_input_type(batch, i));

    Attributes attributes{{"num_scan_inputs", node.attr<int64_t>("num_scan_inputs")}};
    if (const Attribute* directions = node.attributes.find("directions"))
      attributes.set("scan_input_directions", *directions);
    std::vector<Value*> samples;
    for (size_t i = 0; i < operands.size(); ++i) samples.push_back(body.input(i));
    Op& sequence = Builder(body).create(kScan, samples, node.results, std::move(attributes));
    TENON_OK(import_regions(sequence, graphs, depth + 1));
    TENON_OK(infer(sequence));
    std::vector<Value*> results;
    for (size_t i = 0; i < node.results; ++i) {
      body.add_output(sequence.result(i), str("result_", i));
      results.push_back(batch.result(i));
    }
    TENON_OK(infer(batch));
    return results;
  }

  // ---- Functions ----

  Result<void> inline_call(const NodeProto& call, const FunctionProto& function, Region& region, Scope& scope,
                           const Frame& frame, size_t depth) {
    const std::string name = full_name(function.domain(), function.name());
    if (frame.depth >= options_.max_depth) {
      return error(Code::resource_exhausted, "function calls are nested more than ", options_.max_depth, " deep");
    }
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
      return error(Code::invalid_argument, "the call has ", call.input_size(), " inputs and ", call.output_size(),
                   " outputs; function '", name, "' has ", function.input_size(), " and ", function.output_size());
    }
    Frame inner{&functions_.opsets(function)};
    inner.depth = frame.depth + 1;
    inner.prefix = str(frame.prefix, call.name().empty() ? str(call.op_type(), "_", ++calls_) : call.name(), "/");
    for (const auto& attribute : call.attribute()) {
      if (const auto binding = resolve(attribute, frame, scope)) inner.attributes.emplace(attribute.name(), *binding);
    }
    for (const auto& attribute : function.attribute_proto()) {
      inner.attributes.emplace(attribute.name(), Frame::Binding{&attribute, &frame, &scope});
    }
    for (const auto& attribute : function.attribute()) {
      if (!inner.attributes.contains(attribute)) {
        return error(Code::invalid_argument, "the call lacks attribute '", attribute, "' of function '", name, "'");
      }
    }
    TENON_TRY(operands, operands_of(call, scope));
    Scope body;
    for (int i = 0; i < function.input_size(); ++i) {
      const auto at = static_cast<size_t>(i);
      TENON_OK(define(body, function.input(i), at < operands.size() ? operands[at] : nullptr), "function '", name, "'");
    }
    TENON_OK(import_nodes(function.node(), region, body, inner, depth), "function '", name, "'");
    std::vector<Value*> results;
    for (const auto& output : function.output()) {
      Value* const* value = body.find(output);
      if (!value)
        return error(Code::invalid_argument, "output ", quote(output), " of function '", name, "' is made by nothing");
      results.push_back(*value);
    }
    return define_results(call, results, operands, scope, frame);
  }

  ModelProto& model_;
  const ImportOptions& options_;
  ExternalData* external_;
  TensorSource source_;
  FunctionTable functions_;
  std::unordered_map<const void*, Tensor> taken_;
  uint64_t budget_ = 0;
  uint64_t nodes_made_ = 0;
  size_t calls_ = 0;
};

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<std::unique_ptr<Graph>> import_message(ModelProto& model, const ImportOptions& options,
                                              const std::string& folder) {
  std::unique_ptr<ExternalData> external;
  if (!folder.empty()) {
    TENON_TRY(opened, ExternalData::open(folder));
    external = std::move(opened);
  }
  return Importer(model, options, external.get()).run();
}

}  // namespace
}  // namespace onnx

Result<std::unique_ptr<Graph>> import_model(const std::string& path, const ImportOptions& options) {
  onnx::format::ModelProto model;
  TENON_OK(onnx::parse_file(path, model));
  const std::string folder =
      options.external_data_folder.empty() ? onnx::folder_of(path) : options.external_data_folder;
  TENON_TRY(graph, onnx::import_message(model, options, folder), "model '", path, "'");
  return graph;
}

Result<std::unique_ptr<Graph>> import_model_bytes(std::span<const std::byte> bytes, const ImportOptions& options,
                                                  std::string_view where) {
  onnx::format::ModelProto model;
  TENON_OK(onnx::parse_message(bytes, where, model));
  TENON_TRY(graph, onnx::import_message(model, options, options.external_data_folder), where);
  return graph;
}

}  // namespace tenon
