#include <tenon/onnx/import_internal.hpp>
#include <tenon/onnx/regions_internal.hpp>

namespace tenon::onnx {

Result<void> Importer::import_regions(Op& op, const std::map<std::string, Frame::Binding>& graphs, size_t depth) {
  const auto import_one = [&](const std::string& name, const Frame::Binding& binding) -> Result<void> {
    TENON_OK(import_graph(binding.attribute->g(), op.add_region(), binding.scope, *binding.frame, depth + 1), "graph '",
             name, "'");
    return {};
  };
  const auto names = region_names(op.name());
  if (!names) {
    for (const auto& [name, binding] : graphs) TENON_OK(import_one(name, binding));
    return {};
  }
  for (const RegionName& name : *names) {
    const auto found = graphs.find(std::string(name.attribute));
    if (found != graphs.end()) {
      TENON_OK(import_one(found->first, found->second));
    } else if (name.optional) {
      Region& region = op.add_region();
      region.add_output(region.add_input("x", left_out_input_type(op)), "x");
    } else {
      return error(Code::invalid_argument, "it has no graph '", name.attribute, "'");
    }
  }
  return {};
}

Result<std::vector<Value*>> Importer::import_batched_scan(const UpgradeNode& node,
                                                          const std::map<std::string, Frame::Binding>& graphs,
                                                          size_t depth) {
  if (node.operand(0)) return error(Code::unsupported, "Scan of opset 8 with sequence_lens is not supported");
  if (node.operands.empty()) return error(Code::invalid_argument, "it has no operands");
  const std::vector<Value*> operands(node.operands.begin() + 1, node.operands.end());
  Op& batch = node.builder.create("Scan", operands, node.results, {{"num_scan_inputs", operands.size()}});
  Region& body = batch.add_region();
  for (size_t i = 0; i < operands.size(); ++i) body.add_input(str("sample_", i), region_input_type(batch, i));

  Attributes attributes{{"num_scan_inputs", node.attr<int64_t>("num_scan_inputs")}};
  if (const Attribute* directions = node.attributes.find("directions"))
    attributes.set("scan_input_directions", *directions);
  std::vector<Value*> samples;
  for (size_t i = 0; i < operands.size(); ++i) samples.push_back(body.input(i));
  Op& sequence = Builder(body).create("Scan", samples, node.results, std::move(attributes));
  TENON_OK(import_regions(sequence, graphs, depth + 1));
  TENON_OK(infer(sequence));
  std::vector<Value*> results;
  for (size_t i = 0; i < node.results; ++i) {
    body.add_output(sequence.result(i), str("result_", i));
    results.push_back(batch.result(i));
  }
  TENON_OK(infer(batch));
  return results;
}

}  // namespace tenon::onnx
