// The planner's representation: the blocks of one memory space, in units of their common alignment. For the planner's
// own files.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tenon/runtime/memory_plan.hpp>

namespace tenon::memory {

// Offsets and sizes. Signed, so that ranges may begin below zero; kNowhere plus any size does not overflow.
using Address = int64_t;
inline constexpr Address kNowhere = Address{1} << 62;    // of a body that found no place
inline constexpr Address kMostBytes = Address{1} << 60;  // of one block

constexpr Address round_up(Address value, Address unit) { return unit == 1 ? value : (value + unit - 1) / unit * unit; }

// What is placed as a unit: a block, or a family of blocks, each in the place of the previous one.
struct Body {
  Address bytes = 0;             // of the largest member
  uint32_t first = 0, last = 0;  // indices of steps, see Problem
  Address align = 1;
  Address window = 0;
  Address low = 0, high = kNowhere;  // lies in [low, high)
  bool pinned = false;               // at `low`

  // The lowest offset >= `offset` that the body's own rules allow; kNowhere when there is none.
  Address admit(Address offset) const {
    Address at = round_up(std::max(offset, low), align);
    if (window > 0 && bytes > 0 && at / window != (at + bytes - 1) / window) at = round_up(at, window);
    return at > high - bytes || (pinned && at != low) ? kNowhere : at;
  }
};

// A block on its own.
struct Member : Body {
  uint32_t block = 0;
};

// The distance that one body requires of another, when it is not simply given by their sizes.
struct Reach {
  Address mine = 0, its = 0;  // sizes of the conflicting members
  bool banks = false;         // in whole banks
};

struct Problem {
  Address unit = 1;            // bytes
  Address bank = 0;            // units
  Address bound = 0;           // units; set by the caller from lower_bound()
  Address limit = kMostBytes;  // units that the space has; set by the caller
  std::vector<size_t> steps;   // only steps in which a block is born are numbered: their original numbers, ascending
  std::vector<Body> bodies;
  std::vector<Member> members;                       // grouped by body, by time
  std::vector<uint32_t> member_begin;                // bodies + 1
  std::vector<std::pair<uint32_t, uint32_t>> apart;  // bodies
  // Conflicting bodies: those of body i are others[other_begin[i] .. other_begin[i + 1]). Empty when `dense`.
  bool dense = false;  // too many
  std::vector<uint64_t> other_begin;
  std::vector<uint32_t> others;
  std::vector<Reach> reaches;  // as `others`, or empty when sizes suffice

