// A complete plugin: its own operator, a pass that creates it from generic operators, a visitor that translates
// operators into commands of the device, and a device that runs them. Here the device is a loop over host memory; in
// execute(), a plugin for a real one would enqueue commands.
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/ir/visitor.hpp>
#include <tenon/ops/activations.hpp>
#include <tenon/passes/rewrite.hpp>
#include <tenon/plugin/graph_values.hpp>
#include <tenon/plugin/plugin.hpp>
#include <tenon/reference/evaluator.hpp>

#include "acme_ops.hpp"

namespace acme {
namespace {

using tenon::error;
using tenon::Op;
using tenon::Result;
using tenon::Tensor;
using tenon::Value;

// ---- 1. The operator: its definition, and its evaluator ----

Result<void> evaluate_scale_shift(tenon::EvalContext& context) {
  TENON_TRY(y, context.output(0));
  const auto x = context.tensor(0).as<float>();
  const auto out = y->mutable_as<float>();
  const float scale = context.attr<float>("scale", 1), shift = context.attr<float>("shift", 0);
  for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale + shift;
  return {};
}

tenon::OpDef scale_shift() {
  using tenon::Trait;
  return tenon::OpDef(ScaleShift::kName)
      .summary("y = x * scale + shift")
      .operand("x", "f32")
      .result("y", "f32")
      .attribute("scale", 1.0f)
      .attribute("shift", 0.0f)
      .traits(Trait::pure | Trait::elementwise | Trait::layout_oblivious)
      .infer(tenon::same_as_operand(0));
}

// ---- 2. The pass: Mul and Add by constants of one element become one operator ----

bool is_scalar(const Value& value) { return tenon::constant_of(&value)->size() == 1; }

Result<tenon::Change> fuse_scale_shift(tenon::Graph& graph) {
  using namespace tenon::pattern;
  static const std::vector<tenon::Rewrite> kRewrites = {
      tenon::Rewrite("mul-add-scalars")
          .match(
              op("Add", {op("Mul", {any("x"), constant("scale").where(is_scalar)}), constant("shift").where(is_scalar)})
                  .as("y"))
          // A constant of higher rank would broadcast x to a larger shape.
          .when([](const tenon::Match& m) { return m.value("x")->type() == m.value("y")->type(); })
          .into(ScaleShift::kName, {"x"}, [](const tenon::Match& m) -> tenon::Attributes {
            return {{"scale", m.constant("scale").double_at(0)}, {"shift", m.constant("shift").double_at(0)}};
          })};
  return tenon::apply_rewrites(graph, kRewrites);
}

// ---- 3. The commands, and the visitor that emits them ----

struct Command {
  enum Kind { scale_shift, multiply, add, relu } kind;
  size_t out, a, b;  // registers, each a whole tensor
  float scale, shift;
};

struct Program {
  std::vector<Command> commands;
  std::vector<std::pair<size_t, Tensor>> constants;
  std::vector<size_t> outputs;
  size_t registers = 0;
};

Result<Program> emit(tenon::Graph& graph) {
  Program program;
  std::unordered_map<const Value*, size_t> at;
  const auto reg = [&](const Value* value) { return at.emplace(value, at.size()).first->second; };
  tenon::Region& body = graph.body();
  for (size_t i = 0; i < body.input_count(); ++i) reg(body.input(i));

  tenon::OpVisitor<> emitter("acme emitter");
  const auto binary = [&](Command::Kind kind) {
    return [&, kind](Op& op) -> Result<void> {
      program.commands.push_back({kind, reg(op.result()), reg(op.operand(0)), reg(op.operand(1)), 0, 0});
      return {};
    };
  };
  emitter
      .on<ScaleShift>([&](ScaleShift op) -> Result<void> {
        program.commands.push_back({Command::scale_shift, reg(op.result()), reg(op.x()), 0, op.scale(), op.shift()});
        return {};
      })
      .on<tenon::Relu>([&](tenon::Relu op) -> Result<void> {
        program.commands.push_back({Command::relu, reg(op.result()), reg(op.operand(0)), 0, 0, 0});
        return {};
      })
      .on("Mul", binary(Command::multiply))
      .on("Add", binary(Command::add))
      .on("Constant", [&](Op& op) -> Result<void> {
        program.constants.emplace_back(reg(op.result()), *tenon::constant_of(op.result()));
        return {};
      });
  TENON_OK(emitter.visit(graph));
  for (size_t i = 0; i < body.output_count(); ++i) program.outputs.push_back(reg(body.output(i)));
  program.registers = at.size();
  return program;
}

// ---- 4. The device ----

Result<Tensor> execute(const Command& command, const std::vector<Tensor>& registers) {
  const Tensor& a = registers[command.a];
  const bool two = command.kind == Command::multiply || command.kind == Command::add;
  const Tensor& b = two ? registers[command.b] : a;
  TENON_TRY(dims, tenon::broadcast(a.dims(), b.dims()));
  TENON_TRY(out, Tensor::allocate(tenon::kF32, dims));
  if (two && (a.dims() != dims || (b.dims() != dims && b.size() != 1))) {
    return error(tenon::Code::unsupported, "acme multiplies and adds equal shapes, or a number on the right");
  }
  const auto x = a.as<float>(), z = b.as<float>();
  const auto y = out.mutable_as<float>();
  for (size_t i = 0; i < y.size(); ++i) {
    const float right = z[b.size() == 1 ? 0 : i];
    switch (command.kind) {
      case Command::scale_shift: y[i] = x[i] * command.scale + command.shift; break;
      case Command::multiply: y[i] = x[i] * right; break;
      case Command::add: y[i] = x[i] + right; break;
      case Command::relu: y[i] = std::max(x[i], 0.0f); break;
    }
  }
  return out;
}

class AcmeExecutable final : public tenon::Executable {
 public:
  AcmeExecutable(const tenon::Graph& graph, Program program)
      : device_(tenon::host_device()),
        program_(std::move(program)),
        inputs_(tenon::inputs_of(graph.body())),
        outputs_(tenon::outputs_of(graph.body())) {}
  tenon::Device& device() const override { return *device_; }
  const std::vector<tenon::ValueInfo>& inputs() const override { return inputs_; }
  const std::vector<tenon::ValueInfo>& outputs() const override { return outputs_; }

