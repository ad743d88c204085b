#include <cstdio>
#include <regex>
#include <set>

#include <unistd.h>

#include <conformance.hpp>

#include "apart.hpp"
#include "session.hpp"

namespace tenon::cli {
namespace {

struct ConformanceCommand {
  std::string folder, target = "reference", filter;
  int threads = 1, jobs = 1;
  double timeout_s = 60;
  bool no_fallback = false, in_process = false;
};

conformance::Outcome run_here(const conformance::Case& one, const ConformanceCommand& command, Session& session) {
  ThreadPool pool(command.threads);
  const auto prepare = [&](std::unique_ptr<Graph> graph) -> Result<conformance::Prepared> {
    CompileOptions options;
    options.targets = {command.target};
    options.no_fallback = command.no_fallback;
    options.prepare = false;  // numbers are compared
    TENON_TRY(compiled, compile(std::move(graph), session.registry(), options));
    const std::shared_ptr<CompiledModel> model = std::move(compiled);
    std::set<std::string> targets;
    for (const auto& entry : model->placement().entries) targets.insert(entry.target);
    std::string ran_on;
    for (const auto& target : targets) ran_on += str(ran_on.empty() ? "" : ", ", target);
    if (ran_on.empty()) ran_on = "constants";
    return conformance::Prepared{
        [model, &pool](std::span<const Datum> inputs) { return model->run(inputs, {&pool, nullptr}); }, ran_on};
  };
  return conformance::run_case(one, prepare);
}

std::string pack(const conformance::Outcome& outcome) {
  return Json{
      {"status", conformance::status_name(outcome.status)}, {"reason", outcome.reason}, {"ran_on", outcome.ran_on}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

conformance::Outcome unpack(const std::string& text) {
  conformance::Outcome outcome;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    outcome.reason = "the case's process gave no answer that can be read";
    return outcome;
  }
  for (const auto status :
       {conformance::Status::passed, conformance::Status::failed, conformance::Status::unsupported}) {
    if (json.value("status", "") == conformance::status_name(status)) outcome.status = status;
  }
  outcome.reason = json.value("reason", "");
  outcome.ran_on = json.value("ran_on", "");
  return outcome;
}

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
  // Once before the cases: a target that cannot be had is one error, and its plugin is loaded only once.
  TENON_TRY(registry, session.usable_registry());
  TENON_OK(registry->open(command.target), "opening target '", command.target, "'");

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
  if (command.in_process) {
    for (size_t i = 0; i < cases.size(); ++i) finish(i, run_here(cases[i], command, session));
  } else {
    run_apart(
        cases.size(), {.jobs = command.jobs, .timeout_s = command.timeout_s},
        [&](size_t i) { return pack(run_here(cases[i], command, session)); },
        [&](size_t i, const ApartAnswer& answer) {
          finish(i, answer.failure.empty() ? unpack(answer.text) : conformance::Outcome{.reason = answer.failure});
        });
  }
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
  session.say(str(passed, " passed, ", failed, " failed, ", unsupported, " unsupported on ", command.target));
  session.result({{"target", command.target},
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
  command->add_option("--target", options->target, "The target to check")->capture_default_str();
  command->add_option("--filter", options->filter, "Only cases whose name this regular expression finds");
  command->add_option("--threads", options->threads, "Threads for host work of one case")->check(CLI::Range(1, 1024));
  auto* jobs = command->add_option("--jobs", options->jobs, "Cases at a time, each in a process of its own")
                   ->check(CLI::Range(1, 1024))
                   ->capture_default_str();
  auto* timeout = command->add_option("--timeout", options->timeout_s, "Seconds that one case may take")
                      ->check(number_in(1e-6, 1e6))
                      ->capture_default_str();
  command->add_flag("--no-fallback", options->no_fallback,
                    "A node that the target does not run makes a case unsupported");
  command->add_flag("--in-process", options->in_process, "No processes for cases: for debuggers; no time limit")
      ->excludes(jobs)
      ->excludes(timeout);
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options] {
    const auto done = run(*options, session);
    exit_code = !done.ok() ? session.fail(done.error()) : *done ? kDone : kFailed;
  });
}

}  // namespace tenon::cli
