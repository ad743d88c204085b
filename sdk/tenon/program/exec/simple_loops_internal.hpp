// Inside the room: which loop bodies may be duplicated, and unrolling of short loops.
#pragma once
#include <optional>

#include <tenon/program/ir/symbolic_internal.hpp>

namespace tenon::program::detail {

// Serial, and it says so.
bool has_one_iteration(const Loop& loop);
// Without memory, transfers or workers of its own, and without loops but such of one iteration.
bool is_simple(const Statement& s);
// The same with any serial loops.
bool has_simple_loops(const Statement& s);

// Whether each of a few iterations is worth code of its own, with numbers that are known: within a loop, or with loops
// in it, and if there is nothing in it that must not be made several times.
bool may_be_repeated(const Statement& body, bool in_loop);
// Whether some iterations of a loop of several workers may have code of their own, and it is worth it, since there are
// loops in them: memory of their own is made in each, transfers are not.
bool may_be_split(const Statement& body);
// Whether it is a serial loop of one iteration and a simple body: one without other loops, memory or transfers of its
// own, which are not to be made several times.
bool is_once(const Loop& loop);
// The loop with serial ones in its body written out as loops of one iteration, where those have a few whose numbers are
// known. Nothing where there are none.
std::optional<Loop> with_loops_written_out(const Loop& loop, const Scope& scope);

}  // namespace tenon::program::detail
