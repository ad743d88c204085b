// Programs of graphs, for people.
#pragma once
#include <string>

#include <tenon/ir/graph.hpp>
#include <tenon/support/result.hpp>

namespace tenon::cli {

struct ProgramDump {
  std::string text;     // the programs, one behind another; operators that none has as comments, with the reasons
  std::string picture;  // HTML: memory over time, of each program of static shapes
};
// As the reference runs the graph.
Result<ProgramDump> dump_programs(const Graph& graph);

}  // namespace tenon::cli
