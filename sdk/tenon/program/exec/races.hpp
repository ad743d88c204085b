// Race detection: accesses that no happens-before relation orders with a transfer or with another worker.
#pragma once
#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

struct RaceOptions {
  int64_t threads = 4;  // of the run to be checked
};

// Executes the program for these shapes, statement by statement, without calling kernels, and compares the bytes of
// boxes that are not ordered:
//   - what a transfer writes, with what is read or written between its start and its wait; what it reads, with what is
//     written then. A wait ends the oldest transfer of its token.
//   - what two iterations of a parallel loop access, unless both only read, or it is memory of the iteration or the
//     slot of a worker;
//   - the same for a pipelined loop, where an iteration comes after all up to i - workers, and what follows its Await
//     of a stage comes after what precedes the Signal of that stage in earlier iterations.
// The first race is an error (Code::invalid_argument) that names both sides and the buffer. No race of the program at
// these shapes is missed, provided that kernels access only their boxes (contract mode checks that), and every race
// reported can happen. Time: the statements executed, times the rows of their boxes.
TENON_API Result<void> check_races(const Program& program, const Arguments& shapes, const RaceOptions& options = {});

}  // namespace tenon::program
