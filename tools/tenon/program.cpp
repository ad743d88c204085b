#include "program.hpp"

#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/reference_kernels.hpp>
#include <tenon/program/exec/picture.hpp>
#include <tenon/program/ir/text.hpp>

namespace tenon::cli {

Result<ProgramDump> dump_programs(const Graph& graph) {
  TENON_TRY(runner, irgen::GraphRunner::prepare(graph, irgen::reference_kernels()));
  ProgramDump dump;
  for (const irgen::HostOp& op : runner->report().host_ops)
    dump.text += str("# no program has ", op.op, " ", quote(op.label), ": ", op.reason, "\n");
  for (const irgen::GraphProgram* lowered : runner->programs()) {
    dump.text += program::print(lowered->program);
    if (!lowered->program.scalars.empty()) continue;
    TENON_TRY(arguments, irgen::arguments_of(*lowered, {}));
    TENON_TRY(bound, program::BoundProgram::bind(lowered->program, arguments));
    dump.picture += program::memory_picture(lowered->program, bound);
  }
  return dump;
}

}  // namespace tenon::cli
