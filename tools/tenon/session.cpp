#include "session.hpp"

#include <cstdio>
#include <random>

#include <tenon/support/log.hpp>
#include <tenon/support/str.hpp>

namespace tenon::cli {

void Session::add_global_options(CLI::App& app) {
  app.add_option("--plugin", search_.paths, "A plugin file, or a folder of plugins, to look at first")->type_name("PATH");
  app.add_flag("--insecure", search_.insecure, "Load plugins that others could have written");
  app.add_flag_callback("-v,--verbose", [] { set_log_level(LogLevel::info); }, "Say what is done and why");
}

void Session::add_json(CLI::App& command, Session& session) {
  command.add_flag("--json", session.json, "One JSON document on standard output");
}

TargetRegistry& Session::registry() {
  if (!registry_) registry_ = std::make_unique<TargetRegistry>(search_);
  return *registry_;
}

void Session::say(const std::string& line) const {
  if (!json) std::printf("%s\n", line.c_str());
}

void Session::result(const Json& document) const {
  // Names come from models: bytes that are no UTF-8 are replaced, so that the document always parses.
  if (json) std::printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

int Session::fail(const Error& error, std::string_view code) const {
  if (json) {
    result({{"error", code.empty() ? code_name(error.code()) : code}, {"message", error.to_string()}});
  } else {
    std::fflush(stdout);
    std::fprintf(stderr, "tenon: error: %s\n", error.to_string().c_str());
  }
  return kFailed;
}

void ModelOptions::add_to(CLI::App& command) {
  command.add_option("MODEL", model, "An ONNX model, text IR (.tir) or a compiled artefact")->required();
  command.add_option("--target", targets, "Targets in order of preference: names, YAML files, or auto")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--threads", threads, "Threads for host work; 0: all the process may use")
      ->check(CLI::Range(0, 1024));
  command.add_flag("--no-fallback", no_fallback, "An operator that no named target takes is an error");
  command.add_option("--min-coverage", min_coverage, "Least share of operators on the first target")
      ->check(CLI::Range(0.0, 1.0));
  layouts.add_to(command);
  command.add_option("--dim", dims, "NAME=N: a symbolic dim of seeded inputs (default 1)")->type_name("NAME=N");
}

void ValueLayoutOptions::add_to(CLI::App& command) {
  // Not split at commas, which index maps have.
  command.add_option("--layout", texts, "A layout for the value NAME of the model")
      ->type_name("NAME=LAYOUT")
      ->allow_extra_args(false);
}

Result<std::map<std::string, std::string>> ValueLayoutOptions::by_value() const {
  std::map<std::string, std::string> out;
  for (const std::string& text : texts) {
    // Layouts hold '=' behind their first ';' only, names may hold it anywhere.
    const auto equals = text.substr(0, text.find(';')).rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return error(Code::invalid_argument, "--layout '", text, "' should be NAME=LAYOUT, such as conv1_out=NHWC");
    }
    if (!out.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      return error(Code::invalid_argument, "--layout gives two layouts to '", text.substr(0, equals), "'");
    }
  }
  return out;
}

Result<CompileOptions> ModelOptions::compile_options() const {
  CompileOptions options;
  TENON_TRY(by_value, layouts.by_value());
  options.layouts = std::move(by_value);
  options.targets = targets;
  options.no_fallback = no_fallback;
  options.min_coverage = min_coverage;
  return options;
}

Result<std::unique_ptr<CompiledModel>> ModelOptions::load(Session& session, std::vector<Preparation>* preparations) const {
  if (CompiledModel::is_artefact(model)) return CompiledModel::load(model, session.registry());
  TENON_TRY(options, compile_options());
  options.preparations = preparations;
  return compile_file(model, session.registry(), options);
}

Result<std::vector<std::pair<std::string, int64_t>>> ModelOptions::dim_values() const {
  std::vector<std::pair<std::string, int64_t>> out;
  for (const std::string& text : dims) {
    const auto equals = text.rfind('=');
    int64_t value = -1;
    if (equals != std::string::npos) {
      const char* end = text.data() + text.size();
      const auto [stop, code] = std::from_chars(text.data() + equals + 1, end, value);
      if (code != std::errc() || stop != end) value = -1;
    }
    if (value < 0) return error(Code::invalid_argument, "--dim '", text, "' should be NAME=N with a number N >= 0");
    out.emplace_back(text.substr(0, equals), value);
  }
  return out;
}

namespace {

Result<Tensor> seeded_tensor(ElementType element, Dims dims, std::mt19937_64& random) {
  TENON_TRY(tensor, Tensor::zeros(element, std::move(dims)));
  if (element.is_string()) return tensor;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const uint64_t bits = random();
    if (element.is_float()) {
      tensor.set_double(i, static_cast<double>(bits >> 11) * 0x1p-52 - 1.0);
    } else {
      tensor.set_int(i, static_cast<int64_t>(bits >> 63));
    }
  }
  return tensor;
}

}  // namespace

Result<std::vector<Datum>> seeded_inputs(const CompiledModel& model, const ModelOptions& options, uint64_t seed) {
  TENON_TRY(given, options.dim_values());
  std::mt19937_64 random(seed);
  std::vector<Datum> inputs;
  for (const ValueInfo& input : model.inputs()) {
    if (!input.type.is_tensor() || !input.type.shape().ranked() || input.type.element().is_complex()) {
      return error(Code::unsupported, "no seeded value for input '", input.name, "' of type ", input.type,
                   "; give it with --input or --data");
    }
    Dims dims;
    for (const Dim& dim : input.type.shape().dims()) {
      int64_t extent = 1;
      if (dim.known()) {
        SymbolValues values(given.begin(), given.end());
        for (const std::string& symbol : dim.expr().symbols()) values.emplace(symbol, 1);
        TENON_TRY(value, dim.expr().evaluate(values), "dim ", dim, " of input '", input.name, "'");
        extent = value;
      }
      dims.push_back(extent);
    }
    TENON_TRY(tensor, seeded_tensor(input.type.element(), std::move(dims), random), "input '", input.name, "'");
    inputs.emplace_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace tenon::cli
