// Inside the room: which loop bodies may be duplicated, and unrolling of short loops.
#pragma once
#include <optional>

#include <tenon/program/ir/symbolic_internal.hpp>

namespace tenon::program::detail {

// Whether the loop is serial and is marked as having one iteration.
bool has_one_iteration(const Loop& loop);
// Without allocations, transfers or workers, and without loops except those of one iteration.
bool is_simple(const Statement& s);
// The same with any serial loops.
bool has_simple_loops(const Statement& s);

// Whether it pays to unroll a few iterations so that their numbers are known, which is so within a loop or with loops
// in the body, and whether the body contains nothing that must not be duplicated.
bool may_be_repeated(const Statement& body, bool in_loop);
// Whether some iterations of a loop of several workers may have code of their own, and this pays because they contain
// loops: allocations are made in each, transfers are not allowed.
bool may_be_split(const Statement& body);
// Whether it is a serial loop of one iteration with a simple body: without other loops, allocations or transfers, which
// must not be duplicated.
bool is_once(const Loop& loop);
// The loop with serial loops of its body unrolled into loops of one iteration, where these have few iterations whose
// numbers are known. Empty where there are none.
std::optional<Loop> with_loops_written_out(const Loop& loop, const Scope& scope);

}  // namespace tenon::program::detail
