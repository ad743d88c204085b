// Programs of graphs, for readers.
#pragma once
#include <string>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::cli {

struct ProgramDump {
  std::string text;     // the programs in order; operators outside programs as comments, with the reasons
  std::string picture;  // HTML: memory over time, for each program with static shapes
};
// The programs with which the reference runs the graph.
Result<ProgramDump> dump_programs(const Graph& graph);

}  // namespace tenon::cli
