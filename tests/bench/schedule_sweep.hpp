// The automatic schedule against schedules by hand, over families of pipelines:
//   pipeline_bench --sweep [--curve] [--only TEXT] [--moments N] [--recorded FILE] [FAMILY ...]
#pragma once
#include <string>
#include <vector>

namespace tenon::program::bench {

// Prints a row for each case, and for each family how far the automatic schedule is from the best one by hand: medians
// of processor times of runs in turn, in three moments ("--moments": N) between which lie all cases of the family. Prints
// when all are over. With "--curve" also what every schedule takes, and was predicted to; with
// "--only" those cases whose name has the text in it. With "--recorded" nothing runs: of what "--curve" has printed
// into the file, what the model would choose is held against the fastest. Returns the exit status: 1 where no family
// has such a name.
int sweep_schedules(std::vector<std::string> arguments);

}  // namespace tenon::program::bench
