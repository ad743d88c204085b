// ONNX backend cases on a target, each in a separate process.
#pragma once
#include <functional>
#include <span>
#include <string>

#include <conformance.hpp>

#include <tenon/plugin/target_registry.hpp>

namespace tenon::cli {

struct CaseRun {
  std::string target = "reference";
  int threads = 1, jobs = 1;
  double timeout_s = 60;
  bool no_fallback = false, in_process = false;
};

// `registry` is called where a case runs: in its process, unless `in_process`. `finish` runs in this process, in the
// order in which cases end.
void run_cases(std::span<const conformance::Case> cases, const CaseRun& how,
               const std::function<TargetRegistry*()>& registry,
               const std::function<void(size_t, conformance::Outcome)>& finish);

}  // namespace tenon::cli
