// For tests of strips: kernels that evaluate single operators, and programs of graphs whose chains run in strips.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <support_lib/random_tensor.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/irgen/dims.hpp>
#include <tenon/irgen/strips.hpp>
#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/program/exec/races.hpp>
#include <tenon/program/ir/text.hpp>
#include <tenon/program/ir/verify.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::irgen::testing {

// Dense operands only; each call builds the operator again. Operators named in `without` have no kernel for parts.
class PlainKernels final : public KernelSource {
 public:
  explicit PlainKernels(std::string without = "") : without_(std::move(without)) {}
  std::string_view name() const override { return "plain"; }

  Result<KernelChoice> kernel(const KernelRequest& request) const override {
    if (request.part && request.op.is(Name(without_)))
      return error(Code::unsupported, "no kernel for parts of ", without_);
    struct Call {
      Name op;
      Attributes attributes;
      std::vector<Datum> operands;  // constants, and absent ones
      std::vector<bool> is_passed;
      size_t results;
    };
    Call call{request.op.name(), request.attributes(), {}, {}, request.results.size()};
    for (size_t i = 0; i < request.operands.size(); ++i) {
      const bool passed = request.passes(i);
      call.is_passed.push_back(passed);
      Datum fixed;
      if (request.part)
        if (const auto found = request.part->replaced.find(i); found != request.part->replaced.end())
          fixed = Datum(found->second);
      call.operands.push_back(std::move(fixed));
    }
    auto kernel = std::make_shared<program::Kernel>();
    kernel->name = str("plain.", request.op.name());
    kernel->takes_dense_only = true;
    kernel->run = [call](program::CallContext& c) -> Result<void> {
      std::vector<Datum> operands = call.operands;
      size_t next = 0;
      for (size_t i = 0; i < operands.size(); ++i)
        if (call.is_passed[i]) {
          TENON_TRY(tensor, tensor_of(c.operands[next++]));
          operands[i] = Datum(std::move(tensor));
        }
      TENON_TRY(made, evaluate(call.op, operands, call.attributes, call.results));
      for (const Datum& one : made) {
        const program::BufferView& result = c.operands[next++];
        if (one.tensor().dims() != tensor_dims(result))
          return error(Code::internal, call.op, " makes ", one.tensor(), " where ", tensor_dims(result), " is wanted");
        if (one.tensor().bytes() > 0) std::memcpy(result.base, one.tensor().data(), one.tensor().bytes());
      }
      return {};
    };
    return KernelChoice{kernel};
  }

 private:
  static Result<Tensor> tensor_of(const program::BufferView& view) {
    if (!is_dense(view)) return error(Code::internal, "an operand with gaps");
    return Tensor::borrow(view.element, tensor_dims(view), view.base,
                          static_cast<size_t>(view.elements() * view.element_bytes()));
  }
  std::string without_;
};

// The program of a graph's body: chains in strips, every other operator whole, in the graph's order.
class PlainLowering final : public GroupContext {
 public:
  PlainLowering(const Graph& graph, const KernelSource& kernels) : graph_(graph), kernels_(kernels) {}

  Result<program::Program> run(const std::vector<StripChain>& chains) {
    std::map<const Op*, const StripChain*> in_chain;
    for (const StripChain& chain : chains)
      for (const Op* op : chain.ops()) in_chain[op] = &chain;
    for (size_t i = 0; i < graph_.body().input_count(); ++i) declare(*graph_.body().input(i), program::Role::input);
    for (size_t i = 0; i < graph_.body().output_count(); ++i) declare(*graph_.body().output(i), program::Role::output);
    std::vector<program::Statement> statements;
    for (const Op& op : graph_.body()) {
      const auto found = in_chain.find(&op);
      if (constant_of(op.result())) {
        constants_[declare(*op.result(), program::Role::constant)] = *constant_of(op.result());
      } else if (found == in_chain.end()) {
        TENON_TRY(call, whole(op));
        statements.push_back(std::move(call));
      } else if (&found->second->chain().last() == &op) {
        TENON_TRY(strips, found->second->lower(*this));
        statements.push_back(std::move(strips));
      }
    }
    program_.name = "strips";
    program_.body = program::Block{std::move(statements)};
    for (auto it = locals_.rbegin(); it != locals_.rend(); ++it) {
      TENON_TRY(dims, program_dims(it->second->type().shape()));
      program_.body = program::Allocate{{it->first, dims}, program_.body};
    }
    return program_;
  }
  const std::map<program::BufferId, Tensor>& constants() const { return constants_; }

