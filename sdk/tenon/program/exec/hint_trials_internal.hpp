// Inside the room: whether the runs of a bound program follow its prefetch hints.
//
// Hints save a quarter of the time where data comes from main memory, and cost up to a sixth where a cache has it.
// Which of the two holds depends on what other programs leave of a shared cache, and changes within minutes, so no
// decision made before the runs is right for all of them. Hints change no result: the runs themselves try both.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

#include <tenon/support/export.hpp>

namespace tenon::program::detail {

// A trial consists of six consecutive runs, alternately as before and the other way. The fastest of each three are
// compared, since a disturbance only makes a run slower. The runs between trials are not timed.
//
//   const bool hints = trials.begin_run();
//   ...
//   trials.end_run();   // unless the run has failed
//
// Not synchronised: one run at a time.
class TENON_API HintTrials {
 public:
  // Seconds since any time.
  using Clock = std::function<double()>;

  // The first trial begins after this many runs: the first run finds neither data nor code in the caches.
  static constexpr int64_t kFirstRuns = 2;
  static constexpr int kRunsOfEach = 3;
  // A decision is changed for what takes less than this factor of the time.
  static constexpr double kFaster = 0.98;
  // Runs between two trials: so many that a trial's slower runs, as timed in the last one, lengthen all of them by at
  // most this part. It may be kMostLossLate after kMostSeconds, in which another program may have come or gone.
  static constexpr double kMostLoss = 0.005, kMostLossLate = 0.02, kMostSeconds = 1;
  static constexpr int64_t kFewestRuns = 16, kMostRuns = 1024;

  explicit HintTrials(Clock clock = steady_seconds) : clock_(std::move(clock)) {}

  // Whether this run follows the hints.
  bool begin_run();
  void end_run();
  // Whether runs outside trials do.
  bool follows() const { return follows_; }

 private:
  static constexpr int kRunsOfTrial = 2 * kRunsOfEach;
  static double steady_seconds();
  bool is_on_trial() const { return run_of_trial_ < kRunsOfTrial; }
  bool trial_is_due();
  void decide();

  Clock clock_;
  bool follows_ = true;
  int64_t runs_ = 0;  // since the last trial
  int64_t until_trial_ = kFirstRuns, until_late_trial_ = kFirstRuns;
  int run_of_trial_ = kRunsOfTrial;
  double began_ = 0;               // of the run, in seconds
  double last_trial_ = 0;          // its end
  std::array<double, 2> least_{};  // seconds of the trial's runs so far: as before, and the other way
};

}  // namespace tenon::program::detail
