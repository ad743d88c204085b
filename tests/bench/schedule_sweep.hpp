// The automatic schedule against schedules by hand, over families of pipelines: pipeline_bench --sweep [--curve] [FAMILY ...]
#pragma once
#include <string>
#include <vector>

namespace tenon::program::bench {

// Prints a row for each case, and for each family how far the automatic schedule is from the best one by hand: medians
// of processor times of runs in turn. With "--curve" among them also what every schedule takes, and was predicted to.
// Returns the exit status.
int sweep_schedules(std::vector<std::string> families);

}  // namespace tenon::program::bench
