// Finding and loading plugins.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/plugin/inspect.hpp>
#include <tenon/plugin/target_registry.hpp>

namespace tenon::plugin_room {

struct Candidate {
  PluginStatus status;
  std::optional<PluginFile> file;  // when status.error is empty
};

// Inspects files and runs none of their code. A duplicate of an earlier candidate has that as its error.
std::vector<Candidate> discover(const PluginSearch& search);

// A plugin in this process. Loaded once, however many registries request it, and never unloaded. Thread-safe.
class LoadedPlugin {
 public:
  virtual ~LoadedPlugin() = default;
  // An error states why there is no device for the target.
  virtual Result<void> available(const TargetDescription& description) = 0;
  virtual Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) = 0;
};

// Loads the library, after a trial in a child process: a library that crashes, exits or hangs there is never loaded
// here.
Result<std::shared_ptr<LoadedPlugin>> load_plugin(const PluginFile& file);

}  // namespace tenon::plugin_room
