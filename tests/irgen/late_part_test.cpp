// Operators whose kernel depends on a value that is known only at run time.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include <tenon/snippet/canonical/specialise.hpp>

#include "irgen/irgen_testing.hpp"

namespace tenon::irgen {
namespace {

using namespace irgen::testing;
using ::testing::HasSubstr;

// The kernels of the reference, in which reductions wait for their axes.
class LateKernels final : public KernelSource {
 public:
  std::string_view name() const override { return "late"; }
  Result<KernelChoice> kernel(const KernelRequest& request) const override {
    if (request.op.name().view().starts_with("Reduce")) ++reductions;
    return reference_kernels().kernel(request);
  }
  std::optional<size_t> late_operand(const Op& op) const override { return snippet::unknown_operand(op); }

  mutable std::atomic<int> reductions = 0;
};

Datum axes_of(std::vector<int64_t> axes) {
  return Datum(Tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes));
}

// Between two programs; the first operand's extents are symbols.
constexpr std::string_view kText = R"(graph @net(%x: f32[N,3,5], %axes: i64[K]) -> (%y, %d) {
    %a = Abs %x : f32[N,3,5]
    %s = ReduceSum %a, %axes "sum" {keepdims = 1} : f32[P,Q,R]
    %y = Neg %s : f32[P,Q,R]
    %d = ReduceMax %a, %axes "max" {keepdims = 0, noop_with_empty_axes = 1} : f32[*]
  })";

TEST(LatePart, IsAProgramForEachValue) {
  const auto graph = parsed(kText);
  const LateKernels kernels;
  const auto runner = GraphRunner::prepare(*graph, kernels);
  ASSERT_TRUE(runner.ok()) << runner.error().to_string();
  EXPECT_EQ((*runner)->report().late_ops, 2u);
  EXPECT_EQ((*runner)->report().programs, 2u);
  EXPECT_TRUE((*runner)->report().host_ops.empty());
  EXPECT_EQ(kernels.reductions, 0);
  const auto oracle = Interpreter::prepare(*graph);
  std::mt19937 random(11);
  const std::vector<std::vector<int64_t>> values = {{0}, {1, 2}, {-1}, {}, {2, 0, 1}};
  for (int time = 0; time < 2; ++time) {
    for (const auto& value : values) {
      for (const int64_t n : {1, 4, 0}) {
        const std::vector<Datum> inputs{Datum(tenon::testing::random_tensor(random, kF32, {n, 3, 5}, -9, 9)),
                                        axes_of(value)};
        const auto wanted = (*oracle)->run(inputs), got = (*runner)->run(inputs);
        ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
        ASSERT_TRUE(got.ok()) << got.error().to_string();
        expect_identical(*wanted, *got, str("axes ", value, " n ", n));
      }
    }
  }
  EXPECT_EQ(kernels.reductions, 2 * 5);
}

TEST(LatePart, AGraphOfNothingElse) {
  const auto graph = parsed(R"(graph @net(%x: i32[2,3], %axes: i64[1]) -> %y {
      %y = ReduceProd %x, %axes {keepdims = 0} : i32[M]
    })");
  const LateKernels kernels;
  const auto runner = GraphRunner::prepare(*graph, kernels);
  ASSERT_TRUE(runner.ok()) << runner.error().to_string();
  const Datum x(Tensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const auto rows = (*runner)->run(std::vector<Datum>{x, axes_of({1})});
  ASSERT_TRUE(rows.ok()) << rows.error().to_string();
  EXPECT_THAT((*rows)[0].tensor().as<int32_t>(), ::testing::ElementsAre(6, 120));
  const auto wrong = (*runner)->run(std::vector<Datum>{x, axes_of({2})});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().to_string(), HasSubstr("ReduceProd"));
  EXPECT_TRUE((*runner)->run(std::vector<Datum>{x, axes_of({0})}).ok());
}

TEST(LatePart, ReadsOneValueTwice) {
  const auto graph = parsed(R"(graph @net(%x: i64[1]) -> %y {
      %y = ReduceSum %x, %x {keepdims = 0} : i64[]
    })");
  const LateKernels kernels;
  const auto runner = GraphRunner::prepare(*graph, kernels);
  ASSERT_TRUE(runner.ok()) << runner.error().to_string();
  EXPECT_EQ((*runner)->report().late_ops, 1u);
  const auto made = (*runner)->run(std::vector<Datum>{axes_of({-1})});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ((*made)[0].tensor().int_at(0), -1);
}

