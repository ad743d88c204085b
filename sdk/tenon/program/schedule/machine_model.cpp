// Derives the cost model from timings of a machine.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <tenon/program/schedule/group_costs_internal.hpp>
#include <tenon/program/schedule/machine_readings.hpp>

namespace tenon::program {

using detail::part_ahead;

namespace {

// Passes over this many bytes go through main memory: larger than the caches that must be told from it.
constexpr size_t kMostBytes = 64 << 20;
// The smallest size that is assumed for a cache, however slow the machine is meanwhile.
constexpr size_t kLeastBytes = 8 << 10;
// A cache counts as far as passes inside are faster than main memory by this factor: others use the rest.
constexpr double kFasterThanMemory = 1.25;
// The parts of a cache that are traversed to determine its bandwidth; and those to determine its certain capacity.
constexpr double kParts[] = {1.0 / 8, 1.0 / 4, 1.0 / 2}, kLargeParts[] = {5.0 / 8, 6.0 / 8, 7.0 / 8};
// The certain capacity is the size that is traversed repeatedly at least this fast relative to half of it.
constexpr double kAsFast = 0.9;
// Not measured on the machine: the additional time of tiles of 1 to 8 KB over what is otherwise predicted
// (docs/performance/lessons/cost-model.md).
constexpr double kSecondsPerPiece = 6e-9;
// Not measured either: the time of strips of 100 pipelines that read 16 MB at one end and wrote as much at the other,
// relative to passes.
constexpr double kApart = 1.6;
// Not measured either, but fitted to the same strips: the cost of rows that a call reads in parallel, relative to rows
// one after another, which are measured.
constexpr double kOfRow = 0.4;
// Not measured either: the startup time of a kernel, which the empty calls that are timed do not have. With rows of 2
// KB in L1: 28 ns for a kernel that takes its addresses from views, 20 ns where they are available directly, and 2 ns
// for an empty call.
constexpr double kSecondsOfKernel = 3e-9;
// At least this part of the transfer of prefetched pieces to main memory and back is hidden.
constexpr double kLeastHidden = 0.2;

size_t part_of(size_t bytes, double part) { return static_cast<size_t>(static_cast<double>(bytes) * part) / 128 * 128; }

// Candidate sizes of a cache: all of it, or repeatedly halved.
std::vector<size_t> sizes_to_try(const CacheBytes& caches, size_t level) {
  std::vector<size_t> out;
  const size_t least = level > 0 ? 2 * caches[level - 1] : kLeastBytes;
  for (size_t bytes = std::min(caches[level], kMostBytes / 2);; bytes /= 2) {
    out.push_back(bytes);
    if (bytes <= least) return out;
  }
}

class ModelOfReadings {
 public:
  ModelOfReadings(const Readings& readings, const CacheBytes& caches) : readings_(readings), caches_(caches) {}

  CostModel make() {
    model_.seconds_per_piece = kSecondsPerPiece;
    model_.apart = kApart;
    set_main_memory();
    for (size_t level = 0; level < caches_.size(); ++level) set_cache(level);
    set_ahead();
    set_hinted(kFetched, model_.fetched_part, model_.fetched_way);
    model_.seconds_per_hinted_piece = reading(kPieceApart);
    set_hinted(kFetchedNearby, model_.fetched_part_nearby, model_.fetched_way_nearby);
    if (non_temporal_kernel()->finish && reading(kNonTemporal.way) > 0) {
      // Regardless of what is hidden: lines are not read there before they are written.
      model_.non_temporal_part = std::min(reading(kNonTemporal.hidden), 1.0);
      model_.non_temporal_way = reading(kNonTemporal.way);
    }
    if (const double apart = reading(kRowApart), together = reading(kRowTogether); apart > 0 && together > 0)
      model_.seconds_per_row = kOfRow * std::max(apart - together, 0.0) / 2;  // one row is read and one is written
    if (const double plain = reading(kCall), windows = reading(kCallWithWindows); plain > 0 && windows > 0) {
      model_.seconds_per_call = plain + kSecondsOfKernel;
      model_.seconds_per_window = std::max(windows - plain, 0.0);
    }
    set_workers();
    return std::move(model_);
  }

