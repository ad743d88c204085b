// Graphs on an OpenCL target, from the passes to the outputs on the host.
#pragma once
#include <support_lib/on_reference.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/backend.hpp>

#include "opencl/backend.hpp"
#include "opencl_support.hpp"

namespace tenon::opencl::testing {

inline Result<std::unique_ptr<Executable>> compiled(TargetBackend& backend, std::unique_ptr<Graph> graph) {
  PassManager passes;
  TENON_OK(backend.add_tensor_sel(passes));
  TENON_OK(passes.run(*graph));
  return backend.build(std::move(graph));
}

inline Result<std::vector<Tensor>> run_on(Stream& stream, const Executable& executable,
                                          const std::vector<Datum>& inputs, const RunOptions& options = {}) {
  std::vector<RunValue> placed, outputs(executable.outputs().size());
  for (const Datum& input : inputs) {
    TENON_TRY(value, to_device(stream, input.tensor()));
    placed.push_back(std::move(value));
  }
  TENON_TRY(done, executable.enqueue(stream, placed, outputs, options));
  TENON_OK(done->wait());
  std::vector<Tensor> made;
  for (const RunValue& output : outputs) {
    TENON_TRY(datum, to_host(stream, output));
    made.push_back(datum.tensor());
  }
  return made;
}

using tenon::testing::on_reference;

}  // namespace tenon::opencl::testing
