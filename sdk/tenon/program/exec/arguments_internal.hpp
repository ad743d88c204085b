// Inside the room: checks of a run's arguments, shared by all executors.
#pragma once
#include <tenon/program/exec/buffers_internal.hpp>
#include <tenon/program/exec/run.hpp>
#include <tenon/program/ir/program.hpp>

namespace tenon::program::detail {

// Checks that each declared buffer and scalar is given and nothing else is, and that dims fit their declarations.
Result<void> check_arguments(const Program& program, const Arguments& arguments);
// The same for the shapes given to binding; data pointers are ignored.
Result<void> check_shapes(const Program& program, const Arguments& shapes);

// Memory and view of a checked argument.
BoundBuffer bind_argument(const Buffer& declared, BufferId id, const BufferArgument& argument);

// Number of iterations of a loop with begin < end and step >= 1.
int64_t iteration_count(int64_t begin, int64_t end, int64_t step);
// Number of workers of a loop; `inside_several`: an enclosing loop has more than one.
int64_t workers_of(const Loop& loop, int64_t limit, int64_t threads, int64_t iterations, bool inside_several);

}  // namespace tenon::program::detail
