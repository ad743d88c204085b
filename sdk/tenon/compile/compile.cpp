#include <tenon/compile/compile.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <tenon/compile/pass_walk.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/onnx/import.hpp>
#include <tenon/support/log.hpp>

namespace tenon {

Result<std::unique_ptr<CompiledModel>> compile(std::unique_ptr<Graph> graph, TargetRegistry& registry,
                                               const CompileOptions& options) {
  TENON_TRY(walk, PassWalk::open(registry, options));
  CompiledModel::Parts parts;
  const auto build = [&](GraphPart& part) -> Result<void> {
    TargetBackend& backend = *walk.backends()[part.target];
    TENON_TRY(executable, backend.build(std::move(part.graph)));
    parts.segments.push_back({backend.name(), std::move(executable), std::move(part.inputs), std::move(part.outputs)});
    return {};
  };
  TENON_TRY(walked, walk.run(std::move(graph), -1, build));
  for (size_t t = 0; t < walk.backends().size(); ++t)
    if (std::ranges::find(parts.segments, walk.backends()[t]->name(), &CompiledModel::Segment::target) !=
        parts.segments.end())
      parts.targets.push_back(walk.descriptions()[t]);
  parts.name = std::move(walked.name);
  parts.inputs = std::move(walked.inputs);
  parts.outputs = std::move(walked.outputs);
  parts.slots = walked.cut.slots;
  parts.constants = std::move(walked.cut.constants);
  parts.output_slots = std::move(walked.cut.output_slots);
  parts.placement = std::move(walked.cut.placement);
  parts.layouts = std::move(walked.layouts);
  if (!parts.layouts.empty()) {
    log(LogLevel::info, "layouts of '", parts.name, "':\n", parts.layouts.to_string());
  }
  return CompiledModel::assemble(std::move(parts));
}

Result<std::unique_ptr<Graph>> load_graph(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) return error(Code::not_found, "there is no file '", path, "'");
  if (std::filesystem::is_directory(path, status))
    return error(Code::io, "'", path, "' is a folder; name the file of a model");
  if (CompiledModel::is_artefact(path))
    return error(Code::invalid_argument, "'", path, "' is a compiled artefact; name the model that it was made of");
  if (!path.ends_with(".tir")) return import_model(path);
  if (!std::filesystem::is_regular_file(path, status)) return error(Code::io, "'", path, "' is not a regular file");
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) return error(Code::io, "cannot read '", path, "'");
  return parse_graph(text, path);
}

Result<std::unique_ptr<CompiledModel>> compile_file(const std::string& path, TargetRegistry& registry,
                                                    const CompileOptions& options) {
  // A plugin's operators must be registered before its models are read.
  TENON_OK(PassWalk::open(registry, options));
  TENON_TRY(graph, load_graph(path));
  return compile(std::move(graph), registry, options);
}

}  // namespace tenon
