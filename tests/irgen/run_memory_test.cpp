// Heap allocations of a run of a program, and the addresses of its values.
#include <gmock/gmock.h>

#include <array>

#include <tenon/ir/op_def.hpp>
#include <tenon/reference/evaluator.hpp>

#include "irgen/irgen_testing.hpp"
#include "support/count_allocations.hpp"

namespace tenon::irgen {
namespace {

using namespace irgen::testing;

// y = x + 1, as a kernel of a target.
Result<void> add_one(program::CallContext& call) {
  const auto x = call.elements<const float>(0);
  const auto y = call.elements<float>(1);
  for (int64_t i = y.min(0); i <= y.max(0); ++i) y(i) = x(i) + 1;
  return {};
}
class OwnKernels final : public KernelSource {
 public:
  std::string_view name() const override { return "own"; }
  Result<KernelChoice> kernel(const KernelRequest& request) const override {
    if (!request.op.is("Neg")) return error(Code::unsupported, "only Neg");
    return KernelChoice{.kernel = program::make_kernel("add_one", add_one)};
  }
};

std::unique_ptr<Graph> chain(int64_t ops, int64_t extent) {
  auto graph = std::make_unique<Graph>("chain");
  Value* value = graph->body().add_input("x", Type(kF32, Shape(Dims{extent})));
  for (int64_t i = 0; i < ops; ++i)
    value = graph->body().create("Neg", {{value}}, {Type(kF32, Shape(Dims{extent}))}).result();
  graph->body().add_output(value, "y");
  return graph;
}

TEST(RunMemory, ARunOfOwnKernelsTakesNothingButTheOutputs) {
  const auto graph = chain(100, 16);
  const auto program = from_graph(*graph, OwnKernels());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  const auto arguments = arguments_of(*program, {});
  auto bound = program::BoundProgram::bind(program->program, *arguments);
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  std::vector<float> x(16, 1), y(16);
  const std::vector<std::byte*> buffers = {reinterpret_cast<std::byte*>(x.data()),
                                           reinterpret_cast<std::byte*>(y.data())};
  ASSERT_TRUE(bound->run(buffers).ok());
  const int64_t before = test::allocations;
  const auto ran = bound->run(buffers, {.pool = &serial()});
  EXPECT_EQ(test::allocations - before, 0);
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(y[3], 101);
}

// Calls of operator new for an allocated output: its extents, and the owner of its bytes.
constexpr int64_t kTakenForOneOutput = 2;

// A run into the output tensor of the previous run, or without one.
int64_t taken_by_a_run(const Graph& graph, const KernelSource& kernels, float wanted, bool has_place) {
  const auto runner = GraphRunner::prepare(graph, kernels);
  EXPECT_TRUE(runner.ok()) << runner.error().to_string();
  const Datum input(Tensor::of<float>({16}, std::vector<float>(16, 1)));
  Datum output;
  const std::array<const Datum*, 1> inputs{&input};
  const std::array<Datum*, 1> outputs{&output};
  EXPECT_TRUE((*runner)->run_into(inputs, outputs).ok());
  const Datum first = output;
  if (!has_place) output = Datum();
  const int64_t before = test::allocations;
  const auto ran = (*runner)->run_into(inputs, outputs);
  const int64_t taken = test::allocations - before;
  EXPECT_TRUE(ran.ok());
  EXPECT_EQ(output.tensor().as<float>()[3], wanted);
  EXPECT_EQ(output.tensor().data() == first.tensor().data(), has_place);
  return taken;
}

TEST(RunMemory, AnExecutableTakesNothingButItsOutputs) {
  for (const int64_t ops : {1, 100}) {
    const auto graph = chain(ops, 16);
    const auto wanted = static_cast<float>(ops + 1);
    EXPECT_EQ(taken_by_a_run(*graph, OwnKernels(), wanted, true), 0);
    EXPECT_EQ(taken_by_a_run(*graph, OwnKernels(), wanted, false), kTakenForOneOutput);
  }
}

Result<void> add_one_to_each(EvalContext& context) {
  TENON_TRY(y, context.output(0));
  const auto x = context.tensor(0).as<float>();
  for (size_t i = 0; i < x.size(); ++i) y->mutable_as<float>()[i] = x[i] + 1;
  return {};
}

// If the views of an evaluator's call equal those of the previous run, it allocates nothing: true for all of them with
// an output in place, else for all but the last operator, which makes a tensor over the output.
TEST(RunMemory, EvaluatorsTakeNothingBetweenInputsAndOutputs) {
  ASSERT_TRUE(
      register_ops(
          {OpDef("test.AddOne").operand("x", "T").result("y", "T").types("T", kAnyTensor).infer(same_as_operand(0))})
          .ok());
  ASSERT_TRUE(register_evaluator("test.AddOne", add_one_to_each).ok());
  const auto graph = [](int64_t ops) {
    auto made = std::make_unique<Graph>("sums");
    Value* value = made->body().add_input("x", Type(kF32, Shape(Dims{16})));
    for (int64_t i = 0; i < ops; ++i)
      value = made->body().create("test.AddOne", {{value}}, {Type(kF32, Shape(Dims{16}))}).result();
    made->body().add_output(value, "y");
    return made;
  };
  EXPECT_EQ(taken_by_a_run(*graph(100), reference_kernels(), 101, true), 0);
  const int64_t few = taken_by_a_run(*graph(3), reference_kernels(), 4, false);
  EXPECT_LE(few, kTakenForOneOutput + 1);
  EXPECT_EQ(taken_by_a_run(*graph(100), reference_kernels(), 101, false), few);
}

TEST(RunMemory, AChainInPlaceLiesInTheOutput) {
  const auto graph = chain(20, 1024);
  const auto runner = GraphRunner::prepare(*graph, reference_kernels());
  ASSERT_TRUE(runner.ok()) << runner.error().to_string();
  EXPECT_EQ((*runner)->arena_bytes(), 0u);
  RunnerOptions apart;
  apart.lower.in_place = false;
  const auto other = GraphRunner::prepare(*graph, reference_kernels(), apart);
  EXPECT_EQ((*other)->arena_bytes(), 2u * 4096);
  EXPECT_EQ((*other)->arena_lower_bound_bytes(), 2u * 4096);
}

// The peak planned by the compiled form is that of an interpreter that frees as the program states.
TEST(RunMemory, ThePredictedPeakIsTheMeasuredOne) {
  const auto graph = parsed(R"(graph @net(%x: f32[64,64]) -> (%y) {
      %a = MatMul %x, %x : f32[64,64]
      %b = MatMul %a, %x : f32[64,64]
      %c = Add %a, %b : f32[64,64]
      %d = MatMul %c, %b : f32[64,64]
      %y = Softmax %d : f32[64,64]
    })");
  const GraphProgram program = lowered(*graph);
  auto arguments = *arguments_of(program, {});
  std::vector<float> x(64 * 64, 0.5f), y(64 * 64);
  arguments.buffers.at("x").data = reinterpret_cast<std::byte*>(x.data());
  arguments.buffers.at("y").data = reinterpret_cast<std::byte*>(y.data());
  program::RunStatistics statistics;
  ASSERT_TRUE(program::interpret(program.program, arguments, {}, &statistics).ok());
  const auto bound = program::BoundProgram::bind(program.program, arguments);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->arena_bytes().at("host"), statistics.heap_peak);
  EXPECT_EQ(bound->arena_lower_bound_bytes().at("host"), statistics.heap_peak);
}

}  // namespace
}  // namespace tenon::irgen
