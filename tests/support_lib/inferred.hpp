// Shape rules in tests: the inferred types of a graph's outputs, as text.
#pragma once
#include <string>
#include <string_view>

#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>

namespace tenon::testing {

// inferred("(%x: f32[N,4]) -> %y { %y = Relu %x }") is "f32[N,4]"; several outputs are joined by " ". A refusal is
// "error: ..." with the whole text.
inline std::string inferred(std::string_view graph_text) {
  auto graph = parse_graph("graph @g" + std::string(graph_text));
  if (!graph.ok()) return "error: " + graph.error().to_string();
  if (const auto verified = verify(**graph, {.require_types = false}); !verified.ok()) {
    return "error: " + verified.error().to_string();
  }
  std::string out;
  const Region& body = (*graph)->body();
  for (size_t i = 0; i < body.output_count(); ++i) out += (i ? " " : "") + body.output(i)->type().to_string();
  return out;
}

}  // namespace tenon::testing
