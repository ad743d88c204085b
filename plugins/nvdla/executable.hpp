// Executables of the plugin: a DRAM image and the commands of all operators in order, run on the simulator.
#pragma once
#include <memory>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>

#include "nvdla/hardware.hpp"

namespace tenon::nvdla {

// From a graph after code emission; it is serialised as that graph. One run at a time; others wait.
Result<std::unique_ptr<Executable>> make_executable(std::unique_ptr<Graph> graph, const Hardware& hardware);

}  // namespace tenon::nvdla
