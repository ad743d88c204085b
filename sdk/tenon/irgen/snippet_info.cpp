#include <tenon/irgen/snippet_info.hpp>

#include <tenon/irgen/from_graph.hpp>
#include <tenon/ops/constant.hpp>
#include <tenon/snippet/canonical/subgraph.hpp>
#include <tenon/snippet/tokenize/statistics.hpp>

namespace tenon::irgen {
namespace {

double microseconds(double bytes, const TargetDescription& target) {
  const MemorySpace* at = nullptr;
  for (const MemorySpace& memory : target.memories) {
    const bool holds = memory.bandwidth && bytes <= static_cast<double>(memory.size_bytes);
    if (holds && (!at || memory.size_bytes < at->size_bytes)) at = &memory;
  }
  const double rate = at ? at->bandwidth->bytes_per_second(target.clock_hz) : 0;
  return rate > 0 ? bytes / rate * 1e6 : 0;
}

}  // namespace

KernelInfo kernel_info_of(const Op& subgraph, const TargetDescription& target) {
  const snippet::SubgraphStatistics statistics = snippet::statistics_of(subgraph);
  KernelInfo info;
  info.op = subgraph.name().str();
  info.label = subgraph.label();
  for (const Op& inner : subgraph.region(0))
    if (!isa<Constant>(inner)) info.operators.push_back(stage_of_op(inner));
  info.parameters = statistics.parameters;
  info.results = statistics.results;
  info.constants = statistics.constants;
  // Symbols: not known.
  if (statistics.bytes_unfused.is_constant())
    info.bytes_unfused = static_cast<double>(statistics.bytes_unfused.constant());
  if (statistics.bytes_fused.is_constant()) info.bytes_fused = static_cast<double>(statistics.bytes_fused.constant());
  info.predicted_us = microseconds(info.bytes_fused, target);
  return info;
}

void label_snippets(Graph& graph) {
  size_t number = 0;
  for (Op& op : graph.body()) {
    if (!isa<snippet::Subgraph>(op)) continue;
    if (op.label().empty()) op.set_label(str("#", number));
    ++number;
  }
}

std::string without_label(const Op& op, const std::string& message) {
  const std::string described = op.describe();
  return message.starts_with(described) ? op.name().str() + message.substr(described.size()) : message;
}

}  // namespace tenon::irgen
