// Targets by name: descriptions from YAML, combined with the plugins that drive them.
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
  std::vector<std::string> paths;  // explicit files or folders, searched first in order
  bool insecure = false;           // load files that others could have written
};

// One plugin file found by discovery.
struct PluginStatus {
  std::string path, name, vendor, version;
  std::string error;  // empty: usable
  std::vector<std::string> targets;
  bool matched = false;  // the C++ side is usable, too
};

struct TargetStatus {
  std::string name, plugin, yaml;
  bool available = false;
  std::string reason;  // why not
};

// Order of discovery: explicit paths, TENON_PLUGIN_PATH (folders, secure_getenv), ../lib/tenon/plugins relative to the
// program and to the core library. No code of a library runs until a target of it is requested. Thread-safe.
class TENON_API TargetRegistry {
 public:
  explicit TargetRegistry(PluginSearch search = {});
  ~TargetRegistry();

  std::vector<PluginStatus> plugins();
  std::vector<TargetStatus> targets();
  // A target's name, or the path of a YAML file (contains '/' or ends in .yaml or .yml). Code::not_found lists what
  // exists, with a hint for a near miss; a plugin that cannot be used gives its own message.
  Result<std::unique_ptr<TargetBackend>> open(std::string_view target);
  // The same in two steps: the description in the target's file, and the backend for it.
  Result<TargetDescription> describe(std::string_view target);
  Result<std::unique_ptr<TargetBackend>> open(const TargetDescription& description);
  // Checks that everything in `description` has a meaning: the plugin that it names, and its limits (check_limits).
  // Does not check whether the device is present.
  Result<void> check(const TargetDescription& description);
  // The available target that the descriptions rank highest (`rank`), the reference when there is no other.
  std::string best_target();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon
