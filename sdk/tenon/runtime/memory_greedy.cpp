#include <bit>
#include <numeric>

#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon::memory {
namespace {

// Sort keys of the orders.
struct Keys {
  std::vector<Address> load;  // most live bytes in any step of the body's life
  uint32_t peak = 0;          // the step with most live bytes

  explicit Keys(const Problem& problem) : load(problem.size()) {
    const size_t steps = problem.steps.size();
    std::vector<Address> alive(steps + 1, 0);
    for (const Member& member : problem.members) {
      alive[member.first] += member.bytes;
      alive[member.last + 1] -= member.bytes;
    }
    std::partial_sum(alive.begin(), alive.end(), alive.begin());
    peak = static_cast<uint32_t>(std::max_element(alive.begin(), alive.end() - 1) - alive.begin());
    // Maxima over 2^k steps each: two of them cover any lifetime.
    std::vector<std::vector<Address>> most = {alive};
    for (size_t wide = 2; wide <= steps; wide *= 2) {
      const auto& half = most.back();
      std::vector<Address> level(steps + 1, 0);
      for (size_t i = 0; i + wide <= steps; ++i) level[i] = std::max(half[i], half[i + wide / 2]);
      most.push_back(std::move(level));
    }
    for (size_t i = 0; i < load.size(); ++i) {
      const Body& body = problem.bodies[i];
      const uint32_t life = body.last - body.first + 1;
      const auto level = static_cast<size_t>(std::bit_width(life) - 1);
      load[i] = std::max(most[level][body.first], most[level][body.last + 1 - (size_t{1} << level)]);
    }
  }

  uint32_t distance(const Body& body) const {
    return body.first > peak ? body.first - peak : body.last < peak ? peak - body.last : 0;
  }
};

Address life(const Body& body) { return Address{body.last} - body.first + 1; }

// Pinned bodies, then the others sorted by `before`; equal ones in the given order.
template <class Before>
std::vector<uint32_t> sorted(const Problem& problem, const Before& before) {
  std::vector<uint32_t> order(problem.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto& bodies = problem.bodies;
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return bodies[a].pinned != bodies[b].pinned ? bodies[a].pinned : before(a, b);
  });
  return order;
}

Address place(const Problem& problem, const std::vector<uint32_t>& order, std::vector<Address>& at) {
  constexpr Address kNotYet = -1;
  at.assign(problem.size(), kNotYet);
  std::vector<std::pair<Address, Address>> scratch;
  Address end = 0;
  for (const uint32_t i : order) {
    at[i] = lowest_fit(problem, i, at, [&](uint32_t j) { return at[j] != kNotYet; }, scratch);
    end = std::max(end, at[i] + problem.bodies[i].bytes);
  }
  return end;
}

}  // namespace

void place_greedily(const Problem& problem, Placement& best) {
  const Keys keys(problem);
  const auto& bodies = problem.bodies;
  std::vector<Address> at;
  const auto consider = [&](const char* name, const auto& before) {
    if (best.end <= problem.bound) return;
    const Address end = place(problem, sorted(problem, before), at);
    if (end < best.end) best = {at, end, name};
  };
  const auto bigger = [&](uint32_t a, uint32_t b) { return bodies[a].bytes > bodies[b].bytes; };
  consider("peak step first, biggest first", [&](uint32_t a, uint32_t b) {
    const bool a_there = keys.distance(bodies[a]) == 0, b_there = keys.distance(bodies[b]) == 0;
    return a_there != b_there ? a_there : bigger(a, b);
  });
  consider("longest life first", [&](uint32_t a, uint32_t b) {
    return life(bodies[a]) != life(bodies[b]) ? life(bodies[a]) > life(bodies[b]) : bigger(a, b);
  });
  consider("biggest first", bigger);
  consider("fullest steps first", [&](uint32_t a, uint32_t b) {
    return keys.load[a] != keys.load[b] ? keys.load[a] > keys.load[b] : bigger(a, b);
  });
  consider("biggest size x life first", [&](uint32_t a, uint32_t b) {
    const auto area = [&](uint32_t i) {
      return static_cast<double>(bodies[i].bytes) * static_cast<double>(life(bodies[i]));
    };
    return area(a) > area(b);
  });
  consider("from the peak step outward", [&](uint32_t a, uint32_t b) {
    const uint32_t a_far = keys.distance(bodies[a]), b_far = keys.distance(bodies[b]);
    return a_far != b_far ? a_far < b_far : life(bodies[a]) > life(bodies[b]);
  });
  consider("as given", [](uint32_t, uint32_t) { return false; });
}

}  // namespace tenon::memory
