// Inside the room: binds a program to given shapes.
#pragma once
#include <tenon/program/exec/arenas_internal.hpp>
#include <tenon/program/exec/code_internal.hpp>

namespace tenon::program::detail {

struct BoundCode {
  ByteCode code;
  std::vector<PlannedBlock> blocks;
  std::vector<ArenaRegion> regions;
  int64_t steps = 0;
};

// `program` outlives the code. `threads` is at least 1.
Result<BoundCode> bind_code(const Program& program, const Arguments& shapes, const BindOptions& options,
                            int64_t threads);

}  // namespace tenon::program::detail
