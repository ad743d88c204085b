// The reference: runs a program statement by statement, as statement.hpp says, and checks what it says.
#pragma once
#include <cstdint>

#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

struct InterpretOptions {
  // Value of run.threads, and most workers of a loop. Iterations run one after another all the same, on the calling
  // thread; the i-th is given to worker i mod workers.
  int64_t threads = 1;
  // Automatic allocations up to this count as stack.
  int64_t stack_bytes = 0;
  // 0: iterations of parallel loops ascend. Else they are shuffled with this seed, and transfers happen at a random
  // moment between start and wait instead of at the start: a correct program gives the same results.
  uint64_t seed = 0;
  // Checks around each call that the kernel keeps to its boxes (contract.hpp).
  bool contract = false;
};

// The program must have been verified (verify.hpp). Errors name the statement, with a frame for each loop around it
// that says which iteration it was; the statement is not undone.
TENON_API Result<void> interpret(const Program& program, const Arguments& arguments,
                                 const InterpretOptions& options = {}, RunStatistics* statistics = nullptr);

}  // namespace tenon::program
