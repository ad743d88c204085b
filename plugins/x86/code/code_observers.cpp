#include "x86/code/code_observers.hpp"

#include "x86/code/crash.hpp"
#include "x86/code/gdb_jit.hpp"
#include "x86/code/jit_dump.hpp"
#include "x86/code/perf_map.hpp"

namespace tenon::x86 {

void code_added(const JitCode& code) {
  crash_table_add(code);
  gdb_add(code);
  perf_map_add(code);
  jit_dump_add(code);
}

void code_removed(const JitCode& code) {
  crash_table_remove(code);
  gdb_remove(code);  // perf's formats cannot express removal
}

}  // namespace tenon::x86
