// Pipelines for comparing schedules.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline_kernels.hpp"

namespace tenon::program::bench {

struct Case {
  std::string name;
  std::function<Pair()> make;
  std::vector<int64_t> extents;  // of the result
  int64_t border = 0;            // that the source is larger by, on all sides
};

// By name, in the order in which they are swept.
using Family = std::pair<std::string, std::vector<Case> (*)()>;
const std::vector<Family>& sweep_families();

}  // namespace tenon::program::bench
