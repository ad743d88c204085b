#include <tenon/reference/interpreter.hpp>

#include <cstdlib>
#include <map>
#include <mutex>

#include <tenon/ir/builder.hpp>
#include <tenon/ir/op_def.hpp>
#include <tenon/reference/interpreter_internal.hpp>
#include <tenon/support/caught.hpp>

namespace tenon {

using interpreter::make_plan;
using interpreter::Plan;
using interpreter::Poison;
using interpreter::RegionPlan;
using interpreter::RunContext;
using interpreter::Runner;

namespace {

Result<Poison> poison_of(const InterpreterOptions& options) {
  if (options.poison_padding == PoisonPadding::ones) return Poison::ones;
  if (options.poison_padding == PoisonPadding::nan) return Poison::nan;
  const char* told = std::getenv("TENON_POISON_PADDING");
  const std::string_view wanted = told ? told : "";
  if (wanted.empty()) return Poison::none;
  if (wanted == "ones") return Poison::ones;
  if (wanted == "nan") return Poison::nan;
  return error(Code::invalid_argument, "TENON_POISON_PADDING is ", quote(wanted), ", it may be ones or nan");
}

}  // namespace

Result<void> check_inputs(const Graph& graph, std::span<const Datum> inputs) {
  const Region& body = graph.body();
  if (inputs.size() != body.input_count()) {
    return error(Code::invalid_argument, "graph '", graph.name(), "' has ", body.input_count(), " inputs, ",
                 inputs.size(), " are given");
  }
  std::map<std::string, int64_t> symbols;
  for (size_t i = 0; i < inputs.size(); ++i)
    TENON_OK(check_input(body.input(i)->name(), body.input(i)->type(), inputs[i], symbols));
  return {};
}

Result<std::unique_ptr<Graph>> decomposed(const Graph& graph) {
  constexpr int kMostLevels = 32;  // stops a decomposition that leads back to itself
  std::unique_ptr<Graph> copy;
  for (int level = 0; level < kMostLevels; ++level) {
    const Graph& current = copy ? *copy : graph;
    bool needed = false;
    for_each_op(current.body(), [&](const Op& op) {
      needed = needed || (!find_evaluator(op.name()) && op.def() && op.def()->decompose_fn());
    });
    if (!needed) return copy;
    if (!copy) copy = graph.clone();
    Result<void> status;
    for_each_op(copy->body(), [&](Op& op) {
      if (!status.ok() || find_evaluator(op.name()) || !op.def() || !op.def()->decompose_fn()) return;
      Builder builder(*op.parent(), &op);
      builder.set_name_prefix(op.label());
      auto values = caught([&] { return op.def()->decompose_fn()(builder, op); }, "the rule");
      if (!values.ok()) {
        status = std::move(values).error().with_frame(str("the decomposition of ", op.describe()));
        return;
      }
      for (size_t i = 0; i < op.result_count(); ++i) {
        if (op.result(i)->used()) op.result(i)->replace_all_uses_with((*values)[i]);
      }
      op.erase();
    });
    TENON_OK(std::move(status));
  }
  return error(Code::internal, "decompositions of graph '", graph.name(), "' do not end after ", kMostLevels,
               " levels");
}

struct Interpreter::Impl {
  std::unique_ptr<Graph> own_graph;  // if operators had to be decomposed
  const Graph* graph = nullptr;
  Plan plan;
  std::mutex mutex;
  std::vector<std::unique_ptr<RunContext>> idle;

  Result<std::unique_ptr<RunContext>> acquire() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto taken = std::move(idle.back());
        idle.pop_back();
        return taken;
      }
    }
    return RunContext::make(plan);
  }
  void release(std::unique_ptr<RunContext> context) {
    for (const size_t slot : plan.loose) context->slots[slot] = Datum();
    std::lock_guard lock(mutex);
    idle.push_back(std::move(context));
  }
};

Interpreter::Interpreter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Interpreter::~Interpreter() = default;

Result<std::unique_ptr<Interpreter>> Interpreter::prepare(const Graph& graph, const InterpreterOptions& options) {
  auto impl = std::make_unique<Impl>();
  TENON_TRY(rebuilt, decomposed(graph));
  impl->own_graph = std::move(rebuilt);
  impl->graph = impl->own_graph ? impl->own_graph.get() : &graph;
  TENON_TRY(poison, poison_of(options));
  impl->plan.poison = poison;
  TENON_OK(make_plan(*impl->graph, impl->plan), "preparing graph '", graph.name(), "' for the reference");
  return std::unique_ptr<Interpreter>(new Interpreter(std::move(impl)));
}

Result<std::vector<Datum>> Interpreter::run(std::span<const Datum> inputs, ParallelFor& parallel) const {
  return run(inputs, parallel, nullptr);
}

Result<std::vector<Datum>> Interpreter::run(std::span<const Datum> inputs, ParallelFor& parallel,
                                            Observer* observer) const {
  const Region& body = impl_->graph->body();
  const Plan& plan = impl_->plan;
  TENON_OK(check_inputs(*impl_->graph, inputs));
  TENON_TRY(context, impl_->acquire());
  const RegionPlan& region = plan.regions.at(&body);
  Runner runner(plan, *context, parallel, observer);
  std::vector<Datum> outputs;
  auto done = caught(
      [&]() -> Result<void> {
        for (size_t i = 0; i < inputs.size(); ++i) TENON_OK(runner.store(region.inputs[i], inputs[i]));
        TENON_OK(runner.run(plan.steps));
        TENON_TRY(made, runner.outputs(region));
        outputs = std::move(made);
        return {};
      },
      "an evaluator");
  impl_->release(std::move(context));
  TENON_OK(std::move(done), "graph '", impl_->graph->name(), "' on the reference");
  return outputs;
}

size_t Interpreter::arena_bytes() const { return impl_->plan.arena.bytes; }
size_t Interpreter::arena_lower_bound_bytes() const { return impl_->plan.arena.lower_bound_bytes; }

Result<std::vector<Datum>> evaluate(Name name, std::vector<Datum> operands, const Attributes& attributes,
                                    size_t results, ParallelFor& parallel) {
  Graph graph("evaluate");
  Region& body = graph.body();
  std::vector<Value*> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(operands[i].absent() ? nullptr : body.add_input(str("operand", i), operands[i].type()));
  }
  // Results have no types: the shape rule at run time sees the values of all operands.
  Op& op = body.create(name, inputs, std::vector<Type>(results), attributes);
  for (size_t i = 0; i < results; ++i) body.add_output(op.result(i), str("result", i));
  std::erase_if(operands, [](const Datum& operand) { return operand.absent(); });
  TENON_TRY(interpreter, Interpreter::prepare(graph));
  return interpreter->run(operands, parallel);
}

}  // namespace tenon
