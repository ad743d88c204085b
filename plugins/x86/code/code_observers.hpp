// Notifies the crash handler's table, perf's files and debuggers when code is added and removed.
#pragma once
#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

// Called by JitMemory, after the code is in place and before it is removed. Any thread.
void code_added(const JitCode& code);
void code_removed(const JitCode& code);

}  // namespace tenon::x86
