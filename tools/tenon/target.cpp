#include <tenon/target/load.hpp>

#include "session.hpp"

namespace tenon::cli {

void add_target(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("target", "Work with target descriptions");
  command->require_subcommand(1);
  auto* check = command->add_subcommand("check", "Check a target's YAML file");
  auto file = std::make_shared<std::string>();
  check->add_option("FILE", *file, "The YAML file")->required();
  Session::add_json(*check, session);
  check->callback([&session, &exit_code, file] {
    const auto description = load_target(*file);
    if (!description.ok()) {
      exit_code = session.fail(description.error());
      return;
    }
    session.say(str(*file, ": target '", description->name, "' of plugin '", description->plugin, "' is sound"));
    session.result({{"file", *file}, {"name", description->name}, {"plugin", description->plugin}});
    exit_code = kDone;
  });
}

}  // namespace tenon::cli
