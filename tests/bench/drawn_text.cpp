#include <array>
#include <cmath>

#include <tenon/support/str.hpp>

#include "bench/drawn_graph.hpp"

namespace tenon::bench {
namespace {

const char* name_of(Element element) {
  static constexpr std::array kNames{"f32", "f16", "i32", "u8", "i8", "bool", "i64", "bf16"};
  return kNames[static_cast<size_t>(element)];
}

}  // namespace

std::vector<int> DrawnGraph::inputs() const {
  std::vector<int> all;
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].is_input()) all.push_back(static_cast<int>(v));
  return all;
}

std::string DrawnGraph::name() const {
  if (!title.empty()) return title;
  std::string text = str(seed, " ", kind, " ");
  for (size_t d = 0; d < dims.size(); ++d)
    text += str(d ? "x" : "", dims[d], static_cast<int>(d) + folded >= static_cast<int>(dims.size()) ? "'" : "");
  std::string ops;
  for (const DrawnValue& v : values) {
    if (v.is_input()) {
      text += str(" ", name_of(v.element), "/", v.over);
    } else if (!v.is_constant()) {
      ops += " " + v.op;
      if (v.op == "Cast") ops += str(":", name_of(v.element));
    }
  }
  return text + ops;
}

std::string DrawnGraph::text() const {
  if (!written_text.empty()) return written_text;
  const auto type = [&](const DrawnValue& v) {
    std::string extents;
    for (size_t d = 0; d < dims.size(); ++d) extents += str(d ? "," : "", v.over >> d & 1 ? dims[d] : 1);
    return str(name_of(v.element), "[", extents, "]");
  };
  std::string signature, results, body;
  for (const int v : inputs())
    signature += str(signature.empty() ? "" : ", ", "%v", v, ": ", type(values[static_cast<size_t>(v)]));
  for (const int v : outputs) results += str(results.empty() ? "" : ", ", "%v", v);
  if (folded) {
    std::string axes;
    for (int d = static_cast<int>(dims.size()) - folded; d < static_cast<int>(dims.size()); ++d)
      axes += str(axes.empty() ? "" : ", ", d);
    body += str("%axes = Constant {value = dense<i64[", folded, "]: ", axes, ">}\n");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const DrawnValue& v = values[i];
    if (v.is_input() || v.inside) continue;
    body += str("%v", i, " = ");
    if (v.is_constant()) {
      const bool floats = v.element == Element::f32 || v.element == Element::f16;
      body += str("Constant {value = dense<", name_of(v.element),
                  "[]: ", floats ? std::to_string(v.number) : str(std::llround(v.number)), ">}\n");
      continue;
    }
    if (!v.whole.empty()) {
      body += v.whole + "\n";
      continue;
    }
    body += v.op;
    for (size_t o = 0; o < v.operands.size(); ++o) body += str(o ? ", %v" : " %v", v.operands[o]);
    if (v.is_reduction()) body += ", %axes";
    if (v.op == "Cast") body += str(" {to = type<", name_of(v.element), "[*]>}");
    body += "\n";
  }
  return str("graph @g(", signature, ") -> (", results, ") {\n", body, "}");
}

}  // namespace tenon::bench
