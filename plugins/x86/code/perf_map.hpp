// /tmp/perf-PID.map: lines "start size name" from which Linux perf takes the names of generated code
// (linux/tools/perf/Documentation/jit-interface.txt).
//
// Written when TENON_PERF_MAP is 1, or from a call of turn_on_perf_map() on. The file is created anew by each process,
// readable by its owner only; a file of another owner, or a link, is left alone with a warning.
#pragma once
#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

void turn_on_perf_map();
void perf_map_add(const JitCode& code);  // nothing while it is off

}  // namespace tenon::x86
