#include <tenon/program/exec/picture.hpp>

#include <tenon/support/str.hpp>

namespace tenon::program {

std::vector<MemoryChart> memory_charts(const Program& program, const BoundProgram& bound) {
  std::vector<MemoryChart> charts;
  for (const auto& [space, bytes] : bound.arena_bytes()) {
    const int64_t least = bound.arena_lower_bound_bytes().at(space);
    MemoryChart chart{.heading = space, .summary = str(bytes, " bytes, no plan needs less than ", least)};
    chart.bytes = static_cast<size_t>(bytes);
    chart.lower_bound_bytes = static_cast<size_t>(least);
    for (const PlannedAllocation& p : bound.plan())
      if (p.space == space)
        chart.blocks.push_back({program.buffer(p.buffer).name, static_cast<size_t>(p.bytes),
                                static_cast<size_t>(p.offset), static_cast<size_t>(p.first),
                                static_cast<size_t>(p.last), ""});
    charts.push_back(std::move(chart));
  }
  return charts;
}

std::string memory_picture(const Program& program, const BoundProgram& bound) {
  const std::vector<MemoryChart> charts = memory_charts(program, bound);
  return charts_to_html(str("Memory of ", program.name),
                        str(bound.plan().size(), " allocations, ", bound.steps(), " steps"), charts);
}

}  // namespace tenon::program
