#include <numeric>
#include <optional>

#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon::memory {
namespace {

// A body that satisfies the rules of both; nothing when they contradict each other.
std::optional<Body> merged(const Body& a, const Body& b) {
  if (a.pinned && b.pinned && a.low != b.low) return std::nullopt;
  if (a.window > 0 && b.window > 0 && std::max(a.window, b.window) % std::min(a.window, b.window) != 0)
    return std::nullopt;
  // Larger alignments are rejected, which also keeps products of odd ones small.
  constexpr Address kMostAlign = Address{1} << 40;
  const Address common = std::gcd(a.align, b.align);
  if (a.align / common > kMostAlign / b.align) return std::nullopt;
  Body both;
  both.bytes = std::max(a.bytes, b.bytes);
  both.align = a.align / common * b.align;
  both.window = a.window > 0 && b.window > 0 ? std::min(a.window, b.window) : std::max(a.window, b.window);
  both.low = std::max(a.low, b.low);
  both.high = std::min(a.high, b.high);
  both.pinned = a.pinned || b.pinned;
  if (both.window > 0 && (both.bytes > both.window || both.window % both.align != 0)) return std::nullopt;
  if (both.pinned && both.low != (a.pinned ? a.low : b.low)) return std::nullopt;
  if (both.admit(0) == kNowhere) return std::nullopt;
  return both;
}

class Unions {
 public:
  explicit Unions(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  uint32_t root(uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(uint32_t root, uint32_t into) { parent_[root] = into; }

 private:
  std::vector<uint32_t> parent_;
};

// The greatest common divisor of all alignments, windows and banks.
Address common_unit(std::span<const MemoryBlock> blocks, std::span<const uint32_t> chosen, const ArenaSpace& space) {
  size_t unit = space.bank_bytes;
  for (const uint32_t i : chosen) {
    unit = std::gcd(unit, std::lcm(blocks[i].align_bytes, space.align_bytes));
    unit = std::gcd(unit, blocks[i].window_bytes);
  }
  return static_cast<Address>(std::max<size_t>(unit, 1));
}

void scale(Body& body, Address unit) {
  body.bytes = (body.bytes + unit - 1) / unit;
  body.align /= unit;
  body.window /= unit;
  body.low /= unit;
  if (body.high != kNowhere) body.high /= unit;
}

std::vector<size_t> births(std::span<const MemoryBlock> blocks, std::span<const uint32_t> chosen) {
  std::vector<size_t> steps;
  steps.reserve(chosen.size());
  for (const uint32_t i : chosen) steps.push_back(blocks[i].first);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

// Pairs of conflicting bodies: counted first, then stored.
class NeighbourFinder {
 public:
  explicit NeighbourFinder(Problem& problem) : problem_(problem) {}

  void find() {
    by_birth();
    if (count() > kMostPairs) {
      problem_.dense = true;
      return;
    }
    special_ = !problem_.apart.empty() || std::ranges::any_of(problem_.members, [&](const Member& member) {
      return member.bytes != problem_.bodies[body_of(member)].bytes;
    });
    lay_out();
  }

 private:
  void by_birth() {
    order_.resize(problem_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return problem_.bodies[a].first < problem_.bodies[b].first; });
  }

  uint64_t count() const {
    std::vector<uint64_t> dying(problem_.steps.size() + 1, 0);
    uint64_t alive = 0, pairs = 0;
    size_t step = 0;
    for (const uint32_t i : order_) {
      const Body& body = problem_.bodies[i];
      for (; step < body.first; ++step) alive -= dying[step];
      pairs += alive++;
      ++dying[body.last];
    }
    return pairs;
  }

  template <class Visit>
  void each_pair(const Visit& visit) const {
    std::vector<uint32_t> alive;
    for (const uint32_t i : order_) {
      for (size_t k = 0; k < alive.size();) {
        if (problem_.bodies[alive[k]].last < problem_.bodies[i].first) {
          alive[k] = alive.back();
          alive.pop_back();
        } else {
          visit(alive[k++], i);
        }
      }
      alive.push_back(i);
    }
  }

  uint32_t body_of(const Member& member) const {
    const auto at = static_cast<uint32_t>(&member - problem_.members.data());
    const auto& begin = problem_.member_begin;
    return static_cast<uint32_t>(std::upper_bound(begin.begin(), begin.end(), at) - begin.begin() - 1);
  }

  // The lifetimes of a family's members are contiguous, so bodies with a common step have conflicting members; which
  // ones matters only when sizes differ.
  Reach reach_of(uint32_t a, uint32_t b) const {
    if (!special_) return {};
    const auto mine = problem_.members_of(a), its = problem_.members_of(b);
    Reach reach;
    for (size_t i = 0, k = 0; i < mine.size() && k < its.size();) {
      if (mine[i].first <= its[k].last && its[k].first <= mine[i].last) {
        reach.mine = std::max(reach.mine, mine[i].bytes);
        reach.its = std::max(reach.its, its[k].bytes);
      }
      // When both end in the same step, the successor of one is born in it and overlaps the other, too.
      const bool mine_ends = mine[i].last < its[k].last || (mine[i].last == its[k].last && i + 1 < mine.size());
      ++(mine_ends ? i : k);
    }
    return reach;
  }

  template <class Visit>
  void each_reach(const Visit& visit) const {
    each_pair([&](uint32_t a, uint32_t b) { visit(a, b, reach_of(a, b)); });
    for (const auto& [a, b] : problem_.apart) {
      visit(a, b, Reach{problem_.bodies[a].bytes, problem_.bodies[b].bytes, true});
    }
  }

  void lay_out() {
    std::vector<uint64_t>& begin = problem_.other_begin;
    begin.assign(problem_.size() + 1, 0);
    each_pair([&](uint32_t a, uint32_t b) { ++begin[a + 1], ++begin[b + 1]; });
    for (const auto& [a, b] : problem_.apart) ++begin[a + 1], ++begin[b + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    problem_.others.resize(begin.back());
    if (special_) problem_.reaches.resize(begin.back());
    std::vector<uint64_t> end(begin.begin(), begin.end() - 1);
    const auto put = [&](uint32_t a, uint32_t b, const Reach& reach) {
      problem_.others[end[a]] = b;
      if (special_) problem_.reaches[end[a]] = reach;
      ++end[a];
    };
    each_reach([&](uint32_t a, uint32_t b, const Reach& reach) {
      put(a, b, reach);
      put(b, a, {reach.its, reach.mine, reach.banks});
    });
  }

  Problem& problem_;
  std::vector<uint32_t> order_;
  bool special_ = false;
};

}  // namespace

Body body_of(const MemoryBlock& block, const ArenaSpace& space) {
  Body body;
  body.bytes = static_cast<Address>(block.bytes);
  body.align = static_cast<Address>(std::lcm(block.align_bytes, space.align_bytes));
  body.window = static_cast<Address>(block.window_bytes);
  if (block.bank) {
    body.low = static_cast<Address>(*block.bank * space.bank_bytes);
    body.high = body.low + static_cast<Address>(space.bank_bytes);
  }
  if (block.pinned) {
    body.low = static_cast<Address>(*block.pinned);
    body.pinned = true;
  }
  return body;
}

std::vector<Permission> in_place_permissions(std::span<const MemoryBlock> blocks, std::span<const uint32_t> chosen) {
  std::vector<Permission> permissions;
  for (const uint32_t born : chosen) {
    for (const size_t dead : blocks[born].in_place_of) {
      const MemoryBlock& before = blocks[dead];
      if (before.bytes == 0 || before.space != blocks[born].space || before.last != blocks[born].first) continue;
      permissions.push_back({std::min(before.bytes, blocks[born].bytes), static_cast<uint32_t>(dead), born});
    }
  }
  std::stable_sort(permissions.begin(), permissions.end(),
                   [](const Permission& a, const Permission& b) { return a.saving > b.saving; });
  return permissions;
}

Families join_families(std::span<const MemoryBlock> blocks, const ArenaSpace& space,
                       std::span<const Permission> permissions) {
  Families families{std::vector(blocks.size(), kNone), std::vector(blocks.size(), kNone)};
  if (permissions.empty()) return families;
  Unions unions(blocks.size());
  std::vector<Body> bodies;
  std::vector<std::pair<uint32_t, uint32_t>> kept_apart;
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    bodies.push_back(body_of(blocks[i], space));
    for (const size_t other : blocks[i].apart_from) kept_apart.emplace_back(i, static_cast<uint32_t>(other));
  }
  // Roots of families that must not be merged.
  const auto apart = [&](uint32_t a, uint32_t b) {
    return std::ranges::any_of(kept_apart, [&](const auto& pair) {
      const uint32_t one = unions.root(pair.first), other = unions.root(pair.second);
      return (one == a && other == b) || (one == b && other == a);
    });
  };
  for (const auto& [saving, dead, born] : permissions) {
    if (families.next[dead] != kNone || families.previous[born] != kNone) continue;
    // A member of one step only: its predecessor and successor would be live together.
    const uint32_t before = families.previous[dead], after = families.next[born];
    if (before != kNone && blocks[before].last >= blocks[born].first) continue;
    if (after != kNone && blocks[dead].last >= blocks[after].first) continue;
    const uint32_t a = unions.root(dead), b = unions.root(born);
    if (a == b || apart(a, b)) continue;
    const auto both = merged(bodies[a], bodies[b]);
    if (!both) continue;
    bodies[b] = *both;
    unions.join(a, b);
    families.next[dead] = born;
    families.previous[born] = dead;
  }
  return families;
}

Problem make_problem(std::span<const MemoryBlock> blocks, std::span<const uint32_t> chosen, const ArenaSpace& space,
                     const Families& families) {
  Problem problem;
  problem.unit = common_unit(blocks, chosen, space);
  problem.bank = static_cast<Address>(space.bank_bytes) / problem.unit;
  problem.steps = births(blocks, chosen);
  const auto number = [&](size_t step) {
    return static_cast<uint32_t>(std::upper_bound(problem.steps.begin(), problem.steps.end(), step) -
                                 problem.steps.begin() - 1);
  };
  std::vector<uint32_t> body_of_block(blocks.size(), kNone);
  problem.member_begin.push_back(0);
  for (const uint32_t head : chosen) {
    if (families.previous[head] != kNone) continue;
    Body body = body_of(blocks[head], space);
    for (uint32_t i = head; i != kNone; i = families.next[i]) {
      Member member{body_of(blocks[i], space), i};
      if (i != head) body = *merged(body, member);
      scale(member, problem.unit);
      member.first = number(blocks[i].first);
      member.last = number(blocks[i].last);
      problem.members.push_back(member);
      body_of_block[i] = static_cast<uint32_t>(problem.bodies.size());
    }
    scale(body, problem.unit);
    body.first = problem.members[problem.member_begin.back()].first;
    body.last = problem.members.back().last;
    problem.bodies.push_back(body);
    problem.member_begin.push_back(static_cast<uint32_t>(problem.members.size()));
  }
  for (const uint32_t i : chosen) {
    for (const size_t other : blocks[i].apart_from) {
      if (body_of_block[other] == kNone) continue;  // without bytes
      problem.apart.emplace_back(body_of_block[i], body_of_block[other]);
    }
  }
  return problem;
}

void find_neighbours(Problem& problem) { NeighbourFinder(problem).find(); }

}  // namespace tenon::memory
