// Random layers that the machine supports, each alone in a graph, run through the phases and on the reference.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/passes/pass_manager.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/reference/interpreter.hpp>
#include <tenon/runtime/host_run.hpp>
#include <tenon/target/load.hpp>

#include "nvdla/backend.hpp"
#include "nvdla/hardware.hpp"

namespace tenon::nvdla::testing {

using Integers = Attribute::Integers;

inline int64_t pick(std::mt19937& r, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(r);
}

inline TargetDescription target_of(const std::string& name) {
  auto target = load_target(str(TENON_SOURCE_DIR "/targets/", name, ".yaml"));
  EXPECT_TRUE(target.ok()) << (target.ok() ? "" : target.error().to_string());
  return target.ok() ? *target : TargetDescription{};
}

// nvdla-full or -small with another size of the convolution buffer, for which more layers are split.
inline TargetDescription with_buffer(TargetDescription target, uint64_t banks, uint64_t bank_entries) {
  for (MemorySpace& memory : target.memories)
    if (memory.name == "cbuf") memory.banks = banks, memory.size_bytes = banks * bank_entries * memory.element_bytes;
  return target;
}

// Elements of f16 or i8.
inline Tensor random_tensor(std::mt19937& r, ElementType element, Dims dims, double scale = 1) {
  Tensor made = *Tensor::allocate(element, std::move(dims));
  std::normal_distribution<double> normal(0, scale);
  for (int64_t i = 0; i < made.size(); ++i) {
    if (element.is_float())
      made.set_double(i, normal(r));
    else
      made.set_int(i, pick(r, -128, 127));
  }
  return made;
}

// A graph, its inputs, and a description for messages.
struct Net {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>("net");
  std::vector<Datum> inputs;

  Value* input(Tensor tensor) {
    inputs.emplace_back(tensor);
    return graph->body().add_input(str("x", inputs.size()), Type(tensor.type()));
  }
  Value* constant(Tensor tensor) { return Builder(graph->body()).constant(std::move(tensor)); }
  Value* op(Name name, const std::vector<Value*>& operands, Attributes attributes = {}) {
    auto made = Builder(graph->body()).op(name, operands, std::move(attributes));
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    if (!made.ok()) return nullptr;
    (*made)->producer()->set_label(str("op", ++ops_));
    return *made;
  }
  void output(Value* value) { graph->body().add_output(value, str("y", graph->body().output_count())); }
  std::string what() const {
    std::string text;
    for (const Op& op : graph->body())
      if (op.name().view() != "Constant") text += print(op) + "\n";
    return text;
  }

 private:
  int ops_ = 0;
};

struct Windows {
  int64_t extent[2], kernel[2], stride[2], dilation[2], pads[4];
  static Windows random(std::mt19937& r, int64_t most_extent, int64_t most_kernel, bool dilated) {
    Windows w{};
    for (int axis = 0; axis < 2; ++axis) {
      w.kernel[axis] = pick(r, 1, most_kernel), w.stride[axis] = pick(r, 1, 3);
      w.dilation[axis] = dilated && pick(r, 0, 3) == 0 ? 2 : 1;
      const int64_t covered = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
      w.pads[axis] = pick(r, 0, std::min<int64_t>(covered - 1, 3));
      w.pads[axis + 2] = pick(r, 0, std::min<int64_t>(covered - 1, 3));
      w.extent[axis] = std::max<int64_t>(pick(r, 1, most_extent), covered - w.pads[axis] - w.pads[axis + 2]);
      w.extent[axis] = std::max<int64_t>(w.extent[axis], 1);
    }
    return w;
  }
  Attributes attributes() const {
    return {{"strides", Integers{stride[0], stride[1]}}, {"pads", Integers{pads[0], pads[1], pads[2], pads[3]}}};
  }
  Attributes conv_attributes(int64_t group) const {
    Attributes all = attributes();
    all.set("dilations", Integers{dilation[0], dilation[1]});
    all.set("group", group);
    return all;
  }
  Attributes pool_attributes() const {
    Attributes all = attributes();
    all.set("kernel_shape", Integers{kernel[0], kernel[1]});
    return all;
  }
  int64_t out(int axis) const {
    return (extent[axis] + pads[axis] + pads[axis + 2] - (kernel[axis] - 1) * dilation[axis] - 1) / stride[axis] + 1;
  }
};

inline void add_epilogue(std::mt19937& r, Attributes& attributes, int64_t most_shift) {
  attributes.set("shift", pick(r, 0, most_shift));
  const int64_t low = pick(r, 0, 2) == 0 ? pick(r, -128, 20) : pick(r, 0, 1) == 0 ? 0 : -128;
  attributes.set("clip_min", low);
  attributes.set("clip_max", pick(r, 0, 2) == 0 ? pick(r, low, 127) : 127);
}

// Runs the four phases of the target on the graph.
inline Result<void> run_phases(TargetBackend& backend, Graph& graph) {
  using AddPasses = Result<void> (TargetBackend::*)(PassManager&);
  for (const AddPasses add : {&TargetBackend::add_tensor_sel, &TargetBackend::add_tensor_sched,
                              &TargetBackend::add_mem_alloc, &TargetBackend::add_code_emit}) {
    PassManager passes;
    TENON_OK((backend.*add)(passes));
    TENON_OK(passes.run(graph, {.verify_each = true}));
  }
  return verify(graph);
}

inline Result<std::vector<Datum>> on_reference(const Graph& graph, const std::vector<Datum>& inputs) {
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  return interpreter->run(inputs);
}

inline Result<std::vector<Datum>> run_executable(const Executable& executable, const std::vector<Datum>& inputs,
                                                 std::vector<OpProfile>* profile = nullptr) {
  const auto* host = dynamic_cast<const HostRun*>(&executable);
  if (!host) return error(Code::internal, "no executable of the host");
  std::vector<const Datum*> from;
  for (const Datum& input : inputs) from.push_back(&input);
  std::vector<Datum> outputs(executable.outputs().size());
  std::vector<Datum*> to;
  for (Datum& output : outputs) to.push_back(&output);
  RunOptions options;
  options.profile = profile;
  TENON_OK(host->run(from, to, options));
  return outputs;
}

// Checks that the target accepts every operator.
inline std::optional<Refusal> refused(const TargetBackend& backend, const Graph& graph) {
  for (const Op& op : graph.body())
    if (auto refusal = backend.refuses(op)) return refusal;
  return std::nullopt;
}

}  // namespace tenon::nvdla::testing
