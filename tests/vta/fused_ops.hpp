// Random fused operators, each alone in a graph, run on a machine and on the reference.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/plugin/backend.hpp>
#include <tenon/reference/interpreter.hpp>

#include "streams.hpp"
#include "vta/backend.hpp"
#include "vta/kernel_tiling.hpp"
#include "vta/loaded_program.hpp"
#include "vta/operators.hpp"

namespace tenon::vta::testing {

inline int64_t pick(std::mt19937& r, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(r);
}

template <class T>
Tensor random_of(std::mt19937& r, Dims dims, int64_t least, int64_t most) {
  Tensor made = *Tensor::allocate(element_type_of<T>(), std::move(dims));
  for (T& value : made.mutable_as<T>()) value = static_cast<T>(pick(r, least, most));
  return made;
}

// One operator with the inputs of its graph; constants are in the graph.
struct OneOp {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>("one");
  std::vector<Datum> inputs;
  std::string what;

  Value* input(std::mt19937& r, Dims dims) {
    inputs.emplace_back(random_of<int8_t>(r, dims, -128, 127));
    return graph->body().add_input(str("x", inputs.size()), Type(kI8, Shape(dims)));
  }
  Value* constant(Tensor tensor) { return Builder(graph->body()).constant(std::move(tensor)); }
  void finish(Name op, std::vector<Value*> operands, Attributes attributes) {
    Builder builder(graph->body());
    auto y = builder.op(op, operands, std::move(attributes));
    ASSERT_TRUE(y.ok()) << y.error().to_string();
    (*y)->producer()->set_label("it");
    graph->body().add_output(*y, "y");
    what = (*y)->producer()->describe();
    for (Value* operand : operands) what += str(" ", operand ? operand->type().to_string() : "-");
    what += str(" ", print(*(*y)->producer()));
  }
  const Op& op() const { return *graph->body().output(0)->producer(); }
};

inline void add_epilogue(std::mt19937& r, Attributes& attributes, int64_t most_shift) {
  attributes.set("shift", pick(r, 0, most_shift));
  const int64_t low = pick(r, 0, 2) == 0 ? pick(r, -128, 20) : pick(r, 0, 1) == 0 ? 0 : -128;
  attributes.set("clip_min", low);
  attributes.set("clip_max", pick(r, 0, 2) == 0 ? pick(r, low, 127) : 127);
}

struct Windows {
  int64_t extent[2], kernel[2], stride[2], dilation[2], pads[4];
  static Windows random(std::mt19937& r, int64_t most_extent, int64_t most_kernel) {
    Windows w{};
    for (int axis = 0; axis < 2; ++axis) {
      w.kernel[axis] = pick(r, 1, most_kernel), w.stride[axis] = pick(r, 1, 3);
      w.dilation[axis] = pick(r, 0, 3) == 0 ? 2 : 1;
      const int64_t covered = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
      w.pads[axis] = pick(r, 0, std::min<int64_t>(covered - 1, 3));
      w.pads[axis + 2] = pick(r, 0, std::min<int64_t>(covered - 1, 3));
      w.extent[axis] = std::max<int64_t>(pick(r, 1, most_extent), covered - w.pads[axis] - w.pads[axis + 2]);
      w.extent[axis] = std::max<int64_t>(w.extent[axis], 1);
    }
    return w;
  }
  Attributes attributes() const {
    return {{"strides", Attribute::Integers{stride[0], stride[1]}},
            {"dilations", Attribute::Integers{dilation[0], dilation[1]}},
            {"pads", Attribute::Integers{pads[0], pads[1], pads[2], pads[3]}}};
  }
  Attributes pool_attributes() const {
    Attributes all = attributes();
    all.set("kernel_shape", Attribute::Integers{kernel[0], kernel[1]});
    return all;
  }
  int64_t out(int axis) const {
    return (extent[axis] + pads[axis] + pads[axis + 2] - (kernel[axis] - 1) * dilation[axis] - 1) / stride[axis] + 1;
  }
};

inline OneOp random_convolution(std::mt19937& r) {
  OneOp made;
  const Windows w = Windows::random(r, pick(r, 0, 3) == 0 ? 40 : 12, pick(r, 0, 3) == 0 ? 5 : 3);
  const int64_t kind = pick(r, 0, 5);
  const int64_t group = kind == 0 ? pick(r, 2, 40) : kind == 1 ? pick(r, 2, 6) : 1;
  const int64_t in = kind == 0 ? 1 : pick(r, 1, group > 1 ? 20 : 70),
                out = kind == 0 ? pick(r, 0, 3) == 0 ? 2 : 1 : pick(r, 1, group > 1 ? 20 : 70);
  const int64_t batch = pick(r, 1, 3);
  std::vector<Value*> operands{made.input(r, {batch, in * group, w.extent[0], w.extent[1]})};
  operands.push_back(made.constant(random_of<int8_t>(r, {out * group, in, w.kernel[0], w.kernel[1]}, -128, 127)));
  Attributes attributes = w.attributes();
  attributes.set("group", group);
  add_epilogue(r, attributes, 16);
  const bool residual = pick(r, 0, 2) == 0;
  operands.push_back(pick(r, 0, 1) == 0 ? nullptr
                                        : made.constant(random_of<int32_t>(r, {out * group}, -100000, 100000)));
  operands.push_back(residual ? made.input(r, {batch, out * group, w.out(0), w.out(1)}) : nullptr);
  if (residual) attributes.set("residual_shift", pick(r, 0, 14));
  made.finish("fused.QConv", operands, attributes);
  return made;
}

inline OneOp random_dense(std::mt19937& r) {
  OneOp made;
  const int64_t n = pick(r, 1, 5), k = pick(r, 1, 200), m = pick(r, 1, 200);
  std::vector<Value*> operands{made.input(r, {n, k})};
  operands.push_back(made.constant(random_of<int8_t>(r, {m, k}, -128, 127)));
  Attributes attributes;
  add_epilogue(r, attributes, 18);
  const bool residual = pick(r, 0, 2) == 0;
  operands.push_back(pick(r, 0, 1) == 0 ? nullptr : made.constant(random_of<int32_t>(r, {m}, -100000, 100000)));
  operands.push_back(residual ? made.input(r, {n, m}) : nullptr);
  if (residual) attributes.set("residual_shift", pick(r, 0, 14));
  made.finish("fused.QDense", operands, attributes);
  return made;
}

inline OneOp random_addition(std::mt19937& r) {
  OneOp made;
  const Dims dims = pick(r, 0, 3) == 0 ? Dims{pick(r, 1, 4), pick(r, 1, 90)}
                                       : Dims{pick(r, 1, 3), pick(r, 1, 60), pick(r, 1, 20), pick(r, 1, 20)};
  std::vector<Value*> operands{made.input(r, dims), made.input(r, dims)};
  Attributes attributes;
  add_epilogue(r, attributes, 18);
  attributes.set("a_shift", pick(r, 0, 12));
  attributes.set("b_shift", pick(r, 0, 12));
  made.finish("fused.QAdd", operands, attributes);
  return made;
}

inline OneOp random_average(std::mt19937& r) {
  OneOp made;
  const bool whole = pick(r, 0, 2) == 0;
  Windows w = Windows::random(r, 14, 3);
  if (whole) {
    w = {{pick(r, 1, 12), pick(r, 1, 12)}, {}, {1, 1}, {1, 1}, {}};
    w.kernel[0] = w.extent[0], w.kernel[1] = w.extent[1];
  }
  std::vector<Value*> operands{made.input(r, {pick(r, 1, 3), pick(r, 1, 60), w.extent[0], w.extent[1]})};
  Attributes attributes = w.pool_attributes();
  add_epilogue(r, attributes, 20);
  attributes.set("multiplier", pick(r, 1, 2000));
  made.finish("fused.QAvgPool", operands, attributes);
  return made;
}

inline OneOp random_max(std::mt19937& r) {
  OneOp made;
  const Windows w = Windows::random(r, pick(r, 0, 2) == 0 ? 40 : 12, 3);
  made.finish("fused.QMaxPool", {made.input(r, {pick(r, 1, 3), pick(r, 1, 60), w.extent[0], w.extent[1]})},
              w.pool_attributes());
  return made;
}

// ---- Machines ----

// The files of targets/, and smaller machines, on which more layers need several tiles.
inline std::vector<TargetDescription> machines() {
  std::vector<TargetDescription> all;
  for (const char* name : {"vta-default", "vta-half", "vta-1x32x32", "vta-2x16x16", "vta-4x8x8"}) {
    auto target = load_target(str(TENON_SOURCE_DIR "/targets/", name, ".yaml"));
    EXPECT_TRUE(target.ok()) << (target.ok() ? "" : target.error().to_string());
    if (target.ok()) all.push_back(*target);
  }
  all.push_back(sized(1, 16, 4 << 10, 32 << 10, 16 << 10, 2 << 10));
  all.push_back(sized(2, 4, 2 << 10, 4 << 10, 16 << 10, 1 << 10));
  all.push_back(sized(1, 8, 1 << 10, 8 << 10, 8 << 10, 4 << 10));
  return all;
}

// ---- Running ----

inline Result<Tensor> on_reference(const OneOp& one) {
  TENON_TRY(interpreter, Interpreter::prepare(*one.graph));
  TENON_TRY(outputs, interpreter->run(one.inputs));
  return outputs[0].tensor();
}

// Runs a graph through all phases; the graph itself is unchanged.
inline Result<std::shared_ptr<const DeviceProgram>> compile_program(const Graph& graph,
                                                                    const TargetDescription& target) {
  TENON_TRY(context, pass_context(target));
  const auto copy = graph.clone();
  TENON_OK(run_phases(*copy, context));
  TENON_OK(verify(*copy));
  return DeviceProgram::of(*copy, context.hardware);
}

// The stream that the phases make of the graph's only operator, for a machine of these sizes.
inline Result<Stream> encoded_stream(const OneOp& one, const Hardware& hardware, bool double_buffer) {
  TENON_OK(register_operators());
  const PassContext context{default_target(), hardware, double_buffer, false};
  const auto copy = one.graph->clone();
  TENON_OK(run_phases(*copy, context));
  for (Op& op : copy->body()) {
    const auto made = dyn_cast<StreamOp>(op);
    if (!made) continue;
    Stream stream;
    const auto words = constant_of(made.instructions())->as<uint64_t>();
    const auto segments = constant_of(made.segments())->as<uint8_t>();
    for (size_t i = 0; i < segments.size(); ++i) {
      TENON_TRY(instruction, decode({words[2 * i], words[2 * i + 1]}, hardware));
      stream.entries.push_back({instruction, segments[i]});
    }
    const auto micro_ops = constant_of(made.micro_ops())->as<uint32_t>();
    stream.micro_ops.assign(micro_ops.begin(), micro_ops.end());
    stream.micro_op_segment = static_cast<Segment>(op.operand_count() - 3);
    return stream;
  }
  return error(Code::unsupported, "no stream was made of ", one.what);
}

// Why a target refuses the operator; "": it does not.
inline std::string refusal(const TargetDescription& target, const OneOp& one) {
  const auto backend = create_backend(target);
  EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().to_string());
  const auto refused = (*backend)->refuses(one.op());
  return refused ? refused->reason : "";
}

