// The automatic schedule against schedules by hand, over families of pipelines: pipeline_bench --sweep [FAMILY ...]
#pragma once
#include <string>
#include <vector>

namespace tenon::program::bench {

// Prints a row for each case, and for each family how far the automatic schedule is from the best one by hand: medians
// of processor times of runs in turn. Returns the exit status.
int sweep_schedules(const std::vector<std::string>& families);

}  // namespace tenon::program::bench
