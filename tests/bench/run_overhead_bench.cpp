// The overhead of a run: an executable of 100 operators that compute nothing, under 20 us, and what surrounds it.
#include <benchmark/benchmark.h>

#include <map>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/plugin/target_registry.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::bench {
namespace {

// Requests its result, like every kernel, and leaves it unwritten.
Result<void> compute_nothing(EvalContext& context) {
  TENON_TRY(y, context.output(0));
  benchmark::DoNotOptimize(y);
  return {};
}

std::unique_ptr<Graph> empty_kernels(int64_t ops) {
  if (!find_op("bench.Empty")) {
    const auto defined = register_ops(
        {OpDef("bench.Empty").operand("x", "T").result("y", "T").types("T", kAnyTensor).infer(same_as_operand(0))});
    const auto evaluated = register_evaluator("bench.Empty", compute_nothing);
    TENON_CHECK(defined.ok() && evaluated.ok(), "bench.Empty is there already");
  }
  auto graph = std::make_unique<Graph>("empty");
  Value* value = graph->body().add_input("x", Type(kF32, Shape(Dims{4})));
  Builder builder(graph->body());
  for (int64_t i = 0; i < ops; ++i) value = *builder.op("bench.Empty", {value});
  graph->body().add_output(value, "y");
  return graph;
}

const std::vector<Datum>& inputs() {
  static const std::vector<Datum> values = {Datum(Tensor::of<float>({4}, {1, 2, 3, 4}))};
  return values;
}

void interpreter(benchmark::State& state) {
  const auto graph = empty_kernels(state.range(0));
  const auto prepared = Interpreter::prepare(*graph);
  TENON_CHECK(prepared.ok(), prepared.error().to_string());
  for (auto _ : state) {
    auto outputs = (*prepared)->run(inputs());
    if (!outputs.ok()) return state.SkipWithError(outputs.error().to_string().c_str());
    benchmark::DoNotOptimize(outputs);
  }
}

void compiled_model(benchmark::State& state) {
  TargetRegistry registry;
  const auto model = compile(empty_kernels(state.range(0)), registry, {.targets = {"reference"}});
  TENON_CHECK(model.ok(), model.error().to_string());
  for (auto _ : state) {
    auto outputs = (*model)->run(inputs());
    if (!outputs.ok()) return state.SkipWithError(outputs.error().to_string().c_str());
    benchmark::DoNotOptimize(outputs);
  }
}

// One operator of 4 elements on the best target, with a given output: the rest of the cost of a run.
void least_model(benchmark::State& state, const std::string& type) {
  auto graph = std::make_unique<Graph>("least");
  Builder builder(graph->body());
  graph->body().add_output(*builder.op("Abs", {graph->body().add_input("x", *parse_type(type))}), "y");
  TargetRegistry registry;
  const auto model = compile(std::move(graph), registry, {.targets = {registry.best_target()}});
  TENON_CHECK(model.ok(), model.error().to_string());
  std::vector<Datum> outputs = {Datum(*Tensor::zeros(kF32, {4}))};
  for (auto _ : state) {
    if (const auto ran = (*model)->run_into(inputs(), outputs); !ran.ok())
      return state.SkipWithError(ran.error().to_string().c_str());
  }
}

// Runs bound to their values, with different outputs of 64 floats each: a computed one, additionally a constant or the
// same value again, and a constant only.
void bound_outputs(benchmark::State& state, std::vector<std::string> outputs) {
  auto graph = std::make_unique<Graph>("outputs");
  Builder builder(graph->body());
  const Type type(kF32, Shape(Dims{64}));
  const std::map<std::string, Value*> values = {
      {"made", *builder.op("Abs", {graph->body().add_input("x", type)})},
      {"constant", builder.constant(*Tensor::zeros(kF32, {64}))},
  };
  for (const std::string& output : outputs)
    graph->body().add_output(values.at(output), str(output, graph->body().output_count()));
  TargetRegistry registry;
  const auto model = compile(std::move(graph), registry, {.targets = {registry.best_target()}});
  TENON_CHECK(model.ok(), model.error().to_string());
  const auto bound = (*model)->bind({Datum(*Tensor::zeros(kF32, {64}))});
  TENON_CHECK(bound.ok(), bound.error().to_string());
  for (auto _ : state) {
    if (const auto ran = (*bound)->run(); !ran.ok()) return state.SkipWithError(ran.error().to_string().c_str());
  }
}

BENCHMARK(interpreter)->Arg(1)->Arg(100)->Unit(benchmark::kMicrosecond);
BENCHMARK(compiled_model)->Arg(1)->Arg(100)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(least_model, of_known_extents, "f32[4]");
BENCHMARK_CAPTURE(least_model, of_symbols, "f32[N]");
BENCHMARK_CAPTURE(bound_outputs, made, std::vector<std::string>{"made"});
BENCHMARK_CAPTURE(bound_outputs, made_and_constant, std::vector<std::string>{"made", "constant"});
BENCHMARK_CAPTURE(bound_outputs, made_twice, std::vector<std::string>{"made", "made"});
BENCHMARK_CAPTURE(bound_outputs, constant, std::vector<std::string>{"constant"});

}  // namespace
}  // namespace tenon::bench
