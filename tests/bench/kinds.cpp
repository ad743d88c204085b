#include "bench/kinds.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string>

#include <tenon/support/check.hpp>
#include <tenon/support/str.hpp>

namespace tenon::bench {
namespace {

Element element_of(const std::string& name) {
  static const std::map<std::string, Element> kElements{
      {"f32", Element::f32},   {"f16", Element::f16}, {"i32", Element::i32}, {"i64", Element::i64},
      {"bf16", Element::bf16}, {"u8", Element::u8},   {"i8", Element::i8},   {"bool", Element::boolean}};
  return kElements.at(name);
}

std::string title_of(const char* name, const std::array<const char*, 3>& sizes, size_t at) {
  static constexpr std::array kHeldBy{"L2", "L3", "memory"};
  return str(name, ", ", kHeldBy[at], " ", sizes[at]);
}

std::vector<int64_t> extents_of(const std::string& size) {
  std::vector<int64_t> made;
  std::istringstream extents(size);
  for (std::string extent; std::getline(extents, extent, 'x');) made.push_back(std::stoll(extent));
  return made;
}

class Reader {
 public:
  Reader(const Kind& kind, size_t at) : dims_(kind.dims) {
    const std::string size = kind.sizes[at];
    graph_.title = title_of(kind.name, kind.sizes, at);
    if (const size_t fold = dims_.find('\''); fold != std::string::npos) {
      graph_.folded = static_cast<int>(dims_.size() - fold - 1);
      dims_.erase(fold, 1);
    }
    graph_.dims = extents_of(size);
    TENON_CHECK(graph_.dims.size() == dims_.size(), kind.name, " has ", dims_.size(), " dims, not ", size);
    std::istringstream text(kind.text);
    for (std::string one; std::getline(text, one, ';');) statement(one);
  }

  DrawnGraph graph() && {
    for (const auto& [name, v] : named_)
      if (!read_[v]) graph_.outputs.push_back(v);
    std::ranges::sort(graph_.outputs);
    return std::move(graph_);
  }

 private:
  const DrawnValue& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }

  void statement(const std::string& text) {
    std::istringstream words(text);
    std::string name, word;
    words >> name >> word;
    const bool kept = name.starts_with('!');
    name.erase(0, kept);
    int made = 0;
    if (word == "=") {
      std::string op;
      words >> op;
      std::vector<std::string> operands;
      while (words >> word) operands.push_back(word);
      made = operation(op, operands);
    } else {
      std::string over;
      words >> over;
      made = add({.op = "input", .element = element_of(word), .over = mask(over)});
    }
    named_[name] = made;
    if (kept) graph_.outputs.push_back(made), ++read_[made];
  }

  unsigned mask(const std::string& over) const {
    unsigned mask = 0;
    for (const char dim : over)
      if (dim != '.') mask |= 1u << dims_.find(dim);
    return mask;
  }

  int add(DrawnValue made) {
    graph_.values.push_back(std::move(made));
    return static_cast<int>(graph_.values.size()) - 1;
  }

  int operation(std::string op, const std::vector<std::string>& words) {
    Element element = Element::f32;
    for (const std::string& word : words)
      if (const auto named = named_.find(word); named != named_.end()) element = value(named->second).element;
    std::vector<int> operands;
    for (const std::string& word : words) operands.push_back(operand(word, element));
    static const std::vector<std::string> kConditions{"Less", "LessOrEqual", "Greater", "Equal", "And", "Or", "Not"};
    if (std::ranges::count(kConditions, op)) element = Element::boolean;
    if (const size_t colon = op.find(':'); colon != std::string::npos) {
      element = element_of(op.substr(colon + 1));
      op.erase(colon);
    }
    if (op == "Softmax" || op == "LogSoftmax") return softmax(op, operands[0]);
    return add(op, std::move(operands), element);
  }

  int operand(const std::string& word, Element element) {
    if (const auto named = named_.find(word); named != named_.end()) {
      ++read_[named->second];
      return named->second;
    }
    const size_t colon = word.find(':');
    if (colon != std::string::npos) element = element_of(word.substr(0, colon));
    const std::string number = colon == std::string::npos ? word : word.substr(colon + 1);
    return add({.op = "constant", .element = element, .number = std::stod(number)});
  }

  int add(std::string op, std::vector<int> operands, Element element = Element::f32) {
    unsigned over = 0;
    for (const int v : operands) over |= value(v).over;
    const size_t kept = dims_.size() - static_cast<size_t>(graph_.folded);
    if (op.starts_with("Reduce")) over &= (1u << kept) - 1;
    return add({.op = std::move(op), .operands = std::move(operands), .element = element, .over = over});
  }

  // One operator of the graph, but five or six steps of a loop.
  int softmax(const std::string& op, int x) {
    const size_t first = graph_.values.size();
    const int less = add("Sub", {x, add("ReduceMax", {x})});
    const int power = add("Exp", {less});
    const int sum = add("ReduceSum", {power});
    graph_.values[static_cast<size_t>(power)].kept = op == "Softmax";
    const int made = op == "Softmax" ? add("Div", {power, sum}) : add("Sub", {less, add("Log", {sum})});
    for (size_t v = first; v < graph_.values.size(); ++v) graph_.values[v].inside = static_cast<int>(v) != made;
    graph_.values.back().whole = str(op, " %v", x, " {axis = -1}");
    return made;
  }

  std::string dims_;
  DrawnGraph graph_;
  std::map<std::string, int> named_;
  std::map<int, int> read_;
};

DrawnGraph written(const WrittenKind& kind, size_t at) {
  DrawnGraph made{.title = title_of(kind.name, kind.sizes, at), .dims = extents_of(kind.sizes[at])};
  std::string text = str("graph @g", kind.text);
  for (size_t d = 0; d < made.dims.size(); ++d)
    for (size_t place = 0; (place = text.find(str("$", d))) != std::string::npos;)
      text.replace(place, 2, std::to_string(made.dims[d]));
  made.written_text = std::move(text);
  made.written_loop = kind.loop;
  return made;
}

}  // namespace

std::vector<DrawnGraph> graph_kinds() {
  std::vector<DrawnGraph> all;
  for (const auto kinds : {all_kinds(), more_kinds(), other_kinds(), further_kinds()})
    for (const Kind& kind : kinds)
      for (size_t size = 0; size < kind.sizes.size(); ++size) all.push_back(Reader(kind, size).graph());
  for (const WrittenKind& kind : written_kinds())
    for (size_t size = 0; size < kind.sizes.size(); ++size) all.push_back(written(kind, size));
  for (size_t i = 0; i < all.size(); ++i) all[i].seed = static_cast<uint32_t>(i);
  return all;
}

}  // namespace tenon::bench
