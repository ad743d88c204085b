// tenon certify: the groups of checks that a plugin goes through. Nothing of a plugin runs in this process: each task
// has one of its own, so that what crashes or hangs there is a check that failed.
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
  std::vector<std::string> models;  // files of the plugin's maker
  double timeout_s = 60;            // of each task
  int jobs = 1;                     // processes at a time
  std::function<void(Check)> report;
  std::function<void(const std::string&)> progress;
};

// What this core would do with the file, as far as the file tells.
struct Acceptance {
  bool taken = false;
  std::string side;    // "C++" or "plain"
  std::string reason;  // why not; of the plain side: why not the C++ one, where there is one
};
Acceptance acceptance_of(const PluginFile& file, const PluginSearch& search);

// The note, permissions, symbols, loading. Null: the plugin cannot be loaded.
std::unique_ptr<PluginFile> certify_file(const Certification& run);
// The description, the backend, the device. False: nothing can run there.
bool certify_target(const Certification& run, const PluginFile& file, const std::string& target);
// Each operator by random instances: what is refused, and what is not compiled, run and compared with the reference;
// executables; errors.
void certify_operators(const Certification& run, const std::string& target);
// The same of whole models, with the operators and passes of the plugin's own.
void certify_models(const Certification& run, const std::string& target);
// ONNX cases, with the fallback and without.
void certify_cases(const Certification& run, const std::string& target);

// ---- Processes of their own ----------------------------------------------------------------------------------------

// What tasks are at, seen from their parent: said when one has ended its process.
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

// run_apart() with standard output of the tasks dropped: that is the report's.
void run_silently(size_t tasks, const ApartOptions& options, const std::function<std::string(size_t)>& work,
                  const std::function<void(size_t, ApartAnswer)>& done);
void drop_standard_output();

// `work` in a process of its own; its error, or how the process ended, at what stage.
Result<void> try_apart(double timeout_s, const std::function<Result<void>(const Stages& stages)>& work);

}  // namespace tenon::cli
