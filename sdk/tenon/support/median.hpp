// The median of measured values.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace tenon {

// Needs at least one value. For an even number of values, the greater of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tenon
