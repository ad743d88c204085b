// jit-PID.dump: the file from which `perf inject --jit` resolves samples of generated code. It has the bytes of the
// code and a line for each instruction, so that `perf annotate` shows the operators
// (linux/tools/perf/Documentation/jitdump-specification.txt, version 1).
//
// Written into the folder that TENON_JITDUMP names, or from a call of turn_on_jit_dump() on into its folder. Beside it
// is jit-PID.txt, whose lines are the instructions. Both are created anew by each process, readable by its owner only;
// a link is left alone with a warning. Times are those of CLOCK_MONOTONIC (`perf record -k mono`).
#pragma once
#include <string>

#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

void turn_on_jit_dump(std::string folder);
void jit_dump_add(const JitCode& code);  // nothing while it is off

}  // namespace tenon::x86
