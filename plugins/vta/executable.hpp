// Executables of VTA targets: inputs are packed and copied in, each operator runs on the driver, outputs are copied
// out.
#pragma once
#include <memory>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>

#include "vta/driver.hpp"
#include "vta/program.hpp"

namespace tenon::vta {

struct ExecutableOptions {
  StreamOptions stream;
  std::string trace_file;  // Chrome trace of the last run; empty: none. Wants a driver that keeps spans.
};

// Stored as the graph itself, from which it is compiled again.
Result<std::unique_ptr<Executable>> make_executable(std::unique_ptr<Graph> graph, const Hardware& hardware,
                                                    std::shared_ptr<Driver> driver, const ExecutableOptions& options);

}  // namespace tenon::vta
