// A picture of memory over time.
#pragma once
#include <string>
#include <vector>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/runtime/memory_chart.hpp>
#include <tenon/support/export.hpp>

namespace tenon::program {

// The arena of each memory space. `program` is what was bound.
TENON_API std::vector<MemoryChart> memory_charts(const Program& program, const BoundProgram& bound);

// One self-contained HTML page. For each memory space it shows the arena, with steps from left to right and bytes from
// the bottom up, a rectangle for each allocation (name, bytes, offset and steps in a tooltip), and the live bytes at
// each step as a line.
TENON_API std::string memory_picture(const Program& program, const BoundProgram& bound);

}  // namespace tenon::program