 private:
  double reading(std::string_view name) const {
    const auto found = readings_.find(name);
    return found == readings_.end() ? 0 : found->second;
  }
  void set_hinted(const HintedNames& names, double& part, double& way) const {
    if (reading(names.hidden) < kLeastHidden || reading(names.way) <= 0) return;
    part = std::min(reading(names.hidden), 1.0);
    way = reading(names.way);
  }
  double passed_per_second(size_t bytes) const {
    const double s = reading(pass_name(bytes));
    return s > 0 ? 1 / s : 0;
  }

  void set_main_memory() {
    CostModel::Memory& m = model_.memories.back();
    if (const double rate = passed_per_second(region_bytes(caches_)); rate > 0) m.bytes_per_second = rate;
    if (const double wait = reading(wait_name(region_bytes(caches_))); wait > 0) m.latency_seconds = wait;
  }

  void set_cache(size_t level) {
    CostModel::Memory& m = model_.memories[level];
    const size_t smaller = level > 0 ? caches_[level - 1] : 0;
    size_t holds = 0;
    for (const size_t bytes : sizes_to_try(caches_, level)) {
      holds = bytes;
      if (passed_per_second(part_of(holds, 0.5)) >= kFasterThanMemory * model_.memories.back().bytes_per_second) break;
    }
    m.bytes = static_cast<double>(holds);
    const double half = passed_per_second(part_of(holds, 0.5));
    if (half <= 0) return;
    // Hardware prefetching makes passes over some parts of a memory half as fast again as over others. Half of the
    // largest one is not such a part, since others may use it.
    const bool shared = level + 1 == caches_.size();
    m.bytes_per_second = shared ? std::numeric_limits<double>::infinity() : half;
    for (const double part : kParts)
      if (part_of(holds, part) > smaller && !(shared && part >= 0.5))
        m.bytes_per_second = std::min(m.bytes_per_second, passed_per_second(part_of(holds, part)));
    if (!std::isfinite(m.bytes_per_second)) m.bytes_per_second = half;
    if (const double wait = reading(wait_name(waited_bytes(caches_, level))); wait > 0) m.latency_seconds = wait;
    if (shared)
      set_found_bytes(m, holds);
    else
      set_sure_bytes(m, holds, half);
  }

  // For the largest cache, which others use: the more is traversed, the less of it is found, in a straight line to zero
  // at the size that is typically as slow as main memory, or else at the capacity. The quietest passes are not
  // representative: schedules that are good only if all data is there take twice as long when it is not. The typical
  // speed is also used for main memory, since whoever uses the cache keeps it busy.
  void set_found_bytes(CostModel::Memory& m, size_t holds) const {
    const double fast = 1 / m.bytes_per_second, slow = reading(mostly_name(region_bytes(caches_)));
    if (slow <= fast) return;
    constexpr double kPartsOfShared[] = {kParts[1], kParts[2], kLargeParts[0], kLargeParts[1], kLargeParts[2]};
    constexpr double kNothing = 0.05;
    std::vector<double> all;
    for (const double part : kPartsOfShared) {
      const double seconds = reading(mostly_name(part_of(holds, part)));
      if (seconds <= 0) return;
      all.push_back(std::clamp((slow - seconds) / (slow - fast), 0.0, 1.0));
    }
    size_t parts = all.size();
    double end = 1;
    for (; parts > 1 && all[parts - 1] < kNothing; --parts) end = kPartsOfShared[parts - 1];
    double found = 0, beyond = 0;
    for (size_t i = parts > 1 ? 1 : 0; i < parts; ++i) {
      found += all[i];
      beyond += (end - kPartsOfShared[i]) * m.bytes;
    }
    m.bytes *= end;
    m.sure_bytes =
        found > 0 ? std::clamp(m.bytes - beyond / found, m.bytes / 8, kLargeParts[2] * m.bytes) : m.bytes / 8;
  }

