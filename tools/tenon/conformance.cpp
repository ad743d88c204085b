#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <regex>
#include <set>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <conformance.hpp>

#include "session.hpp"

namespace tenon::cli {
namespace {

struct ConformanceCommand {
  std::string folder, target = "reference", filter;
  int threads = 1;
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
  return Json{{"status", conformance::status_name(outcome.status)}, {"reason", outcome.reason}, {"ran_on", outcome.ran_on}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

conformance::Outcome unpack(const std::string& text) {
  conformance::Outcome outcome;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    outcome.reason = "the case's process ended without an answer";
    return outcome;
  }
  for (const auto status : {conformance::Status::passed, conformance::Status::failed, conformance::Status::unsupported}) {
    if (json.value("status", "") == conformance::status_name(status)) outcome.status = status;
  }
  outcome.reason = json.value("reason", "");
  outcome.ran_on = json.value("ran_on", "");
  return outcome;
}

// In a process of its own: a case that crashes or hangs is one failed case, not the end of the run.
conformance::Outcome run_apart(const conformance::Case& one, const ConformanceCommand& command, Session& session) {
  int ends[2];
  if (pipe(ends) != 0) return run_here(one, command, session);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return run_here(one, command, session);
  }
  if (child == 0) {
    close(ends[0]);
    const std::string text = pack(run_here(one, command, session));
    for (size_t written = 0; written < text.size();) {
      const ssize_t count = write(ends[1], text.data() + written, text.size() - written);
      if (count <= 0) break;
      written += static_cast<size_t>(count);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  bool late = false;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(command.timeout_s);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{ends[0], POLLIN, 0};
    const int ready = left.count() > 0 ? poll(&wait, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      late = true;
      kill(child, SIGKILL);
      break;
    }
    char buffer[4096];
    const ssize_t count = read(ends[0], buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  conformance::Outcome outcome;
  if (late) {
    outcome.reason = str("no answer after ", command.timeout_s, " s");
  } else if (WIFSIGNALED(status)) {
    outcome.reason = str("crashed with signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  } else {
    outcome = unpack(text);
  }
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
  if (cases.empty()) return error(Code::not_found, "no case under '", command.folder, "' matches '", command.filter, "'");
  // Once before the cases: a target that cannot be had is one error, and its plugin is loaded only once.
  TENON_OK(session.registry().open(command.target), "opening target '", command.target, "'");

  const bool live = isatty(STDERR_FILENO) != 0;
  std::map<conformance::Status, int> counts;
  Json list = Json::array();
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& one = cases[i];
    if (live) std::fprintf(stderr, "\r\033[K%zu/%zu %s", i + 1, cases.size(), one.name.c_str());
    const auto outcome = command.in_process ? run_here(one, command, session) : run_apart(one, command, session);
    ++counts[outcome.status];
    const std::string status(conformance::status_name(outcome.status));
    list.push_back({{"name", one.name}, {"suite", one.suite}, {"status", status}, {"reason", outcome.reason},
                    {"ran_on", outcome.ran_on}});
    if (outcome.status == conformance::Status::passed) continue;
    if (live && !session.json) std::fprintf(stderr, "\r\033[K");
    session.say(str(status, " ", one.suite, "/", one.name, ": ", outcome.reason));
  }
  if (live) std::fprintf(stderr, "\r\033[K");
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
  command->add_option("--timeout", options->timeout_s, "Seconds that one case may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--no-fallback", options->no_fallback, "A node that the target does not run makes a case unsupported");
  command->add_flag("--in-process", options->in_process, "No process per case: for debuggers; no time limit");
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options] {
    const auto done = run(*options, session);
    exit_code = !done.ok() ? session.fail(done.error()) : *done ? kDone : kFailed;
  });
}

}  // namespace tenon::cli
