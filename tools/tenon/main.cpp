// tenon: the command-line program. Each command has a file of its own; exit codes and JSON are described in session.hpp.
#include <cstdio>

#include "session.hpp"

int main(int argc, char** argv) {
  using namespace tenon::cli;
  CLI::App app("Compiles neural-network models for accelerators and runs them.", "tenon");
  app.require_subcommand(1);
  app.set_version_flag("--version", TENON_VERSION);
  app.fallthrough();  // global options may stand behind the command
  Session session;
  session.add_global_options(app);
  int exit_code = kDone;
  add_devices(app, session, exit_code);
  add_run(app, session, exit_code);
  add_conformance(app, session, exit_code);
  add_bench(app, session, exit_code);
  add_opt(app, session, exit_code);
  add_compile(app, session, exit_code);
  add_emit(app, session, exit_code);
  add_layout(app, session, exit_code);
  add_quantise(app, session, exit_code);
  add_target(app, session, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  } catch (const std::exception& thrown) {
    return session.fail(tenon::Error(tenon::Code::internal, thrown.what()));
  }
  return exit_code;
}
