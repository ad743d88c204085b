// What a run costs beside the work itself: an executable of 100 operators that compute nothing, under 20 us.
#include <benchmark/benchmark.h>

#include <tenon/compile/compile.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/plugin/target_registry.hpp>
#include <tenon/reference/interpreter.hpp>

namespace tenon::bench {
namespace {

// Asks for its result, as every kernel does, and leaves it as it is.
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

BENCHMARK(interpreter)->Arg(1)->Arg(100)->Unit(benchmark::kMicrosecond);
BENCHMARK(compiled_model)->Arg(1)->Arg(100)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tenon::bench
