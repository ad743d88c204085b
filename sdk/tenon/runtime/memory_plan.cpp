#include <map>
#include <numeric>

#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon {
namespace {

using namespace memory;

// Larger sizes and offsets are invalid; below this no sum overflows.
constexpr size_t kMostOffset = size_t{1} << 60;
constexpr size_t kMostAlign = size_t{1} << 40;

// Holds sums of any sizes.
__extension__ typedef __int128 Wide;

class Validator {
 public:
  Validator(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces)
      : blocks_(blocks), spaces_(spaces) {}

  Result<void> all() const {
    if (blocks_.size() >= kNone)
      return error(Code::invalid_argument, blocks_.size(), " blocks are more than can be planned");
    for (const ArenaSpace& space : spaces_) TENON_OK(check(space));
    for (size_t i = 0; i < blocks_.size(); ++i) {
      TENON_OK(check_numbers(i));
      TENON_OK(check_place(i));
      TENON_OK(check_relations(i));
    }
    return check_pinned();
  }

 private:
  static Result<void> check(const ArenaSpace& space) {
    if (space.align_bytes == 0 || space.align_bytes > kMostAlign || space.bank_bytes > kMostOffset ||
        space.bank_bytes % space.align_bytes != 0) {
      return error(Code::invalid_argument, "memory space '", space.name, "' has an alignment of ", space.align_bytes,
                   " and banks of ", space.bank_bytes,
                   " bytes; the alignment must be 1 to 2^40, banks a multiple of it");
    }
    return {};
  }

  template <class... Parts>
  Error wrong(size_t i, const Parts&... parts) const {
    return error(Code::invalid_argument, describe(blocks_, i), " of ", blocks_[i].bytes, " bytes ", parts...);
  }

  Result<void> check_numbers(size_t i) const {
    const MemoryBlock& block = blocks_[i];
    if (block.space >= spaces_.size())
      return wrong(i, "lies in space ", block.space, ", but there are ", spaces_.size());
    if (block.first > block.last) return wrong(i, "lives from step ", block.first, " to step ", block.last);
    if (block.bytes > kMostOffset) {
      return error(Code::resource_exhausted, describe(blocks_, i), " has ", block.bytes,
                   " bytes, more than any memory");
    }
    if (block.align_bytes == 0 || block.align_bytes > kMostAlign)
      return wrong(i, "has an alignment of ", block.align_bytes);
    const size_t a = block.align_bytes, b = spaces_[block.space].align_bytes;
    if (a / std::gcd(a, b) > kMostAlign / b) return wrong(i, "has an alignment of ", a, " in a space aligned to ", b);
    return {};
  }

  Result<void> check_place(size_t i) const {
    const MemoryBlock& block = blocks_[i];
    const ArenaSpace& space = spaces_[block.space];
    const size_t align = std::lcm(block.align_bytes, space.align_bytes);
    if (block.window_bytes > 0 &&
        (block.window_bytes < block.bytes || block.window_bytes > kMostOffset || block.window_bytes % align != 0)) {
      return wrong(i, "must cross no multiple of ", block.window_bytes, "; that must be a multiple of the alignment ",
                   align, " and no less than the block");
    }
    if (block.bank &&
        (space.bank_bytes < std::max<size_t>(block.bytes, 1) || *block.bank > kMostOffset / space.bank_bytes)) {
      return wrong(i, "must lie in bank ", *block.bank, " of '", space.name, "', which has banks of ", space.bank_bytes,
                   " bytes");
    }
    if (block.pinned) TENON_OK(check_pin(i, align));
    if (body_of(block, space).admit(0) == kNowhere) {
      return block.pinned ? wrong(i, "is pinned at ", *block.pinned, ", where its window or bank does not allow it")
                          : wrong(i, "has no place aligned to ", align, " in bank ", *block.bank, " of ",
                                  space.bank_bytes, " bytes");
    }
    return {};
  }

  Result<void> check_pin(size_t i, size_t align) const {
    const MemoryBlock& block = blocks_[i];
    const ArenaSpace& space = spaces_[block.space];
    const size_t at = *block.pinned;
    if (at % align != 0) return wrong(i, "is pinned at ", at, ", which is no multiple of its alignment ", align);
    if (block.bank && at / space.bank_bytes != *block.bank)
      return wrong(i, "is pinned at ", at, ", outside bank ", *block.bank);
    if (at > kMostOffset || at + block.bytes > space.limit_bytes) {
      return error(Code::resource_exhausted, describe(blocks_, i), " of ", block.bytes, " bytes is pinned at ", at,
                   ", beyond the end of '", space.name, "' at ", std::min(space.limit_bytes, kMostOffset));
    }
    return {};
  }

  Result<void> check_relations(size_t i) const {
    const MemoryBlock& block = blocks_[i];
    for (const size_t other : block.apart_from) {
      if (other >= blocks_.size() || other == i || blocks_[other].space != block.space ||
          spaces_[block.space].bank_bytes == 0) {
        return wrong(i, "must share no bank with block ", other,
                     ": that must be another block of the same space, with banks");
      }
    }
    for (const size_t other : block.in_place_of) {
      if (other >= blocks_.size() || other == i)
        return wrong(i, "may replace block ", other, ": that must be another block");
    }
    return {};
  }

