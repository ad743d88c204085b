#include <tenon/onnx/import.hpp>

#include <algorithm>

#include <tenon/ir/verify.hpp>
#include <tenon/onnx/import_internal.hpp>
#include <tenon/onnx/model_file_internal.hpp>

namespace tenon {
namespace onnx {
namespace {

constexpr int64_t kOldestIr = 3, kNewestIr = 13;
// The most nodes after inlining: this many times the nodes of the file, or this many in all, whichever is more.
constexpr uint64_t kInlineFactor = 64, kInlineFloor = 20'000;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<void> check_text(std::string_view text, std::string_view what) {
  if (!is_utf8(text)) return error(Code::parse, what, " ", quote(text), " is not UTF-8");
  return {};
}

Importer::Importer(format::ModelProto& model, const ImportOptions& options, ExternalData* external)
    : model_(model), options_(options), external_(external) {
  // Tensors are moved out of the message; one that occurs again (in a function called twice) is shared.
  source_.tensor = [this](const format::TensorProto& proto) { return taken(proto, take_tensor); };
  source_.sparse = [this](const format::SparseTensorProto& proto) { return taken(proto, take_sparse_tensor); };
}

Result<std::unique_ptr<Graph>> Importer::run() {
  if (!model_.has_graph()) return error(Code::parse, "it has no graph: it is no ONNX model");
  if (model_.ir_version() < kOldestIr || model_.ir_version() > kNewestIr) {
    return error(Code::unsupported, "IR version ", model_.ir_version(), " is outside ", kOldestIr, " to ", kNewestIr);
  }
  TENON_TRY(opsets, read_opsets(model_.opset_import()));
  if (opsets.empty()) return error(Code::invalid_argument, "it imports no operator set");
  TENON_TRY(functions, FunctionTable::build(model_));
  functions_ = std::move(functions);
  TENON_OK(check_survey(opsets));

  auto graph = std::make_unique<Graph>(model_.graph().name());
  write_properties(*graph, opsets);
  const Frame frame{&opsets};
  TENON_OK(import_graph(model_.graph(), graph->body(), nullptr, frame, 0));
  TENON_OK(verify(*graph, {.allow_unknown_ops = options_.allow_unknown_ops, .require_types = false}),
           "checking the graph");
  return graph;
}

Result<void> Importer::check_survey(const Opsets& opsets) {
  TENON_TRY(survey, functions_.survey(model_.graph().node(), opsets, options_.max_depth));
  budget_ =
      options_.max_inlined_nodes ? options_.max_inlined_nodes : std::max(kInlineFloor, kInlineFactor * survey.stored);
  if (survey.nodes > budget_) return over_budget(survey.nodes, survey.stored);
  if (!survey.unknown_ops.empty() && !options_.allow_unknown_ops) {
    std::string all;
    for (const std::string& op : survey.unknown_ops) all += (all.empty() ? "" : ", ") + op;
    return error(Code::unsupported, "no operator ", all, "; load the plugin that brings ",
                 survey.unknown_ops.size() > 1 ? "them" : "it");
  }
  return {};
}

Error Importer::over_budget(uint64_t nodes, uint64_t stored) const {
  return error(Code::resource_exhausted, "inlining its functions makes ", nodes, " nodes of ", stored,
               "; the budget is ", budget_, " (ImportOptions::max_inlined_nodes raises it)");
}

void Importer::write_properties(Graph& graph, const Opsets& opsets) const {
  auto& properties = graph.properties();
  const auto note = [&](const std::string& key, const std::string& text) {
    if (!text.empty()) properties[key] = text;
  };
  note("ir_version", str(model_.ir_version()));
  for (const auto& [domain, version] : opsets) note("opset." + (domain.empty() ? "ai.onnx" : domain), str(version));
  note("producer_name", model_.producer_name());
  note("producer_version", model_.producer_version());
  note("domain", model_.domain());
  if (model_.has_model_version()) note("model_version", str(model_.model_version()));
  note("doc_string", model_.doc_string());
  note("graph.doc_string", model_.graph().doc_string());
  for (const auto& entry : model_.metadata_props()) properties["metadata." + entry.key()] = entry.value();
}

template <class Proto>
Result<Tensor> Importer::taken(const Proto& proto, Result<Tensor> (*take)(Proto&, ExternalData*)) {
  if (const auto found = taken_.find(&proto); found != taken_.end()) return found->second;
  // The message belongs to this importer (model_); only the path to it is const.
  TENON_TRY(tensor, take(const_cast<Proto&>(proto), external_));
  taken_.emplace(&proto, tensor);
  return tensor;
}

namespace {

Result<std::unique_ptr<Graph>> import_message(format::ModelProto& model, const ImportOptions& options,
                                              const std::string& folder) {
  std::unique_ptr<ExternalData> external;
  if (!folder.empty()) {
    TENON_TRY(opened, ExternalData::open(folder));
    external = std::move(opened);
  }
  return Importer(model, options, external.get()).run();
}

}  // namespace
}  // namespace onnx

Result<std::unique_ptr<Graph>> import_model(const std::string& path, const ImportOptions& options) {
  onnx::format::ModelProto model;
  TENON_OK(onnx::parse_file(path, model));
  const std::string folder =
      options.external_data_folder.empty() ? onnx::folder_of(path) : options.external_data_folder;
  TENON_TRY(graph, onnx::import_message(model, options, folder), "model '", path, "'");
  return graph;
}

Result<std::unique_ptr<Graph>> import_model_bytes(std::span<const std::byte> bytes, const ImportOptions& options,
                                                  std::string_view where) {
  onnx::format::ModelProto model;
  TENON_OK(onnx::parse_message(bytes, where, model));
  TENON_TRY(graph, onnx::import_message(model, options, options.external_data_folder), where);
  return graph;
}

}  // namespace tenon
