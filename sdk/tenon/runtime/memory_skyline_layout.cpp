// The data structures of a skyline: sections of time, with their items and obstacles; plateaus and valleys.
#include <algorithm>
#include <numeric>

#include <tenon/runtime/memory_skyline_internal.hpp>

namespace tenon::memory {

Skyline::Skyline(const Problem& problem, uint32_t first, uint32_t last, std::span<const uint32_t> loose,
                 std::span<const uint32_t> fixed, const std::vector<Address>& at) {
  lay_out(problem, first, last, loose, fixed, at);
  initial_spare_.assign(initial_.size(), 0);
  for (const Item& item : items_) {
    for (uint32_t s = item.first; s <= item.last; ++s) {
      initial_[s].rest += item.bytes;
      initial_spare_[s] -= item.bytes;
    }
  }
  std::stable_sort(obstacles_.begin(), obstacles_.end(), [](const Obstacle& a, const Obstacle& b) {
    return std::pair(a.section, a.bottom) < std::pair(b.section, b.bottom);
  });
  for (uint32_t i = 0; i < obstacles_.size(); ++i) {
    Section& section = initial_[obstacles_[i].section];
    if (section.obstacle_end == 0) section.obstacle = i;
    section.obstacle_end = i + 1;
    initial_spare_[obstacles_[i].section] -= obstacles_[i].top - obstacles_[i].bottom;
  }
  spare_.resize(initial_.size());
  failures_.assign(initial_.size(), 1);
  by_failures_.assign(initial_.size(), 1);
  plateau_begin_.resize(initial_.size());
  plateau_end_.resize(initial_.size());
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

void Skyline::blame(uint32_t section) { by_failures_[section] = 1 / ++failures_[section]; }

// The valley with the section that has least to spare; the first of equal ones.
Skyline::Frame Skyline::find_valley() const {
  const auto before = [](const Valley& a, const Valley& b) {
    return a.spare != b.spare ? a.spare < b.spare : a.left < b.left;
  };
  const Valley& best = *std::min_element(valleys_.begin(), valleys_.end(), before);
  Frame frame;
  frame.left = frame.outer_left = best.left;
  frame.right = frame.outer_right = plateau_end_[best.left];
  frame.section = best.section;
  frame.level = sections_[best.left].floor;
  frame.wall = kNowhere;
  if (frame.left > 0) {
    frame.outer_left = plateau_begin_[frame.left - 1];
    frame.wall = sections_[frame.left - 1].floor;
  }
  if (frame.right < sections_.size()) {
    frame.outer_right = plateau_end_[frame.right];
    frame.wall = std::min(frame.wall, sections_[frame.right].floor);
  }
  return frame;
}

void Skyline::set_plateau(uint32_t begin, uint32_t end) {
  plateau_end_[begin] = end;
  plateau_begin_[end - 1] = begin;
}

void Skyline::list_if_valley(uint32_t begin) {
  const Address floor = sections_[begin].floor;
  const uint32_t end = plateau_end_[begin];
  if (floor < ceiling_ && (begin == 0 || sections_[begin - 1].floor > floor) &&
      (end == sections_.size() || sections_[end].floor > floor))
    list(begin);
}

void Skyline::list(uint32_t begin) {
  Valley valley{begin, begin, static_cast<double>(spare_[begin]) * by_failures_[begin]};
  for (uint32_t s = begin + 1; s < plateau_end_[begin]; ++s) {
    const double spare = static_cast<double>(spare_[s]) * by_failures_[s];
    if (spare >= valley.spare) continue;
    valley.spare = spare;
    valley.section = s;
  }
  listed_[begin] = static_cast<uint32_t>(valleys_.size());
  valleys_.push_back(valley);
}

void Skyline::unlist(uint32_t begin) {
  const uint32_t place = listed_[begin];
  if (place == kNone) return;
  listed_[valleys_.back().left] = place;
  valleys_[place] = valleys_.back();
  valleys_.pop_back();
  listed_[begin] = kNone;
}

// Called after the floors in a frame's valley were raised.
void Skyline::regroup(const Frame& frame) {
  const auto same = [&](uint32_t s) { return sections_[s - 1].floor == sections_[s].floor; };
  const bool joins_left = frame.left > frame.outer_left && same(frame.left);
  const bool joins_right = frame.right < frame.outer_right && same(frame.right);
  unlist(frame.left);
  for (uint32_t left = frame.left, right = left; left < frame.right; left = right) {
    for (right = left + 1; right < frame.right && same(right);) ++right;
    set_plateau(joins_left && left == frame.left ? frame.outer_left : left,
                joins_right && right == frame.right ? frame.outer_right : right);
  }
  for (uint32_t left = frame.outer_left; left < frame.outer_right; left = plateau_end_[left]) list_if_valley(left);
}

// Called after they were lowered again: undoes regroup(), but lists no valley.
void Skyline::restore(const Frame& frame) {
  for (uint32_t left = frame.outer_left; left < frame.outer_right; left = plateau_end_[left]) unlist(left);
  if (frame.outer_left < frame.left) set_plateau(frame.outer_left, frame.left);
  set_plateau(frame.left, frame.right);
  if (frame.right < frame.outer_right) set_plateau(frame.right, frame.outer_right);
}

}  // namespace tenon::memory
