// tenon report: what ran where and why, fusion, memory map and timeline of one model on its target, on one page.
#include <algorithm>
#include <ctime>
#include <fstream>
#include <map>
#include <thread>

#include <sys/utsname.h>

#include "measure.hpp"
#include "report_page.hpp"
#include "session.hpp"
#include "statistics.hpp"

namespace tenon::cli {
namespace {

struct ReportCommand {
  ModelOptions model;
  std::string output;
  int runs = 5;
  uint64_t seed = 1;
};

constexpr size_t kSlowestNamed = 10;

// From Linux; for processors without a name, the architecture.
Json host_facts() {
  utsname system{};
  uname(&system);
  std::string processor = system.machine;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    processor = line.substr(colon + 2);
    break;
  }
  return {{"processor", processor},
          {"hardware_threads", std::thread::hardware_concurrency()},
          {"system", str(system.sysname, " ", system.release)}};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[sizeof "2000-01-01T00:00:00Z"] = {};
  if (gmtime_r(&now, &parts)) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Each reason is counted once, whichever operators it was given for.
Json placement_facts(const PlacementReport& placement) {
  Json by_target = Json::object(), operators = Json::array();
  std::map<std::pair<std::string, std::string>, int> reasons;
  int fallbacks = 0;
  for (const PlacementEntry& entry : placement.entries) {
    by_target[entry.target] = by_target.value(entry.target, 0) + 1;
    fallbacks += !entry.refusals.empty();
    Json refusals = Json::array();
    for (const auto& [target, reason] : entry.refusals) {
      ++reasons[{target, reason}];
      refusals.push_back({{"target", target}, {"reason", reason}});
    }
    operators.push_back({{"op", entry.op},
                         {"label", entry.label},
                         {"target", entry.target},
                         {"fallback", !entry.refusals.empty()},
                         {"refusals", std::move(refusals)}});
  }
  Json counted = Json::array();
  for (const auto& [refusal, count] : reasons)
    counted.push_back({{"target", refusal.first}, {"reason", refusal.second}, {"count", count}});
  std::stable_sort(counted.begin(), counted.end(),
                   [](const Json& a, const Json& b) { return a["count"] > b["count"]; });
  return {{"operators_by_target", std::move(by_target)},
          {"fallbacks", fallbacks},
          {"reasons", std::move(counted)},
          {"operators", std::move(operators)}};
}

Json fusion_facts(Json kernels) {
  double unfused = 0, fused = 0, predicted = 0, measured = 0;
  size_t operators = 0;
  for (const Json& kernel : kernels) {
    unfused += kernel["bytes_unfused"].get<double>();
    fused += kernel["bytes_fused"].get<double>();
    predicted += kernel["predicted_us"].get<double>();
    measured += kernel["measured_us"].get<double>();
    operators += kernel["operators"].size();
  }
  return {{"operators", operators},    {"bytes_unfused", unfused}, {"bytes_fused", fused},
          {"predicted_us", predicted}, {"measured_us", measured},  {"kernels", std::move(kernels)}};
}

double efficiency_of(size_t bytes, size_t lower_bound_bytes) {
  return bytes == 0 ? 1 : static_cast<double>(lower_bound_bytes) / static_cast<double>(bytes);
}

Json arena_facts(size_t bytes, size_t lower_bound_bytes) {
  return {{"arena_bytes", bytes},
          {"arena_lower_bound_bytes", lower_bound_bytes},
          {"efficiency", efficiency_of(bytes, lower_bound_bytes)}};
}

// `charts` receives the picture for each of "spaces".
Json memory_facts(const CompiledModel& model, std::vector<MemoryChart>& charts) {
  Json memory = arena_facts(model.arena_bytes(), model.arena_lower_bound_bytes());
  memory["segments"] = Json::array();
  memory["spaces"] = Json::array();
  for (size_t s = 0; s < model.segments().size(); ++s) {
    const CompiledModel::Segment& segment = model.segments()[s];
    Json facts = arena_facts(segment.executable->arena_bytes(), segment.executable->arena_lower_bound_bytes());
    facts["target"] = segment.target;
    const auto* map = dynamic_cast<const MemoryMap*>(segment.executable.get());
    std::vector<MemoryChart> own = map ? map->memory_charts() : std::vector<MemoryChart>();
    facts["spaces"] = own.size();
    memory["segments"].push_back(std::move(facts));
    for (MemoryChart& chart : own) {
      Json blocks = Json::array();
      for (const MemoryChart::Block& block : chart.blocks)
        blocks.push_back({{"name", block.name},
                          {"bytes", block.bytes},
                          {"offset", block.offset},
                          {"first_step", block.first},
                          {"last_step", block.last}});
      Json space = arena_facts(chart.bytes, chart.lower_bound_bytes);
      space["segment"] = s;
      space["target"] = segment.target;
      space["space"] = chart.heading;
      space["blocks"] = std::move(blocks);
      memory["spaces"].push_back(std::move(space));
      charts.push_back(std::move(chart));
    }
  }
  return memory;
}

Json timeline_facts(const std::vector<OpProfile>& profile) {
  double total = 0;
  for (const OpProfile& step : profile) total += step.microseconds;
  Json steps = Json::array();
  std::vector<size_t> slowest;
  for (size_t i = 0; i < profile.size(); ++i) {
    Json counters = Json::object();
    for (const auto& [name, count] : profile[i].counters) counters[name] = count;
    steps.push_back({{"op", profile[i].op},
                     {"label", profile[i].label},
                     {"us", profile[i].microseconds},
                     {"share", total > 0 ? profile[i].microseconds / total : 0},
                     {"counters", std::move(counters)}});
    slowest.push_back(i);
  }
  const auto slower = [&](size_t a, size_t b) { return profile[a].microseconds > profile[b].microseconds; };
  std::stable_sort(slowest.begin(), slowest.end(), slower);
  slowest.resize(std::min(slowest.size(), kSlowestNamed));
  return {{"total_us", total}, {"slowest", slowest}, {"steps", std::move(steps)}};
}

Result<void> report(const ReportCommand& command, Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  TENON_TRY(model, command.model.load(session));
  const double compile_ms = milliseconds_since(begin);
  TENON_TRY(inputs, seeded_inputs(model->inputs(), command.model, command.seed));
  ThreadPool pool(command.model.threads);
  TENON_TRY(times, time_runs(*model, inputs, command.runs, pool));
  std::vector<OpProfile> profile;
  std::vector<Datum> outputs(model->outputs().size());
  TENON_OK(model->run_into(inputs, outputs, {&pool, &profile}), "the run that is timed step by step");

  std::vector<MemoryChart> charts;
  const Json document = {{"model", command.model.model},
                         {"targets", command.model.targets},
                         {"host", host_facts()},
                         {"made_at", utc_now()},
                         {"threads", pool.threads()},
                         {"runs", command.runs},
                         {"seed", command.seed},
                         {"compile_ms", compile_ms},
                         {"median_ms", times.rank(0.5)},
                         {"min_ms", times.milliseconds[0]},
                         {"p90_ms", times.rank(0.9)},
                         {"peak_rss_mb", peak_rss_mb()},
                         {"placement", placement_facts(model->placement())},
                         {"layouts", Json::parse(model->layouts().to_json())},
                         {"fusion", fusion_facts(kernels_to_json(*model, profile))},
                         {"memory", memory_facts(*model, charts)},
                         {"timeline", timeline_facts(profile)}};
  const std::string file = command.output.empty() && !session.json ? "report.html" : command.output;
  if (!file.empty()) TENON_OK(write_text(file, report_page(document, charts)));
  session.say(str(command.model.model, ": median ", fixed(times.rank(0.5), 3), " ms over ", command.runs, " runs on ",
                  pool.threads(), " threads; ", model->placement().entries.size(), " operators, ",
                  document["placement"]["fallbacks"].get<int>(), " of them not where they were asked for; wrote ",
                  file));
  session.result(document);
  return {};
}

}  // namespace

void add_report(CLI::App& app, Session& session, int& exit_code) {
  auto* command = app.add_subcommand("report", "Write a page of what ran where and why, fusion, memory and times");
  auto options = std::make_shared<ReportCommand>();
  options->model.add_to(*command);
  options->model.add_dims_to(*command);
  command->add_option("-o,--output", options->output, "The page; report.html unless --json is given")
      ->type_name("FILE")
      ->check(file_name());
  command->add_option("--runs", options->runs, "Measured runs")->check(CLI::Range(1, 1000000))->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the inputs")->check(cli::seed());
  Session::add_json(*command, session);
  command->callback([&session, &exit_code, options] {
    const auto done = report(*options, session);
    exit_code = done.ok() ? kDone : session.fail(done.error());
  });
}

}  // namespace tenon::cli
