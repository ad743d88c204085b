#include <cstdio>
#include <regex>

#include <unistd.h>

#include <conformance.hpp>

#include "cases.hpp"
#include "session.hpp"

namespace tenon::cli {
namespace {

struct ConformanceCommand {
  std::string folder, filter;
  CaseRun run;
};

Result<bool> run(const ConformanceCommand& command, Session& session) {
  TENON_TRY(cases, conformance::find_cases(command.folder));
  std::regex filter;
  try {
    filter = std::regex(command.filter);
  } catch (const std::regex_error& thrown) {
    return error(Code::invalid_argument, "--filter '", command.filter, "' is no regular expression: ", thrown.what());
  }
  std::erase_if(cases, [&](const conformance::Case& one) { return !std::regex_search(one.name, filter); });
  if (cases.empty())
    return error(Code::not_found, "no case under '", command.folder, "' matches '", command.filter, "'");
  // Once before the cases: an unavailable target is a single error, and its plugin is loaded only once.
  TENON_TRY(registry, session.usable_registry());
  TENON_OK(registry->open(command.run.target), "opening target '", command.run.target, "'");

  const bool live = isatty(STDERR_FILENO) != 0;
  std::vector<conformance::Outcome> outcomes(cases.size());
  size_t finished = 0;
  const auto finish = [&](size_t i, conformance::Outcome outcome) {
    outcomes[i] = std::move(outcome);
    if (live) std::fprintf(stderr, "\r\033[K%zu/%zu %s", ++finished, cases.size(), cases[i].name.c_str());
    if (outcomes[i].status == conformance::Status::passed) return;
    if (live && !session.json) std::fprintf(stderr, "\r\033[K");
    session.say(str(conformance::status_name(outcomes[i].status), " ", cases[i].suite, "/", cases[i].name, ": ",
                    outcomes[i].reason));
  };
  run_cases(cases, command.run, [registry] { return registry; }, finish);
  if (live) std::fprintf(stderr, "\r\033[K");
  std::map<conformance::Status, int> counts;
  Json list = Json::array();
  for (size_t i = 0; i < cases.size(); ++i) {
    ++counts[outcomes[i].status];
    const std::string status(conformance::status_name(outcomes[i].status));
    list.push_back({{"name", cases[i].name}, {"suite", cases[i].suite}, {"status", status},
                    {"reason", outcomes[i].reason}, {"ran_on", outcomes[i].ran_on}});
  }
  const int passed = counts[conformance::Status::passed], failed = counts[conformance::Status::failed],
            unsupported = counts[conformance::Status::unsupported];
  session.say(str(passed, " passed, ", failed, " failed, ", unsupported, " unsupported on ", command.run.target));
  session.result({{"target", command.run.target},
                  {"passed", passed},
                  {"failed", failed},
                  {"unsupported", unsupported},
                  {"cases", list}});
  return failed == 0;
}

}  // namespace

void add_conformance(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("conformance", "Run every ONNX backend case of a folder");
  auto options = std::make_shared<ConformanceCommand>();
  command->add_option("DIR", options->folder, "The folder of cases")->required();
  command->add_option("--target", options->run.target, "The target to check")->capture_default_str();
  command->add_option("--filter", options->filter, "Only cases whose name this regular expression finds");
  command->add_option("--threads", options->run.threads, "Threads for host work of one case")
      ->check(CLI::Range(1, 1024));
  auto* jobs = command->add_option("--jobs", options->run.jobs, "Cases at a time, each in a process of its own")
                   ->check(CLI::Range(1, 1024))
                   ->capture_default_str();
  auto* timeout = command->add_option("--timeout", options->run.timeout_s, "Seconds that one case may take")
                      ->check(number_in(1e-6, 1e6))
                      ->capture_default_str();
  command->add_flag("--no-fallback", options->run.no_fallback,
                    "A node that the target does not run makes a case unsupported");
  command->add_flag("--in-process", options->run.in_process, "No processes for cases: for debuggers; no time limit")
      ->excludes(jobs)
      ->excludes(timeout);
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options] {
    const auto done = run(*options, session);
    exit_code = !done.ok() ? session.fail(done.error()) : *done ? kDone : kFailed;
  });
}

}  // namespace tenon::cli