  program::Program& program() override { return program_; }
  program::BufferId buffer_of(const Value& value) override {
    const auto found = buffers_.find(&value);
    if (found != buffers_.end()) return found->second;
    const program::BufferId id = declare(value, program::Role::local);
    locals_.emplace_back(id, &value);
    return id;
  }
  std::string fresh_name(std::string_view wanted) override {
    std::string name(wanted.empty() ? "v" : wanted);
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    for (int i = 2; program_.find_buffer(name) || !program::is_buffer_name(name); ++i)
      name = str(wanted.empty() ? "v" : wanted, "_", i);
    return name;
  }
  const KernelSource& kernels() const override { return kernels_; }

 private:
  program::BufferId declare(const Value& value, program::Role role) {
    const program::BufferId id = program_.add_buffer(
        {fresh_name(value.name()), value.type().element(), static_cast<int>(value.type().shape().rank()), role});
    buffers_[&value] = id;
    return id;
  }
  Result<program::Statement> whole(const Op& op) {
    TENON_TRY(choice, kernels_.kernel(request_for(op)));
    program::Call call{choice.kernel, {}, {}, 1, op.name().str()};
    for (const Value* operand : op.operands())
      if (operand) call.operands.push_back({program::Access::in, {buffer_of(*operand), {}}});
    for (size_t r = 0; r < op.result_count(); ++r)
      call.operands.push_back({program::Access::out, {buffer_of(*op.result(r)), {}}});
    return program::Statement(call);
  }

  const Graph& graph_;
  const KernelSource& kernels_;
  program::Program program_;
  std::map<const Value*, program::BufferId> buffers_;
  std::vector<std::pair<program::BufferId, const Value*>> locals_;
  std::map<program::BufferId, Tensor> constants_;
};

// A graph, its program, and memory for its buffers.
struct StripRun {
  const Graph& graph;
  PlainKernels kernels;
  std::vector<StripChain> chains;
  StripReport report;
  program::Program program;
  std::map<program::BufferId, Tensor> constants;

  static Result<StripRun> make(const Graph& graph, const StripOptions& options, std::string without = "") {
    StripRun run{graph, PlainKernels(std::move(without)), {}, {}, {}, {}};
    run.chains = plan_strips(body_ops(graph), run.kernels, options, &run.report);
    PlainLowering lowering(graph, run.kernels);
    TENON_TRY(program, lowering.run(run.chains));
    run.program = std::move(program);
    run.constants = lowering.constants();
    TENON_OK(program::verify(run.program), program::print(run.program));
    return run;
  }

  struct Memory {
    std::vector<Tensor> outputs;
    program::Arguments arguments;
  };
  Memory memory(const std::vector<Datum>& inputs) {
    Memory m;
    size_t next = 0;
    for (program::BufferId id = 0; id < static_cast<program::BufferId>(program.buffers.size()); ++id) {
      const program::Buffer& buffer = program.buffer(id);
      if (buffer.role == program::Role::local) continue;
      Tensor tensor;
      if (buffer.role == program::Role::input) tensor = inputs[next++].tensor();
      if (buffer.role == program::Role::constant) tensor = constants.at(id);
      if (buffer.role == program::Role::output) {
        const Type& type = graph.body().output(m.outputs.size())->type();
        tensor = *Tensor::zeros(type.element(), *type.shape().static_dims());
        m.outputs.push_back(tensor);
      }
      m.arguments.buffers[buffer.name] = program::BufferArgument::of(tensor, true);
    }
    return m;
  }
};

inline std::unique_ptr<Graph> graph_of(std::string_view text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  for (Op& op : (*graph)->body()) {
    const auto typed = infer_result_types(op);
    EXPECT_TRUE(typed.ok()) << typed.error().to_string();
  }
  return *std::move(graph);
}

inline std::vector<std::string> ops_of(const Chain& chain) {
  std::vector<std::string> names;
  for (const ChainOp& op : chain.ops) names.emplace_back(op.op->name().view());
  return names;
}

// Checks for the bits of the graph interpreter; returns the statistics of the run.
inline program::RunStatistics expect_same_bits(const Graph& graph, StripRun& run, bool contract = true) {
  std::mt19937 random(7);
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.body().input_count(); ++i)
    inputs.emplace_back(
        tenon::testing::random_tensor(random, kF32, *graph.body().input(i)->type().shape().static_dims()));
  const auto expected = (*Interpreter::prepare(graph))->run(inputs);
  EXPECT_TRUE(expected.ok()) << expected.error().to_string();
  auto memory = run.memory(inputs);
  program::RunStatistics statistics;
  const auto done = program::interpret(run.program, memory.arguments, {.contract = contract}, &statistics);
  EXPECT_TRUE(done.ok()) << done.error().to_string() << program::print(run.program);
  for (size_t i = 0; i < memory.outputs.size(); ++i) EXPECT_TRUE((*expected)[i].tensor().identical(memory.outputs[i]));
  return statistics;
}

}  // namespace tenon::irgen::testing
