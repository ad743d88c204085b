#include "session.hpp"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <tenon/support/log.hpp>
#include <tenon/support/str.hpp>

namespace tenon::cli {

void Session::add_global_options(CLI::App& app) {
  app.add_option("--plugin", search_.paths, "A plugin file, or a folder of plugins, to look at first")
      ->type_name("PATH");
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

Result<TargetRegistry*> Session::usable_registry() {
  for (const PluginStatus& plugin : registry().plugins())
    if (!plugin.error.empty() && std::ranges::find(search_.paths, plugin.path) != search_.paths.end())
      return error(Code::invalid_argument, "--plugin '", plugin.path, "' cannot be used: ", plugin.error);
  return registry_.get();
}

namespace {

// Names come from models: a terminal would interpret control characters in them.
std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    if (control) {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void Session::say(const std::string& line) const {
  if (!json) std::printf("%s\n", printable(line).c_str());
}

void Session::result(const Json& document) const {
  // Names come from models: bytes that are not UTF-8 are replaced, so that the document can always be parsed.
  if (json) std::printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

int Session::fail(const Error& error, std::string_view code) const {
  if (json) {
    result({{"error", code.empty() ? code_name(error.code()) : code}, {"message", error.to_string()}});
  } else {
    std::fflush(stdout);
    std::fprintf(stderr, "tenon: error: %s\n", printable(error.to_string()).c_str());
  }
  return kFailed;
}

namespace {

// Parses the whole text as a number.
template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  return code == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace

CLI::Validator number_in(double least, double most) {
  const auto check = [=](const std::string& text) {
    const auto value = number_of<double>(text);
    return value && *value >= least && *value <= most ? ""
                                                      : str(quote(text), " is no number from ", least, " to ", most);
  };
  return CLI::Validator(check, str("FLOAT in [", least, " - ", most, "]"));
}

CLI::Validator seed() {
  const auto check = [](const std::string& text) {
    return number_of<uint64_t>(text) ? "" : str(quote(text), " is no whole number from 0 to ", UINT64_MAX);
  };
  return CLI::Validator(check, "");
}

CLI::Validator file_name() {
  return CLI::Validator([](const std::string& text) { return text.empty() ? "the name of a file is empty" : ""; }, "");
}

Result<std::string> read_text(const std::string& file) {
  std::error_code status;
  if (!std::filesystem::exists(file, status)) return error(Code::not_found, "there is no file '", file, "'");
  if (!std::filesystem::is_regular_file(file, status))
    return error(Code::io, "'", file, "' is not a regular file; name one");
  std::ifstream in(file, std::ios::binary);
  if (!in) return error(Code::io, "cannot read '", file, "': ", std::strerror(errno));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return error(Code::io, "cannot read '", file, "'");
  return text;
}

Result<void> write_text(const std::string& file, const std::string& text) {
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (out.flush()) return {};
  return error(Code::io, "cannot write '", file, "'", errno ? ": " : "", errno ? std::strerror(errno) : "");
}

void ModelOptions::add_to(CLI::App& command) {
  command.add_option("MODEL", model, "An ONNX model, text IR (.tir) or a compiled artefact")->required();
  command
      .add_option("--target", targets,
                  "Targets in order of preference: names, YAML files, or auto; of an artefact: what describes its "
                  "targets instead of what it was compiled with")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--threads", threads, "Threads for host work; 0: all the process may use")
      ->check(CLI::Range(0, 1024));
  command.add_flag("--no-fallback", no_fallback, "An operator that no named target takes is an error");
  command.add_option("--min-coverage", min_coverage, "Least share of operators on the first target")
      ->check(number_in(0, 1));
  layouts.add_to(command);
}

void ModelOptions::add_dims_to(CLI::App& command) {
  command.add_option("--dim", dims, "NAME=N: a symbolic dim of seeded inputs (default 1)")->type_name("NAME=N");
}

void ValueLayoutOptions::add_to(CLI::App& command) {
  // Not split at commas, which index maps contain.
  command.add_option("--layout", texts, "A layout for the value NAME of the model")
      ->type_name("NAME=LAYOUT")
      ->allow_extra_args(false);
}

Result<std::map<std::string, std::string>> ValueLayoutOptions::by_value() const {
  std::map<std::string, std::string> out;
  for (const std::string& text : texts) {
    // Layouts contain '=' only after their first ';', names may contain it anywhere.
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

Result<std::unique_ptr<CompiledModel>> ModelOptions::load(Session& session,
                                                          std::vector<Preparation>* preparations) const {
  TENON_TRY(registry, session.usable_registry());
  if (CompiledModel::is_artefact(model)) {
    if (no_fallback || min_coverage > 0 || !layouts.texts.empty())
      return error(Code::invalid_argument, "'", model,
                   "' is a compiled artefact: its targets and layouts stand; leave out --no-fallback, --min-coverage "
                   "and --layout, or name the model");
    std::vector<TargetDescription> described;
    for (const std::string& target : targets) {
      if (target == "auto") continue;
      TENON_TRY(description, registry->describe(target));
      described.push_back(std::move(description));
    }
    return CompiledModel::load(model, *registry, described);
  }
  TENON_TRY(options, compile_options());
  options.preparations = preparations;
  return compile_file(model, *registry, options);
}

Result<SymbolValues> ModelOptions::dim_values() const {
  SymbolValues out;
  for (const std::string& text : dims) {
    const auto equals = text.rfind('=');
    const bool named = equals != std::string::npos && equals > 0;
    const auto value = named ? number_of<int64_t>(text.substr(equals + 1)) : std::nullopt;
    if (!value || *value < 0)
      return error(Code::invalid_argument, "--dim '", text, "' should be NAME=N with a number N >= 0");
    if (!out.emplace(text.substr(0, equals), *value).second)
      return error(Code::invalid_argument, "--dim gives two values to '", text.substr(0, equals), "'");
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

// The values of all symbols in shapes of inputs: from --dim, else 1.
Result<SymbolValues> symbols_of_inputs(const std::vector<ValueInfo>& inputs, const ModelOptions& options) {
  SymbolValues values;
  std::vector<std::string> names;
  for (const ValueInfo& input : inputs) {
    if (!input.type.is_tensor() || !input.type.shape().ranked()) continue;
    for (const Dim& dim : input.type.shape().dims())
      for (const std::string& symbol : dim.known() ? dim.expr().symbols() : std::vector<std::string>())
        if (values.emplace(symbol, 1).second) names.push_back(symbol);
  }
  TENON_TRY(given, options.dim_values());
  for (const auto& [name, value] : given) {
    const auto found = values.find(name);
    if (found == values.end())
      return error(Code::not_found, "--dim names '", name, "'; the symbolic dims of the model's inputs are ", names);
    found->second = value;
  }
  return values;
}

}  // namespace

Result<std::vector<Datum>> seeded_inputs(const std::vector<ValueInfo>& inputs, const ModelOptions& options,
                                         uint64_t seed) {
  TENON_TRY(symbols, symbols_of_inputs(inputs, options));
  std::mt19937_64 random(seed);
  std::vector<Datum> values;
  for (const ValueInfo& input : inputs) {
    if (!input.type.is_tensor() || !input.type.shape().ranked() || input.type.element().is_complex()) {
      return error(Code::unsupported, "no seeded value for input '", input.name, "' of type ", input.type,
                   "; give it with --input or --data");
    }
    Dims dims;
    for (const Dim& dim : input.type.shape().dims()) {
      int64_t extent = 1;
      if (dim.known()) {
        TENON_TRY(value, dim.expr().evaluate(symbols), "dim ", dim, " of input '", input.name, "'");
        extent = value;
      }
      dims.push_back(extent);
    }
    TENON_TRY(tensor, seeded_tensor(input.type.element(), std::move(dims), random), "input '", input.name, "'");
    values.emplace_back(std::move(tensor));
  }
  return values;
}

}  // namespace tenon::cli
