// Executables of VTA targets: inputs are packed and copied in, each operator runs on the driver, outputs are copied
// out.
#pragma once
#include <memory>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>

#include "vta/loaded_program.hpp"

namespace tenon::vta {

struct ExecutableOptions {
  std::string trace_file;  // Chrome trace of the last run; empty: none. Wants a driver that keeps spans.
};

// Of a graph of streams, as the passes leave it. Stored as that graph: loading decides nothing again.
Result<std::unique_ptr<Executable>> make_executable(std::unique_ptr<Graph> graph, const Hardware& hardware,
                                                    std::shared_ptr<Driver> driver, const ExecutableOptions& options);

}  // namespace tenon::vta
