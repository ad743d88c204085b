// Inside the room: which of several ways, which all have the same results, the runs of a program take.
//
// Prefetch hints save a quarter of the time where data comes from main memory, and cost up to a sixth where a cache has
// it. The fastest steps of a loop differ in the same way. Which of them that is depends on what other programs leave of
// a shared cache, and changes within minutes, so no decision made before the runs is right for all of them: the runs
// themselves try the ways.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <tenon/support/export.hpp>

namespace tenon::program::detail {

// A trial compares the chosen way with another one, in blocks of consecutive runs that alternate. The fastest run of
// each way counts, since a disturbance only makes a run slower. The runs between trials are not timed.
//
//   const size_t way = trials.begin_run();
//   ...
//   trials.end_run();   // unless the run has failed
//
// At first way 0 is chosen. Each other one is tried once, in order; after that, the faster ones more often than others.
// Not synchronised: one run at a time.
class TENON_API RunTrials {
 public:
  // Seconds since any time.
  using Clock = std::function<double()>;

  struct Blocks {
    int of_each = 3;        // in a trial
    int settling_runs = 0;  // first ones of a block, which are not timed: they find in the caches what other ways left
    int timed_runs = 1;
    // The trial ends with a pair of blocks after which the other way takes so many times as long as the chosen one.
    double hopeless = std::numeric_limits<double>::infinity();
    // A faster way is chosen after so many more trials that show the same, which follow at once: the more ways there
    // are, the more often one of them seems to be faster than it is.
    int confirmations = 0;
    // Runs between two trials: so many that a trial's slower runs, as timed in the last one, lengthen all of them by
    // at most this part.
    double most_loss = 0.005;
  };

  // The first trial begins after this many runs: the first run finds neither data nor code in the caches.
  static constexpr int64_t kFirstRuns = 2;
  // A way is faster if it takes less than this factor of the time.
  static constexpr double kFaster = 0.98;
  // In place of Blocks::most_loss while there are ways that have not been tried yet, ...
  static constexpr double kMostLossOfFirst = 0.2;
  // ... and after kMostSeconds, in which another program may have come or gone.
  static constexpr double kMostLossLate = 0.02, kMostSeconds = 1;
  // What two readings of the clock take, which counts as lost.
  static constexpr double kSecondsToTime = 50e-9;
  static constexpr int64_t kFewestRuns = 16, kMostRuns = 1024;

  RunTrials(size_t ways, const Blocks& blocks, Clock clock = steady_seconds);

  // The way that this run is to take.
  size_t begin_run();
  void end_run();
  // Of runs outside trials.
  size_t chosen() const { return chosen_; }
  // A way that cannot run is not tried any more. Not the chosen one.
  void drop(size_t way);

  // The time of a way relative to the chosen one, by its last trial; 0: not tried.
  double relative_time(size_t way) const {
    return way == chosen_ ? 1 : ways_[way].last_trial > 0 ? ways_[way].relative_time : 0;
  }

 private:
  struct Way {
    double relative_time = 1;
    int64_t last_trial = 0;  // 0: none
    bool dropped = false;
  };

  static double steady_seconds();
  bool is_on_trial() const { return block_ < 2 * blocks_.of_each; }
  bool is_of_challenger() const { return block_ % 2 == 1; }
  bool trial_is_due();
  void begin_trial();
  void end_trial();
  void decide();
  // The way to try next; chosen_ if there is none.
  size_t next_challenger() const;

  const Blocks blocks_;
  const Clock clock_;
  std::vector<Way> ways_;
  size_t chosen_ = 0, challenger_ = 0;
  int64_t trials_ = 0;
  int wins_ = 0;      // of the challenger, in a row
  int64_t runs_ = 0;  // since the last trial
  int64_t until_trial_ = kFirstRuns, until_late_trial_ = kFirstRuns;
  int block_, run_of_block_ = 0;         // of the trial
  double began_ = 0;                     // of the run, in seconds
  double last_trial_ = 0;                // its end
  double least_chosen_ = 0, least_ = 0;  // seconds of the trial's runs so far, the second of the challenger
};

}  // namespace tenon::program::detail
