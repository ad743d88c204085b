#include <map>

#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon::memory {
namespace {

using BySteps = std::vector<Address>;

// The sum of `bytes_of` over the members that are live.
template <class BytesOf>
BySteps alive(const Problem& problem, const BytesOf& bytes_of) {
  BySteps sums(problem.steps.size() + 1, 0);
  for (const Member& member : problem.members) {
    const Address bytes = bytes_of(member);
    sums[member.first] += bytes;
    sums[member.last + 1] -= bytes;
  }
  Address sum = 0;
  for (Address& step : sums) step = sum += step;
  sums.pop_back();
  return sums;
}

// A lower bound of what in-place results can save in the step of their birth: each replaces one block, and each block
// is replaced by one result.
BySteps savings(std::span<const MemoryBlock> blocks, const Problem& problem) {
  BySteps by_born(problem.steps.size(), 0), by_dead(by_born);
  std::map<size_t, Address> replaced;  // by block that dies
  std::vector<uint32_t> steps(blocks.size(), 0);
  for (const Member& member : problem.members) {
    const MemoryBlock& born = blocks[member.block];
    Address most = 0;
    for (const size_t i : born.in_place_of) {
      if (blocks[i].last != born.first || blocks[i].space != born.space) continue;
      const Address other = round_up(static_cast<Address>(blocks[i].bytes), problem.unit) / problem.unit;
      Address& best = replaced[i];
      best = std::max(best, std::min(member.bytes, other));
      most = std::max(most, std::min(member.bytes, other));
      steps[i] = member.first;
    }
    by_born[member.first] += most;
  }
  for (const auto& [block, bytes] : replaced) by_dead[steps[block]] += bytes;
  for (size_t i = 0; i < by_born.size(); ++i) by_born[i] = std::min(by_born[i], by_dead[i]);
  return by_born;
}

// Members whose offsets are multiples of `align` begin at that distance; only the top one needs no more than its size.
void raise_by_alignment(const Problem& problem, const BySteps& saved, Bound& bound) {
  std::vector<Address> aligns;
  for (const Member& member : problem.members) aligns.push_back(member.align);
  std::sort(aligns.begin(), aligns.end());
  aligns.erase(std::unique(aligns.begin(), aligns.end()), aligns.end());
  constexpr size_t kMostAligns = 8;
  if (aligns.size() > kMostAligns) return;
  for (const Address align : aligns) {
    if (align == 1) continue;
    const BySteps sums = alive(problem, [&](const Member& member) {
      return member.align % align == 0 ? round_up(member.bytes, align) : 0;
    });
    for (size_t step = 0; step < sums.size(); ++step) {
      if (saved[step] == 0) bound.units = std::max(bound.units, sums[step] - (align - 1));
    }
  }
}

// The gap between pinned blocks is usable only where the smallest other block fits.
class PinnedGaps {
 public:
  PinnedGaps(const Problem& problem, const BySteps& saved) : problem_(problem), saved_(saved) {
    for (const Member& member : problem.members) {
      if (member.pinned) pinned_.push_back(&member);
      else smallest_ = std::min(smallest_, member.bytes);
    }
    std::stable_sort(pinned_.begin(), pinned_.end(), [](auto* a, auto* b) { return a->low < b->low; });
  }

  void raise(std::span<const MemoryBlock> blocks, Bound& bound) const {
    for (const Member* member : pinned_) bound.units = std::max(bound.units, member->low + member->bytes);
    constexpr size_t kMostWork = 50'000'000;
    if (pinned_.empty() || pinned_.size() * problem_.members.size() > kMostWork) return;
    const BySteps loose = alive(problem_, [](const Member& member) { return member.pinned ? 0 : member.bytes; });
    for (uint32_t step = 0; step < loose.size(); ++step) {
      bound.units = std::max(bound.units, end_of(step, loose[step] - saved_[step]));
    }
    for (const Member& member : problem_.members) {
      if (!member.pinned) bound.units = std::max(bound.units, lowest(blocks, member) + member.bytes);
    }
  }

 private:
  // The lowest possible end of `bytes` bytes of loose blocks, at one step.
  Address end_of(uint32_t step, Address bytes) const {
    if (bytes <= 0) return 0;
    Address from = 0;
    for (const Member* member : pinned_) {
      if (member->first > step || member->last < step) continue;
      const Address gap = member->low - from;
      if (gap >= smallest_) {
        if (bytes <= gap) return from + bytes;
        bytes -= gap;
      }
      from = std::max(from, member->low + member->bytes);
    }
    return from + bytes;
  }

  // The lowest place of a block among the pinned ones only.
  Address lowest(std::span<const MemoryBlock> blocks, const Member& member) const {
    const auto& permitted = blocks[member.block].in_place_of;
    Address at = member.admit(0);
    for (const Member* other : pinned_) {
      if (at == kNowhere || at + member.bytes <= other->low) break;
      if (other->first > member.last || member.first > other->last || other->low + other->bytes <= at) continue;
      if (std::ranges::find(permitted, other->block) != permitted.end()) continue;
      const auto& permits = blocks[other->block].in_place_of;
      if (std::ranges::find(permits, member.block) != permits.end()) continue;
      at = member.admit(other->low + other->bytes);
    }
    return at == kNowhere ? 0 : at;
  }

  const Problem& problem_;
  const BySteps& saved_;
  std::vector<const Member*> pinned_;
  Address smallest_ = kNowhere;
};

}  // namespace

Bound lower_bound(std::span<const MemoryBlock> blocks, const Problem& problem) {
  Bound bound;
  const BySteps saved = savings(blocks, problem);
  const BySteps live = alive(problem, [](const Member& member) { return member.bytes; });
  for (size_t step = 0; step < live.size(); ++step) {
    if (live[step] - saved[step] > bound.units) bound = {live[step] - saved[step], problem.steps[step]};
  }
  for (const Member& member : problem.members) {
    const Address lowest = member.admit(0);
    if (lowest != kNowhere) bound.units = std::max(bound.units, lowest + member.bytes);
  }
  raise_by_alignment(problem, saved, bound);
  PinnedGaps(problem, saved).raise(blocks, bound);
  return bound;
}

}  // namespace tenon::memory
