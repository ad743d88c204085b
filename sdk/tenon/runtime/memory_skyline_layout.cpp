// What a skyline is made of: sections of time, and the items and obstacles in them.
#include <algorithm>
#include <numeric>

#include <tenon/runtime/memory_skyline_internal.hpp>

namespace tenon::memory {

Skyline::Skyline(const Problem& problem, uint32_t first, uint32_t last, std::span<const uint32_t> loose,
                 std::span<const uint32_t> fixed, const std::vector<Address>& at) {
  lay_out(problem, first, last, loose, fixed, at);
  for (const Item& item : items_) {
    for (uint32_t s = item.first; s <= item.last; ++s) initial_[s].rest += item.bytes;
  }
  std::stable_sort(obstacles_.begin(), obstacles_.end(), [](const Obstacle& a, const Obstacle& b) {
    return std::pair(a.section, a.bottom) < std::pair(b.section, b.bottom);
  });
  for (uint32_t i = 0; i < obstacles_.size(); ++i) {
    Section& section = initial_[obstacles_[i].section];
    if (section.obstacle_end == 0) section.obstacle = i;
    section.obstacle_end = i + 1;
    section.fixed += obstacles_[i].top - obstacles_[i].bottom;
  }
  weight_.assign(initial_.size(), 1);
}

void Skyline::lay_out(const Problem& problem, uint32_t first, uint32_t last, std::span<const uint32_t> loose,
                      std::span<const uint32_t> fixed, const std::vector<Address>& at) {
  std::vector<bool> dying(last - first + 1, false);
  const auto end_of = [&](uint32_t body) { return std::min(problem.bodies[body].last, last) - first; };
  const auto begin_of = [&](uint32_t body) { return std::max(problem.bodies[body].first, first) - first; };
  for (const auto bodies : {loose, fixed}) {
    for (const uint32_t body : bodies) dying[end_of(body)] = true;
  }
  std::vector<uint32_t> section(dying.size(), 0);
  uint32_t sections = 0;
  for (uint32_t step = 0; step < dying.size(); ++step) {
    section[step] = sections;
    sections += dying[step];
  }
  initial_.resize(sections);
  for (const uint32_t body : loose) {
    items_.push_back({problem.bodies[body].bytes, section[begin_of(body)], section[end_of(body)], body});
  }
  std::stable_sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.first < b.first; });
  born_.assign(sections + 1, 0);
  for (const Item& item : items_) ++born_[item.first + 1];
  std::partial_sum(born_.begin(), born_.end(), born_.begin());
  for (const uint32_t body : fixed) {
    for (uint32_t s = section[begin_of(body)]; s <= section[end_of(body)]; ++s) {
      obstacles_.push_back({s, at[body], at[body] + problem.bodies[body].bytes});
    }
  }
}

}  // namespace tenon::memory