  size_t size() const { return bodies.size(); }
  std::span<const Member> members_of(uint32_t body) const {
    return std::span(members).subspan(member_begin[body], member_begin[body + 1] - member_begin[body]);
  }
  // The open range of offsets forbidden to body `i` while its neighbour number `edge` is at `at`.
  std::pair<Address, Address> forbidden(uint32_t i, uint64_t edge, Address at) const {
    const uint32_t j = others[edge];
    const Reach reach = reaches.empty() ? Reach{bodies[i].bytes, bodies[j].bytes} : reaches[edge];
    if (!reach.banks) return {at - reach.mine, at + reach.its};
    return {at / bank * bank - reach.mine, round_up(at + reach.its, bank)};
  }
};

// 64 MB of neighbours.
inline constexpr uint64_t kMostPairs = 8u << 20;

// One block that may take the place of another that dies.
struct Permission {
  size_t saving;  // bytes
  uint32_t dead, born;
};
// Of blocks with bytes, the largest savings first.
std::vector<Permission> in_place_permissions(std::span<const MemoryBlock> blocks, std::span<const uint32_t> chosen);

// Blocks that share a place: their neighbours in a family, by block.
inline constexpr uint32_t kNone = UINT32_MAX;
struct Families {
  std::vector<uint32_t> next, previous;
};
// Applies each permission, in the given order, that lifetimes, rules and earlier ones allow.
Families join_families(std::span<const MemoryBlock> blocks, const ArenaSpace& space,
                       std::span<const Permission> permissions);

// The block's own rules, in bytes, without its lifetime.
Body body_of(const MemoryBlock& block, const ArenaSpace& space);
// "block 'conv1'", or "block 17".
std::string describe(std::span<const MemoryBlock> blocks, size_t block);
// Two of the blocks `chosen` that are live in the same step and overlap without permission.
std::optional<std::pair<uint32_t, uint32_t>> find_overlap(std::span<const MemoryBlock> blocks,
                                                          std::vector<uint32_t> chosen,
                                                          std::span<const size_t> offsets);
// The error names the first block or space that is invalid, or two pinned blocks that conflict.
Result<void> check_problem(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces);
// Whether two blocks at these offsets use a common bank; there are banks.
bool share_bank(const MemoryBlock& a, size_t a_offset, const MemoryBlock& b, size_t b_offset, size_t bank_bytes);

// `blocks` and `space` are valid; those listed in `chosen` lie in it and have bytes.
Problem make_problem(std::span<const MemoryBlock> blocks, std::span<const uint32_t> chosen, const ArenaSpace& space,
                     const Families& families);
// Fills `others` and the members that belong to it, which the greedy orders and the searches need.
void find_neighbours(Problem& problem);

// A lower bound for every plan, with whatever families; and the step (its original number) with most live bytes.
struct Bound {
  Address units = 0;
  size_t step = 0;
};
Bound lower_bound(std::span<const MemoryBlock> blocks, const Problem& problem);

// A placement of all bodies, and its end; kNowhere or more when a body found no place.
struct Placement {
  std::vector<Address> at;
  Address end = INT64_MAX;
  const char* order = "none";
  bool proved = false;  // nothing is better, though the bound may be lower
};

// Neighbours examined.
struct Work {
  uint64_t done = 0, limit = 0;
  bool spent() const { return done >= limit; }
  uint64_t left() const { return spent() ? 0 : limit - done; }
};

// The lowest offset of body `i` that is compatible with the neighbours for which `counts` holds, at the offsets `at`.
template <class Counts>
Address lowest_fit(const Problem& problem, uint32_t i, const std::vector<Address>& at, const Counts& counts,
                   std::vector<std::pair<Address, Address>>& scratch) {
  scratch.clear();
  for (uint64_t edge = problem.other_begin[i]; edge < problem.other_begin[i + 1]; ++edge) {
    const uint32_t j = problem.others[edge];
    if (counts(j)) scratch.push_back(problem.forbidden(i, edge, at[j]));
  }
  std::sort(scratch.begin(), scratch.end());
  const Body& body = problem.bodies[i];
  Address offset = body.admit(0);
  for (const auto& [below, above] : scratch) {
    if (offset <= below || offset == kNowhere) break;
    if (offset < above) offset = body.admit(above);
  }
  return offset;
}

// Several orders, each body at its lowest fit. Not for `dense` problems.
void place_greedily(const Problem& problem, Placement& best);
// From the worst step outward, each body into the smallest hole that fits: n log n, whatever the number of pairs.
void place_outward(const Problem& problem, Placement& best);
// Seeded local search: from a placement to a better one, until the bound or the work limit is reached, or from one in
// which bodies have no place to one in which all have. Not for `dense` problems.
void search(const Problem& problem, uint64_t seed, Work& work, Placement& best);
// Whether the problem consists only of sizes and lifetimes: no alignment beyond the unit, no pins, windows, banks or
// families of two sizes.
bool only_sizes_matter(const Problem& problem);
// Seeded, for such problems: reaches the bound or a value near it. Sets Placement::proved when nothing nearer exists.
void search_stretches(const Problem& problem, uint64_t seed, Work& work, Placement& best);
// All different orders, for few bodies. Sets Placement::proved when it finished.
inline constexpr size_t kMostExact = 12;
void search_exactly(const Problem& problem, Work& work, Placement& best);

}  // namespace tenon::memory
