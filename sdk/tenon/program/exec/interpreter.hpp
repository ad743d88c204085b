// The reference interpreter: runs a program statement by statement, as statement.hpp defines it, with all checks.
#pragma once
#include <cstdint>

#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

struct InterpretOptions {
  // The value of run.threads, and the maximum number of workers of a loop. Iterations still run one after another on
  // the calling thread; iteration i is assigned to worker i mod workers.
  int64_t threads = 1;
  // Automatic allocations up to this count as stack.
  int64_t stack_bytes = 0;
  // 0: iterations of parallel loops ascend. Otherwise they are shuffled with this seed, and transfers happen at a
  // random moment between start and wait instead of at the start: a correct program gives the same results.
  uint64_t seed = 0;
  // Checks for each call that the kernel accesses only its boxes (contract.hpp).
  bool contract = false;
};

// The program must have been verified (verify.hpp). Errors name the statement, with a frame for each enclosing loop
// that names the iteration; effects of the failed statement are not undone.
TENON_API Result<void> interpret(const Program& program, const Arguments& arguments,
                                 const InterpretOptions& options = {}, RunStatistics* statistics = nullptr);

}  // namespace tenon::program
