#include <tenon/program/schedule/machine_readings.hpp>
#include <tenon/target/load.hpp>

#include "session.hpp"

namespace tenon::cli {

namespace {

// The figures of this machine that automatic schedules of pipelines use.
Json describe_machine(const Session& session) {
  using program::CostModel;
  const CostModel model = CostModel::of_machine();
  const program::MachineRecord& record = program::record_of_machine();
  session.say(str("machine, by ", record.tried(), " measurements", record.settled() ? "" : ", not yet settled", ":"));
  session.say(model.to_string());
  Json memories = Json::array();
  for (const CostModel::Memory& m : model.memories)
    memories.push_back({{"name", m.name},
                        {"bytes", m.bytes},
                        {"sure_bytes", m.sure_bytes},
                        {"bytes_per_second", m.bytes_per_second},
                        {"latency_seconds", m.latency_seconds}});
  return {{"measurements", record.tried()},
          {"settled", record.settled()},
          {"memories", std::move(memories)},
          {"seconds_per_call", model.seconds_per_call},
          {"seconds_per_window", model.seconds_per_window},
          {"seconds_per_row", model.seconds_per_row},
          {"ahead_bytes", model.ahead_bytes}};
}

}  // namespace

void add_devices(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("devices", "Plugins found (with load errors), devices and targets");
  auto describe = std::make_shared<bool>(false), machine = std::make_shared<bool>(false);
  command->add_flag("--describe", *describe, "The full description of each target as YAML");
  command->add_flag("--machine", *machine,
                    "What automatic schedules take this machine's caches for: timed, in some 0.3 s, until it is known");
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, describe, machine] {
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
    if (*machine) document["machine"] = describe_machine(session);
    session.result(document);
  });
}

}  // namespace tenon::cli
