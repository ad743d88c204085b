// /tmp/perf-PID.map: lines "start size name" by which Linux perf names generated code
// (linux/tools/perf/Documentation/jit-interface.txt).
//
// Written when TENON_PERF_MAP is set to 1, or from turn_on_perf_map() on. The file is made anew for each process, for
// its owner alone; one that belongs to somebody else, or is a link, is left alone with a warning.
#pragma once
#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

void turn_on_perf_map();
void perf_map_add(const JitCode& code);  // nothing while it is off

}  // namespace tenon::x86
