// Finding plugins, and loading them.
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

// Looks at files, runs nothing. What is a duplicate of an earlier candidate carries that as its error.
std::vector<Candidate> discover(const PluginSearch& search);

// A plugin in this process. Loaded once, whatever number of registries asks, and never unloaded. Any thread.
class LoadedPlugin {
 public:
  virtual ~LoadedPlugin() = default;
  // An error says why there is no device for the target.
  virtual Result<void> available(const TargetDescription& description) = 0;
  virtual Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) = 0;
};

// Loads the library, after a first try in a child process: what crashes, ends or hangs there never runs here.
Result<std::shared_ptr<LoadedPlugin>> load_plugin(const PluginFile& file);

}  // namespace tenon::plugin_room
