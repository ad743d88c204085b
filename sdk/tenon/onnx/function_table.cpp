#include <tenon/onnx/function_table_internal.hpp>

#include <algorithm>
#include <vector>

#include <tenon/ir/op_def.hpp>
#include <tenon/onnx/attribute_proto_internal.hpp>
#include <tenon/onnx/gradient_internal.hpp>
#include <tenon/onnx/upgrade_internal.hpp>

namespace tenon::onnx {
namespace {

struct KnownDomain {
  std::string_view domain;
  int64_t newest;
};
constexpr KnownDomain kKnownDomains[] = {
    {"", kNewestOpset}, {"ai.onnx.ml", 5}, {"ai.onnx.preview", 1}, {"ai.onnx.preview.training", 1}};

uint64_t saturating_add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

}  // namespace

std::string_view plain_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

std::string full_name(std::string_view domain, std::string_view op) {
  domain = plain_domain(domain);
  return domain.empty() ? std::string(op) : str(domain, ".", op);
}

std::optional<int64_t> newest_opset(std::string_view domain) {
  const auto known = std::find_if(std::begin(kKnownDomains), std::end(kKnownDomains),
                                  [&](const KnownDomain& row) { return row.domain == plain_domain(domain); });
  return known == std::end(kKnownDomains) ? std::nullopt : std::optional(known->newest);
}

std::string describe_node(const format::NodeProto& node, int index) {
  std::string out = str("node ", index, " ", full_name(node.domain(), node.op_type()));
  if (!node.name().empty()) out += str(" '", node.name(), "'");
  return out;
}

Result<Opsets> read_opsets(const google::protobuf::RepeatedPtrField<format::OperatorSetIdProto>& imports) {
  Opsets opsets;
  for (const auto& import : imports) {
    const std::string_view domain = plain_domain(import.domain());
    const std::string_view shown = domain.empty() ? std::string_view("ai.onnx") : domain;
    const auto newest = newest_opset(domain);
    if (import.version() < 1)
      return error(Code::invalid_argument, "opset ", import.version(), " of ", shown, " does not exist");
    if (newest && import.version() > *newest) {
      return error(Code::unsupported, "opset ", import.version(), " of ", shown, " is newer than this Tenon knows (",
                   *newest, "); export the model for an older one");
    }
    const auto [at, added] = opsets.emplace(domain, import.version());
    if (!added && at->second != import.version()) {
      return error(Code::invalid_argument, "domain ", shown, " is imported twice, as opset ", at->second, " and ",
                   import.version());
    }
  }
  return opsets;
}

Result<FunctionTable> FunctionTable::build(const format::ModelProto& model) {
  FunctionTable table;
  for (const auto& function : model.functions()) {
    Key key(plain_domain(function.domain()), function.name(), function.overload());
    if (!table.functions_.emplace(std::move(key), &function).second) {
      return error(Code::invalid_argument, "function '", full_name(function.domain(), function.name()),
                   "' is there twice");
    }
    TENON_TRY(opsets, read_opsets(function.opset_import()), "function '", full_name(function.domain(), function.name()),
              "'");
    table.opsets_.emplace(&function, std::move(opsets));
  }
  return table;
}

const format::FunctionProto* FunctionTable::find(const format::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(Key(plain_domain(node.domain()), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

struct FunctionTable::Walk {
  const FunctionTable& table;
  size_t max_depth;
  struct Unknown {
    std::string node;  // the first of `count`
    std::string name;
    size_t count = 0;
  };
  std::map<std::string, Unknown> unknown;  // by domain and opset, too
  std::map<const format::FunctionProto*, uint64_t> counted;
  std::vector<const format::FunctionProto*> calls;  // those that are being counted

  Result<uint64_t> nodes_of(const NodeList& nodes, const Opsets& opsets, size_t depth) {
    if (depth > max_depth)
      return error(Code::resource_exhausted, "subgraphs are nested more than ", max_depth, " deep");
    uint64_t total = 0;
    for (int i = 0; i < nodes.size(); ++i) {
      const auto& node = nodes[i];
      for (const auto& attribute : node.attribute()) {
        const auto inside = [&](const format::GraphProto& graph) -> Result<void> {
          TENON_TRY(count, nodes_of(graph.node(), opsets, depth + 1), describe_node(node, i));
          total = saturating_add(total, count);
          return {};
        };
        if (!holds_graphs(attribute)) continue;
        if (attribute.has_g()) TENON_OK(inside(attribute.g()));
        for (const auto& graph : attribute.graphs()) TENON_OK(inside(graph));
      }
      if (const auto* function = table.find(node)) {
        TENON_TRY(count, nodes_of(*function), describe_node(node, i));
        total = saturating_add(total, count);
      } else {
        total = saturating_add(total, 1);
        note_unknown(node, i, opsets);
      }
    }
    return total;
  }

  Result<uint64_t> nodes_of(const format::FunctionProto& function) {
    if (const auto found = counted.find(&function); found != counted.end()) return found->second;
    const std::string name = full_name(function.domain(), function.name());
    if (std::find(calls.begin(), calls.end(), &function) != calls.end()) {
      return error(Code::invalid_argument, "function '", name, "' calls itself; recursion cannot be inlined");
    }
    if (calls.size() >= max_depth)
      return error(Code::resource_exhausted, "function calls are nested more than ", max_depth, " deep");
    calls.push_back(&function);
    TENON_TRY(count, nodes_of(function.node(), table.opsets(function), 0), "function '", name, "'");
    calls.pop_back();
    counted.emplace(&function, count);
    return count;
  }

  void note_unknown(const format::NodeProto& node, int number, const Opsets& opsets) {
    const std::string_view domain = plain_domain(node.domain());
    const std::string name = full_name(domain, node.op_type());
    if (node.op_type().empty() || name == kGradientOp || find_op(newest_name(name))) return;
    const auto opset = opsets.find(domain);
    const std::string version =
        opset == opsets.end() ? std::string("of which the model imports none") : str("opset ", opset->second);
    Unknown& entry = unknown[str(quote(node.op_type()), " (domain ", quote(domain.empty() ? "ai.onnx" : domain), ", ",
                                 version, ")")];
    if (entry.count++ == 0) entry.node = describe_node(node, number), entry.name = name;
  }

  std::vector<std::string> sentences() const {
    std::vector<std::string> known, all;
    for (const OpDef* def : all_ops()) known.push_back(def->name().str());
    for (const auto& [what, entry] : unknown) {
      const std::string near = nearest(entry.name, known);
      all.push_back(str(what, " of ", entry.node, entry.count > 1 ? str(", ", entry.count, " nodes in all") : "",
                        near.empty() ? "" : str(" (did you mean '", near, "'?)")));
    }
    return all;
  }
};

Result<FunctionTable::Survey> FunctionTable::survey(const NodeList& nodes, const Opsets& opsets,
                                                    size_t max_depth) const {
  Walk walk{*this, max_depth, {}, {}, {}};
  Survey survey;
  TENON_TRY(count, walk.nodes_of(nodes, opsets, 0));
  survey.nodes = count;
  survey.unknown_ops = walk.sentences();
  // The stored nodes: those of the main graph and of each function, where a call counts as one node.
  const auto stored = [](const auto& self, const NodeList& list) -> uint64_t {
    uint64_t total = static_cast<uint64_t>(list.size());
    for (const auto& node : list) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) total += self(self, attribute.g().node());
        for (const auto& graph : attribute.graphs()) total += self(self, graph.node());
      }
    }
    return total;
  };
  survey.stored = stored(stored, nodes);
  for (const auto& [key, function] : functions_) {
    if (walk.counted.contains(function)) survey.stored += stored(stored, function->node());
  }
  return survey;
}

}  // namespace tenon::onnx
