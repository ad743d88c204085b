#define BOOST_DLL_USE_STD_FS
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include <boost/dll/shared_library.hpp>

#include <tenon/plugin/layout.hpp>
#include <tenon/plugin/loader_internal.hpp>
#include <tenon/plugin/plain_internal.hpp>
#include <tenon/plugin/probe.hpp>
#include <tenon/support/log.hpp>

namespace tenon::plugin_room {
namespace {

using SharedLibrary = boost::dll::shared_library;

// Serialises loading, process-wide.
std::recursive_mutex& loader_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

struct Started {
  OriginPtr origin;
  tenon_slots slots{};
  std::shared_ptr<Plugin> plugin;  // the C++ side, null when only the plain one is usable
};

Error fault(const PluginFile& file, std::string_view what) {
  return error(Code::plugin, "plugin '", file.name, "' (", file.path, ") ", what);
}

// An absolute path, every symbol bound immediately, nothing appended to the name; on failure, the message of the
// dynamic loader.
Result<std::shared_ptr<SharedLibrary>> open_library(const PluginFile& file) {
  try {
    return std::make_shared<SharedLibrary>(file.path, boost::dll::load_mode::rtld_now);
  } catch (const std::exception& thrown) {
    return fault(file, str("cannot be loaded: ", thrown.what()));
  }
}

Result<const tenon_plugin*> find_symbol(const PluginFile& file, const SharedLibrary& library) {
  try {
    if (library.has(TENON_PLUGIN_SYMBOL)) return &library.get<const tenon_plugin>(TENON_PLUGIN_SYMBOL);
  } catch (const std::exception& thrown) {
    return fault(file, str("does not give its symbol: ", thrown.what()));
  }
  return fault(file, "lacks the symbol '" TENON_PLUGIN_SYMBOL "'; it must be exported with default visibility");
}

Result<void> check_slots(const PluginFile& file, const tenon_slots& slots) {
  struct Slot {
    std::string_view group, name;
    bool filled;
  };
#define TENON_SLOT_STATE(group, result, name, arguments) {#group, #name, slots.name != nullptr},
  const Slot all[] = {TENON_PLUGIN_SLOTS(TENON_SLOT_STATE)};
#undef TENON_SLOT_STATE
  const bool has_memory =
      std::ranges::any_of(all, [](const Slot& slot) { return slot.group == "memory" && slot.filled; });
  const auto is_needed = [&](std::string_view group) {
    if (group == "plain") return (file.info.flags & TENON_FLAG_PLAIN) != 0;
    if (group == "matched") return (file.info.flags & TENON_FLAG_MATCHED) != 0;
    return group == "memory" && has_memory;
  };
  for (const Slot& slot : all) {
    if (slot.filled || !is_needed(slot.group)) continue;
    return fault(file, str("leaves slot '", slot.name, "' empty, which the group '", slot.group, "' needs"));
  }
  return {};
}

// Empty when both sides have the same layout; else the first line that differs.
std::string layout_difference(const tenon_slots& slots) {
  const std::span<const tenon_layout_line> ours(layout_internal::kLines);
  size_t count = 0;
  const tenon_layout_line* theirs = slots.layout(&count);
  if (!theirs) count = 0;
  for (size_t i = 0; i < std::min(count, ours.size()); ++i) {
    const tenon_layout_line& line = *TENON_AT(const tenon_layout_line, theirs, i);
    if (std::string_view(line.what) != ours[i].what) return str("'", line.what, "' there, '", ours[i].what, "' here");
    if (line.value != ours[i].value) return str(line.what, " is ", line.value, " there, ", ours[i].value, " here");
  }
  if (count != ours.size()) return str(count, " facts there, ", ours.size(), " here");
  return "";
}

Result<void> start_matched(const PluginFile& file, Started& started) {
  TENON_TRY(difference,
            guarded(*started.origin, "layout", [&] { return Result<std::string>(layout_difference(started.slots)); }));
  const uint64_t hash = file.info.layout_hash[0] | uint64_t{file.info.layout_hash[1]} << 32;
  if (difference.empty() && hash != kLayoutHash) difference = "a layout hash that its own lines do not give";
  if (!difference.empty()) {
    const auto sentence = str("is built against another C++ side of Tenon: ", difference,
                              "; build it with this Tenon and its compiler flags");
    if (!(file.info.flags & TENON_FLAG_PLAIN)) return fault(file, sentence);
    log(LogLevel::info, fault(file, sentence).message(), "; its plain side is used");
    return {};
  }
  void* made = nullptr;
  TENON_OK(call_slot(*started.origin, "create_plugin", started.slots.create_plugin, &made));
  if (!made) return fault(file, "gave no object in 'create_plugin'");
  started.plugin = {
      static_cast<Plugin*>(made), [origin = started.origin, destroy = started.slots.destroy_plugin](Plugin* plugin) {
        const auto gone = guarded(*origin, "destroy_plugin", [&] { return destroy(plugin), Result<void>(); });
        if (!gone.ok()) log(LogLevel::error, gone.error().message());
      }};
  return guarded(*started.origin, "register_extensions()", [&] { return started.plugin->register_extensions(); });
}

Result<Started> start(const PluginFile& file) {
  TENON_TRY(library, open_library(file));
  TENON_TRY(symbol, find_symbol(file, *library));
  if (std::memcmp(&symbol->info, &file.info, sizeof file.info) != 0) {
    return fault(file, "states other facts in its note than in its symbol; was the file changed meanwhile?");
  }
  if (!symbol->query) return fault(file, "leaves 'query' empty");
  Started started;
  started.origin = std::make_shared<const Origin>(Origin{file.name, library});
  started.slots.struct_size = sizeof(tenon_slots);
  TENON_OK(call_slot(*started.origin, "query", symbol->query, &host_services(), &started.slots));
  TENON_OK(check_slots(file, started.slots));
  if (file.info.flags & TENON_FLAG_MATCHED) TENON_OK(start_matched(file, started));
  return started;
}

class StartedPlugin final : public LoadedPlugin {
 public:
  explicit StartedPlugin(Started started) : started_(std::move(started)) {}
  Result<void> available(const TargetDescription& description) override {
    std::lock_guard lock(loader_mutex());
    if (!started_.plugin) return plain_available(*started_.origin, started_.slots, description);
    return guarded(*started_.origin, "unavailable()", [&]() -> Result<void> {
      if (auto refusal = started_.plugin->unavailable(description)) return error(Code::unsupported, refusal->reason);
      return {};
    });
  }
  Result<std::unique_ptr<TargetBackend>> create_backend(const TargetDescription& description) override {
    std::lock_guard lock(loader_mutex());
    if (!started_.plugin) return create_plain_backend(started_.origin, started_.slots, description);
    TENON_TRY(made, guarded(*started_.origin, "create_backend()",
                            [&] { return started_.plugin->create_backend(description); }));
    return guard_backend(started_.origin, std::move(made));
  }

 private:
  Started started_;
};

}  // namespace

Result<std::shared_ptr<LoadedPlugin>> load_plugin(const PluginFile& file) {
  std::lock_guard lock(loader_mutex());
  // Never cleared: libraries stay loaded until the process ends. Failures are not cached: the file may have been
  // repaired.
  static auto& loaded = *new std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<LoadedPlugin>>;
  auto& entry = loaded[{file.device, file.inode}];
  if (entry) return entry;
  TENON_OK(probe(str("plugin '", file.name, "' (", file.path, ")"), [&]() -> Result<void> {
    TENON_TRY(tried, start(file));
    // Kept alive: the child ends without unloading, since a plugin's destructors are not part of the attempt.
    static std::optional<Started> kept;
    kept = std::move(tried);
    return {};
  }));
  TENON_TRY(started, start(file));
  entry = std::make_shared<StartedPlugin>(std::move(started));
  return entry;
}

}  // namespace tenon::plugin_room
