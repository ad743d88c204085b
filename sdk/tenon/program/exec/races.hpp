// Does anything touch what a transfer or another worker may be writing at the same time?
#pragma once
#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

struct RaceOptions {
  int64_t threads = 4;  // of the run that is looked at
};

// Goes through the program for these shapes, statement by statement, without calling kernels, and compares the bytes of
// boxes that are not ordered:
//   - what a transfer writes, with what is read or written between its start and its wait; what it reads, with what is
//     written then. A wait ends the oldest transfer of its token.
//   - what two iterations of a parallel loop touch, unless both only read, or it is memory of the iteration or the slot
//     of a worker;
//   - the same for a pipelined loop, where an iteration comes after all up to i - workers, and what follows its Await
//     of a stage comes after what precedes the Signal of that stage in earlier iterations.
// The first race is an error (Code::invalid_argument) that names both sides and the buffer. No race of the program at
// these shapes is missed, as far as the boxes are what kernels touch (contract mode checks that); and what is reported
// can happen. Time: the statements executed, times the rows of their boxes.
TENON_API Result<void> check_races(const Program& program, const Arguments& shapes, const RaceOptions& options = {});

}  // namespace tenon::program
