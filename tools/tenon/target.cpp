#include <tenon/target/load.hpp>

#include "session.hpp"

namespace tenon::cli {
namespace {

Result<void> opens(TargetRegistry& registry, const TargetDescription& description) {
  TENON_OK(registry.open(description));
  return {};
}

}  // namespace

void add_target(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("target", "Work with target descriptions");
  command->require_subcommand(1);
  auto* check = command->add_subcommand("check", "Check a target's YAML file");
  auto file = std::make_shared<std::string>();
  check->add_option("FILE", *file, "The YAML file")->required();
  Session::add_json(*check, session);
  check->callback([&session, &exit_code, file] {
    const auto registry = session.usable_registry();
    if (!registry.ok()) {
      exit_code = session.fail(registry.error());
      return;
    }
    const auto description = load_target(*file);
    const auto checked = description.ok() ? (*registry)->check(*description) : description.error();
    // It may be written for a plugin that is not installed here.
    const auto is_of_plugin = [](Code code) { return code == Code::not_found || code == Code::plugin; };
    const bool no_plugin = description.ok() && !checked.ok() && is_of_plugin(checked.error().code());
    if (!checked.ok() && !no_plugin) {
      exit_code = session.fail(checked.error());
      return;
    }
    // What only its plugin can check. An absent device is not an error of the file.
    const auto opened = no_plugin ? Result<void>(checked.error()) : opens(**registry, *description);
    const bool says_wrong =
        !opened.ok() && (opened.error().code() == Code::invalid_argument || opened.error().code() == Code::parse);
    if (!no_plugin && says_wrong) {
      exit_code = session.fail(opened.error());
      return;
    }
    session.say(str(*file, ": target '", description->name, "' of plugin '", description->plugin, "' is sound"));
    if (no_plugin)
      session.say(str("  names of operators are not checked: ", checked.error().message()));
    else if (!opened.ok())
      session.say(str("  what its plugin makes of it is not checked: ", opened.error().message()));
    session.result({{"file", *file},
                    {"name", description->name},
                    {"plugin", description->plugin},
                    {"operators_checked", !no_plugin},
                    {"opened", opened.ok()}});
    exit_code = kDone;
  });
}

}  // namespace tenon::cli
