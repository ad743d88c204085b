#include <algorithm>
#include <set>

#include <tenon/ir/infer.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/onnx/gradient_internal.hpp>
#include <tenon/onnx/import_internal.hpp>

namespace tenon::onnx {
namespace {

const Name kScan("Scan");
constexpr int64_t kUnbatchedScan = 9;

}  // namespace

Result<std::vector<Value*>> Importer::operands_of(const NodeProto& node, const Scope& scope) {
  std::vector<Value*> operands;
  for (const auto& name : node.input()) {
    Value* const* value = name.empty() ? nullptr : scope.find(name);
    if (!name.empty() && !value) return error(Code::invalid_argument, "input ", quote(name), " is made by nothing");
    operands.push_back(value ? *value : nullptr);
  }
  while (!operands.empty() && !operands.back()) operands.pop_back();
  return operands;
}

std::optional<Frame::Binding> Importer::resolve(const AttributeProto& attribute, const Frame& frame,
                                                const Scope& scope) {
  if (attribute.ref_attr_name().empty()) return Frame::Binding{&attribute, &frame, &scope};
  const auto found = frame.attributes.find(attribute.ref_attr_name());
  if (found == frame.attributes.end()) return std::nullopt;
  return found->second;
}

Result<Importer::NodeAttributes> Importer::attributes_of(const NodeProto& node, const Frame& frame,
                                                         const Scope& scope) {
  NodeAttributes out;
  std::set<std::string_view> names;
  for (const auto& attribute : node.attribute()) {
    TENON_OK(check_text(attribute.name(), "the attribute name"));
    if (!names.insert(attribute.name()).second) {
      return error(Code::invalid_argument, "attribute ", quote(attribute.name()), " is there twice");
    }
    const auto binding = resolve(attribute, frame, scope);
    if (!binding) continue;
    if (holds_graphs(*binding->attribute)) {
      if (!binding->attribute->has_g())
        return error(Code::unsupported, "attribute '", attribute.name(), "' is a list of graphs");
      out.graphs.emplace(attribute.name(), *binding);
      continue;
    }
    TENON_TRY(value, read_attribute(*binding->attribute, source_), "attribute '", attribute.name(), "'");
    out.plain.set(attribute.name(), std::move(value));
  }
  return out;
}

size_t Importer::result_count(const NodeProto& node) {
  int count = node.output_size();
  const OpDef* def = find_op(full_name(node.domain(), node.op_type()));
  if (def && def->max_results() == SIZE_MAX) return static_cast<size_t>(count);
  while (count > 0 && node.output(count - 1).empty()) --count;
  return static_cast<size_t>(count);
}

Result<void> Importer::import_node(const NodeProto& node, Region& region, Scope& scope, const Frame& frame,
                                   size_t depth) {
  TENON_OK(check_text(node.op_type(), "the operator name"));
  TENON_OK(check_text(node.name(), "the node name"));
  if (node.op_type().empty()) return error(Code::invalid_argument, "it has no operator");
  if (++nodes_made_ > budget_) return over_budget(nodes_made_, budget_);
  const std::string_view domain = plain_domain(node.domain());
  const auto opset = frame.opsets->find(domain);
  if (opset == frame.opsets->end()) {
    return error(Code::invalid_argument, "its domain '", domain.empty() ? "ai.onnx" : domain,
                 "' is not among the operator sets imported");
  }
  TENON_TRY(operands, operands_of(node, scope));
  TENON_TRY(attributes, attributes_of(node, frame, scope));

  Builder builder(region);
  builder.set_name_prefix(frame.prefix + node.name());
  if (full_name(domain, node.op_type()) == kGradientOp) {
    TENON_TRY(gradients, import_gradient(operands, attributes.plain, builder, scope));
    return define_results(node, gradients, operands, scope, frame);
  }
  UpgradeNode upgraded{Name(full_name(domain, node.op_type())),
                       opset->second,
                       std::move(operands),
                       std::move(attributes.plain),
                       result_count(node),
                       static_cast<size_t>(node.output_size()),
                       builder};
  TENON_OK(upgrade(upgraded), "upgrading it from opset ", opset->second);
  if (!upgraded.made.empty()) return define_results(node, upgraded.made, upgraded.operands, scope, frame);
  if (upgraded.op == kScan && upgraded.version < kUnbatchedScan) {
    TENON_TRY(results, import_batched_scan(upgraded, attributes.graphs, depth));
    return define_results(node, results, {}, scope, frame);
  }

  while (!upgraded.operands.empty() && !upgraded.operands.back()) upgraded.operands.pop_back();
  TENON_OK(numbers_to_types(upgraded.op, upgraded.attributes));
  Op& op = builder.create(upgraded.op, upgraded.operands, upgraded.results, std::move(upgraded.attributes));
  TENON_OK(import_regions(op, attributes.graphs, depth));
  std::vector<Value*> results;
  for (size_t i = 0; i < op.result_count(); ++i) results.push_back(op.result(i));
  TENON_OK(define_results(node, results, {}, scope, frame));
  return infer(op);
}

Result<std::vector<Value*>> Importer::import_gradient(std::span<Value* const> operands, const Attributes& attributes,
                                                      Builder& builder, const Scope& scope) {
  const auto named = [&](const std::string& name) -> Result<Value*> {
    Value* const* value = scope.find(name);
    if (!value || !*value)
      return error(Code::invalid_argument, "it names value ", quote(name), ", which is made by nothing before it");
    return *value;
  };
  const auto list = [&](Name attribute) -> Result<std::vector<Value*>> {
    std::vector<Value*> values;
    const Attribute* names = attributes.find(attribute);
    if (!names || !names->get_if<Attribute::Texts>()) return values;
    for (const std::string& name : *names->get_if<Attribute::Texts>()) {
      TENON_TRY(value, named(name));
      values.push_back(value);
    }
    return values;
  };
  TENON_TRY(xs, list("xs"));
  TENON_TRY(zs, list("zs"));
  const Attribute* target = attributes.find("y");
  if (!target || !target->get_if<std::string>())
    return error(Code::invalid_argument, "it has no text in its attribute 'y'");
  TENON_TRY(y, named(*target->get_if<std::string>()));
  return expand_gradient(builder, xs, zs, y, operands);
}

Result<void> Importer::define_results(const NodeProto& node, std::span<Value* const> values,
                                      std::span<Value* const> operands, Scope& scope, const Frame& frame) {
  for (size_t i = 0; i < values.size() && i < static_cast<size_t>(node.output_size()); ++i) {
    const std::string& name = node.output(static_cast<int>(i));
    if (name.empty() || !values[i]) continue;
    TENON_OK(define(scope, name, values[i]), "output ", i);
    const bool passed = std::find(operands.begin(), operands.end(), values[i]) != operands.end();
    if (!passed) values[i]->set_name(frame.prefix + name);
    TENON_OK(apply_declared(scope, name, values[i]));
  }
  return {};
}

Result<void> Importer::infer(Op& op) {
  if (options_.allow_unknown_ops) {
    bool known = op.def() != nullptr;
    for (const Value* operand : op.operands()) known = known && (!operand || operand->type().known());
    if (!known) return {};
  }
  return infer_result_types(op);
}

}  // namespace tenon::onnx
