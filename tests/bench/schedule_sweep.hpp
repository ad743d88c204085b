// The automatic schedule compared with manual schedules, over families of pipelines:
//   pipeline_bench --sweep [--curve] [--only TEXT] [--moments N] [--recorded FILE] [FAMILY ...]
#pragma once
#include <string>
#include <vector>

namespace tenon::program::bench {

// Prints a row for each case, and for each family how far the automatic schedule is from the best manual one: medians
// of processor times of interleaved runs, in three moments ("--moments": N), between which all cases of the family are
// run. Prints when all are done. With "--curve", also the measured and predicted time of every schedule; with "--only",
// those cases whose name contains the text. With "--recorded" nothing is run: the model's choice among what "--curve"
// has printed to the file is compared with the fastest. Returns the exit status: 1 if no family has such a name.
int sweep_schedules(std::vector<std::string> arguments);

}  // namespace tenon::program::bench
