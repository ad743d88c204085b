#include <tenon/irgen/reference_kernels.hpp>

#include <gmock/gmock.h>

#include <support_lib/random_ops.hpp>

#include "irgen/irgen_testing.hpp"

namespace tenon::irgen {
namespace {

using namespace irgen::testing;
using ::testing::HasSubstr;

// Contract mode: no kernel reads or writes outside its operands, or leaves an element of a result unwritten.
TEST(ReferenceKernels, KeepToTheirBoxes) {
  int ran = 0;
  for (uint64_t seed = 300; seed < 340; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const auto graph =
        tenon::testing::random_graph({.seed = seed, .ops = 25, .use = tenon::testing::usual_operators()});
    const auto program = from_graph(*graph, reference_kernels());
    if (!program.ok()) continue;  // shapes that only a run shows
    const auto inputs = tenon::testing::random_inputs(*graph, seed);
    const auto oracle = Interpreter::prepare(*graph);
    const auto wanted = (*oracle)->run(inputs);
    if (!wanted.ok()) continue;
    const auto checked = program::verify(program->program);
    ASSERT_TRUE(checked.ok()) << checked.error().to_string() << program::print(program->program);
    const auto got = interpreted(*program, inputs, /*contract=*/true);
    ASSERT_TRUE(got.ok()) << got.error().to_string() << program::print(program->program);
    expect_identical(*wanted, *got, program::print(program->program));
    ++ran;
  }
  EXPECT_GT(ran, 20);
}

TEST(ReferenceKernels, APartIsPackedWhereItHasGaps) {
  const auto graph = parsed(R"(graph @net(%x: f32[4,6]) -> (%y) {
      %y = Neg %x : f32[4,6]
    })");
  const Op& op = *graph->body().first();
  SubBoxOp part;
  const StaticBox box = {{1, 2}, {2, 4}};
  part.operands = {box};
  const auto request = request_for_part(op, part, box);
  ASSERT_TRUE(request.ok()) << request.error().to_string();
  const auto choice = reference_kernels().kernel(*request);
  ASSERT_TRUE(choice.ok()) << choice.error().to_string();
  EXPECT_TRUE(choice->takes_strided);
  EXPECT_EQ(choice->kernel->workspaces, 1);
  EXPECT_EQ(choice->workspace_bytes, Expr(128));

  std::vector<float> x(24), y(24, -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  std::vector<std::byte> workspace(128 + 64);
  void* aligned = workspace.data();
  size_t space = workspace.size();
  std::align(64, 128, aligned, space);
  const std::vector<program::DimView> dims = {{2, 3, 4, 0}, {1, 2, 24, 0}}, flat = {{0, 128, 1, 0}};
  const std::vector<program::BufferView> views = {{reinterpret_cast<std::byte*>(&x[8]), dims, kF32},
                                                  {reinterpret_cast<std::byte*>(&y[8]), dims, kF32},
                                                  {static_cast<std::byte*>(aligned), flat, kU8}};
  program::CallContext call{.operands = views, .scalars = {}, .stage = "part"};
  const auto ran = choice->kernel->run(call);
  ASSERT_TRUE(ran.ok()) << ran.error().to_string();
  for (size_t i = 0; i < y.size(); ++i) {
    const bool inside = i / 6 >= 1 && i / 6 <= 2 && i % 6 >= 2 && i % 6 <= 4;
    EXPECT_EQ(y[i], inside ? -x[i] : -1) << i;
  }
}

TEST(ReferenceKernels, RefuseWhatTheyDoNotHave) {
  Graph graph("g");
  Op& op = graph.body().create("nobody.Knows", {}, {Type(kF32, Shape(Dims{1}))});
  const auto choice = reference_kernels().kernel(request_for(op));
  ASSERT_FALSE(choice.ok());
  EXPECT_THAT(choice.error().to_string(), HasSubstr("no evaluator for nobody.Knows"));
}

}  // namespace
}  // namespace tenon::irgen
