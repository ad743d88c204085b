#include <tenon/runtime/memory_picture.hpp>

#include <tenon/runtime/memory_chart.hpp>
#include <tenon/runtime/memory_problem_internal.hpp>

namespace tenon {
namespace {

std::string rules_of(const MemoryBlock& block) {
  std::string rules = block.pinned ? ", pinned" : "";
  if (block.bank) rules += str(", in bank ", *block.bank);
  if (block.align_bytes > 1) rules += str(", aligned to ", block.align_bytes);
  return rules;
}

MemoryChart chart_of(std::span<const MemoryBlock> blocks, size_t space, const ArenaSpace& rules,
                     const MemoryPlan& plan) {
  const SpacePlan& planned = plan.spaces[space];
  MemoryChart chart{.heading = rules.name, .bytes = planned.bytes, .lower_bound_bytes = planned.lower_bound_bytes};
  chart.summary =
      str(planned.bytes, " bytes; no plan needs less than ", planned.lower_bound_bytes, " (efficiency ",
          planned.efficiency(), "), most bytes alive at step ", planned.peak_step, "; placed ", planned.order);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const MemoryBlock& block = blocks[i];
    if (block.space != space) continue;
    chart.blocks.push_back(
        {memory::describe(blocks, i), block.bytes, plan.offsets[i], block.first, block.last, rules_of(block)});
  }
  return chart;
}

}  // namespace

std::string plan_to_html(std::span<const MemoryBlock> blocks, std::span<const ArenaSpace> spaces,
                         const MemoryPlan& plan, std::string_view title) {
  std::vector<MemoryChart> charts;
  for (size_t s = 0; s < spaces.size(); ++s) charts.push_back(chart_of(blocks, s, spaces[s], plan));
  return charts_to_html(title, "", charts);
}

}  // namespace tenon
