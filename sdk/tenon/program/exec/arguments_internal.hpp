// Inside the room: checks of a run's arguments, shared by all executors.
#pragma once
#include <tenon/program/exec/buffers_internal.hpp>
#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>

namespace tenon::program::detail {

// Each declared buffer and scalar is given, nothing else is, and dims fit what is declared.
Result<void> check_arguments(const Program& program, const Arguments& arguments);
// The same for what binding is given, where data are not looked at.
Result<void> check_shapes(const Program& program, const Arguments& shapes);

// Memory and view of a checked argument.
BoundBuffer bind_argument(const Buffer& declared, BufferId id, const BufferArgument& argument);

// Of a loop with begin < end and step >= 1.
int64_t iteration_count(int64_t begin, int64_t end, int64_t step);
// How many workers run a loop; `inside_several`: a loop around it has more than one.
int64_t workers_of(const Loop& loop, int64_t limit, int64_t threads, int64_t iterations, bool inside_several);

}  // namespace tenon::program::detail
