// Inside the room: how a loop advances pointers, as instructions.
#pragma once
#include <vector>

#include <tenon/snippet/linear/linear.hpp>

namespace tenon::snippet {

// The pointers that `loop` advances at the end of each iteration (Shift::each), or resets after the last (rewind).
void append_moves(std::vector<Instruction>& body, const Loop& loop, ParamId Loop::Shift::*which, int label);

}  // namespace tenon::snippet
