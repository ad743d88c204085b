#include "cases.hpp"

#include <memory>
#include <set>
#include <utility>

#include <tenon/compile/compile.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "apart.hpp"
#include "session.hpp"

namespace tenon::cli {
namespace {

conformance::Outcome run_here(const conformance::Case& one, const CaseRun& how, TargetRegistry& registry) {
  ThreadPool pool(how.threads);
  const auto prepare = [&](std::unique_ptr<Graph> graph) -> Result<conformance::Prepared> {
    CompileOptions options;
    options.targets = {how.target};
    options.no_fallback = how.no_fallback;
    options.prepare = false;  // because values are compared
    TENON_TRY(compiled, compile(std::move(graph), registry, options));
    const std::shared_ptr<CompiledModel> model = std::move(compiled);
    std::set<std::string> targets;
    for (const auto& entry : model->placement().entries) targets.insert(entry.target);
    std::string ran_on;
    for (const auto& target : targets) ran_on += str(ran_on.empty() ? "" : ", ", target);
    if (ran_on.empty()) ran_on = "constants";
    return conformance::Prepared{[model, &pool](std::span<const Datum> inputs) {
                                   return model->run(inputs, {&pool, nullptr});
                                 },
                                 ran_on};
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

}  // namespace

void run_cases(std::span<const conformance::Case> cases, const CaseRun& how,
               const std::function<TargetRegistry*()>& registry,
               const std::function<void(size_t, conformance::Outcome)>& finish) {
  if (how.in_process) {
    for (size_t i = 0; i < cases.size(); ++i) finish(i, run_here(cases[i], how, *registry()));
    return;
  }
  run_apart(
      cases.size(), {.jobs = how.jobs, .timeout_s = how.timeout_s},
      [&](size_t i) { return pack(run_here(cases[i], how, *registry())); },
      [&](size_t i, const ApartAnswer& answer) {
        finish(i, answer.failure.empty() ? unpack(answer.text) : conformance::Outcome{.reason = answer.failure});
      });
}

}  // namespace tenon::cli
