// Executables of OpenCL targets: a DeviceProgram. Where programs cannot express a graph, or not for the extents of a
// run, the reference's interpreter runs it, between copies to and from the host.
#pragma once
#include <memory>

#include <tenon/ir/graph.hpp>
#include <tenon/runtime/executable.hpp>

#include "opencl/cl_device.hpp"
#include "opencl/compiler.hpp"

namespace tenon::opencl {

Result<std::unique_ptr<Executable>> make_executable(std::unique_ptr<Graph> graph, std::shared_ptr<ClDevice> device,
                                                    std::shared_ptr<const Compiler> compiler);
// Reads what Executable::serialize wrote.
Result<std::unique_ptr<Executable>> load_executable(std::span<const std::byte> bytes, std::shared_ptr<void> owner,
                                                    std::shared_ptr<ClDevice> device,
                                                    std::shared_ptr<const Compiler> compiler);

}  // namespace tenon::opencl
