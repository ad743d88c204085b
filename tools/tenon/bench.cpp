#include <chrono>

#include "flops.hpp"
#include "measure.hpp"
#include "session.hpp"

namespace tenon::cli {
namespace {

Result<void> bench(const ModelOptions& options, int runs, uint64_t seed, Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  TENON_TRY(model, options.load(session));
  const double compile_ms = milliseconds_since(begin);
  TENON_TRY(inputs, seeded_inputs(model->inputs(), options, seed));
  ThreadPool pool(options.threads);
  TENON_TRY(times, time_runs(*model, inputs, runs, pool));
  const double peak = peak_rss_mb();
  int64_t flops = 0;
  if (!CompiledModel::is_artefact(options.model)) {
    TENON_TRY(graph, load_graph(options.model));
    flops = count_flops(*graph);
  }
  session.say(str(options.model, ": median ", times.rank(0.5), " ms, min ", times.milliseconds[0], " ms, p90 ", times.rank(0.9), " ms over ",
                  runs, " runs on ", pool.threads(), " threads; ",
                  flops > 0 ? static_cast<double>(flops) / times.rank(0.5) / 1e6 : 0.0, " GFLOP/s"));
  session.say(str("compiled in ", compile_ms, " ms; peak memory ", peak, " MB; arena ", model->arena_bytes(),
                  " bytes, lower bound ", model->arena_lower_bound_bytes()));
  session.result({{"model", options.model},
                  {"targets", options.targets},
                  {"threads", pool.threads()},
                  {"runs", runs},
                  {"median_ms", times.rank(0.5)},
                  {"min_ms", times.milliseconds[0]},
                  {"p90_ms", times.rank(0.9)},
                  {"compile_ms", compile_ms},
                  {"peak_rss_mb", peak},
                  {"arena_bytes", model->arena_bytes()},
                  {"arena_lower_bound_bytes", model->arena_lower_bound_bytes()},
                  {"flops", flops}});
  return {};
}

}  // namespace

void add_bench(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("bench", "Time a model on seeded inputs");
  auto options = std::make_shared<ModelOptions>();
  auto runs = std::make_shared<int>(10);
  auto seed = std::make_shared<uint64_t>(1);
  options->add_to(*command);
  options->add_dims_to(*command);
  command->add_option("--runs", *runs, "Measured runs")->check(CLI::Range(1, 1000000))->capture_default_str();
  command->add_option("--seed", *seed, "Seed of the inputs")->check(cli::seed());
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options, runs, seed] {
    const auto done = bench(*options, *runs, *seed, session);
    exit_code = done.ok() ? kDone : session.fail(done.error());
  });
}

}  // namespace tenon::cli
