// Random parts of networks in strips: the same bits as the graph interpreter, at heights around that of a strip, with
// the interpreter of programs and in compiled form, in contract mode, and with several workers without a race.
#include <gtest/gtest.h>

#include <set>

#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/reference_kernels.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "irgen/irgen_testing.hpp"
#include "irgen/strips_random.hpp"
#include "irgen/strips_support.hpp"

namespace tenon::irgen {
namespace {

using namespace testing;

struct Expected {
  std::vector<Datum> inputs;
  std::vector<Tensor> outputs;
};

// No outputs if the graph itself refuses to run, such as a reflecting Pad of an empty tensor.
Expected expected_of(const Graph& graph, uint32_t seed) {
  Expected e;
  std::mt19937 random(seed);
  for (size_t i = 0; i < graph.body().input_count(); ++i)
    e.inputs.emplace_back(random_tensor(random, kF32, *graph.body().input(i)->type().shape().static_dims()));
  auto interpreter = Interpreter::prepare(graph);
  EXPECT_TRUE(interpreter.ok()) << interpreter.error().to_string();
  auto outputs = (*interpreter)->run(e.inputs);
  if (!outputs.ok()) return e;
  for (const Datum& d : *outputs) e.outputs.push_back(d.tensor());
  return e;
}

void expect_same(const Expected& expected, const std::vector<Tensor>& outputs, const StripRun& run, const char* how) {
  ASSERT_EQ(expected.outputs.size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    ASSERT_TRUE(expected.outputs[i].identical(outputs[i])) << how << ": output " << i << " has other bits\n"
                                                           << program::print(run.program) << run.report.to_string();
}

// The same with the height as a symbol, which is known only at run time.
void expect_same_when_open(std::unique_ptr<Graph> graph, const Expected& expected, const StripOptions& options) {
  Value& x = *graph->body().input(0);
  std::vector<Dim> dims = x.type().shape().dims();
  dims[2] = Expr::symbol("height");
  x.set_type(Type(kF32, Shape(std::move(dims))));
  for (Op& op : graph->body())
    for (size_t r = 0; r < op.result_count() && !constant_of(op.result()); ++r) op.result(r)->set_type(Type());
  RunnerOptions with;
  with.lower.grouping = strip_grouping(options);
  const auto runner = GraphRunner::prepare(*graph, reference_kernels(), with);
  ASSERT_TRUE(runner.ok()) << runner.error().to_string();
  const auto outputs = (*runner)->run(expected.inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  for (size_t i = 0; i < outputs->size(); ++i)
    ASSERT_TRUE(expected.outputs[i].identical((*outputs)[i].tensor())) << "output " << i << " of an open height";
}

// The number of operators that ran in strips.
size_t check(const Graph& graph, const StripOptions& options, bool contract, uint32_t seed) {
  const Expected expected = expected_of(graph, seed);
  if (expected.outputs.empty()) return 0;
  auto made = StripRun::make(graph, options);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  if (!made.ok()) return 0;
  StripRun& run = *made;
  {
    auto memory = run.memory(expected.inputs);
    const auto done =
        program::interpret(run.program, memory.arguments, {.threads = options.workers, .contract = contract});
    EXPECT_TRUE(done.ok()) << done.error().to_string() << "\n" << program::print(run.program);
    expect_same(expected, memory.outputs, run, "interpreted");
  }
  {
    auto memory = run.memory(expected.inputs);
    auto bound = program::BoundProgram::bind(
        run.program, memory.arguments,
        {.pool = options.workers > 1 ? &default_pool() : nullptr, .threads = options.workers});
    EXPECT_TRUE(bound.ok()) << bound.error().to_string() << "\n" << program::print(run.program);
    if (!bound.ok()) return 0;
    const auto done = bound->run(memory.arguments);
    EXPECT_TRUE(done.ok()) << done.error().to_string();
    expect_same(expected, memory.outputs, run, "compiled");
  }
  if (options.workers > 1) {
    auto memory = run.memory(expected.inputs);
    const auto races = program::check_races(run.program, memory.arguments, {.threads = options.workers});
    EXPECT_TRUE(races.ok()) << races.error().to_string() << "\n" << program::print(run.program);
  }
  // The same with the kernels of the reference, which pack by themselves, through from_graph.
  const GraphProgram program = lowered(graph, {.grouping = strip_grouping(options)});
  const auto outputs = interpreted(program, expected.inputs, contract);
  EXPECT_TRUE(outputs.ok()) << outputs.error().to_string() << "\n" << program::print(program.program);
  for (size_t i = 0; outputs.ok() && i < outputs->size(); ++i)
    EXPECT_TRUE(expected.outputs[i].identical((*outputs)[i].tensor())) << program::print(program.program);
  size_t in_strips = 0;
  for (const StripChain& chain : run.chains) in_strips += chain.chain().ops.size();
  return in_strips;
}

TEST(StripsFuzz, HaveTheBitsOfWholeOperators) {
  size_t in_strips = 0, of = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const int64_t step = 1 + seed % 4;
    for (const int64_t height : std::set<int64_t>{0, 1, step - 1, step, step + 1, 4 * step + 3}) {
      auto graph = RandomPiece(seed, height).build();
      if (!graph) continue;
      SCOPED_TRACE(str("seed ", seed, ", height ", height, ", step ", step));
      in_strips += check(*graph, {.mode = StripMode::always, .step = step, .workers = seed % 3 == 0 ? 3 : 1},
                         seed % 5 == 0 && height < 6, seed);
      of += graph->body().op_count();
      const StripOptions options{.mode = StripMode::always, .step = step};
      const Expected expected = expected_of(*graph, seed);
      if (seed % 2 == 0 && !expected.outputs.empty()) expect_same_when_open(std::move(graph), expected, options);
      if (::testing::Test::HasFailure()) return;
    }
  }
  // With constants and chains of one operator counted among all.
  EXPECT_GT(in_strips, of / 4) << of;
}

}  // namespace
}  // namespace tenon::irgen
