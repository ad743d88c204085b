// Graphs for Graphviz (the DOT language: https://graphviz.org/doc/info/lang.html).
#include <unordered_map>

#include <tenon/ir/text.hpp>
#include <tenon/ir/value_layout.hpp>
#include <tenon/support/str.hpp>

namespace tenon {
namespace {

// A quoted DOT string; a line end becomes \n, which centres the next line.
std::string dot_quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out += '"';
}

class DotWriter {
 public:
  std::string graph(const Graph& graph) {
    out_ = str("digraph ", dot_quote(graph.name()), " {\n  node [shape=box];\n");
    region(graph.body(), "  ");
    out_ += edges_ + "}\n";
    return std::move(out_);
  }

 private:
  void region(const Region& region, const std::string& indent) {
    for (size_t i = 0; i < region.input_count(); ++i) {
      made_in_[region.input(i)] = node(indent, region.input(i)->name(), "ellipse");
    }
    for (const Op& op : region) {
      const std::string label = op.label().empty() ? op.name().str() : str(op.name(), "\n", op.label());
      const size_t id = node(indent, label, "box");
      for (size_t i = 0; i < op.result_count(); ++i) made_in_[op.result(i)] = id;
      for (size_t i = 0; i < op.operand_count(); ++i) edge(op.operand(i), id);
      for (size_t i = 0; i < op.region_count(); ++i) {
        out_ += str(indent, "subgraph cluster_", id, "_", i, " {\n", indent,
                    "  label=", dot_quote(str(label, "\nregion ", i)), ";\n");
        this->region(op.region(i), indent + "  ");
        out_ += indent + "}\n";
      }
    }
    for (size_t i = 0; i < region.output_count(); ++i) {
      edge(region.output(i), node(indent, region.output_name(i), "ellipse"));
    }
  }

  size_t node(const std::string& indent, std::string_view label, std::string_view shape) {
    out_ += str(indent, "n", nodes_, " [label=", dot_quote(label), ", shape=", shape, "];\n");
    return nodes_++;
  }

  static std::string edge_text(const Value& value) {
    return value.layout() ? str(value.type(), "\nin ", value.layout()->text) : value.type().to_string();
  }

  // At the end of the text, because a node belongs to the cluster that first mentions it.
  void edge(const Value* from, size_t to) {
    const auto found = made_in_.find(from);
    if (found == made_in_.end()) return;  // absent
    edges_ += str("  n", found->second, " -> n", to, " [label=", dot_quote(edge_text(*from)), "];\n");
  }

  std::unordered_map<const Value*, size_t> made_in_;
  std::string out_, edges_;
  size_t nodes_ = 0;
};

}  // namespace

std::string to_dot(const Graph& graph) { return DotWriter().graph(graph); }

}  // namespace tenon
