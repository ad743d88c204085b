// Inside of the room: what measurements of this machine share.
#pragma once
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tenon::program::detail {

inline double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Of at least one value; of an even number the greater of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tenon::program::detail
