// GDB's JIT interface (its manual, "JIT Compilation Interface"), which LLDB reads as well: each kernel becomes a small
// ELF object in memory with one symbol, so that backtraces show its name.
#pragma once
#include <vector>

#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

// Takes a few hundred bytes a kernel; on unless TENON_GDB_JIT is 0.
void gdb_add(const JitCode& code);
void gdb_remove(const JitCode& code);

// The ELF object: .text at the code's address, without contents, and the symbol "tenon::NAME".
std::vector<std::byte> gdb_object(const JitCode& code);

}  // namespace tenon::x86
