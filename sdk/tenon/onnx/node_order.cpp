#include <algorithm>
#include <queue>
#include <unordered_set>

#include <tenon/onnx/import_internal.hpp>

namespace tenon::onnx {
namespace {

void names_read(const format::GraphProto& graph, std::vector<std::string_view>& out);
// The names that a node and the graphs inside it read.
void names_read(const format::NodeProto& node, std::vector<std::string_view>& out) {
  for (const auto& name : node.input()) out.push_back(name);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) names_read(attribute.g(), out);
    for (const auto& graph : attribute.graphs()) names_read(graph, out);
  }
}
// The names that a graph uses from outside: names that it defines are its own, even if they are also used outside.
void names_read(const format::GraphProto& graph, std::vector<std::string_view>& out) {
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

}  // namespace

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

}  // namespace tenon::onnx
