#include <tenon/onnx/import_internal.hpp>

namespace tenon::onnx {

Result<void> Importer::inline_call(const NodeProto& call, const FunctionProto& function, Region& region, Scope& scope,
                                   const Frame& frame, size_t depth) {
  const std::string name = full_name(function.domain(), function.name());
  if (frame.depth >= options_.max_depth) {
    return error(Code::resource_exhausted, "function calls are nested more than ", options_.max_depth, " deep");
  }
  if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
    return error(Code::invalid_argument, "the call has ", call.input_size(), " inputs and ", call.output_size(),
                 " outputs; function '", name, "' has ", function.input_size(), " and ", function.output_size());
  }
  Frame inner{&functions_.opsets(function)};
  inner.depth = frame.depth + 1;
  inner.prefix = str(frame.prefix, call.name().empty() ? str(call.op_type(), "_", ++calls_) : call.name(), "/");
  for (const auto& attribute : call.attribute()) {
    if (const auto binding = resolve(attribute, frame, scope)) inner.attributes.emplace(attribute.name(), *binding);
  }
  for (const auto& attribute : function.attribute_proto()) {
    inner.attributes.emplace(attribute.name(), Frame::Binding{&attribute, &frame, &scope});
  }
  for (const auto& attribute : function.attribute()) {
    if (!inner.attributes.contains(attribute)) {
      return error(Code::invalid_argument, "the call lacks attribute '", attribute, "' of function '", name, "'");
    }
  }
  TENON_TRY(operands, operands_of(call, scope));
  TENON_OK(check_made_once(function), "function '", name, "'");
  Scope body;
  for (int i = 0; i < function.input_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    TENON_OK(define(body, function.input(i), at < operands.size() ? operands[at] : nullptr), "function '", name, "'");
  }
  TENON_OK(import_nodes(function.node(), region, body, inner, depth), "function '", name, "'");
  std::vector<Value*> results;
  for (const auto& output : function.output()) {
    Value* const* value = body.find(output);
    if (!value)
      return error(Code::invalid_argument, "output ", quote(output), " of function '", name, "' is made by nothing");
    results.push_back(*value);
  }
  return define_results(call, results, operands, scope, frame);
}

}  // namespace tenon::onnx
