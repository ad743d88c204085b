#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon::memory {
namespace {

// Any placement can be rebuilt without loss by placing its bodies, lowest first, at their lowest fits. It therefore
// suffices to try orders with non-decreasing offsets.
class Exhaustion {
 public:
  Exhaustion(const Problem& problem, Work& work, Placement& best)
      : problem_(problem), work_(work), best_(best), at_(problem.size(), kNotYet), top_(problem.steps.size(), 0),
        rest_(problem.steps.size(), 0) {
    for (uint32_t i = 0; i < problem.size(); ++i) {
      const Body& body = problem.bodies[i];
      if (body.pinned) {
        at_[i] = body.low;
        pinned_end_ = std::max(pinned_end_, body.low + body.bytes);
      } else {
        each_step(i, [&](const Member& member, uint32_t step) { rest_[step] += member.bytes; });
        ++left_;
      }
    }
  }

  void run() {
    descend(0, pinned_end_);
    best_.proved = !work_.spent();
  }

 private:
  static constexpr Address kNotYet = -1;

  template <class Visit>
  void each_step(uint32_t i, const Visit& visit) {
    for (const Member& member : problem_.members_of(i)) {
      for (uint32_t step = member.first; step <= member.last; ++step) visit(member, step);
    }
  }

  void descend(Address floor, Address end) {
    if (left_ == 0) {
      best_ = {at_, end, "exhaustive search"};
      return;
    }
    for (uint32_t i = 0; i < problem_.size() && best_.end > problem_.bound; ++i) {
      if (at_[i] != kNotYet || work_.spent()) continue;
      work_.done += 1 + problem_.others.size() / problem_.size();
      const Address offset =
          lowest_fit(problem_, i, at_, [&](uint32_t j) { return at_[j] != kNotYet; }, scratch_);
      const Address top = std::max(end, offset + problem_.bodies[i].bytes);
      if (offset == kNowhere || offset < floor || top >= best_.end) continue;
      const std::vector<Address> tops = top_, rest = rest_;
      at_[i] = offset;
      --left_;
      each_step(i, [&](const Member& member, uint32_t step) {
        top_[step] = std::max(top_[step], offset + member.bytes);
        rest_[step] -= member.bytes;
      });
      if (possible(offset)) descend(offset, top);
      ++left_;
      at_[i] = kNotYet;
      top_ = tops;
      rest_ = rest;
    }
  }

  // Remaining bodies are not below `floor`, and above the placed ones.
  bool possible(Address floor) const {
    for (size_t step = 0; step < rest_.size(); ++step) {
      if (rest_[step] > 0 && std::max(floor, top_[step]) + rest_[step] >= best_.end) return false;
    }
    return true;
  }

  const Problem& problem_;
  Work& work_;
  Placement& best_;
  std::vector<Address> at_, top_, rest_;  // the latter two by step: end of the placed bodies, bytes of the others
  Address pinned_end_ = 0;
  size_t left_ = 0;
  std::vector<std::pair<Address, Address>> scratch_;
};

}  // namespace

void search_exactly(const Problem& problem, Work& work, Placement& best) { Exhaustion(problem, work, best).run(); }

}  // namespace tenon::memory
