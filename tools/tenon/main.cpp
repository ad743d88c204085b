// tenon: the command-line program. Each command has a file of its own; exit codes and JSON are described in
// session.hpp.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>

#include <tenon/support/str.hpp>

#include "session.hpp"

namespace tenon::cli {
namespace {

// If standard output is closed, a file that is opened later must not get its number and be written to as standard
// output.
void fill_standard_files() {
  for (const int file : {0, 1, 2})
    if (fcntl(file, F_GETFD) < 0) (void)open(file == 1 ? "/dev/full" : "/dev/null", O_RDWR);
}

// CLI11 reports a missing command when the given name is unknown.
std::string unknown_command(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands()[0];
  const std::vector<std::string> rest = app.remaining(true);
  if (at->get_require_subcommand_min() == 0 || rest.empty() || rest[0].starts_with('-')) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  const std::string hint = nearest(rest[0], names);
  return str("no command '", rest[0], "'; there are ", names, hint.empty() ? "" : str("; did you mean '", hint, "'?"));
}

// The parser stops at the error: --json may come after it.
bool wants_json(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](const char* word) { return std::strcmp(word, "--json") == 0; });
}

int usage_error(const CLI::App& app, const CLI::ParseError& error, Session& session) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
  const std::string unknown = unknown_command(app), sentence = unknown.empty() ? error.what() : unknown;
  if (session.json) {
    session.result({{"error", "usage"}, {"message", sentence}});
  } else {
    std::fprintf(stderr, "%s\nRun with --help for more information.\n", sentence.c_str());
  }
  return kUsage;
}

// Flushes buffered output: on a full disk or a closed pipe, the output has not been written.
int checked_output(int exit_code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::fprintf(stderr, "tenon: error: cannot write to standard output%s%s\n", errno ? ": " : "",
               errno ? std::strerror(errno) : "");
  return exit_code == kDone ? kFailed : exit_code;
}

}  // namespace
}  // namespace tenon::cli

int main(int argc, char** argv) {
  using namespace tenon::cli;
  fill_standard_files();
  CLI::App app("Compiles neural-network models for accelerators and runs them.", "tenon");
  app.require_subcommand(1);
  app.set_version_flag("--version", TENON_VERSION);
  app.fallthrough();  // global options may follow the command
  Session session;
  session.add_global_options(app);
  int exit_code = kDone;
  add_devices(app, session, exit_code);
  add_run(app, session, exit_code);
  add_conformance(app, session, exit_code);
  add_bench(app, session, exit_code);
  add_bisect(app, session, exit_code);
  add_report(app, session, exit_code);
  add_opt(app, session, exit_code);
  add_compile(app, session, exit_code);
  add_emit(app, session, exit_code);
  add_layout(app, session, exit_code);
  add_quantise(app, session, exit_code);
  add_target(app, session, exit_code);
  add_new_plugin(app, session, exit_code);
  add_certify(app, session, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    session.json = wants_json(argc, argv);
    exit_code = usage_error(app, error, session);
  } catch (const std::exception& thrown) {
    exit_code = session.fail(tenon::Error(tenon::Code::internal, thrown.what()));
  }
  return checked_output(exit_code);
}
