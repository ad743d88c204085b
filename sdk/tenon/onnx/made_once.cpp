#include <tenon/onnx/import_internal.hpp>

namespace tenon::onnx {
namespace {

// Where a graph or a function defines the value of a name.
struct Maker {
  std::string_view kind;
  int number = 0;
  const format::NodeProto* node = nullptr;  // the node that has it as an output
  int node_number = 0;
  std::string to_string() const {
    return str(kind, " ", number, node ? str(" of ", describe_node(*node, node_number)) : "");
  }
};

class Makers {
 public:
  Result<void> add(std::string_view name, const Maker& maker) {
    const auto [at, is_new] = makers_.try_emplace(name, maker);
    if (is_new) return {};
    TENON_OK(check_text(name, "the value name"));
    return error(Code::invalid_argument, "value ", quote(name), " is made twice in one graph: it is ", at->second,
                 " and ", maker, "; each needs a name of its own");
  }
  // An initializer with the name of an input is that input's value.
  Result<void> add_initializer(std::string_view name, const Maker& maker) {
    const auto at = makers_.find(name);
    if (at == makers_.end() || at->second.kind != kInput) return add(name, maker);
    at->second = maker;
    return {};
  }
  Result<void> add_nodes(const NodeList& nodes) {
    for (int i = 0; i < nodes.size(); ++i) {
      for (int j = 0; j < nodes[i].output_size(); ++j) {
        if (const auto& name = nodes[i].output(j); !name.empty()) TENON_OK(add(name, {"output", j, &nodes[i], i}));
      }
    }
    return {};
  }

  static constexpr std::string_view kInput = "input";

 private:
  std::unordered_map<std::string_view, Maker> makers_;
};

}  // namespace

Result<void> check_made_once(const format::GraphProto& graph) {
  Makers makers;
  for (int i = 0; i < graph.input_size(); ++i) TENON_OK(makers.add(graph.input(i).name(), {Makers::kInput, i}));
  for (int i = 0; i < graph.initializer_size(); ++i)
    TENON_OK(makers.add_initializer(graph.initializer(i).name(), {"initializer", i}));
  for (int i = 0; i < graph.sparse_initializer_size(); ++i)
    TENON_OK(makers.add_initializer(graph.sparse_initializer(i).values().name(), {"sparse initializer", i}));
  return makers.add_nodes(graph.node());
}

Result<void> check_made_once(const format::FunctionProto& function) {
  Makers makers;
  for (int i = 0; i < function.input_size(); ++i) TENON_OK(makers.add(function.input(i), {Makers::kInput, i}));
  return makers.add_nodes(function.node());
}

}  // namespace tenon::onnx
