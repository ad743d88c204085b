// Graphs in text form, and the body of their first snippet.
#pragma once
#include <algorithm>
#include <memory>
#include <string>

#include <tenon/ir/text.hpp>

#include "x86/guarded_graph.hpp"

namespace tenon::x86::testing {

inline std::unique_ptr<Graph> graph_of(const std::string& text) {
  auto graph = parse_graph(text);
  TENON_CHECK(graph.ok(), graph.ok() ? "" : graph.error().to_string() + "\n" + text);
  return *std::move(graph);
}

inline snippet::Body body_of(const std::string& text) {
  auto graph = graph_of(text);
  GuardedGraph(Isa::avx2, {.small_caches = false}).tokenize(*graph);
  const auto is_snippet = [](const Op& op) { return isa<snippet::Subgraph>(op); };
  auto body = snippet::make_body(*std::ranges::find_if(graph->body(), is_snippet));
  TENON_CHECK(body.ok(), text);
  return *std::move(body);
}

// The number of nodes of the body with this operator.
inline int64_t nodes(const snippet::Body& body, std::string_view op) {
  return std::ranges::count_if(body.nodes, [&](const snippet::BodyNode& node) { return node.op.view() == op; });
}

}  // namespace tenon::x86::testing
