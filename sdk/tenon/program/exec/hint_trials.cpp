#include <tenon/program/exec/hint_trials_internal.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace tenon::program::detail {

double HintTrials::steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool HintTrials::trial_is_due() {
  if (runs_ >= until_trial_) return true;
  return runs_ >= until_late_trial_ && runs_ % kFewestRuns == 0 && clock_() - last_trial_ >= kMostSeconds;
}

bool HintTrials::begin_run() {
  if (!is_on_trial() && trial_is_due()) {
    run_of_trial_ = 0;
    least_.fill(std::numeric_limits<double>::infinity());
  }
  if (!is_on_trial()) {
    ++runs_;
    return follows_;
  }
  began_ = clock_();
  return follows_ != (run_of_trial_ % 2 == 1);
}

void HintTrials::end_run() {
  if (!is_on_trial()) return;
  const double now = clock_();
  double& least = least_[static_cast<size_t>(run_of_trial_ % 2)];
  least = std::min(least, now - began_);
  if (++run_of_trial_ < kRunsOfTrial) return;
  last_trial_ = now;
  runs_ = 0;
  decide();
}

void HintTrials::decide() {
  const auto [before, other] = least_;
  if (other < kFaster * before) follows_ = !follows_;
  const auto [faster, slower] = std::minmax(before, other);
  const double lost = faster > 0 ? kRunsOfEach * (slower / faster - 1) : 0;  // as a number of runs
  const auto runs_to_lose_less_than = [&](double part) {
    return static_cast<int64_t>(
        std::clamp(lost / part, static_cast<double>(kFewestRuns), static_cast<double>(kMostRuns)));
  };
  until_trial_ = runs_to_lose_less_than(kMostLoss);
  until_late_trial_ = runs_to_lose_less_than(kMostLossLate);
}

}  // namespace tenon::program::detail
