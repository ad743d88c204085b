#include <algorithm>
#include <chrono>
#include <fstream>

#include <sys/resource.h>

#include "flops.hpp"
#include "session.hpp"

namespace tenon::cli {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Result<void> bench(const ModelOptions& options, int runs, uint64_t seed, Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  TENON_TRY(model, options.load(session));
  const double compile_ms = milliseconds_since(begin);
  TENON_TRY(inputs, seeded_inputs(model->inputs(), options, seed));
  ThreadPool pool(options.threads);
  // Once unmeasured: caches, page faults, the arena, the outputs.
  std::vector<Datum> outputs(model->outputs().size());
  TENON_OK(model->run_into(inputs, outputs, {&pool, nullptr}));
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    TENON_OK(model->run_into(inputs, outputs, {&pool, nullptr}));
    times.push_back(milliseconds_since(start));
  }
  std::sort(times.begin(), times.end());
  const auto rank = [&](double share) {
    return times[std::min(times.size() - 1, static_cast<size_t>(share * static_cast<double>(times.size())))];
  };
  const double peak = peak_rss_mb();
  int64_t flops = 0;
  if (!CompiledModel::is_artefact(options.model)) {
    TENON_TRY(graph, load_graph(options.model));
    flops = count_flops(*graph);
  }
  session.say(str(options.model, ": median ", rank(0.5), " ms, min ", times[0], " ms, p90 ", rank(0.9), " ms over ",
                  runs, " runs on ", pool.threads(), " threads; ",
                  flops > 0 ? static_cast<double>(flops) / rank(0.5) / 1e6 : 0.0, " GFLOP/s"));
  session.say(str("compiled in ", compile_ms, " ms; peak memory ", peak, " MB; arena ", model->arena_bytes(),
                  " bytes, lower bound ", model->arena_lower_bound_bytes()));
  session.result({{"model", options.model},
                  {"targets", options.targets},
                  {"threads", pool.threads()},
                  {"runs", runs},
                  {"median_ms", rank(0.5)},
                  {"min_ms", times[0]},
                  {"p90_ms", rank(0.9)},
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
