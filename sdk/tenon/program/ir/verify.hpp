// The verifier: checks the properties of a program that passes and executors rely on.
#pragma once
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

// Reports the first fault, naming its statement, with a frame for each enclosing statement:
//   names      are names of the text form, once each; symbols in scope are not bound again
//   scope      each buffer, symbol and metadata is visible where it is used; nothing is used after its Free
//   types      ranks of boxes, views and copies; element types byte addressable, the same on both sides of a copy
//   access     inputs and constants are not written; nothing is read that is written neither before nor in an enclosing
//              loop
//   bounds     boxes that certainly exceed their buffer, steps and slots that are certainly below 1
//   tokens     certainly waited for without a transfer, or never waited for
//   stages     Signal and Await are inside a pipelined loop
// "certainly" means: provable for these expressions without arguments; a run checks the rest. Time: linear in the
// statements, times the work of proofs about their boxes.
TENON_API Result<void> verify(const Program& program);

}  // namespace tenon::program