  Result<tenon::EventPtr> enqueue(tenon::Stream& stream, std::span<const tenon::RunValue> inputs,
                                  std::span<tenon::RunValue> outputs, const tenon::RunOptions& options) const override {
    std::vector<Tensor> registers(program_.registers);
    for (size_t i = 0; i < inputs.size(); ++i) registers[i] = inputs[i].host.tensor();
    for (const auto& [at, tensor] : program_.constants) registers[at] = tensor;
    return stream.call([this, registers = std::move(registers), outputs, options]() mutable -> Result<void> {
      for (const Command& command : program_.commands) {
        TENON_TRY(made, execute(command, registers));
        registers[command.out] = std::move(made);
        if (options.profile) options.profile->push_back({std::string(names[command.kind]), "", 0});
      }
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = {registers[program_.outputs[i]], {}};
      return {};
    });
  }

 private:
  static constexpr std::string_view names[] = {ScaleShift::kName, "Mul", "Add", "Relu"};
  std::shared_ptr<tenon::Device> device_;
  Program program_;
  std::vector<tenon::ValueInfo> inputs_, outputs_;
};

class AcmeBackend final : public tenon::TargetBackend {
 public:
  explicit AcmeBackend(tenon::TargetDescription description) : description_(std::move(description)) {}
  const tenon::TargetDescription& description() const override { return description_; }
  std::shared_ptr<tenon::Device> device() const override { return tenon::host_device(); }

  std::optional<tenon::Refusal> refuses(const Op& op) const override {
    const bool known = op.is("Mul") || op.is("Add") || tenon::isa<tenon::Relu>(op) || tenon::isa<ScaleShift>(op);
    if (!known) return tenon::Refusal{tenon::str("acme has no command for ", op.name())};
    if (op.result()->type().element() != tenon::kF32) {
      return tenon::Refusal{tenon::str(name(), " computes in f32 only, not in ", op.result()->type().element())};
    }
    const bool plain = op.operand_count() < 2 || op.operand(1)->type() == op.operand(0)->type() ||
                       (tenon::constant_of(op.operand(1)) && is_scalar(*op.operand(1)));
    if (!plain || op.operand(0)->type() != op.result()->type()) {
      return tenon::Refusal{
          tenon::str(name(), " does not broadcast ", op.operand(1)->type(), " to ", op.result()->type())};
    }
    return std::nullopt;
  }

  Result<void> add_tensor_sel(tenon::PassManager& passes) override { return passes.add("acme-fuse-scale-shift"); }

  Result<std::unique_ptr<tenon::Executable>> build(std::unique_ptr<tenon::Graph> graph) override {
    TENON_TRY(program, emit(*graph));
    return std::unique_ptr<tenon::Executable>(std::make_unique<AcmeExecutable>(*graph, std::move(program)));
  }

 private:
  tenon::TargetDescription description_;
};

class AcmePlugin final : public tenon::Plugin {
 public:
  Result<void> register_extensions() override {
    TENON_OK(tenon::register_op(scale_shift()));
    TENON_OK(tenon::register_evaluator(ScaleShift::kName, evaluate_scale_shift));
    return tenon::register_pass({"acme-fuse-scale-shift",
                                 "Mul and Add by constants of one element -> acme.ScaleShift. Keeps names and types.",
                                 fuse_scale_shift});
  }
  Result<std::unique_ptr<tenon::TargetBackend>> create_backend(const tenon::TargetDescription& description) override {
    return std::unique_ptr<tenon::TargetBackend>(std::make_unique<AcmeBackend>(description));
  }
};

}  // namespace
}  // namespace acme

TENON_PLUGIN(acme::AcmePlugin, "acme", "Acme", "1.0.0", "acme-one")
