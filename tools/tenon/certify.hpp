// tenon certify: the groups of checks for a plugin. No code of a plugin runs in this process: each task has a process
// of its own, so that a crash or a hang is a failed check.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/plugin/inspect.hpp>
#include <tenon/plugin/target_registry.hpp>

#include "apart.hpp"
#include "session.hpp"

namespace tenon::cli {

enum class Verdict : uint8_t { passed, failed, not_applicable };
std::string_view verdict_name(Verdict verdict);

struct Check {
  std::string group, name;
  Verdict verdict = Verdict::failed;
  std::string sentence;
};

struct Certification {
  std::string path;                 // of the plugin's file
  PluginSearch search;              // with that file first
  std::regex filter;                // of operators and ONNX cases, by name
  std::string data;                 // the folder of ONNX cases; empty: those of this machine, if any
  std::vector<std::string> models;  // files of the plugin's vendor
  double timeout_s = 60;            // per task
  int jobs = 1;                     // number of concurrent processes
  std::function<void(Check)> report;
  std::function<void(const std::string&)> progress;
};

// Whether this core would accept the file, as far as the file itself shows.
struct Acceptance {
  bool taken = false;
  std::string side;    // "C++" or "plain"
  std::string reason;  // why not; for the plain side: why not the C++ one, if there is one
};
Acceptance acceptance_of(const PluginFile& file, const PluginSearch& search);

// Checks the note, permissions, symbols, loading. Null: the plugin cannot be loaded.
std::unique_ptr<PluginFile> certify_file(const Certification& run);
// Checks the description, the backend, the device. False: nothing can run there.
bool certify_target(const Certification& run, const PluginFile& file, const std::string& target);
// Checks each operator by random instances: what is refused, and what cannot be compiled, run, or differs from the
// reference; executables; errors.
void certify_operators(const Certification& run, const std::string& target);
// The same for whole models, with the plugin's own operators and passes.
void certify_models(const Certification& run, const std::string& target);
// ONNX cases, with and without fallback.
void certify_cases(const Certification& run, const std::string& target);

// ---- Processes of their own ----------------------------------------------------------------------------------------

// The stages of tasks, visible to their parent, which reports them when a task has ended its process.
class Stages {
 public:
  explicit Stages(size_t tasks);
  ~Stages();
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
  void set(size_t task, std::string_view text) const;
  std::string of(size_t task) const;

 private:
  size_t bytes_;
  char* texts_;
};

// run_apart() with the tasks' standard output discarded, because it belongs to the report.
void run_silently(size_t tasks, const ApartOptions& options, const std::function<std::string(size_t)>& work,
                  const std::function<void(size_t, ApartAnswer)>& done);
void drop_standard_output();

// Runs `work` in a separate process; returns its error, or how the process ended, and at what stage.
Result<void> try_apart(double timeout_s, const std::function<Result<void>(const Stages& stages)>& work);

}  // namespace tenon::cli
