#include <tenon/runtime/usable_threads_internal.hpp>

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include <tenon/support/str.hpp>

namespace tenon::detail {

std::optional<int64_t> read_number(std::string_view text) {
  text = trim(text);
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// CPUs that the quota of one control group allows, rounded up; nullopt without a quota.
std::optional<int64_t> quota_of(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return std::max<int64_t>(1, (*quota + *period - 1) / *period);
}

// The tightest quota of this process' control groups (version 2: cpu.max of the group and its ancestors; version 1:
// cpu.cfs_quota_us), as described in cgroups(7).
std::optional<int64_t> cgroup_cpus() {
  std::optional<int64_t> least;
  const auto consider = [&](std::optional<int64_t> cpus) {
    if (cpus && (!least || *cpus < *least)) least = cpus;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    const auto controllers = split(fields[1], ',');
    const bool unified = fields[0] == "0";
    if (!unified && std::ranges::find(controllers, std::string_view("cpu")) == controllers.end()) continue;
    for (std::string group(fields[2]);; group.resize(group.rfind('/'))) {
      if (group == "/") group.clear();
      if (unified) {
        const std::string entry = first_line(str("/sys/fs/cgroup", group, "/cpu.max"));
        const auto words = split(trim(entry), ' ');
        if (words.size() == 2) consider(quota_of(read_number(words[0]), read_number(words[1])));
      } else {
        const std::string folder = str("/sys/fs/cgroup/cpu", group);
        consider(quota_of(read_number(first_line(folder + "/cpu.cfs_quota_us")),
                          read_number(first_line(folder + "/cpu.cfs_period_us"))));
      }
      if (group.empty()) break;
    }
  }
  return least;
}

}  // namespace

int usable_threads() {
  int64_t cpus = std::max(1u, std::thread::hardware_concurrency());
  cpu_set_t set;
  // Fails on machines with more CPUs than the set holds; the hardware's number then applies.
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = std::max(1, CPU_COUNT(&set));
  if (const auto quota = cgroup_cpus()) cpus = std::min(cpus, *quota);
  return static_cast<int>(std::min<int64_t>(cpus, kMostThreads));
}

}  // namespace tenon::detail
