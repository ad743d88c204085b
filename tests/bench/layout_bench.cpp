// How layout assignment scales with the graph: 1,000 operators in 100 ms, whatever their connections.
//   problem/...   the solver alone; counters: share of its lower bound, choices that reductions leave
//   graph/...     the pass on operators
#include <benchmark/benchmark.h>

#include <passes/layout_problem_testing.hpp>
#include <tenon/ir/builder.hpp>
#include <tenon/passes/assign_layouts.hpp>

namespace tenon::bench {
namespace {

using testing::RandomProblemOptions;

// Kernels in two layouts, the second of which has padding; reorders cost about what a kernel saves.
class ShapedProblem {
 public:
  explicit ShapedProblem(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 8; ++i) {
      const auto reorder = [&] { return 200 + static_cast<double>(random_() % 800); };
      problem_.costs.push_back({{{}, {}, {i % 2 == 0, 30, true}},
                                {0, reorder(), reorder(), reorder(), 0, reorder(), reorder(), reorder(), 0}});
    }
    problem_.tensors.push_back({"x", 0, size_t{0}});
  }
  size_t count() const { return problem_.nodes.size(); }
  size_t newest() const { return problem_.tensors.size() - 1; }
  size_t node(std::vector<size_t> operands, bool oblivious) {
    LayoutProblem::Node node{"n", std::move(operands), {problem_.tensors.size()}, {}};
    problem_.tensors.push_back({"t", static_cast<size_t>(random_() % problem_.costs.size())});
    for (size_t layout = 0; layout < 3; ++layout) {
      const double cost = oblivious ? 0 : 500 + static_cast<double>(random_() % 1000);
      const LayoutProblem::Implementation::Port port{layout, !oblivious && layout == 2};
      node.implementations.push_back(
          {std::vector(node.operands.size(), port),
           {layout},
           cost,
           oblivious ? random_() % 4 == 0 ? PadEffect::dirty : PadEffect::same : PadEffect::zero});
    }
    problem_.nodes.push_back(std::move(node));
    return newest();
  }
  size_t draw(size_t below) { return static_cast<size_t>(random_() % below); }
  LayoutProblem finish() {
    problem_.nodes.push_back({"output", {newest()}, {}, {{{{0, false}}, {}, 0, PadEffect::zero}}});
    return std::move(problem_);
  }

 private:
  std::mt19937_64 random_;
  LayoutProblem problem_;
};

LayoutProblem chain(size_t nodes) {
  ShapedProblem made(1);
  while (made.count() < nodes) made.node({made.newest()}, made.count() % 2 == 1);
  return made.finish();
}
LayoutProblem resnet(size_t nodes) {
  ShapedProblem made(2);
  while (made.count() < nodes) {
    const size_t x = made.newest();
    const size_t y = made.node({made.node({made.node({x}, false)}, true)}, false);
    made.node({made.node({x, y}, true)}, true);
  }
  return made.finish();
}
LayoutProblem densenet(size_t nodes) {
  ShapedProblem made(3);
  while (made.count() < nodes) {
    const size_t x = made.newest();
    made.node({x, made.node({made.node({made.node({x}, true)}, false)}, false)}, false);
  }
  return made.finish();
}
// Two operands each, from the last 64 tensors.
LayoutProblem random_dag(size_t nodes) {
  ShapedProblem made(4);
  while (made.count() < nodes) {
    const size_t reach = std::min<size_t>(made.newest() + 1, 64);
    const size_t a = made.newest() - made.draw(reach), b = made.newest() - made.draw(reach);
    made.node({a, b}, made.draw(2) == 0);
  }
  return made.finish();
}

void problem(benchmark::State& state, LayoutProblem (*make)(size_t)) {
  const LayoutProblem problem = make(static_cast<size_t>(state.range(0)));
  double over_bound = 0, proven = 0, below_greedy = 0;
  for (auto _ : state) {
    const auto solved = solve_layouts(problem);
    if (!solved.ok()) return state.SkipWithError(solved.error().to_string().c_str());
    over_bound = solved->cost / solved->lower_bound - 1;
    proven = solved->proven;
    below_greedy = 1 - solved->cost / apply_choice(problem, greedy_choice(problem))->cost;
  }
  state.counters["proven"] = proven;
  state.counters["over_bound"] = over_bound;
  state.counters["below_greedy"] = below_greedy;
}

std::unique_ptr<Graph> network(size_t ops) {
  auto graph = std::make_unique<Graph>("network");
  Builder b(graph->body());
  Value* x = graph->body().add_input("x", Type(kF32, Shape(Dims{1, 24, 14, 14})));
  const Tensor weight = *Tensor::zeros(kF32, {24, 24, 3, 3});
  const auto conv = [&](Value* v) {
    return b.op("Conv", {v, b.constant(weight)}, {{"pads", Attribute::Integers{1, 1, 1, 1}}}).value();
  };
  for (size_t made = 0; made < ops; made += 5) {
    Value* y = conv(b.op("Relu", {conv(x)}).value());
    x = b.op("Relu", {b.op("Add", {x, y}).value()}).value();
  }
  graph->body().add_output(x, "y");
  return graph;
}

void graph(benchmark::State& state) {
  AssignLayoutsOptions options;
  options.kernels = [](const Op& op) -> std::vector<LayoutKernel> {
    if (op.name().view() != "Conv") return {};
    return {{{}, {}, 100000, PadEffect::zero, "plain"},
            {{{"NCHW{16c}", "", true}, {"OIHW{16i16o}", "", true}},
             {{"NCHW{16c}", "", false}},
             40000,
             PadEffect::zero,
             "16c"}};
  };
  const auto plain = network(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    const auto copy = plain->clone();
    state.ResumeTiming();
    const auto report = assign_layouts(*copy, options);
    if (!report.ok()) return state.SkipWithError(report.error().to_string().c_str());
    state.counters["reorders"] = static_cast<double>(report->count(LayoutStep::Kind::reorder));
  }
}

void at_each_size(benchmark::internal::Benchmark* it) {
  it->Arg(1000)->Arg(10000)->Arg(100000)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(problem, chain, chain)->Apply(at_each_size);
BENCHMARK_CAPTURE(problem, resnet, resnet)->Apply(at_each_size);
BENCHMARK_CAPTURE(problem, densenet, densenet)->Apply(at_each_size);
BENCHMARK_CAPTURE(problem, random_dag, random_dag)->Apply(at_each_size);
BENCHMARK(graph)->Apply(at_each_size);

}  // namespace
}  // namespace tenon::bench