  // The size above which repeated traversal is no longer as fast as for half of it: between two parts.
  void set_sure_bytes(CostModel::Memory& m, size_t holds, double half) const {
    m.sure_bytes = m.bytes / 2;
    double before = 1;
    for (const double part : kLargeParts) {
      const double rate = passed_per_second(part_of(holds, part)) / half, more = part * m.bytes - m.sure_bytes;
      m.sure_bytes += rate >= kAsFast ? more : more * std::max(before - kAsFast, 0.0) / (before - rate);
      if (rate < kAsFast) return;
      before = rate;
    }
  }

  // Sleeping workers are woken by their caller, which continues with the work: if they come late, it has done
  // everything itself and lost the time of waking them. Spinning workers come at once, and gain more than they cost. A
  // pipeline that takes at least twice either time therefore loses at most half of its time in the first case, and
  // gains in the second. Help from sleeping workers comes after 25 us to some ms; assuming that would make pipelines
  // serial that run repeatedly.
  void set_workers() {
    if (const double share = std::max(reading(kWoken), reading(kJoined)); share > 0) model_.seconds_to_share = share;
    if (const double two = reading(kPassByTwo), one = reading(pass_name(region_bytes(caches_))); two > 0 && one > 0)
      model_.workers_of_largest = std::clamp(one / two, 1.0, 2.0);
  }

  // The prefetch distance in bytes that best explains what is hidden of each piece: the same part for shorter pieces,
  // and less for longer ones.
  void set_ahead() {
    double least = std::numeric_limits<double>::infinity();
    for (const size_t ahead : kPieceBytes) {
      double with_hidden = 0, squares = 0, error = 0;
      for (const size_t piece : kPieceBytes) {
        const double part = part_ahead(static_cast<double>(piece), static_cast<double>(ahead));
        with_hidden += part * reading(hidden_name(piece));
        squares += part * part;
      }
      const double most = with_hidden / squares;
      for (const size_t piece : kPieceBytes)
        error += std::pow(
            reading(hidden_name(piece)) - most * part_ahead(static_cast<double>(piece), static_cast<double>(ahead)), 2);
      if (most < kLeastHidden || error >= least) continue;
      least = error;
      model_.ahead_bytes = static_cast<double>(ahead);
      model_.ahead_part = std::min(most, 1.0);
    }
  }

  const Readings& readings_;
  const CacheBytes& caches_;
  CostModel model_ = CostModel::host();
};

}  // namespace

size_t region_bytes(const CacheBytes& caches) { return std::min(2 * caches.back(), kMostBytes); }

std::vector<size_t> pass_sizes(const CacheBytes& caches) {
  std::set<size_t> out{region_bytes(caches)};
  for (size_t level = 0; level < caches.size(); ++level)
    for (const size_t bytes : sizes_to_try(caches, level)) {
      for (const double part : kParts) out.insert(part_of(bytes, part));
      for (const double part : kLargeParts) out.insert(part_of(bytes, part));
    }
  return {out.begin(), out.end()};
}

size_t fetched_piece_bytes(const CacheBytes& caches) {
  constexpr size_t kAtOnce = 4;
  const auto fits = [&](size_t piece) { return kAtOnce * piece <= caches.front() / 3 * 2; };
  const auto longest = std::ranges::find_if(kPieceBytes.rbegin(), kPieceBytes.rend(), fits);
  return longest == kPieceBytes.rend() ? kPieceBytes.front() : *longest;
}

size_t waited_bytes(const CacheBytes& caches, size_t level) {
  const bool shared = level + 1 == caches.size();
  return std::min(caches[level], kMostBytes) / (shared ? 4 : 2);
}

bool has_fetched_nearby(const CacheBytes& caches) {
  return waited_bytes(caches, caches.size() - 1) >= 2 * caches[caches.size() - 2];
}

std::string pass_name(size_t bytes) { return str("pass ", bytes); }
std::string mostly_name(size_t bytes) { return str(pass_name(bytes), kMostly); }
std::string wait_name(size_t bytes) { return str("wait ", bytes); }
std::string hidden_name(size_t piece) { return str(kHidden, " ", piece); }

CostModel model_of(const Readings& readings, const CacheBytes& caches) {
  return ModelOfReadings(readings, caches).make();
}

CostModel CostModel::of_machine() {
  static const CostModel model = model_of(record_of_machine().readings(), cache_bytes_of_machine());
  return model;
}

}  // namespace tenon::program
