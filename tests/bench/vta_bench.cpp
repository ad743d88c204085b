// Convolutions of ResNet-18 on the simulator of vta-default, or of the given target file: cycles compared with the
// minimum for the units, with and without double buffering, and bytes of DRAM compared with the minimum.
//
//   vta_bench [TARGET.yaml]
//
// A line for each layer. `gemm`: share of all cycles in which the matrix unit works. `bound`: all cycles over the
// larger of the compute unit's busy ones and those of the DRAM. `balance`: the smaller of these over the larger.
// `serial`: cycles with one slot for each buffer over those with two. `bytes`: moved, micro-ops included, over inputs,
// weights, bias and outputs once; rows of the input that no window covers do not count.
#include <algorithm>
#include <cstdio>
#include <string>

#include <tenon/ir/builder.hpp>
#include <tenon/target/load.hpp>

#include "vta/backend.hpp"
#include "vta/device_op.hpp"
#include "vta/driver.hpp"
#include "vta/loaded_program.hpp"

namespace tenon::vta {
namespace {

struct Shape {
  const char* name;
  int64_t in, out, size, kernel, stride;
  bool residual;
};
constexpr Shape kLayers[] = {
    {"layer1 3x3 64", 64, 64, 56, 3, 1, false},           {"layer1 3x3 64 +res", 64, 64, 56, 3, 1, true},
    {"layer2 3x3 64-128 /2", 64, 128, 56, 3, 2, false},   {"layer2 1x1 64-128 /2", 64, 128, 56, 1, 2, false},
    {"layer2 3x3 128", 128, 128, 28, 3, 1, false},        {"layer2 3x3 128 +res", 128, 128, 28, 3, 1, true},
    {"layer3 3x3 128-256 /2", 128, 256, 28, 3, 2, false}, {"layer3 1x1 128-256 /2", 128, 256, 28, 1, 2, false},
    {"layer3 3x3 256", 256, 256, 14, 3, 1, false},        {"layer3 3x3 256 +res", 256, 256, 14, 3, 1, true},
    {"layer4 3x3 256-512 /2", 256, 512, 14, 3, 2, false}, {"layer4 1x1 256-512 /2", 256, 512, 14, 1, 2, false},
    {"layer4 3x3 512", 512, 512, 7, 3, 1, false},         {"layer4 3x3 512 +res", 512, 512, 7, 3, 1, true},
};

// Any data is sufficient: cycles do not depend on it.
Result<std::unique_ptr<Graph>> graph_of(const Shape& s) {
  auto graph = std::make_unique<Graph>(s.name);
  Builder builder(graph->body());
  const int64_t pad = s.kernel / 2, size = (s.size + 2 * pad - s.kernel) / s.stride + 1;
  Value* x = graph->body().add_input("x", Type(kI8, {1, s.in, s.size, s.size}));
  TENON_TRY(w, Tensor::zeros(kI8, {s.out, s.in, s.kernel, s.kernel}));
  TENON_TRY(b, Tensor::zeros(kI32, {s.out}));
  Value* residual = s.residual ? graph->body().add_input("r", Type(kI8, {1, s.out, size, size})) : nullptr;
  Attributes attributes{{"pads", Attribute::Integers{pad, pad, pad, pad}},
                        {"strides", Attribute::Integers{s.stride, s.stride}},
                        {"shift", int64_t{8}},
                        {"clip_min", int64_t{0}}};
  if (s.residual) attributes.set("residual_shift", int64_t{8});
  TENON_TRY(y, builder.op("fused.QConv", {x, builder.constant(w), builder.constant(b), residual}, attributes));
  y->producer()->set_label(s.name);
  graph->body().add_output(y, "y");
  return graph;
}

Result<RunCounters> counted(const Graph& graph, PassContext context, bool double_buffer) {
  context.double_buffer = double_buffer;
  const auto copy = graph.clone();
  TENON_OK(run_phases(*copy, context));
  TENON_TRY(program, DeviceProgram::of(*copy, context.hardware));
  TENON_TRY(loaded, LoadedProgram::load(program, make_embedded_driver(context.hardware)));
  std::vector<Tensor> tensors;
  for (const DeviceProgram::Port& port : program->inputs()) {
    TENON_TRY(tensor, Tensor::zeros(kI8, port.dims));
    tensors.push_back(tensor);
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : tensors) inputs.push_back(&tensor);
  TENON_TRY(y, Tensor::zeros(kI8, program->outputs()[0].dims));
  Tensor* output = &y;
  std::vector<StepReport> report;
  TENON_OK(loaded->run(inputs, std::span(&output, 1), &report));
  return *report[0].counters;
}

// See the head of this file.
Result<int64_t> least_bytes(const Graph& graph, const Hardware& hardware) {
  TENON_TRY(op, device_op(*graph.body().output(0)->producer(), hardware));
  const Layer& layer = std::get<Layer>(op.work);
  const int64_t weights = layer.weight_elements() * hardware.element_bytes(Memory::wgt);
  const int64_t bias = layer.bias ? layer.output.blocks * hardware.element_bytes(Memory::acc) : 0;
  int64_t bytes = layer.output.elements() * hardware.lanes() + weights + bias;
  for (const Term& term : layer.terms) {
    const int64_t inputs = term.input.elements() / (term.rows.skips ? term.rows.stride : 1) * hardware.lanes();
    bytes += inputs;
    const bool all_too_large =
        layer.weight_elements() > hardware.depth(Memory::wgt) && term.input.elements() > hardware.depth(Memory::inp);
    if (term.diagonal || !all_too_large) continue;
    const int64_t fills = (layer.output.elements() + hardware.depth(Memory::acc) - 1) / hardware.depth(Memory::acc);
    bytes += (fills - 1) * std::min(inputs, weights);
  }
  return bytes;
}

Result<void> measure(const Shape& shape, const PassContext& context) {
  TENON_TRY(graph, graph_of(shape));
  TENON_TRY(two, counted(*graph, context, true));
  TENON_TRY(one, counted(*graph, context, false));
  TENON_TRY(least, least_bytes(*graph, context.hardware));
  const auto share = [](int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); };
  const int64_t compute = two.of(UnitId::compute).busy_cycles, dram = two.dram_cycles;
  std::printf(
      "%-22s %9lld cycles, gemm %5.1f%%, compute %8lld, dram %8lld, bound %.3f, balance %.2f, serial %.3f, bytes %.2f "
      "of %lld\n",
      shape.name, static_cast<long long>(two.cycles), 100 * share(two.gemm_cycles, two.cycles),
      static_cast<long long>(compute), static_cast<long long>(dram), share(two.cycles, std::max(compute, dram)),
      share(std::min(compute, dram), std::max(compute, dram)), share(one.cycles, two.cycles),
      share(two.dram_bytes(), least), static_cast<long long>(least));
  return {};
}

Result<void> measure_all(const std::string& path) {
  TENON_TRY(target, load_target(path));
  TENON_TRY(context, pass_context(target));
  for (const Shape& shape : kLayers) TENON_OK(measure(shape, context), shape.name);
  return {};
}

}  // namespace
}  // namespace tenon::vta

int main(int argc, char** argv) {
  const auto done = tenon::vta::measure_all(argc > 1 ? argv[1] : TENON_SOURCE_DIR "/targets/vta-default.yaml");
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done.ok() ? 0 : 1;
}