  Result<void> check_pinned() const {
    std::vector<std::vector<uint32_t>> pinned(spaces_.size());
    std::vector<size_t> offsets(blocks_.size(), 0);
    for (uint32_t i = 0; i < blocks_.size(); ++i) {
      if (!blocks_[i].pinned) continue;
      pinned[blocks_[i].space].push_back(i);
      offsets[i] = *blocks_[i].pinned;
      for (const size_t other : blocks_[i].apart_from) {
        const ArenaSpace& space = spaces_[blocks_[i].space];
        if (!blocks_[other].pinned ||
            !share_bank(blocks_[i], offsets[i], blocks_[other], *blocks_[other].pinned, space.bank_bytes)) continue;
        return wrong(i, "pinned at ", offsets[i], " shares a bank of '", space.name, "' with ",
                     describe(blocks_, other), " pinned at ", *blocks_[other].pinned, ", from which it must be apart");
      }
    }
    for (auto& chosen : pinned) {
      const auto overlap = find_overlap(blocks_, std::move(chosen), offsets);
      if (!overlap) continue;
      const auto [a, b] = *overlap;
      return wrong(a, "pinned at ", offsets[a], " overlaps ", describe(blocks_, b), " of ", blocks_[b].bytes,
                   " bytes pinned at ", offsets[b], "; both are alive at step ",
                   std::max(blocks_[a].first, blocks_[b].first));
    }
    return {};
  }

  std::span<const MemoryBlock> blocks_;
  std::span<const ArenaSpace> spaces_;
};

class SpacePlanner {
 public:
  SpacePlanner(std::span<const MemoryBlock> blocks, const ArenaSpace& space, std::vector<uint32_t> chosen,
               const PlanOptions& options)
      : blocks_(blocks), space_(space), chosen_(std::move(chosen)), options_(options) {
    // More would take seconds even where each block has few neighbours; less saves nothing where blocks are few.
    constexpr uint64_t kMostWork = 28'000'000, kFewBlocks = 100;
    const uint64_t effort = std::min<uint64_t>(options.effort, kMostWork);
    work_.limit = std::min(kMostWork, effort * std::max<uint64_t>(chosen_.size(), kFewBlocks));
  }

  Result<SpacePlan> plan(std::vector<size_t>& offsets) {
    if (chosen_.empty()) return SpacePlan{.order = "nothing to place", .optimal = true};
    TENON_OK(check_sum());
    const std::vector<Permission> permissions = in_place_permissions(blocks_, chosen_);
    Problem problem = make_problem(blocks_, chosen_, space_, join_families(blocks_, space_, permissions));
    const Bound bound = lower_bound(blocks_, problem);
    unit_ = static_cast<size_t>(problem.unit);
    const size_t bound_bytes = static_cast<size_t>(bound.units) * unit_;
    if (bound_bytes > space_.limit_bytes) return too_small(bound_bytes, bound.step, "");
    bound_ = bound.units;
    place(std::move(problem));
    try_other_families(permissions);
    if (best_.end >= kNowhere) return no_place(bound_bytes);
    const size_t bytes = static_cast<size_t>(best_.end) * unit_;
    if (bytes > space_.limit_bytes)
      return too_small(bytes, bound.step, str(" in the best plan found, ", bound_bytes, " at least"));
    for (const uint32_t i : chosen_) offsets[i] = offsets_[i];
    return SpacePlan{bytes, bound_bytes, bound.step, best_.order, best_.end == bound_ || proved_};
  }

 private:
  // Checks that later sums of live bytes do not overflow.
  Result<void> check_sum() const {
    std::map<size_t, Wide> change;
    for (const uint32_t i : chosen_) {
      change[blocks_[i].first] += blocks_[i].bytes;
      if (blocks_[i].last < SIZE_MAX) change[blocks_[i].last + 1] -= blocks_[i].bytes;
    }
    Wide alive = 0;
    for (const auto& [step, bytes] : change) {
      alive += bytes;
      if (alive > static_cast<Wide>(kMostOffset)) return too_small(kMostOffset, step, " or more");
    }
    return {};
  }

