// Executables of VTA targets: inputs are packed and copied to the device, each operator runs on the driver, and outputs
// are copied back.
#pragma once
#include <memory>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>

#include "vta/loaded_program.hpp"

namespace tenon::vta {

struct ExecutableOptions {
  std::string trace_file;  // Chrome trace of the last run; empty: none. Requires a driver that records spans.
};

// From a graph of streams, as the passes leave it. It is serialised as that graph, so loading repeats no decision.
Result<std::unique_ptr<Executable>> make_executable(std::unique_ptr<Graph> graph, const Hardware& hardware,
                                                    std::shared_ptr<Driver> driver, const ExecutableOptions& options);

}  // namespace tenon::vta
