#include <tenon/plugin/target_registry.hpp>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include <tenon/plugin/limits.hpp>
#include <tenon/plugin/loader_internal.hpp>
#include <tenon/plugin/reference_backend.hpp>
#include <tenon/support/str.hpp>
#include <tenon/target/load.hpp>

namespace tenon {
namespace {

constexpr std::string_view kReference = "reference";

bool is_path(std::string_view target) {
  return target.find('/') != target.npos || target.ends_with(".yaml") || target.ends_with(".yml");
}

}  // namespace

using plugin_room::Candidate;
using plugin_room::LoadedPlugin;

struct TargetRegistry::Impl {
  PluginSearch search;
  std::once_flag discovered;
  std::vector<Candidate> candidates_;

  const std::vector<Candidate>& candidates() {
    std::call_once(discovered, [this] { candidates_ = plugin_room::discover(search); });
    return candidates_;
  }

  // The plugin that drives `description`, loaded.
  Result<std::shared_ptr<LoadedPlugin>> plugin_of(const TargetDescription& description) {
    std::vector<std::string> names, broken;
    for (const Candidate& candidate : candidates()) {
      if (candidate.status.name == description.plugin && candidate.file)
        return plugin_room::load_plugin(*candidate.file);
      if (candidate.file) names.push_back(candidate.status.name);
      // A file whose name cannot even be read may be the plugin that is missing.
      const bool meant = candidate.status.name == description.plugin ||
                         std::filesystem::path(candidate.status.path).stem() == description.plugin;
      if (!candidate.file && meant) broken.push_back(candidate.status.error);
    }
    if (!broken.empty()) return error(Code::plugin, broken.front());
    const std::string near = nearest(description.plugin, names);
    return error(Code::not_found, "no plugin '", description.plugin, "' is installed",
                 near.empty() ? "" : str(", did you mean '", near, "'?"), "; found: ", names,
                 "; --plugin PATH or TENON_PLUGIN_PATH name further places");
  }

  // The plugin that drives it; none for the reference. Its operators are registered from here on.
  Result<std::shared_ptr<LoadedPlugin>> checked(const TargetDescription& description) {
    std::shared_ptr<LoadedPlugin> plugin;
    if (description.plugin == kReference) {
      TENON_OK(check_reference(description));
    } else {
      TENON_TRY(loaded, plugin_of(description));
      plugin = std::move(loaded);
    }
    TENON_OK(check_limits(description));
    return plugin;
  }

  Result<void> available(const TargetDescription& description) {
    TENON_TRY(plugin, checked(description));
    return plugin ? plugin->available(description) : Result<void>();
  }
};

TargetRegistry::TargetRegistry(PluginSearch search) : impl_(std::make_unique<Impl>()) {
  impl_->search = std::move(search);
}
TargetRegistry::~TargetRegistry() = default;

std::vector<PluginStatus> TargetRegistry::plugins() {
  std::vector<PluginStatus> out;
  for (const Candidate& candidate : impl_->candidates()) out.push_back(candidate.status);
  return out;
}

std::vector<TargetStatus> TargetRegistry::targets() {
  std::vector<TargetStatus> out = {{std::string(kReference), std::string(kReference), "", true, ""}};
  for (const FoundTarget& found : list_targets()) {
    if (found.name == kReference) {
      out.front().yaml = found.path;
      continue;
    }
    TargetStatus status{found.name, "", found.path, false, ""};
    if (found.description.ok()) status.plugin = found.description->plugin;
    const auto usable = found.description.ok() ? impl_->available(*found.description) : found.description.error();
    status.available = usable.ok();
    if (!usable.ok()) status.reason = usable.error().message();
    out.push_back(std::move(status));
  }
  for (const Candidate& candidate : impl_->candidates()) {
    if (!candidate.file) continue;
    for (const std::string& target : candidate.status.targets) {
      if (std::ranges::find(out, target, &TargetStatus::name) != out.end()) continue;
      out.push_back({target, candidate.status.name, "", false,
                     str("no file '", target, ".yaml' describes it; TENON_TARGET_PATH names further folders")});
    }
  }
  return out;
}

Result<std::unique_ptr<TargetBackend>> TargetRegistry::open(std::string_view target) {
  TENON_TRY(description, describe(target));
  return open(description);
}

Result<TargetDescription> TargetRegistry::describe(std::string_view target) {
  auto description = find_target(target);
  // The fallback works without any file.
  if (target == kReference &&
      !(description.ok() && description->plugin == kReference && impl_->checked(*description).ok()))
    return reference_description();
  if (!description.ok() && description.error().code() == Code::not_found && !is_path(target)) {
    std::vector<std::string> names;
    for (const TargetStatus& status : targets()) {
      if (status.name == target)
        return error(Code::not_found, "target '", target, "' is not available: ", status.reason);
      names.push_back(status.name);
    }
    const std::string near = nearest(target, names);
    return error(Code::not_found, "no target '", target, "'", near.empty() ? "" : str(", did you mean '", near, "'?"),
                 "; there are ", names, ", and files by path");
  }
  return description;
}

Result<std::unique_ptr<TargetBackend>> TargetRegistry::open(const TargetDescription& description) {
  TENON_TRY(plugin, impl_->checked(description), "opening target '", description.name, "'");
  if (!plugin) return create_reference_backend(description);
  TENON_OK(plugin->available(description), "opening target '", description.name, "'");
  TENON_TRY(backend, plugin->create_backend(description), "opening target '", description.name, "'");
  return backend;
}

Result<void> TargetRegistry::check(const TargetDescription& description) {
  TENON_OK(impl_->checked(description));
  return {};
}

std::string TargetRegistry::best_target() {
  std::vector<TargetDescription> ranked;
  for (FoundTarget& found : list_targets()) {
    if (found.description.ok() && found.description->rank > 0) ranked.push_back(*std::move(found.description));
  }
  // Equal ranks are ordered by name.
  std::ranges::stable_sort(ranked, std::ranges::greater(), &TargetDescription::rank);
  const auto best = std::ranges::find_if(ranked, [&](const auto& target) { return impl_->available(target).ok(); });
  return best == ranked.end() ? std::string(kReference) : best->name;
}

}  // namespace tenon
