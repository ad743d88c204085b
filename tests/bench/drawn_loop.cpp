// A drawn graph as hand-written loops: one nest over the dims that tensors distinguish, each value in the loop of its
// innermost dim, and a traversal of the row for each reduction that needs the result of another.
#include <algorithm>
#include <cmath>
#include <map>

#include <tenon/support/str.hpp>

#include "bench/drawn_graph.hpp"

namespace tenon::bench {
namespace {

std::string type_of(Element element) {
  static const char* const kTypes[] = {"float",  "_Float16", "int32_t", "uint8_t",
                                       "int8_t", "bool",     "int64_t", "bfloat"};
  return kTypes[static_cast<size_t>(element)];
}

// Bit g of the result: varies over any dim of group g.
struct Groups {
  std::vector<unsigned> dims;  // of each group, outermost first
  std::vector<int64_t> extents;
  size_t kept = 0;  // the first ones, which reductions leave

  unsigned over(unsigned mask) const {
    unsigned groups = 0;
    for (size_t g = 0; g < dims.size(); ++g)
      if (mask & dims[g]) groups |= 1u << g;
    return groups;
  }
};

// Adjacent dims that all tensors share are merged; those of extent 1 are dropped, except for a row of one element.
Groups groups_of(const DrawnGraph& graph) {
  Groups groups;
  const size_t rank = graph.dims.size(), kept = rank - static_cast<size_t>(graph.folded);
  const auto add = [&](size_t begin, size_t end, bool some) {
    const size_t before = groups.dims.size();
    size_t last = 0;
    for (size_t d = begin; d < end; ++d) {
      if (graph.dims[d] == 1 && !(some && d + 1 == end && groups.dims.size() == before)) continue;
      const auto same = [&](const DrawnValue& v) {
        return v.is_constant() || v.is_reduction() || (v.over >> d & 1) == (v.over >> last & 1);
      };
      if (groups.dims.size() > before && std::ranges::all_of(graph.values, same)) {
        groups.dims.back() |= 1u << d;
        groups.extents.back() *= graph.dims[d];
      } else {
        groups.dims.push_back(1u << d);
        groups.extents.push_back(graph.dims[d]);
      }
      last = d;
    }
  };
  add(0, kept, !graph.folded);
  // Without reductions the innermost loop traverses a row.
  groups.kept = groups.dims.size() - (graph.folded ? 0 : 1);
  add(kept, rank, graph.folded);
  return groups;
}

class Writer {
 public:
  Writer(const DrawnGraph& graph, const std::string& name, const std::string& sums)
      : graph_(graph), groups_(groups_of(graph)), sums_(sums) {
    line("extern \"C\" [[gnu::noinline]] void ", name,
         "(const void* const* in, void* const* out, const int64_t* extents) {");
    for (size_t g = 0; g < groups_.dims.size(); ++g) line("const int64_t n", g, " = extents[", g, "];");
    const std::vector<int> inputs = graph.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string type = type_of(at(inputs[i]).element);
      line("const ", type, "* __restrict p", inputs[i], " = static_cast<const ", type, "*>(in[", i, "]);");
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const std::string type = type_of(at(graph.outputs[i]).element);
      line(type, "* __restrict y", i, " = static_cast<", type, "*>(out[", i, "]);");
    }
    level_.resize(graph.values.size());
    for (size_t v = 0; v < level_.size(); ++v) {
      for (const int o : graph.values[v].operands) level_[v] = std::max(level_[v], level_[static_cast<size_t>(o)]);
      if (graph.values[v].is_reduction()) ++level_[v];
      levels_ = std::max(levels_, level_[v]);
    }
    outer(0);
    line("}");
  }
  std::string text() && { return std::move(text_); }

 private:
  const DrawnValue& at(int v) const { return graph_.values[static_cast<size_t>(v)]; }
  int level(int v) const { return level_[static_cast<size_t>(v)]; }
  unsigned over(int v) const { return groups_.over(at(v).over); }
  // The number of loops around a value.
  size_t depth(int v) const {
    size_t depth = 0;
    for (size_t g = 0; g < groups_.dims.size(); ++g)
      if (over(v) >> g & 1) depth = g + 1;
    return depth;
  }

  template <class... T>
  void line(const T&... parts) {
    const std::string text = str(parts...);
    if (text.starts_with('}')) indent_ -= 2;
    text_ += std::string(indent_, ' ') + text + "\n";
    if (text.ends_with('{')) indent_ += 2;
  }

  // The index of the element of `v` in its tensor at the current iteration.
  std::string index(int v) const {
    std::string text, extent;
    for (size_t g = groups_.dims.size(); g-- > 0;) {
      if (!(over(v) >> g & 1)) continue;
      text = str("i", g, extent, text.empty() ? "" : " + ", text);
      extent += str(" * n", g);
    }
    return text.empty() ? "0" : text;
  }

  std::string expression(int v) const {
    const DrawnValue& value = at(v);
    if (value.is_input()) return str("p", v, "[", index(v), "]");
    if (value.op == "Cast") return cast(value);
    if (value.op == "QuantizeLinear") return quantised(value);
    static const std::map<std::string, const char*> kForms{
        {"Add", "$0 + $1"},
        {"Sub", "$0 - $1"},
        {"Mul", "$0 * $1"},
        {"Div", "$0 / $1"},
        {"Max", "std::max($0, $1)"},
        {"Min", "std::min($0, $1)"},
        {"Neg", "-$0"},
        {"Abs", "std::abs($0)"},
        {"Relu", "std::max($0, 0.0f)"},
        {"Clip", "std::min(std::max($0, $1), $2)"},
        {"PRelu", "$0 < 0.0f ? $0 * $1 : $0"},
        {"HardSigmoid", "std::min(std::max($0 * 0.2f + 0.5f, 0.0f), 1.0f)"},
        {"Sqrt", "std::sqrt($0)"},
        {"Reciprocal", "1.0f / $0"},
        {"Pow", "std::pow($0, $1)"},
        {"Floor", "std::floor($0)"},
        {"Round", "std::nearbyint($0)"},
        {"DequantizeLinear", "float($0 - $2) * $1"},
        {"Sign", "float($0 > 0.0f) - float($0 < 0.0f)"},
        {"Elu", "$0 > 0.0f ? $0 : std::exp($0) - 1.0f"},
        {"Celu", "$0 > 0.0f ? $0 : std::exp($0) - 1.0f"},
        {"Selu", "1.0507f * ($0 > 0.0f ? $0 : 1.6732632f * (std::exp($0) - 1.0f))"},
        {"HardSwish", "$0 * std::min(std::max($0 + 3.0f, 0.0f), 6.0f) * (1.0f / 6.0f)"},
        {"Exp", "std::exp($0)"},
        {"Log", "std::log($0)"},
        {"Sin", "std::sin($0)"},
        {"Cos", "std::cos($0)"},
        {"Softplus", "std::max($0, 0.0f) + std::log(1.0f + std::exp(-std::abs($0)))"},
        {"Tanh", "std::tanh($0)"},
        {"Sigmoid", "1.0f / (1.0f + std::exp(-$0))"},
        {"Erf", "std::erf($0)"},
        {"Less", "$0 < $1"},
        {"Greater", "$0 > $1"},
        {"LessOrEqual", "$0 <= $1"},
        {"Equal", "$0 == $1"},
        {"Not", "!$0"},
        {"And", "$0 & $1"},
        {"Or", "$0 | $1"},
        {"Where", "$0 ? $1 : $2"},
        {"BitwiseNot", "~$0"},
        {"BitwiseAnd", "$0 & $1"},
        {"BitwiseOr", "$0 | $1"},
        {"BitwiseXor", "$0 ^ $1"}};
    // Wrap-around as for integers of graphs: in C++ signed overflow is undefined, and compilers assume that it does not
    // occur.
    static const std::map<std::string, const char*> kWrapping{{"Add", "(uint32_t)$0 + (uint32_t)$1"},
                                                              {"Sub", "(uint32_t)$0 - (uint32_t)$1"},
                                                              {"Mul", "(uint32_t)$0 * (uint32_t)$1"},
                                                              {"Neg", "0u - (uint32_t)$0"}};
    const bool wraps = value.element == Element::i32 && kWrapping.contains(value.op);
    std::string text;
    for (const char* c = wraps ? kWrapping.at(value.op) : kForms.at(value.op); *c; ++c) {
      if (*c == '$') {
        text += operand(value.operands[static_cast<size_t>(*++c - '0')]);
      } else {
        text += *c;
      }
    }
    return text;
  }
  std::string operand(int v) const {
    const DrawnValue& value = at(v);
    if (!value.is_constant()) return str("v", v);
    return value.element == Element::f32 ? std::to_string(value.number) + "f"
                                         : str("(", type_of(value.element), ")(", std::llround(value.number), ")");
  }
  // Floats outside the range of the integers become the nearest of them.
  std::string cast(const DrawnValue& value) const {
    const std::string x = operand(value.operands[0]);
    const Element from = at(value.operands[0]).element;
    if (from == Element::f32 && value.element == Element::u8) return str("std::min(std::max(", x, ", 0.0f), 255.0f)");
    if (from == Element::f32 && value.element == Element::i8)
      return str("std::min(std::max(", x, ", -128.0f), 127.0f)");
    return x;
  }
  std::string quantised(const DrawnValue& value) const {
    const auto& operands = value.operands;
    return str("std::min(std::max(std::nearbyint(", operand(operands[0]), " / ", operand(operands[1]), ") + ",
               operand(operands[2]), value.element == Element::u8 ? ", 0.0f), 255.0f)" : ", -128.0f), 127.0f)");
  }
  void define(int v) {
    line("const ", type_of(at(v).element), " v", v, " = (", type_of(at(v).element), ")(", expression(v), ");");
  }

  void store(int v) {
    for (size_t i = 0; i < graph_.outputs.size(); ++i)
      if (graph_.outputs[i] == v) line("y", i, "[", index(v), "] = v", v, ";");
  }

  // The loops outside reductions, from `depth` on, and their content.
  void outer(size_t depth) {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const int i = static_cast<int>(v);
      if (!at(i).is_constant() && level(i) == 0 && this->depth(i) == depth && depth <= groups_.kept)
        define(i), store(i);
    }
    if (depth == groups_.kept) return row();
    line("for (int64_t i", depth, " = 0; i", depth, " < n", depth, "; ++i", depth, ") {");
    outer(depth + 1);
    line("}");
  }

  bool inner(int v) const { return depth(v) > groups_.kept; }

  // Whether traversal `sweep` of the row computes the value.
  bool wanted(int v, int sweep) const {
    if (!inner(v) || level(v) != sweep) return false;
    if (at(v).kept || std::ranges::find(graph_.outputs, v) != graph_.outputs.end()) return true;
    return std::ranges::any_of(graph_.values,
                               [&](const DrawnValue& r) { return r.is_reduction() && r.operands[0] == v; });
  }

  void row() {
    for (int sweep = 0; sweep <= levels_; ++sweep) {
      needed_.assign(graph_.values.size(), false);
      bool any = false;
      for (size_t v = 0; v < needed_.size(); ++v)
        if (wanted(static_cast<int>(v), sweep)) need(static_cast<int>(v), sweep), any = true;
      for (const int r : reductions(sweep)) line(folded_type(r), " a", r, " = ", first(r), ";");
      if (any) walk(groups_.kept, sweep);
      for (const int r : reductions(sweep))
        line("const float v", r, " = a", r, at(r).op == "ReduceMean" ? str(" / float(", elements(), ")") : "", ";"),
            store(r);
      for (size_t v = 0; v < graph_.values.size(); ++v) {
        const int i = static_cast<int>(v);
        if (!at(i).is_reduction() && !at(i).is_constant() && level(i) == sweep + 1 && !inner(i)) define(i), store(i);
      }
    }
  }

  void need(int v, int sweep) {
    if (needed_[static_cast<size_t>(v)] || !inner(v)) return;
    needed_[static_cast<size_t>(v)] = true;
    if (at(v).kept && level(v) < sweep) return;
    for (const int o : at(v).operands) need(o, sweep);
  }
  std::vector<int> reductions(int sweep) const {
    std::vector<int> all;
    for (size_t v = 0; v < graph_.values.size(); ++v)
      if (graph_.values[v].is_reduction() && level_[v] == sweep + 1) all.push_back(static_cast<int>(v));
    return all;
  }
  std::string folded_type(int r) const {
    const bool sums = at(r).op != "ReduceMax" && at(r).op != "ReduceMin" && at(r).element == Element::f32;
    return sums ? sums_ : type_of(at(r).element);
  }
  std::string first(int r) const {
    return at(r).op == "ReduceMax" ? "-3.4e38f" : at(r).op == "ReduceMin" ? "3.4e38f" : "0";
  }
  std::string elements() const {
    std::string text;
    for (size_t g = groups_.kept; g < groups_.dims.size(); ++g) text += str(text.empty() ? "" : " * ", "n", g);
    return text;
  }
  // The index of an element of the row, relative to its beginning.
  std::string place() const {
    std::string text = str("i", groups_.kept);
    for (size_t g = groups_.kept + 1; g < groups_.dims.size(); ++g) text = str("(", text, ") * n", g, " + i", g);
    return text;
  }

  void walk(size_t depth, int sweep) {
    line("for (int64_t i", depth, " = 0; i", depth, " < n", depth, "; ++i", depth, ") {");
    for (size_t v = 0; v < needed_.size(); ++v) {
      const int i = static_cast<int>(v);
      if (!needed_[v] || this->depth(i) != depth + 1) continue;
      if (at(i).kept && level(i) < sweep) {
        line("const float v", i, " = scratch[", place(), "];");
        continue;
      }
      define(i);
      if (at(i).kept && level(i) == sweep) line("scratch[", place(), "] = v", i, ";");
    }
    // After all functions: g++ does not vectorise functions after a store.
    for (size_t v = 0; v < needed_.size(); ++v) {
      const int i = static_cast<int>(v);
      if (needed_[v] && this->depth(i) == depth + 1 && level(i) == sweep) store(i);
    }
    for (const int r : reductions(sweep)) {
      const int x = at(r).operands[0];
      // A value that does not vary over a dim counts again for each of its indices.
      if (depth + 1 != groups_.dims.size()) continue;
      const std::string name = at(r).op, v = operand(x);
      line("a", r,
           name == "ReduceMax"   ? str(" = std::max(a", r, ", ", v, ");")
           : name == "ReduceMin" ? str(" = std::min(a", r, ", ", v, ");")
                                 : str(" += ", v, ";"));
    }
    if (depth + 1 < groups_.dims.size()) walk(depth + 1, sweep);
    line("}");
  }

  const DrawnGraph& graph_;
  Groups groups_;
  std::string sums_;  // the type of sums of floats
  std::string text_;
  size_t indent_ = 0;
  std::vector<int> level_;  // reductions that a value waits for, in sequence
  int levels_ = 0;
  std::vector<char> needed_;
};

}  // namespace

bool DrawnGraph::cancels() const {
  const auto is_sum = [](const DrawnValue& one) {
    return (one.op == "Add" || one.op == "Sub") && one.element == Element::f32;
  };
  const auto reads = [](const DrawnValue& one, int what) { return std::ranges::count(one.operands, what) > 0; };
  return std::ranges::any_of(values, [&](const DrawnValue& user) {
    return is_sum(user) && std::ranges::any_of(user.operands, [&](int v) {
             return is_sum(values[static_cast<size_t>(v)]) && std::ranges::any_of(user.operands, [&](int other) {
                      return reads(values[static_cast<size_t>(v)], other);
                    });
           });
  });
}

std::vector<int64_t> DrawnGraph::loop_extents() const { return written_loop.empty() ? groups_of(*this).extents : dims; }

bool DrawnGraph::folds_long_rows() const {
  constexpr int64_t kLong = 1 << 16;
  int64_t elements = 1;
  for (size_t d = dims.size() - static_cast<size_t>(folded); d < dims.size(); ++d) elements *= dims[d];
  return written_loop.empty() && elements >= kLong;
}

std::string DrawnGraph::loop(const std::string& name, const std::string& sums) const {
  if (written_loop.empty()) return Writer(*this, name, sums).text();
  std::string extents;
  for (size_t d = 0; d < dims.size(); ++d) extents += str("const int64_t n", d, " = extents[", d, "];\n");
  return str("extern \"C\" [[gnu::noinline]] void ", name,
             "(const void* const* in, void* const* out, const int64_t* extents) {\n", extents, written_loop, "}\n");
}

std::string loop_prelude() {
  // The compiler may know no bf16: rounded to nearest, ties to even.
  return "#include <algorithm>\n#include <bit>\n#include <cmath>\n#include <cstdint>\n\n"
         "alignas(64) static float scratch[1 << 21];\n\n"
         "struct bfloat {\n  uint16_t bits;\n"
         "  explicit bfloat(float x) {\n    const uint32_t all = std::bit_cast<uint32_t>(x);\n"
         "    bits = uint16_t((all + 0x7fff + (all >> 16 & 1)) >> 16);\n  }\n"
         "  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }\n};\n\n";
}

}  // namespace tenon::bench
