// Inside of the room: registers that a loop steps by one number in most iterations and by another one in few, where a
// ring begins anew or a box begins to wrap around it.
//
// After a cycle of so many iterations all places in rings are the same again. One cycle is gone through when binding:
// what is added in most iterations is a step like any other, and at its turns more is added, to the registers that are
// concerned alone. An iteration looks at nothing but how far the next turn is.
#pragma once
#include <optional>
#include <vector>

#include <tenon/program/exec/registers_internal.hpp>

namespace tenon::program::detail {

struct RingTurns {
  std::vector<Step> steps;  // of each iteration
  std::vector<Turn> turns;  // of one cycle
  std::vector<Step> jumps;  // of the turns, beside the steps
  int64_t first = 0;        // iterations to the first turn
};

// What the loop steps for rings, taken out of its code, and the views that each iteration began with, if all can be
// told. Places that nobody else reads (`registers`) are in none of it. Nothing is taken where places are not known when
// the loop begins, as in bands of workers, or where neither a cycle nor the loop, which has at most so many iterations,
// is short enough to be gone through.
std::optional<RingTurns> take_ring_turns(Registers::LevelCode& level, int64_t iterations, const Registers& registers,
                                         ByteCode& code);

}  // namespace tenon::program::detail
