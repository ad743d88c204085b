// Inside the room: a timing that tolerates other users of the machine.
#pragma once
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <tenon/program/schedule/timing_internal.hpp>

namespace tenon::program::detail {

inline long times_taken_away() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// Samples of one measured quantity. In a round it is sampled several times at one place of memory; the minimum is the
// undisturbed value.
class Probe {
 public:
  // `scale`: the quantity per sample. `before`: runs before each sample, untimed; may be empty.
  Probe(std::string name, double scale, int tries, std::function<void()> body, std::function<void()> before = {})
      : name_(std::move(name)), scale_(scale), tries_(tries), body_(std::move(body)), before_(std::move(before)) {}

  void take_round() {
    double least = 0;
    bool undisturbed = false;
    for (int i = 0; i < tries_; ++i) {
      const auto [seconds, quiet] = try_once();
      if (i > 0 || (!moves_ && !rounds_.empty())) again_.push_back(seconds / scale_);
      disturbed_ += !quiet;
      if (undisturbed && !quiet) continue;
      least = least > 0 && quiet == undisturbed ? std::min(least, seconds) : seconds;
      undisturbed = quiet;
    }
    rounds_.push_back(least / scale_);
  }

  const std::string& name() const { return name_; }
  int tried() const { return tries_ * static_cast<int>(rounds_.size()); }
  int disturbed() const { return disturbed_; }
  // The minimum of all rounds. For a probe that moves to another place of memory in each round, the lower quartile,
  // since some places suit the caches better than others.
  double seconds() const {
    std::vector<double> all = rounds_;
    const auto chosen = all.begin() + static_cast<int64_t>(moves_ ? all.size() / 4 : 0);
    std::ranges::nth_element(all, chosen);
    return *chosen;
  }
  void moves() { moves_ = true; }
  // Other threads do a part of the work: a larger one while this thread has no processor, whose own time then says
  // nothing.
  void is_shared() { is_shared_ = true; }
  // The time that three of four samples do not exceed, at places that have been sampled before.
  double mostly_seconds() const {
    std::vector<double> all = again_;
    const auto chosen = all.begin() + static_cast<int64_t>(all.size() * 3 / 4);
    std::ranges::nth_element(all, chosen);
    return *chosen;
  }

 private:
  // A sample whose wall-clock time exceeds its processor time by more than this part was disturbed: another thread had
  // the processor.
  static constexpr double kTakenAway = 0.02;

  struct Try {
    double seconds;  // of a disturbed sample: processor time, unless shared
    bool quiet;
  };
  Try try_once() const {
    if (before_) before_();
    const long away = times_taken_away();
    const double processor = seconds_of(CLOCK_THREAD_CPUTIME_ID), begin = seconds_of(CLOCK_MONOTONIC);
    body_();
    const double taken = seconds_of(CLOCK_MONOTONIC) - begin;
    const double used = seconds_of(CLOCK_THREAD_CPUTIME_ID) - processor;
    const bool quiet = times_taken_away() == away && used >= (1 - kTakenAway) * taken;
    return {quiet || is_shared_ ? taken : used, quiet};
  }

  std::string name_;
  double scale_;
  int tries_;
  std::function<void()> body_, before_;
  bool moves_ = false, is_shared_ = false;
  std::vector<double> rounds_, again_;
  int disturbed_ = 0;  // samples
};

}  // namespace tenon::program::detail