// The program of one operator; Code::unsupported if the target refuses it.
inline Result<std::shared_ptr<const DeviceProgram>> compile_one(const OneOp& one, const TargetDescription& target) {
  if (const std::string reason = refusal(target, one); !reason.empty()) return error(Code::unsupported, reason);
  return compile_program(*one.graph, target);
}

// Runs a compiled program on a driver; returns its output.
inline Result<Tensor> run_program(const std::shared_ptr<const DeviceProgram>& program, const OneOp& one,
                                  std::shared_ptr<Driver> driver, std::vector<StepReport>* report = nullptr) {
  TENON_TRY(loaded, LoadedProgram::load(program, std::move(driver)));
  std::vector<const Tensor*> inputs;
  for (const Datum& input : one.inputs) inputs.push_back(&input.tensor());
  TENON_TRY(y, Tensor::allocate(kI8, program->outputs()[0].dims));
  Tensor* place = &y;
  TENON_OK(loaded->run(inputs, std::span(&place, 1), report));
  return y;
}
// The same on a new simulator.
inline Result<Tensor> run_program(const std::shared_ptr<const DeviceProgram>& program, const OneOp& one,
                                  std::vector<StepReport>* report = nullptr) {
  return run_program(program, one, make_embedded_driver(program->hardware()), report);
}

}  // namespace tenon::vta::testing
