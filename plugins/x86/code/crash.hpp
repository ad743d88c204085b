// A crash inside generated code names the kernel and the operator:
//
//   tenon: SIGSEGV at address 0x7f0000001000 in kernel 'softmax' + 0x5c: %4:f32 = Load f32 [%0 + %3] (Softmax
//   attn/softmax_3)
//
// It is written to standard error; then the previous handler runs.
#pragma once
#include <string>

#include "x86/code/jit_memory.hpp"

namespace tenon::x86 {

// For SIGSEGV, SIGBUS, SIGILL and SIGFPE, in the whole process, once. Opt-in: called by the program, or because of
// TENON_CRASH_HANDLER=1 when the first code is added.
void install_crash_handler();

// The sentence for an address inside live code, empty for any other address. Async-signal-safe: takes no lock and
// allocates nothing. `size`: bytes of `text`, including the terminating 0.
void describe_code_address(const void* address, char* text, size_t size);

void crash_table_add(const JitCode& code);
void crash_table_remove(const JitCode& code);

}  // namespace tenon::x86
