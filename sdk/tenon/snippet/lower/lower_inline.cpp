// A body as instructions for one vector of another kernel.
#include <algorithm>

#include <tenon/snippet/lower/lower.hpp>

namespace tenon::snippet {

Result<InlineCode> lower_inline(const Body& body, LinearKernel& kernel, std::span<const RegisterId> inputs) {
  if (body.reduces()) return error(Code::invalid_argument, "body '", body.name, "' reduces: it needs loops of its own");
  if (inputs.size() != body.inputs.size())
    return error(Code::invalid_argument, "body '", body.name, "' has ", body.inputs.size(), " inputs, ", inputs.size(),
                 " registers are given");
  InlineCode code;
  std::vector<RegisterId> registers(body.values.size(), -1);
  const auto at = [&](ValueId id) -> RegisterId& { return registers[static_cast<size_t>(id)]; };
  for (size_t i = 0; i < inputs.size(); ++i) at(body.inputs[i].value) = inputs[i];
  for (const BodyNode& node : body.nodes) {
    at(node.result) = kernel.add_lanes(body.values[static_cast<size_t>(node.result)].element);
    Instruction made{.op = node.op, .attributes = node.attributes, .out = {at(node.result)}};
    for (const ValueId operand : node.operands) made.in.push_back(at(operand));
    if (!node.label.empty()) {
      const auto found = std::find(kernel.labels.begin(), kernel.labels.end(), node.label);
      made.label = static_cast<int>(found - kernel.labels.begin());
      if (found == kernel.labels.end()) kernel.labels.push_back(node.label);
    }
    (node.op == "Scalar" ? code.invariant : code.body).push_back(std::move(made));
  }
  for (const BodyPort& output : body.outputs) code.outputs.push_back(at(output.value));
  return code;
}

}  // namespace tenon::snippet