// Fills its result with the content of its workspace of 256 bytes after writing there.
std::atomic<std::byte*> workspace_seen = nullptr;
Result<void> by_way_of_workspace(program::CallContext& call) {
  const program::BufferView& out = call.operands[call.operands.size() - 2];
  auto* const workspace = reinterpret_cast<float*>(call.operands.back().base);
  workspace_seen = call.operands.back().base;
  *workspace = 3;
  for (int64_t i = 0; i < out.elements(); ++i) reinterpret_cast<float*>(out.base)[i] = *workspace;
  return {};
}
class WorkspaceKernels final : public KernelSource {
 public:
  std::string_view name() const override { return "workspaces"; }
  Result<KernelChoice> kernel(const KernelRequest& request) const override {
    if (!request.op.name().view().starts_with("Reduce")) return reference_kernels().kernel(request);
    program::Kernel kernel = *program::make_kernel("by_way_of_workspace", by_way_of_workspace);
    kernel.workspaces = 1;
    return KernelChoice{.kernel = std::make_shared<const program::Kernel>(std::move(kernel)), .workspace_bytes = 256};
  }
  std::optional<size_t> late_operand(const Op& op) const override { return snippet::unknown_operand(op); }
};

// The memory that a run lends for the programs around a late operator is also used for that operator, if large enough.
TEST(LatePart, LiesInTheArenaOfTheRun) {
  for (const int64_t extent : {200, 2}) {  // %a between two programs' operators: 800 bytes, which is enough; 8
    const auto graph = parsed(str("graph @net(%x: f32[", extent, "], %axes: i64[1]) -> (%s, %y) {\n",
                                  "%s = ReduceSum %x, %axes {keepdims = 1} : f32[1]\n", "%a = Cos %s : f32[1]\n",
                                  "%b = Add %x, %a : f32[", extent, "]\n", "%c = Exp %b : f32[", extent, "]\n",
                                  "%y = MatMul %b, %c : f32[] }"));
    const WorkspaceKernels kernels;
    const auto runner = GraphRunner::prepare(*graph, kernels);
    ASSERT_TRUE(runner.ok()) << runner.error().to_string();
    ASSERT_EQ((*runner)->report().late_ops, 1u);
    const std::vector<float> ones(static_cast<size_t>(extent), 1);
    const std::vector<Datum> inputs{Datum(Tensor::of<float>({extent}, ones)), axes_of({0})};
    ASSERT_TRUE((*runner)->run(inputs).ok());  // extents behind it are those of a run
    const size_t lent = (*runner)->lendable_bytes();
    auto arena = allocate_aligned(lent);
    ASSERT_TRUE(arena.ok());
    const auto made = (*runner)->run(inputs, {.arena = {arena->get(), lent}});
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_EQ((*made)[0].tensor().double_at(0), 3);
    const bool within = workspace_seen >= arena->get() && workspace_seen < arena->get() + lent;
    EXPECT_EQ(within, lent >= 256) << lent << " bytes lent";
    EXPECT_EQ(within, extent == 200);
    EXPECT_EQ((*runner)->arena_bytes(), lent + (within ? 0 : 256));
    // Without an arena it has one of its own.
    ASSERT_TRUE((*runner)->run(inputs).ok());
    EXPECT_FALSE(workspace_seen >= arena->get() && workspace_seen < arena->get() + lent);
    EXPECT_EQ((*runner)->arena_bytes(), lent + 256);
  }
}

// More values than are kept, from several threads.
TEST(LatePart, SeveralThreadsAndManyValues) {
  const auto graph = parsed(R"(graph @net(%x: f32[1,1,1,1,1,6], %axes: i64[K]) -> %y {
      %y = ReduceSum %x, %axes {keepdims = 0} : f32[*]
    })");
  const LateKernels kernels;
  const auto runner = GraphRunner::prepare(*graph, kernels);
  ASSERT_TRUE(runner.ok()) << runner.error().to_string();
  const Datum x(Tensor::of<float>({1, 1, 1, 1, 1, 6}, {1, 2, 3, 4, 5, 6}));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int bits = 1; bits < 64; ++bits) {
        std::vector<int64_t> axes;
        for (int64_t axis = 0; axis < 6; ++axis)
          if ((bits ^ t) >> axis & 1) axes.push_back(axis);
        const auto made = (*runner)->run(std::vector<Datum>{x, axes_of(axes)});
        const bool folds = axes.empty() || axes.back() == 5;
        const auto rank = axes.empty() ? 0 : 6 - static_cast<int64_t>(axes.size());
        wrong +=
            !made.ok() || (*made)[0].tensor().rank() != rank || (*made)[0].tensor().double_at(0) != (folds ? 21 : 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenon::irgen
