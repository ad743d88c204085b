#include <tenon/program/exec/run_trials_internal.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tenon::program::detail {

RunTrials::RunTrials(size_t ways, const Blocks& blocks, Clock clock)
    : blocks_(blocks), clock_(std::move(clock)), ways_(ways), block_(2 * blocks.of_each) {}

double RunTrials::steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool RunTrials::trial_is_due() {
  if (runs_ >= until_trial_) return true;
  return runs_ >= until_late_trial_ && runs_ % kFewestRuns == 0 && clock_() - last_trial_ >= kMostSeconds;
}

size_t RunTrials::begin_run() {
  if (!is_on_trial() && trial_is_due()) begin_trial();
  if (!is_on_trial()) {
    ++runs_;
    return chosen_;
  }
  if (run_of_block_ >= blocks_.settling_runs) began_ = clock_();
  return is_of_challenger() ? challenger_ : chosen_;
}

void RunTrials::begin_trial() {
  if (wins_ == 0) challenger_ = next_challenger();
  runs_ = 0;
  if (challenger_ == chosen_) {  // all others are dropped
    until_trial_ = until_late_trial_ = kMostRuns;
    return;
  }
  block_ = 0, run_of_block_ = 0;
  least_chosen_ = least_ = std::numeric_limits<double>::infinity();
}

void RunTrials::end_run() {
  if (!is_on_trial()) return;
  if (run_of_block_ >= blocks_.settling_runs) {
    double& least = is_of_challenger() ? least_ : least_chosen_;
    least = std::min(least, clock_() - began_);
  }
  if (++run_of_block_ < blocks_.settling_runs + blocks_.timed_runs) return;
  run_of_block_ = 0;
  ++block_;
  const bool is_hopeless = !is_of_challenger() && least_ > blocks_.hopeless * least_chosen_;
  if (!is_on_trial() || is_hopeless) end_trial();
}

void RunTrials::end_trial() {
  const int runs = block_ / 2 * (blocks_.settling_runs + blocks_.timed_runs);
  const int timed = block_ * blocks_.timed_runs;
  block_ = 2 * blocks_.of_each;
  last_trial_ = clock_();
  const auto [faster, slower] = std::minmax(least_chosen_, least_);
  // As numbers of runs.
  double lost = faster > 0 ? runs * (slower / faster - 1) : 0;
  const double lost_to_timing = faster > 0 ? timed * kSecondsToTime / faster : 0;
  decide();
  if (wins_ > 0) {
    until_trial_ = 0;
    return;
  }
  const Way& next = ways_[next_challenger()];
  lost = std::max(lost, runs * (next.relative_time - 1)) + lost_to_timing;
  const bool is_first = next.last_trial == 0;
  const auto runs_to_lose_less_than = [&](double part) {
    const auto fewest = static_cast<double>(is_first ? 0 : kFewestRuns);
    return static_cast<int64_t>(std::clamp(lost / part, fewest, static_cast<double>(kMostRuns)));
  };
  until_trial_ = runs_to_lose_less_than(is_first ? kMostLossOfFirst : blocks_.most_loss);
  until_late_trial_ = runs_to_lose_less_than(is_first ? kMostLossOfFirst : kMostLossLate);
}

void RunTrials::decide() {
  constexpr double kMostTimes = 100;  // by a coarse clock, one of the two may take no time
  Way& way = ways_[challenger_];
  way.last_trial = ++trials_;
  way.relative_time = least_chosen_ > 0 ? std::clamp(least_ / least_chosen_, 1 / kMostTimes, kMostTimes) : 1;
  wins_ = least_ < kFaster * least_chosen_ ? wins_ + 1 : 0;
  if (wins_ <= blocks_.confirmations) return;
  wins_ = 0;
  // All times are relative to the new one.
  const double factor = 1 / way.relative_time;
  ways_[chosen_].last_trial = trials_;
  for (Way& other : ways_)
    if (other.last_trial > 0) other.relative_time *= factor;
  chosen_ = challenger_;
}

size_t RunTrials::next_challenger() const {
  // The longer ago its last trial, and the less the next one will cost. But the slowest ways must not wait for ever,
  // even if all others are equally fast.
  constexpr double kCostInAnyCase = 0.15;
  size_t next = chosen_;
  double most = -1;
  for (size_t i = 0; i < ways_.size(); ++i) {
    const Way& way = ways_[i];
    if (i == chosen_ || way.dropped) continue;
    const double cost = std::max(way.relative_time - 1, 0.0) + kCostInAnyCase;
    const double urgency = way.last_trial == 0 ? std::numeric_limits<double>::max()
                                               : static_cast<double>(trials_ - way.last_trial + 1) / cost;
    if (urgency > most) next = i, most = urgency;
  }
  return next;
}

void RunTrials::drop(size_t way) {
  ways_[way].dropped = true;
  if (challenger_ != way) return;
  block_ = 2 * blocks_.of_each;
  wins_ = 0;
}

}  // namespace tenon::program::detail
