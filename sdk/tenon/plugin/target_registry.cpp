#include <tenon/plugin/target_registry.hpp>

#include <algorithm>
#include <utility>

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

struct TargetRegistry::Impl {
  PluginSearch search;

  // Why targets of this plugin cannot be opened; empty: they can.
  std::string unusable(const TargetDescription& description) const {
    if (description.plugin == kReference) return "";
    return str("no plugin '", description.plugin, "' is installed");
  }
};

TargetRegistry::TargetRegistry(PluginSearch search) : impl_(std::make_unique<Impl>()) {
  impl_->search = std::move(search);
}
TargetRegistry::~TargetRegistry() = default;

std::vector<PluginStatus> TargetRegistry::plugins() { return {}; }

std::vector<TargetStatus> TargetRegistry::targets() {
  std::vector<TargetStatus> out = {{std::string(kReference), std::string(kReference), "", true, ""}};
  for (const FoundTarget& found : list_targets()) {
    if (found.name == kReference) {
      out.front().yaml = found.path;
      continue;
    }
    TargetStatus status{found.name, "", found.path, false, ""};
    if (found.description.ok()) {
      status.plugin = found.description->plugin;
      status.reason = impl_->unusable(*found.description);
    } else {
      status.reason = found.description.error().message();
    }
    status.available = status.reason.empty();
    out.push_back(std::move(status));
  }
  return out;
}

Result<std::unique_ptr<TargetBackend>> TargetRegistry::open(std::string_view target) {
  auto description = find_target(target);
  // The fallback of everything works without any file.
  if (target == kReference && (!description.ok() || description->plugin != kReference))
    return create_reference_backend();
  if (!description.ok() && description.error().code() == Code::not_found && !is_path(target)) {
    std::vector<std::string> names;
    for (const TargetStatus& status : targets()) names.push_back(status.name);
    const std::string near = nearest(target, names);
    return error(Code::not_found, "no target '", target, "'", near.empty() ? "" : str(", did you mean '", near, "'?"),
                 "; there are ", names, ", and files by path");
  }
  if (!description.ok()) return std::move(description).error();
  if (description->plugin == kReference) return create_reference_backend(*std::move(description));
  return error(Code::unsupported, "target '", target, "' cannot be used: ", impl_->unusable(*description));
}

std::string TargetRegistry::best_target() { return std::string(kReference); }

}  // namespace tenon
