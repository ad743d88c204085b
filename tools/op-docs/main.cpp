// tenon-op-docs FILE: writes the page of all operators (docs/operators.md) from their definitions.
// tenon-op-docs --check FILE: checks that FILE is that page; exit code 1 if it is not.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/ir/op_def.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/reference/evaluator.hpp>
#include <tenon/support/result.hpp>

namespace tenon {
namespace {

constexpr std::pair<Trait, const char*> kTraits[] = {
    {Trait::pure, "pure"},
    {Trait::elementwise, "elementwise"},
    {Trait::broadcasting, "broadcasting"},
    {Trait::commutative, "commutative"},
    {Trait::associative, "associative"},
    {Trait::reduction, "reduction"},
    {Trait::layout_oblivious, "layout-oblivious"},
    {Trait::layout_aware, "layout-aware"},
    {Trait::layout_dependent, "layout-dependent"},
    {Trait::random, "random"},
    {Trait::data_dependent, "data-dependent"},
    {Trait::movement, "movement"},
    {Trait::view, "view"},
    {Trait::conditional, "conditional"},
};

constexpr std::string_view kHead = R"(# Operators

Generated from the operators' definitions by `tenon-op-docs docs/operators.md`; do not edit. The definitions stand in
`sdk/tenon/ops`, where the headers tell the meaning in full; meaning and names are those of ONNX opset 28, and import
brings older models to it. Those named `room.Operator` are in no model; they stand in `ir-ext` ([ir-ext.md](ir-ext.md)).

In a signature `?` marks an operand or a result that may be absent, `...` one that may stand any number of times. An
attribute has its default behind `=`; `required` and `optional` ones have none. *Reference*: has an evaluator, so it
runs on every target. *Decomposes*: can be rebuilt from simpler operators. *Gradient*: can be differentiated. *Bounds*:
can be a stage of a pipeline, since it is known which part of its operands a part of a result needs; `by parts` if it
also runs on such parts by itself.
)";

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : std::string(separator)) + part;
  return out;
}

std::string in_table(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

// "X: T, B?: T, rest...: T"
std::string values_text(const std::vector<OperandDef>& values) {
  std::vector<std::string> parts;
  for (const OperandDef& value : values) {
    const char* mark = value.arity == Arity::optional ? "?" : value.arity == Arity::variadic ? "..." : "";
    parts.push_back(str(value.name, mark, ": ", value.type_var));
  }
  return joined(parts, ", ");
}

std::string attribute_text(const AttributeDef& attribute) {
  std::string out = str("`", attribute.name);
  out += attribute.fallback
             ? str(" = ", print(*attribute.fallback), "`")
             : str("` (", attribute.required ? "required" : "optional", " ", attribute_kind_name(attribute.kind), ")");
  if (!attribute.one_of.empty()) out += str(" of ", joined(attribute.one_of, ", "));
  return out;
}

std::string facts_text(const OpDef& op) {
  std::vector<std::string> facts;
  for (const auto& [trait, name] : kTraits) {
    if (op.has(trait)) facts.emplace_back(name);
  }
  if (op.region_count() > 0) facts.push_back(str(op.region_count(), op.region_count() == 1 ? " region" : " regions"));
  return joined(facts, ", ");
}

std::string details(const OpDef& op) {
  std::string out = str("\n### ", op.name(), "\n\n", op.summary(), op.summary().ends_with('?') ? "" : ".", "\n\n- `",
                        op.name(), "(", values_text(op.operands()), ") -> (", values_text(op.results()), ")`\n");
  std::vector<std::string> types, attributes;
  for (const auto& [variable, set] : op.type_vars()) types.push_back(str("`", variable, "`: ", set.text()));
  for (const AttributeDef& attribute : op.attributes()) attributes.push_back(attribute_text(attribute));
  if (!types.empty()) out += str("- types: ", joined(types, "; "), "\n");
  if (!attributes.empty()) out += str("- attributes: ", joined(attributes, ", "), "\n");
  if (const std::string facts = facts_text(op); !facts.empty()) out += str("- traits: ", facts, "\n");
  return out;
}

const char* bounds_text(const OpDef& op) {
  const BoundsRule& rule = op.bounds_rule();
  return !rule.bounds ? "" : rule.sub_box ? "by parts" : "yes";
}

std::string page() {
  const auto ops = all_ops();
  const auto mark = [](bool holds) { return holds ? "yes" : ""; };
  std::string out =
      str(kHead, "\n", ops.size(), " operators:\n\n",
          "| operator | meaning | reference | decomposes | gradient | bounds |\n|---|---|---|---|---|---|\n");
  for (const OpDef* op : ops) {
    out += str("| ", op->name(), " | ", in_table(op->summary()), " | ", mark(find_evaluator(op->name()) != nullptr),
               " | ", mark(op->decompose_fn() != nullptr), " | ", mark(op->gradient_fn() != nullptr), " | ",
               bounds_text(*op), " |\n");
  }
  for (const OpDef* op : ops) out += details(*op);
  return out;
}

Result<void> run(bool check, const std::string& path) {
  if (check) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (text == page()) return {};
    return error(Code::invalid_argument, path, " is not what the operators' definitions say; `tenon-op-docs ", path,
                 "` writes it anew");
  }
  std::ofstream file(path, std::ios::binary);
  file << page();
  file.close();
  return file ? Result<void>() : error(Code::io, "cannot write ", path);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != 2 && !check) {
    std::fprintf(stderr, "usage: tenon-op-docs [--check] FILE\n");
    return 2;
  }
  if (const auto done = tenon::run(check, argv[argc - 1]); !done.ok()) {
    std::fprintf(stderr, "tenon-op-docs: %s\n", done.error().to_string().c_str());
    return 1;
  }
}
