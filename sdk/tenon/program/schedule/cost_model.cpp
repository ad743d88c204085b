#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>

#include <tenon/program/schedule/auto_schedule.hpp>

namespace tenon::program {

namespace {

constexpr double kMainMemoryBytesPerSecond = 9e9;
// For a target whose generated code prefetches its reads from the largest memory.
constexpr double kFetchedPart = 0.75;

}  // namespace

// Bandwidths of copying, bytes read plus written, as measured on servers of 2019 to 2023 (docs/performance.md).
CostModel CostModel::host() {
  return {{{"L1", 32 << 10, 190e9, 2e-9},
           {"L2", 1 << 20, 73e9, 6e-9},
           {"L3", 32 << 20, 20e9, 25e-9},
           {"memory", 0, kMainMemoryBytesPerSecond, 100e-9}}};
}

CostModel CostModel::of(const TargetDescription& target) {
  CostModel model;
  std::set<std::string> fetches;
  for (const MemorySpace& m : target.memories) {
    if (m.prefetch_reads > 0) fetches.insert(m.name);
    if (m.size_bytes > 0)
      model.memories.push_back(
          {m.name, static_cast<double>(m.size_bytes), m.bandwidth ? m.bandwidth->bytes_per_second(target.clock_hz) : 0,
           target.clock_hz ? static_cast<double>(m.latency_cycles) / static_cast<double>(target.clock_hz) : 0});
  }
  if (model.memories.size() < 2) return of_machine();
  std::ranges::sort(model.memories, {}, &Memory::bytes);
  model.memories.back().bytes = 0;
  if (fetches.contains(model.memories.back().name)) model.fetched_part = kFetchedPart;
  double larger = kMainMemoryBytesPerSecond;
  for (Memory& m : std::views::reverse(model.memories)) {
    if (m.bytes_per_second <= 0) m.bytes_per_second = larger;
    larger = m.bytes_per_second;
  }
  return model;
}

std::string CostModel::to_string() const {
  const auto rounded = [](double value) { return std::round(value * 100) / 100; };
  const auto hinted = [&](double part, double way) {
    return str(rounded(part * 100), "% hidden of ", rounded(way), " times the way");
  };
  std::string out;
  for (const Memory& m : memories) {
    out += str(m.name, ": ");
    if (m.bytes > 0) out += str(rounded(m.bytes / 1024), " KB, ");
    if (m.sure_bytes > 0) out += str("of which ", rounded(m.sure_bytes / 1024), " are sure, ");
    out += str(rounded(m.bytes_per_second * 1e-9), " GB/s, ", rounded(m.latency_seconds * 1e9), " ns to wait\n");
  }
  return out + str("a call: ", rounded(seconds_per_call * 1e9), " ns, with a ring ", rounded(seconds_per_window * 1e9),
                   " more, a row ", rounded(seconds_per_row * 1e9), "; fetched ahead: ", rounded(ahead_bytes / 1024),
                   " KB, ", rounded(ahead_part * 100), "% of them hidden\n",
                   "hinted: ", hinted(fetched_part, fetched_way), "; nearby ",
                   hinted(fetched_part_nearby, fetched_way_nearby), "; non-temporal ",
                   hinted(non_temporal_part, non_temporal_way), "\n", "workers: ", rounded(seconds_to_share * 1e6),
                   " us to call them, ", rounded(workers_of_largest), " have all of the largest memory\n");
}

std::string ScheduleReport::to_string() const {
  const auto row = [](std::string_view name, const PredictedCost& c) {
    return str(name, ": ", c.seconds() * 1e3, " ms predicted (memory ", c.memory_seconds * 1e3, ", calls ",
               c.dispatch_seconds * 1e3, ", computed twice ", c.redundant_seconds * 1e3, ")\n");
  };
  std::string out = row("automatic", automatic) + row("by hand", by_hand);
  for (const std::string& group : groups) out += "  " + group + "\n";
  return out;
}

}  // namespace tenon::program
