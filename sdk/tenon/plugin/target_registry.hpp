// Targets by name: descriptions from YAML, joined with the plugins that drive them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/plugin/backend.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon {

struct PluginSearch {
  std::vector<std::string> paths;  // explicit files or folders, first in order
  bool insecure = false;           // load files that others could have written
};

// One plugin file that discovery looked at.
struct PluginStatus {
  std::string path, name, vendor, version;
  std::string error;  // empty: usable
  std::vector<std::string> targets;
  bool matched = false;  // the C++ side is usable too
};

struct TargetStatus {
  std::string name, plugin, yaml;
  bool available = false;
  std::string reason;  // why not
};

// Order of discovery: explicit paths, TENON_PLUGIN_PATH (folders, secure_getenv), ../lib/tenon/plugins beside the
// program and beside the core library. Nothing is run of a library until a target of it is wanted. Any thread.
class TENON_API TargetRegistry {
 public:
  explicit TargetRegistry(PluginSearch search = {});
  ~TargetRegistry();

  std::vector<PluginStatus> plugins();
  std::vector<TargetStatus> targets();
  // A target's name, or the path of a YAML file (contains '/' or ends in .yaml or .yml). Code::not_found lists what
  // there is, with a hint for a near miss; a plugin that cannot be used gives its own sentence.
  Result<std::unique_ptr<TargetBackend>> open(std::string_view target);
  // The same in two steps: what the target's file says, and what stands behind that.
  Result<TargetDescription> describe(std::string_view target);
  Result<std::unique_ptr<TargetBackend>> open(const TargetDescription& description);
  // Does all that `description` says mean something: the plugin that it names, and what it limits (check_limits)?
  // Whether the device is there is not asked.
  Result<void> check(const TargetDescription& description);
  // The available target that the descriptions rank highest (`rank`), the reference when there is no other.
  std::string best_target();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon
