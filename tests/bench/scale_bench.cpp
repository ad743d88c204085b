// How parsing, verification, the standard passes and the conversion to a bound program scale with the graph: close to
// linear, 100,000 operators in 2 s.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include <bench/generated_graph.hpp>
#include <tenon/ir/text.hpp>
#include <tenon/ir/verify.hpp>
#include <tenon/irgen/from_graph.hpp>
#include <tenon/irgen/reference_kernels.hpp>
#include <tenon/program/exec/bound_program.hpp>
#include <tenon/passes/standard.hpp>

namespace tenon::bench {
namespace {

// Since the last reset; nothing if the kernel does not report it.
double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    long kilobytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %ld", &kilobytes) == 1) return static_cast<double>(kilobytes) / 1024;
  }
  return 0;
}
// Returns what earlier measurements left in the heap first.
void reset_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

const std::string& text_of(size_t ops) {
  static std::map<size_t, std::string> texts;
  std::string& text = texts[ops];
  if (text.empty()) text = print(*generated_network(ops));
  return text;
}

template <class T>
bool failed(benchmark::State& state, const Result<T>& result) {
  if (!result.ok()) state.SkipWithError(result.error().to_string().c_str());
  return !result.ok();
}

void parse(benchmark::State& state) {
  const std::string& text = text_of(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    auto graph = parse_graph(text);
    if (failed(state, graph)) return;
    benchmark::DoNotOptimize(graph);
  }
}

void verify_all(benchmark::State& state) {
  const auto graph = generated_network(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    if (failed(state, verify(*graph))) return;
  }
}

void all_passes(benchmark::State& state) {
  const auto graph = generated_network(static_cast<size_t>(state.range(0)));
  const auto passes = standard_passes();
  if (failed(state, passes)) return;
  std::string report;
  for (auto _ : state) {
    state.PauseTiming();
    const auto copy = graph->clone();
    state.ResumeTiming();
    const auto done = passes->run(*copy);
    if (failed(state, done)) return;
    report = done->to_string();
    state.counters["ops_after"] = static_cast<double>(copy->total_op_count());
  }
  if (std::getenv("TENON_BENCH_PASSES")) std::fprintf(stderr, "%s", report.c_str());
}

void parse_verify_passes(benchmark::State& state) {
  const std::string& text = text_of(static_cast<size_t>(state.range(0)));
  const auto passes = standard_passes();
  if (failed(state, passes)) return;
  reset_peak();
  const double before = peak_megabytes();
  for (auto _ : state) {
    auto graph = parse_graph(text);
    if (failed(state, graph) || failed(state, verify(**graph)) || failed(state, passes->run(**graph))) return;
  }
  state.counters["text_mb"] = static_cast<double>(text.size()) / 1e6;
  state.counters["peak_mb"] = peak_megabytes() - before;
  state.counters["per_op"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// Chains of two operators, each ending in an output of its own.
void many_outputs(benchmark::State& state) {
  Graph graph("outputs");
  Builder builder(graph.body());
  Value* x = graph.body().add_input("x", Type(kF32, Shape(Dims{2})));
  for (int64_t i = 0; i < state.range(0); ++i) {
    auto y = builder.op("Exp", {x});
    if (y.ok()) y = builder.op("LeakyRelu", {*y}, {{"alpha", static_cast<float>(i)}});
    if (failed(state, y)) return;
    graph.body().add_output(*y, str("y", i));
  }
  const std::string text = print(graph);
  const auto passes = standard_passes();
  for (auto _ : state) {
    auto read = parse_graph(text);
    if (failed(state, read) || failed(state, verify(**read)) || failed(state, passes->run(**read))) return;
    if ((*read)->clone()->body().output_count() != graph.body().output_count()) state.SkipWithError("outputs are lost");
  }
  state.counters["per_output"] = benchmark::Counter(
      static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void lower_and_bind(benchmark::State& state, const Graph& graph) {
  double seconds_to_lower = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const auto lowered = irgen::from_graph(graph, irgen::reference_kernels());
    if (failed(state, lowered)) return;
    seconds_to_lower += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const auto arguments = irgen::arguments_of(*lowered, {});
    if (failed(state, arguments)) return;
    const auto bound = program::BoundProgram::bind(lowered->program, *arguments);
    if (failed(state, bound)) return;
    benchmark::DoNotOptimize(bound);
  }
  state.counters["lower_ms"] = benchmark::Counter(1e3 * seconds_to_lower, benchmark::Counter::kAvgIterations);
}

void graph_to_bound_program(benchmark::State& state) {
  lower_and_bind(state, *generated_network(static_cast<size_t>(state.range(0))));
}

// Halves that are recomputed and joined: repeated Split, two operators and Concat, each of which may share the memory
// of its neighbour.
void slices_and_concats_to_bound_program(benchmark::State& state) {
  Graph graph("halves");
  Builder builder(graph.body());
  Value* x = graph.body().add_input("x", Type(kF32, Shape(Dims{8, 16})));
  for (int64_t i = 0; i < state.range(0) / 4; ++i) {
    auto halves = builder.ops("Split", std::array{x}, 2, {{"num_outputs", int64_t{2}}});
    if (failed(state, halves)) return;
    const auto a = builder.op("Softmax", {(*halves)[0]}), b = builder.op("Softmax", {(*halves)[1]});
    if (failed(state, a) || failed(state, b)) return;
    const auto y = builder.op("Concat", {*a, *b}, {{"axis", int64_t{0}}});
    if (failed(state, y)) return;
    x = *y;
  }
  graph.body().add_output(x, "y");
  lower_and_bind(state, graph);
}

#define TENON_AT_EACH_SIZE(fn) BENCHMARK(fn)->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond)
TENON_AT_EACH_SIZE(parse);
TENON_AT_EACH_SIZE(verify_all);
TENON_AT_EACH_SIZE(all_passes);
TENON_AT_EACH_SIZE(parse_verify_passes);
TENON_AT_EACH_SIZE(many_outputs);
TENON_AT_EACH_SIZE(graph_to_bound_program);
TENON_AT_EACH_SIZE(slices_and_concats_to_bound_program);

}  // namespace
}  // namespace tenon::bench
