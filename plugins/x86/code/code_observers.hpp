// Who is told of code that comes and goes: the crash handler's table, perf's files, and debuggers.
#pragma once
#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

// By JitMemory, after the code is in its place and before it goes. Any thread.
void code_added(const JitCode& code);
void code_removed(const JitCode& code);

}  // namespace tenon::x86