  Error too_small(size_t bytes, size_t step, const std::string& remark) const {
    std::vector<uint32_t> alive;
    for (const uint32_t i : chosen_) {
      if (blocks_[i].first <= step && step <= blocks_[i].last) alive.push_back(i);
    }
    std::stable_sort(alive.begin(), alive.end(),
                     [&](uint32_t a, uint32_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
    constexpr size_t kNamed = 8;
    std::vector<std::string> biggest;
    for (size_t i = 0; i < std::min(alive.size(), kNamed); ++i) {
      biggest.push_back(str(describe(blocks_, alive[i]), " (", blocks_[alive[i]].bytes, ")"));
    }
    return error(Code::resource_exhausted, "memory space '", space_.name, "' needs ", bytes, " bytes", remark, ", has ",
                 std::min(space_.limit_bytes, kMostOffset), "; at step ", step, " ", alive.size(),
                 " blocks are alive, the biggest: ", biggest);
  }

  // Names the largest block without a place in the best plan tried.
  Error no_place(size_t bound_bytes) const {
    const uint32_t block = *std::max_element(homeless_.begin(), homeless_.end(), [&](uint32_t a, uint32_t b) {
      return blocks_[a].bytes < blocks_[b].bytes;
    });
    const MemoryBlock& b = blocks_[block];
    const std::string where = b.bank ? str(" in bank ", *b.bank, " of ", space_.bank_bytes, " bytes") : std::string();
    return error(Code::resource_exhausted, "memory space '", space_.name, "': ", describe(blocks_, block), " of ",
                 b.bytes, " bytes, alive from step ", b.first, " to ", b.last, ", found no place", where,
                 " beside the other ", chosen_.size() - 1, " blocks under their rules; the live bytes need ",
                 bound_bytes, "; loosen banks, windows or pins, or raise the effort");
  }

  void place(Problem problem) {
    problem.bound = bound_;
    problem.limit = space_.limit_bytes >= kMostOffset ? kMostBytes : static_cast<Address>(space_.limit_bytes / unit_);
    Placement best;
    place_outward(problem, best);
    if (best.end > bound_ && options_.effort > 0 && only_sizes_matter(problem)) {
      // The rest of the work is for the repair search: a quarter, but of a large budget a 64th, since it seldom reaches
      // the bound.
      constexpr uint64_t kRepair = 400'000;
      const uint64_t left = work_.left(), repair = std::max(left / 64, std::min(left / 4, kRepair));
      Work most{work_.done, work_.done + left - repair};
      search_stretches(problem, options_.seed, most, best);
      work_.done = most.done;
    }
    if (best.end > bound_ && !best.proved) {
      find_neighbours(problem);
      if (!problem.dense) refine(problem, best);
    }
    proved_ = proved_ && best.proved;
    if (best.end < best_.end) take(problem, std::move(best));
  }

  void refine(const Problem& problem, Placement& best) {
    // Where placing from the worst step outward has failed for some bodies, others may violate rules: it is not a valid
    // start.
    if (best.end >= kNowhere) best = {};
    place_greedily(problem, best);
    if (best.end <= bound_ || options_.effort == 0) return;
    if (problem.size() <= kMostExact) {
      search_exactly(problem, work_, best);
      if (best.proved) return;
    }
    search(problem, options_.seed, work_, best);
  }

  void take(const Problem& problem, Placement best) {
    best_ = std::move(best);
    offsets_.resize(blocks_.size());
    homeless_.clear();
    for (uint32_t body = 0; body < problem.size(); ++body) {
      for (const Member& member : problem.members_of(body)) {
        if (best_.at[body] >= kNowhere) homeless_.push_back(member.block);
        offsets_[member.block] = static_cast<size_t>(best_.at[body]) * unit_;
      }
    }
  }

  // Sharing a place ties blocks together, which may cost more than it saves. With few permissions all subsets are
  // tried, otherwise the empty one.
  void try_other_families(const std::vector<Permission>& permissions) {
    if (permissions.empty() || options_.effort == 0) return;
    constexpr size_t kFew = 6;
    const bool few = permissions.size() <= kFew;
    proved_ = proved_ && few;
    for (size_t subset = 0; subset + 1 < (few ? size_t{1} << permissions.size() : 2) && best_.end > bound_; ++subset) {
      std::vector<Permission> used;
      for (size_t i = 0; i < permissions.size(); ++i) {
        if (few && (subset >> i & 1) != 0) used.push_back(permissions[i]);
      }
      place(make_problem(blocks_, chosen_, space_, join_families(blocks_, space_, used)));
    }
  }

  std::span<const MemoryBlock> blocks_;
  const ArenaSpace& space_;
  std::vector<uint32_t> chosen_;
  const PlanOptions& options_;
  Work work_;
  size_t unit_ = 1;
  Address bound_ = 0;
  Placement best_;
  bool proved_ = true;
  std::vector<size_t> offsets_;
  std::vector<uint32_t> homeless_;  // blocks without a place in it
};

}  // namespace

Result<void> memory::check_problem(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces) {
  return Validator(blocks, spaces).all();
}

Result<MemoryPlan> plan_memory(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces,
                               const PlanOptions& options) {
  TENON_OK(memory::check_problem(blocks, spaces));
  std::vector<std::vector<uint32_t>> by_space(spaces.size());
  MemoryPlan plan;
  plan.offsets.assign(blocks.size(), 0);
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes > 0) by_space[blocks[i].space].push_back(i);
    else plan.offsets[i] = static_cast<size_t>(body_of(blocks[i], spaces[blocks[i].space]).admit(0));
  }
  for (size_t s = 0; s < spaces.size(); ++s) {
    TENON_TRY(space, SpacePlanner(blocks, spaces[s], std::move(by_space[s]), options).plan(plan.offsets));
    plan.spaces.push_back(std::move(space));
  }
  return plan;
}

}  // namespace tenon
