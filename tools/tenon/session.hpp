// What all commands of the program share: global options, output as text or JSON, exit codes.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <tenon/compile/compile.hpp>
#include <tenon/plugin/target_registry.hpp>
#include <tenon/runtime/thread_pool.hpp>
#include <tenon/support/result.hpp>

namespace tenon::cli {

using Json = nlohmann::json;

// Exit codes that scripts rely on.
inline constexpr int kDone = 0, kFailed = 1, kUsage = 2;

class Session {
 public:
  bool json = false;

  // Adds the program's own flags, and --json to each command.
  void add_global_options(CLI::App& app);
  static void add_json(CLI::App& command, Session& session);

  // For `devices`, which also lists plugins that cannot be used.
  TargetRegistry& registry();
  // For commands that use targets: a file named by --plugin that cannot be used is an error.
  Result<TargetRegistry*> usable_registry();
  // The values of --plugin and --insecure.
  const PluginSearch& search() const { return search_; }
  // A table row or sentence on standard output; nothing with --json.
  void say(const std::string& line) const;
  // Prints the command's JSON document, if --json was given.
  void result(const Json& document) const;
  // Prints the error on standard error, or as the JSON document, in which `code` may replace that of the error. Returns
  // kFailed.
  int fail(const Error& error, std::string_view code = {}) const;

 private:
  PluginSearch search_;
  std::unique_ptr<TargetRegistry> registry_;
};

// Checks of options; a refused option is a usage error.
CLI::Validator number_in(double least, double most);  // finite; the bounds are included
CLI::Validator seed();                                // 0 to 2^64 - 1, without a sign
CLI::Validator file_name();                           // not empty, which does not mean standard output

// Reads a whole file; errors give the reason. Only regular files are read: others may have no end.
Result<std::string> read_text(const std::string& file);
Result<void> write_text(const std::string& file, const std::string& text);

// --layout NAME=LAYOUT, which may be repeated.
struct ValueLayoutOptions {
  std::vector<std::string> texts;

  void add_to(CLI::App& command);
  Result<std::map<std::string, std::string>> by_value() const;
};

// Options of commands that compile a model.
struct ModelOptions {
  std::string model;
  std::vector<std::string> targets{"auto"};
  int threads = 0;
  bool no_fallback = false;
  double min_coverage = 0;
  std::vector<std::string> dims;  // NAME=N for symbolic dims
  ValueLayoutOptions layouts;

  void add_to(CLI::App& command);
  // --dim, for commands that run the model.
  void add_dims_to(CLI::App& command);
  Result<CompileOptions> compile_options() const;
  // Loads an artefact, or compiles a model; `preparations` then receives what targets prepared. Options that would
  // require a different artefact are an error.
  Result<std::unique_ptr<CompiledModel>> load(Session& session, std::vector<Preparation>* preparations = nullptr) const;
  // Values for symbolic dims, by name.
  Result<SymbolValues> dim_values() const;
};

// Seeded inputs of a model: floats uniform in [-1, 1), integers 0 or 1, booleans either, texts empty. Unknown dims are
// 1, as are symbolic ones that --dim does not name. An unknown name in --dim is an error.
Result<std::vector<Datum>> seeded_inputs(const std::vector<ValueInfo>& inputs, const ModelOptions& options,
                                         uint64_t seed);

// Each registers one command; `exit_code` receives the program's exit code.
void add_devices(CLI::App& app, Session& session, int& exit_code);
void add_run(CLI::App& app, Session& session, int& exit_code);
void add_bisect(CLI::App& app, Session& session, int& exit_code);
void add_bench(CLI::App& app, Session& session, int& exit_code);
void add_report(CLI::App& app, Session& session, int& exit_code);
void add_opt(CLI::App& app, Session& session, int& exit_code);
void add_compile(CLI::App& app, Session& session, int& exit_code);
void add_emit(CLI::App& app, Session& session, int& exit_code);
void add_quantise(CLI::App& app, Session& session, int& exit_code);
void add_layout(CLI::App& app, Session& session, int& exit_code);
void add_target(CLI::App& app, Session& session, int& exit_code);
void add_new_plugin(CLI::App& app, Session& session, int& exit_code);
void add_conformance(CLI::App& app, Session& session, int& exit_code);
void add_certify(CLI::App& app, Session& session, int& exit_code);

}  // namespace tenon::cli
