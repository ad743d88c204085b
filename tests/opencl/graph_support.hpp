// Graphs on an OpenCL target, from the passes to the outputs on the host.
#pragma once
#include <support_lib/on_reference.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/tensor/compare.hpp>

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

// Runs `graph` and compares each output with that of the reference. `profile`, unless null, receives the launches.
inline void expect_reference(ClStream& stream, TargetBackend& backend, const Graph& graph,
                             const std::vector<Datum>& inputs, const Tolerance& tolerance,
                             std::vector<OpProfile>* profile = nullptr) {
  SCOPED_TRACE(print(graph));
  const std::vector<Tensor> expected = on_reference(graph, inputs);
  auto executable = compiled(backend, graph.clone());
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  const auto got = run_on(stream, **executable, inputs, {.profile = profile});
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  ASSERT_EQ(got->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Comparison comparison = compare((*got)[i], expected[i], tolerance);
    EXPECT_TRUE(comparison.equal) << "output " << i << ": " << comparison.difference;
  }
}

}  // namespace tenon::opencl::testing
