// Inside the room: registers that a loop increments by one number in most iterations and by another one in few, where a
// ring buffer restarts or a box begins to wrap around it.
//
// After a cycle of iterations all positions in ring buffers repeat. Binding simulates one cycle. The increment of most
// iterations is an ordinary step; in the other iterations, the turns, a correction is added to the affected registers
// only. An iteration checks only how far away the next turn is.
#pragma once
#include <optional>
#include <vector>

#include <tenon/program/exec/registers_internal.hpp>

namespace tenon::program::detail {

struct RingTurns {
  std::vector<Step> steps;  // of each iteration
  std::vector<Turn> turns;  // of one cycle
  std::vector<Step> jumps;  // of the turns, in addition to the steps
  int64_t first = 0;        // iterations to the first turn
};

// Takes the steps of the loop for ring buffers out of its code, and the views that each iteration began with, if all of
// them can be determined. Unused places (`registers`) are left out. Nothing is taken where positions are not known when
// the loop begins, as in bands of workers, or where neither a cycle nor the loop, which has at most so many iterations,
// is short enough to be simulated.
std::optional<RingTurns> take_ring_turns(Registers::LevelCode& level, int64_t iterations, const Registers& registers,
                                         ByteCode& code);

}  // namespace tenon::program::detail
