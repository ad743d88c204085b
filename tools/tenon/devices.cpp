#include <tenon/target/load.hpp>

#include "session.hpp"

namespace tenon::cli {

void add_devices(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("devices", "Plugins found (with load errors), devices and targets");
  auto describe = std::make_shared<bool>(false);
  command->add_flag("--describe", *describe, "The full description of each target as YAML");
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, describe] {
    exit_code = kDone;
    const auto plugins = session.registry().plugins();
    const auto targets = session.registry().targets();
    const std::string best = session.registry().best_target();
    Json document = {{"plugins", Json::array()}, {"targets", Json::array()}, {"auto", best}};
    session.say("plugins:");
    for (const PluginStatus& plugin : plugins) {
      document["plugins"].push_back({{"path", plugin.path},
                                     {"name", plugin.name},
                                     {"vendor", plugin.vendor},
                                     {"version", plugin.version},
                                     {"targets", plugin.targets},
                                     {"cpp_interface", plugin.matched},
                                     {"error", plugin.error.empty() ? Json() : Json(plugin.error)}});
      if (plugin.error.empty()) {
        session.say(str("  ", plugin.name, " ", plugin.version, " (", plugin.vendor, ")  ", plugin.path));
      } else {
        session.say(str("  ", plugin.path, "\n    cannot be used: ", plugin.error));
      }
    }
    if (plugins.empty()) session.say("  none found");
    session.say("targets:");
    for (const TargetStatus& target : targets) {
      Json entry = {{"name", target.name},
                    {"plugin", target.plugin},
                    {"yaml", target.yaml},
                    {"available", target.available},
                    {"reason", target.reason.empty() ? Json() : Json(target.reason)}};
      session.say(str("  ", target.name, target.name == best ? " (auto)" : "",
                      target.available ? std::string() : str("\n    not available: ", target.reason)));
      if (*describe) {
        auto backend = session.registry().open(target.name);
        if (backend.ok()) {
          const std::string yaml = to_yaml((*backend)->description());
          entry["description"] = yaml;
          session.say(yaml);
        }
      }
      document["targets"].push_back(std::move(entry));
    }
    session.result(document);
  });
}

}  // namespace tenon::cli
