#include <array>
#include <numeric>

#include <tenon/runtime/memory_skyline_internal.hpp>
#include <tenon/support/hash.hpp>

namespace tenon::memory {
namespace {

using Outcome = Skyline::Outcome;

// Plans below one ceiling: first the interval of time around the fullest step, where nothing may be wasted, then
// intervals outward, each around the bodies that extend into it. An interval that fails is extended further and further
// back.
class Stretches {
 public:
  Stretches(const Problem& problem, uint64_t seed, Work& work)
      : problem_(problem), seed_(seed), work_(work), end_(static_cast<uint32_t>(problem.steps.size())) {
    std::vector<Address> alive(end_ + 1, 0);
    for (const Body& body : problem.bodies) {
      alive[body.first] += body.bytes;
      alive[body.last + 1] -= body.bytes;
    }
    std::partial_sum(alive.begin(), alive.end(), alive.begin());
    peak_ = static_cast<uint32_t>(std::max_element(alive.begin(), alive.end() - 1) - alive.begin());
  }

  // Attempts differ in the width of the first interval and in the random choices. Impossible: there is no plan at this
  // ceiling.
  Outcome attempt(Address ceiling) {
    ceiling_ = ceiling;
    at_.assign(problem_.size(), kNowhere);
    // Each width has the same share of the work, so that narrow ones, which are cheap, are tried often.
    const auto width = std::min_element(spent_.begin(), spent_.end());
    const auto index = width - spent_.begin();
    const uint64_t before = work_.done;
    const Outcome outcome = from_peak(index + 1 == kWidths ? end_ : kHalf << index);
    *width += work_.done - before;
    ++attempt_;
    return outcome;
  }
  const std::vector<Address>& at() const { return at_; }

 private:
  // Of intervals, in steps. The last width is the whole time.
  static constexpr uint32_t kHalf = 64, kWidths = 5, kStretch = 64, kMostBack = 120;
  static constexpr uint64_t kFirstRounds = 7, kRounds = 3, kLooksPerBody = 60;

  Outcome from_peak(uint32_t half) {
    begin_ = peak_ - std::min(peak_, half);
    const uint32_t last = std::min(end_ - 1, peak_ + half);
    const Outcome outcome = solve(begin_, last, kFirstRounds, [](const Body&) { return true; });
    if (outcome != Outcome::found) return outcome;
    return go_later(last + 1) && go_earlier() ? Outcome::found : Outcome::gave_up;
  }

  bool go_later(uint32_t from) {
    while (from < end_) {
      const uint32_t last = std::min(end_ - 1, from + kStretch - 1);
      for (uint32_t back = 0;; back = 2 * back + kStretch / 4) {
        if (back > std::min(kMostBack, from - begin_) || work_.spent()) return false;
        const uint32_t first = from - back;
        if (solve(first, last, kRounds, [&](const Body& body) { return body.first >= first; }) == Outcome::found) break;
      }
      from = last + 1;
    }
    return true;
  }

  // Bodies before begin_ have no places yet; all from there on have.
  bool go_earlier() {
    while (begin_ > 0) {
      const uint32_t first = begin_ - std::min(begin_, kStretch);
      for (uint32_t back = 0;; back = 2 * back + kStretch / 4) {
        if (back > std::min(kMostBack, end_ - begin_) || work_.spent()) return false;
        const uint32_t last = begin_ - 1 + back;
        if (solve(first, last, kRounds, [&](const Body& body) { return body.last <= last; }) == Outcome::found) break;
      }
      begin_ = first;
    }
    return true;
  }

  // Of the bodies live in the interval, those that are `loose` are placed; the others have their places.
  template <class Loose>
  Outcome solve(uint32_t first, uint32_t last, uint64_t rounds, const Loose& loose) {
    loose_.clear();
    fixed_.clear();
    for (uint32_t i = 0; i < problem_.size(); ++i) {
      const Body& body = problem_.bodies[i];
      if (body.last >= first && body.first <= last) (loose(body) ? loose_ : fixed_).push_back(i);
    }
    work_.done += problem_.size() / 16;
    Skyline skyline(problem_, first, last, loose_, fixed_, at_);
    Outcome outcome = Outcome::gave_up;
    for (uint64_t round = 1; round <= rounds && outcome == Outcome::gave_up && !work_.spent(); ++round) {
      // Luby's sequence, apart from its order: many short rounds, few long ones.
      const uint64_t looks = (round & (~round + 1)) * kLooksPerBody * (1 + loose_.size());
      const uint64_t chance = attempt_ == 0 ? round - 1 : round;
      outcome = skyline.run(ceiling_, hash_mix(seed_, attempt_), chance, std::min(looks, work_.left()), work_);
    }
    if (outcome == Outcome::found) skyline.copy_to(at_);
    return outcome;
  }

  const Problem& problem_;
  uint64_t seed_, attempt_ = 0;
  Work& work_;
  uint32_t end_, begin_ = 0, peak_ = 0;
  std::array<uint64_t, kWidths> spent_ = {};
  Address ceiling_ = 0;
  std::vector<Address> at_;
  std::vector<uint32_t> loose_, fixed_;
};

}  // namespace

bool only_sizes_matter(const Problem& problem) {
  const auto plain = [](const Body& body) {
    return body.align == 1 && body.window == 0 && body.low == 0 && body.high == kNowhere && !body.pinned;
  };
  if (!problem.apart.empty() || !std::ranges::all_of(problem.bodies, plain)) return false;
  for (uint32_t i = 0; i < problem.size(); ++i) {
    const Address bytes = problem.bodies[i].bytes;
    if (!std::ranges::all_of(problem.members_of(i), [&](const Member& member) { return member.bytes == bytes; }))
      return false;
  }
  return true;
}

// The bound first, for most of the work; then ceilings between those that are impossible, or were given up, and the
// best so far.
void search_stretches(const Problem& problem, uint64_t seed, Work& work, Placement& best) {
  Stretches stretches(problem, seed, work);
  Address lower = problem.bound, given_up = lower;
  const uint64_t hopeful = work.done + work.left() / 8 * 7;
  while (lower < best.end && !work.spent()) {
    const Address ceiling = work.done < hopeful ? lower : given_up + (best.end - given_up) / 2;
    const Outcome outcome = stretches.attempt(ceiling);
    if (outcome == Outcome::impossible) given_up = std::max(given_up, lower = ceiling + 1);
    if (outcome == Outcome::found) best = {stretches.at(), ceiling, "stretches of time from the peak"};
    if (outcome != Outcome::gave_up || ceiling == lower) continue;
    given_up = ceiling + 1;
    if (given_up >= best.end) break;
  }
  best.proved = lower >= best.end;
}

}  // namespace tenon::memory
