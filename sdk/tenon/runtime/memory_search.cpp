#include <queue>

#include <tenon/runtime/memory_problem_internal.hpp>
#include <tenon/support/hash.hpp>

namespace tenon::memory {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint64_t below(uint64_t limit) { return hash_mix(seed_, ++count_) % limit; }

 private:
  uint64_t seed_, count_ = 0;
};

// Makes a placement fit below a ceiling. Bodies that end above it are removed and inserted again where that is
// cheapest, which removes others, and so on. The cost of a body grows each time it is removed, so that difficult bodies
// settle and easy ones move on. Only removed bodies move: a good placement elsewhere in time is kept.
class Repair {
 public:
  Repair(const Problem& problem, uint64_t seed, Work& work)
      : problem_(problem), work_(work), random_(seed), cost_(problem.size()) {}

  // From `placement`, below `ceiling`, within `limit` work in total. True if it succeeds.
  bool run(const std::vector<Address>& placement, Address ceiling, uint64_t limit) {
    at_ = placement;
    ceiling_ = ceiling;
    out_ = {};
    for (uint32_t i = 0; i < problem_.size(); ++i) {
      const Body& body = problem_.bodies[i];
      // Relative to the ceiling; pinned bodies are never removed.
      cost_[i] = body.pinned
                     ? kNever
                     : 1 + static_cast<int64_t>(256.0 * static_cast<double>(body.bytes) / static_cast<double>(ceiling));
      if (at_[i] < kNowhere && at_[i] + body.bytes <= ceiling) continue;
      if (body.pinned) return false;
      take_out(i);
    }
    while (!out_.empty() && work_.done < limit) {
      const uint32_t i = out_.top().second;
      out_.pop();
      if (!put(i)) return false;
    }
    return out_.empty();
  }
  const std::vector<Address>& at() const { return at_; }

 private:
  static constexpr int64_t kNever = int64_t{1} << 40;

  void take_out(uint32_t i) {
    at_[i] = kNowhere;
    out_.emplace(cost_[i], i);
  }

  struct Neighbour {
    Address below, above;
    uint32_t body;
  };

  // Inserts it where the conflicting bodies cost least; ties are broken at random.
  bool put(uint32_t i) {
    look_around(i);
    const Body& body = problem_.bodies[i];
    Address best = kNowhere;
    int64_t least = kNever, cost = 0;
    uint64_t ties = 0;
    size_t entered = 0, left = 0;
    // The cost decreases only where a neighbour ends.
    for (size_t k = 0; k <= leave_.size(); ++k) {
      const Address x = body.admit(k == 0 ? 0 : std::max<Address>(leave_[k - 1].above, 0));
      if (x == kNowhere || x + body.bytes > ceiling_) break;
      for (; entered < enter_.size() && enter_[entered].below < x; ++entered) cost += cost_[enter_[entered].body];
      for (; left < leave_.size() && leave_[left].above <= x; ++left) cost -= cost_[leave_[left].body];
      if (cost < least) ties = 0;
      if (cost <= least && random_.below(++ties) == 0) {
        least = cost;
        best = x;
      }
    }
    if (best == kNowhere || least >= kNever) return false;
    for (const Neighbour& other : enter_) {
      if (other.below >= best) break;
      if (other.above <= best) continue;
      int64_t& dearer = cost_[other.body];
      dearer = std::min(kNever / 2, dearer + std::max<int64_t>(1, dearer / 5));
      take_out(other.body);
    }
    at_[i] = best;
    return true;
  }

  // Finds placed bodies in conflict, by both ends of the offsets that they forbid.
  void look_around(uint32_t i) {
    work_.done += 1 + problem_.other_begin[i + 1] - problem_.other_begin[i];
    enter_.clear();
    for (uint64_t edge = problem_.other_begin[i]; edge < problem_.other_begin[i + 1]; ++edge) {
      const uint32_t j = problem_.others[edge];
      if (at_[j] == kNowhere) continue;
      const auto [below, above] = problem_.forbidden(i, edge, at_[j]);
      enter_.push_back({below, above, j});
    }
    leave_ = enter_;
    std::sort(enter_.begin(), enter_.end(), [](const Neighbour& a, const Neighbour& b) { return a.below < b.below; });
    std::sort(leave_.begin(), leave_.end(), [](const Neighbour& a, const Neighbour& b) { return a.above < b.above; });
  }

  const Problem& problem_;
  Work& work_;
  Random random_;
  std::vector<Address> at_;
  Address ceiling_ = 0;
  std::vector<int64_t> cost_;
  std::priority_queue<std::pair<int64_t, uint32_t>> out_;
  std::vector<Neighbour> enter_, leave_;
};

}  // namespace

namespace {

void take(const Problem& problem, const Repair& repair, Placement& best) {
  best = {repair.at(), 0, "repair"};
  for (uint32_t i = 0; i < problem.size(); ++i) best.end = std::max(best.end, best.at[i] + problem.bodies[i].bytes);
}

// For a placement in which bodies have no place: the end of the space, or the sum of all bodies.
Address highest_ceiling(const Problem& problem) {
  Address sum = 0;
  for (const Body& body : problem.bodies) {
    const Address low = body.low < kNowhere ? body.low : 0;
    sum = std::min(kMostBytes, std::max(sum, low) + round_up(body.bytes, body.align));
  }
  return std::min(problem.limit, std::min(kMostBytes, 2 * sum));
}

}  // namespace

// Tries ceilings between the bound and the best so far: first the bound, then half as ambitious after each failure, and
// the bound again when nothing is left to halve, since the random choices differ then.
void search(const Problem& problem, uint64_t seed, Work& work, Placement& best) {
  Repair repair(problem, seed, work);
  constexpr uint64_t kAttempts = 8;
  const uint64_t share = work.left() / kAttempts + 1;
  while (best.end >= kNowhere && !best.at.empty() && !work.spent()) {
    const uint64_t before = work.done;
    if (repair.run(best.at, highest_ceiling(problem), std::min(work.limit, work.done + share))) {
      take(problem, repair, best);
    } else if (work.done == before) {
      return;
    }
  }
  double ambition = 1;
  while (best.end > problem.bound && best.end < kNowhere && !work.spent()) {
    const auto lower = static_cast<Address>(ambition * static_cast<double>(best.end - problem.bound));
    const Address ceiling = best.end - std::clamp<Address>(lower, 1, best.end - problem.bound);
    const uint64_t before = work.done;
    if (repair.run(best.at, ceiling, std::min(work.limit, work.done + share))) {
      take(problem, repair, best);
      continue;
    }
    if (work.done == before) break;  // a conflict with a pin, which would recur
    ambition = ceiling == best.end - 1 ? 1 : ambition / 2;
  }
}

}  // namespace tenon::memory
