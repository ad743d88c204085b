// The verifier: is this program one that passes and executors may rely on?
#pragma once
#include <tenon/program/ir/program.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/result.hpp>

namespace tenon::program {

// Checks, and names the statement of the first fault, with a frame for each statement around it:
//   names      are names of the text form, once each; symbols in scope are not bound again
//   scope      each buffer, symbol and metadata is visible where it is used; nothing is used after its Free
//   types      ranks of boxes, views and copies; element types byte addressable, the same on both sides of a copy
//   access     inputs and constants are not written; nothing is read that has not been written before or around
//   bounds     boxes that certainly leave their buffer, steps and slots that are certainly below 1
//   tokens     certainly waited for without a transfer, or never waited for
//   stages     Signal and Await stand in a pipelined loop
// "certainly" is as far as expressions can be proved under what is known without arguments; the rest is checked by a
// run. Time: linear in the statements, times the work of proofs about their boxes.
TENON_API Result<void> verify(const Program& program);

}  // namespace tenon::program
