// Memory over time, for people.
#pragma once
#include <string>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/runtime/memory_chart.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

// The arena of each memory space. `program` is what was bound.
TENON_API std::vector<MemoryChart> memory_charts(const Program& program, const BoundProgram& bound);

// One HTML page that needs nothing else: for each memory space its arena, with steps from left to right and bytes from
// the bottom up, a rectangle for each allocation (its name, bytes, offset and steps when pointed at), and the bytes
// alive at each step as a line.
TENON_API std::string memory_picture(const Program& program, const BoundProgram& bound);

}  // namespace tenon::program
