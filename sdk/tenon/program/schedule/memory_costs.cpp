// The cost of bytes in one of the memories of a model.
#include <tenon/program/schedule/group_costs_internal.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::program::detail {

namespace {

// The part of a memory up to which reused data is found there completely. Streaming data takes the rest, and since
// cache associativity is limited, larger working sets lose some data already.
constexpr double kSurePart = 0.5;

}  // namespace

double part_ahead(double piece, double ahead) {
  constexpr double kNoneFrom = 7.0 / 6;
  if (piece >= kNoneFrom * ahead) return 0;
  return std::min(1.0, (kNoneFrom * ahead - piece) / ((kNoneFrom - 1) * ahead));
}

double usable_bytes(const CostModel::Memory& memory) {
  return memory.sure_bytes > 0 ? memory.sure_bytes : memory.bytes * kSurePart;
}

MemoryCosts::MemoryCosts(const CostModel& model) : smallest_is_measured_(model.memories.front().sure_bytes > 0) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  for (const CostModel::Memory& m : model.memories) {
    const bool any = m.bytes == 0 || &m == &model.memories.back();
    const double sure = usable_bytes(m);
    levels_.push_back({any ? kAny : sure, any ? kAny : m.bytes, m.bytes > sure ? 1 / (m.bytes - sure) : 0,
                       1 / m.bytes_per_second, m.latency_seconds});
  }
  levels_.back().seconds_per_byte *= std::max(1.0, static_cast<double>(model.workers) / model.workers_of_largest);
}

double MemoryCosts::seconds_per_byte(double bytes) const {
  double seconds = 0, rest = 1;
  for (const Level& level : levels_) {
    if (bytes <= level.sure) return seconds + rest * level.seconds_per_byte;
    if (bytes >= level.bytes) continue;
    const double lost = (bytes - level.sure) * level.lost_per_byte;
    seconds += rest * (1 - lost) * level.seconds_per_byte;
    rest *= lost;
  }
  return seconds;
}

double MemoryCosts::part_in_largest(double bytes) const {
  if (levels_.size() < 2) return 1;
  const Level& held = levels_[levels_.size() - 2];
  return std::clamp((bytes - held.sure) * held.lost_per_byte, 0.0, 1.0);
}

double MemoryCosts::part_nearby(double bytes) const {
  if (levels_.size() < 3) return 0;
  const Level& smaller = levels_[levels_.size() - 3];
  return std::max(std::clamp((bytes - smaller.sure) * smaller.lost_per_byte, 0.0, 1.0) - part_in_largest(bytes), 0.0);
}

double MemoryCosts::part_beyond_smallest(double bytes) const {
  if (levels_.size() < 2 || bytes >= levels_.front().bytes) return levels_.size() < 2 ? 0 : 1;
  return std::clamp((bytes - levels_.front().sure) * levels_.front().lost_per_byte, 0.0, 1.0);
}

double MemoryCosts::part_held_beside(double bytes, double more) const {
  const Level& level = *std::ranges::find_if(levels_.begin() + (levels_.size() > 2), levels_.end(),
                                             [&](const Level& l) { return bytes <= l.bytes; });
  const double sure = std::max(level.sure, bytes), both = bytes + more;
  if (both <= sure) return 1;
  return both >= level.bytes ? 0 : (level.bytes - both) / (level.bytes - sure);
}

double MemoryCosts::latency_seconds(double bytes) const {
  return std::ranges::find_if(levels_, [&](const Level& level) { return bytes <= level.sure; })->latency_seconds;
}

}  // namespace tenon::program::detail
