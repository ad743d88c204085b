#include <tenon/runtime/memory_skyline_internal.hpp>

#include <tenon/support/hash.hpp>

namespace tenon::memory {

Skyline::Outcome Skyline::run(Address ceiling, uint64_t seed, uint64_t round, uint64_t limit, Work& work) {
  ceiling_ = ceiling;
  looks_ = 0;
  Outcome outcome = Outcome::found;
  for (size_t s = 0; s < initial_.size(); ++s) {
    if (initial_[s].rest > 0 && ceiling + initial_spare_[s] < 0) outcome = Outcome::impossible;
  }
  if (outcome == Outcome::found) reset(seed, round);
  while (left_ > 0 && outcome == Outcome::found) {
    if (looks_ >= limit) {
      outcome = Outcome::gave_up;
      break;
    }
    open();
    while (outcome == Outcome::found && !choose_next()) {
      if (!back()) outcome = Outcome::impossible;
    }
  }
  work.done += looks_;
  return outcome;
}

void Skyline::reset(uint64_t seed, uint64_t round) {
  sections_ = initial_;
  at_.assign(items_.size(), kNowhere);
  liking_.resize(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    liking_[i] = static_cast<double>(items_[i].bytes) / static_cast<double>(ceiling_);
    // Random, except in the first round.
    if (round > 0) liking_[i] += static_cast<double>(hash_mix(seed + round, items_[i].body) % 1024) / 1024;
  }
  frames_.clear();
  pool_.clear();
  left_ = items_.size();
  const auto count = static_cast<uint32_t>(sections_.size());
  for (uint32_t s = 0; s < count; ++s) {
    spare_[s] = ceiling_ + initial_spare_[s];
    raise(sections_[s], 0);
  }
  valleys_.clear();
  listed_.assign(count, kNone);
  for (uint32_t left = 0, right = 0; left < count; left = right) {
    for (right = left + 1; right < count && sections_[right].floor == sections_[left].floor;) ++right;
    set_plateau(left, right);
  }
  for (uint32_t left = 0; left < count; left = plateau_end_[left]) list_if_valley(left);
}

// Raises the floor to `level`, and over the obstacles there. Where no more items follow there is no valley.
void Skyline::raise(Section& section, Address level) {
  section.floor = level;
  while (section.obstacle < section.obstacle_end && obstacles_[section.obstacle].bottom <= section.floor) {
    section.floor = obstacles_[section.obstacle++].top;
  }
  section.roof = next_roof(section);
  if (section.rest == 0) section.floor = ceiling_;
}

void Skyline::lower(uint32_t s, Address level) {
  Section& section = sections_[s];
  section.floor = level;
  while (section.obstacle > initial_[s].obstacle && obstacles_[section.obstacle - 1].top > level) --section.obstacle;
  section.roof = next_roof(section);
}

void Skyline::open() {
  Frame frame = find_valley();
  frame.from = frame.left > 0 ? frame.left - 1 : 0;
  frame.to = frame.right;
  frame.begin = frame.next = static_cast<uint32_t>(pool_.size());
  gather(frame);
  frames_.push_back(frame);
}

bool Skyline::fits(const Frame& frame, uint32_t i) const {
  const Address top = frame.level + items_[i].bytes;
  if (top <= lowest_roof_) return true;
  for (uint32_t s = items_[i].first; s <= items_[i].last; ++s) {
    if (top > sections_[s].roof) return false;
  }
  return true;
}

// Candidates for the bottom: items that live only in the valley. Others cannot be lower than its walls.
void Skyline::gather(Frame& frame) {
  looks_ += 1 + (valleys_.size() + (frame.right - frame.left) + (born_[frame.right] - born_[frame.left])) / 4;
  lowest_roof_ = ceiling_;
  for (uint32_t s = frame.left; s < frame.right; ++s) lowest_roof_ = std::min(lowest_roof_, sections_[s].roof);
  // A gap ends at a wall, at an obstacle or at the top of an item in the valley.
  frame.rise = std::min(frame.wall, lowest_roof_) - frame.level;
  sums_.assign(frame.right - frame.left + 1, 0);
  double most = 0;
  uint32_t best = kNone;
  Address smallest = frame.rise;
  for (uint32_t i = born_[frame.left]; i < born_[frame.right]; ++i) {
    if (!inside(frame, i)) continue;
    sums_[items_[i].first - frame.left] += items_[i].bytes;
    sums_[items_[i].last + 1 - frame.left] -= items_[i].bytes;
    smallest = std::min(smallest, items_[i].bytes);
    if (!fits(frame, i)) continue;
    const double value = score(frame, i);
    if (best != kNone && value <= most) continue;
    most = value;
    best = i;
  }
  if (hopeless(frame, frame.section)) {
    frame.exhausted = true;
    blame(frame.section);
    return;
  }
  frame.empty = best == kNone;
  if (frame.empty) return;
  // Where the whole valley may be wasted, the best item decides.
  if (spare_[frame.section] >= frame.rise) {
    frame.section = items_[best].first;
    for (uint32_t s = items_[best].first; s <= items_[best].last; ++s) {
      if (spare_[s] < spare_[frame.section]) frame.section = s;
    }
  }
  frame.rise = smallest;
  rank(frame);
}

// Whether more is wasted below the walls than is allowed, even if everything in the valley were placed there.
bool Skyline::hopeless(const Frame& frame, uint32_t& section) {
  Address sum = 0;
  for (uint32_t s = frame.left; s < frame.right; ++s) {
    sum += sums_[s - frame.left];
    const Address depth = std::min(frame.wall, sections_[s].roof) - frame.level;
    if (depth - sum <= spare_[s]) continue;
    section = s;
    return true;
  }
  return false;
}

// Best first; only one of equal items.
void Skyline::rank(Frame& frame) {
  ranked_.clear();
  for (uint32_t i = born_[frame.left]; i < born_[frame.section + 1]; ++i) {
    if (inside(frame, i) && items_[i].last >= frame.section && fits(frame, i))
      ranked_.emplace_back(-score(frame, i), i);
  }
  std::sort(ranked_.begin(), ranked_.end());
  for (const auto& [value, i] : ranked_) {
    const Item& item = items_[i];
    const bool twin = std::any_of(pool_.begin() + frame.begin, pool_.end(), [&](uint32_t k) {
      return items_[k].bytes == item.bytes && items_[k].first == item.first && items_[k].last == item.last;
    });
    if (!twin) pool_.push_back(i);
  }
}

// Prefers items that are wide, adjacent to the walls, best up to their tops, and large.
double Skyline::score(const Frame& frame, uint32_t i) const {
  const Item& item = items_[i];
  const Address top = frame.level + item.bytes;
  double value = 2.0 * (item.last - item.first + 1) / (frame.right - frame.left);
  if (item.first == frame.left) value += frame.left > 0 && sections_[frame.left - 1].floor == top ? 1.5 : 0.5;
  if (item.last + 1 == frame.right)
    value += frame.right < sections_.size() && sections_[frame.right].floor == top ? 1.5 : 0.5;
  return value + liking_[i];
}

// Makes the last frame's next choice; false when there is none.
bool Skyline::choose_next() {
  Frame& frame = frames_.back();
  frame.choice = Choice::none;
  if (frame.next < pool_.size() && !frame.exhausted) {
    frame.choice = Choice::item;
    frame.item = pool_[frame.next++];
    const Item& item = items_[frame.item];
    at_[frame.item] = frame.level;
    --left_;
    for (uint32_t s = item.first; s <= item.last; ++s) {
      sections_[s].rest -= item.bytes;
      raise(sections_[s], frame.level + item.bytes);
    }
    regroup(frame);
    return true;
  }
  return !frame.exhausted && waste(frame);
}

// Leaves a gap: over the whole valley when no item fits into it, else in the frame's section.
bool Skyline::waste(Frame& frame) {
  frame.exhausted = true;
  const uint32_t begin = frame.empty ? frame.left : frame.section, end = frame.empty ? frame.right : frame.section + 1;
  for (uint32_t s = begin; s < end; ++s) {
    if (frame.rise <= spare_[s]) continue;
    blame(s);
    return false;
  }
  frame.choice = frame.empty ? Choice::rise : Choice::gap;
  for (uint32_t s = begin; s < end; ++s) {
    spare_[s] -= frame.rise;
    raise(sections_[s], frame.level + frame.rise);
  }
  regroup(frame);
  return true;
}

std::pair<uint32_t, uint32_t> Skyline::touched(const Frame& frame) const {
  if (frame.choice == Choice::item) return {items_[frame.item].first, items_[frame.item].last};
  if (frame.choice == Choice::rise) return {frame.left, frame.right - 1};
  return {frame.section, frame.section};
}

void Skyline::undo(Frame& frame) {
  const auto [first, last] = touched(frame);
  for (uint32_t s = first; s <= last; ++s) {
    if (frame.choice == Choice::item)
      sections_[s].rest += items_[frame.item].bytes;
    else
      spare_[s] += frame.rise;
    lower(s, frame.level);
  }
  restore(frame);
  if (frame.choice == Choice::item) {
    at_[frame.item] = kNowhere;
    ++left_;
  }
  frame.choice = Choice::none;
}

// Removes the last frame and returns to the last choice on which its failure depends. False: there is none.
bool Skyline::back() {
  const uint32_t from = frames_.back().from, to = frames_.back().to;
  drop_frame();
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    const auto [first, last] = touched(frame);
    undo(frame);
    if (first <= to && from <= last) {
      frame.from = std::min(frame.from, from);
      frame.to = std::max(frame.to, to);
      return true;
    }
    drop_frame();
  }
  return false;
}

void Skyline::drop_frame() {
  const uint32_t left = frames_.back().left;
  pool_.resize(frames_.back().begin);
  frames_.pop_back();
  // Undoes what the last choice made.
  if (!frames_.empty() && frames_.back().outer_left <= left && left < frames_.back().outer_right) return;
  unlist(left);
  list(left);
}

void Skyline::copy_to(std::vector<Address>& at) const {
  for (size_t i = 0; i < items_.size(); ++i) at[items_[i].body] = at_[i];
}

}  // namespace tenon::memory
