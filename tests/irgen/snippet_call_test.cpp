// Calls of snippets: what is planned once, and what changes between calls. The code is the linear kernel on emulated
// lanes.
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>
#include <support_lib/shredding_parallel.hpp>

#include <mutex>
#include <numeric>

#include <tenon/irgen/snippet_kernels.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "support/count_allocations.hpp"

namespace tenon::irgen {
namespace {

using program::BufferView;
using program::CallContext;
using program::DimView;
using snippet::test::BodyBuilder;

// The state of the functions below, which stand in for a kernel and get only params.
struct Running {
  const SnippetCode* code = nullptr;
  std::vector<snippet::LinearBuffer> buffers;
  std::mutex mutex;
  int calls = 0;
  std::string error;
};
Running running;

void run_on_emulated_lanes(const int64_t* params) {
  const snippet::LinearKernel& kernel = running.code->form.kernel;
  const auto ran = snippet::run_linear(kernel, {params, kernel.params.size()}, running.buffers);
  const std::lock_guard lock(running.mutex);
  ++running.calls;
  if (!ran.ok()) running.error = ran.error().to_string();
}
void count_calls(const int64_t*) { ++running.calls; }

std::shared_ptr<SnippetCode> compiled(const snippet::Body& body, void (*run)(const int64_t*)) {
  auto code = std::make_shared<SnippetCode>();
  code->body = body;
  auto kernel = snippet::lower(body, {.lanes = 4, .unroll = 1});
  EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
  snippet::insert_shifts(*kernel);
  code->form = {.kernel = *std::move(kernel), .run = run};
  running.code = code.get();
  running.calls = 0;
  running.error.clear();
  return code;
}

// y[rows, n] = x[rows, n] + c[n]
snippet::Body sum_of_rows_and_row() {
  BodyBuilder build("rows", "kk");
  const auto x = build.input(3), c = build.input(2);
  build.output(build.op("Add", {x, c}));
  snippet::Body body = build.take();
  body.dims[0].sources = {{0, 0}};
  body.dims[1].sources = {{0, 1}};
  return body;
}

// The operands of one call, with dims reversed as in programs.
struct Call {
  Call(int64_t rows, int64_t n, float first)
      : x(static_cast<size_t>(rows * n)), c(static_cast<size_t>(n)), y(x.size()) {
    std::iota(x.begin(), x.end(), first);
    std::iota(c.begin(), c.end(), 1000 * first);
    const int64_t row = 4 * n;
    matrix = {{0, n, 4, 0}, {0, rows, row, 0}};
    vector = {{0, n, 4, 0}};
    operands = {{data(x), matrix, kF32}, {data(c), vector, kF32}, {data(y), matrix, kF32}};
  }
  static std::byte* data(std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); }

  void run(const program::Kernel& kernel, program::KernelState* state, ParallelFor& pool) {
    CallContext context{operands, {}, "snippet", 0, state, &pool};
    const auto ran = state ? kernel.run_in_state(context) : kernel.run(context);
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
  }
  void check() const {
    ASSERT_EQ(running.error, "");
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[i] + c[i % c.size()]) << i;
  }
  // Scratch memory of calls may be anywhere, so every address is allowed.
  void allow() const { running.buffers = {{nullptr, SIZE_MAX, true}}; }

  std::vector<float> x, c, y;
  std::vector<DimView> matrix, vector;
  std::vector<BufferView> operands;
};

void run_and_check(const program::Kernel& kernel, program::KernelState* state, int64_t rows, int64_t n, float first,
                   ParallelFor& pool) {
  SCOPED_TRACE(str(rows, " x ", n));
  Call call(rows, n, first);
  call.allow();
  call.run(kernel, state, pool);
  call.check();
}

TEST(SnippetCall, OtherMemoryAndOtherExtentsGiveOtherResults) {
  const auto code = compiled(sum_of_rows_and_row(), run_on_emulated_lanes);
  const auto kernel = snippet_kernel(code, {0, 1}, 2);
  const auto state = kernel->make_state();
  ThreadPool pool(2);
  float first = 1;
  for (const int64_t n : {3, 33, 1})  // rows of 3 and 1 are joined, with some left over
    for (const int64_t rows : {1, 57, 57, 90})
      for (ParallelFor* threads : {&serial(), static_cast<ParallelFor*>(&pool)})
        run_and_check(*kernel, state.get(), rows, n, first++, *threads);
}

TEST(SnippetCall, WorkIsCutForThreadsWhereThereIsEnough) {
  const auto code = compiled(sum_of_rows_and_row(), run_on_emulated_lanes);
  code->cycles_per_element = 1000;
  const auto kernel = snippet_kernel(code, {0, 1}, 2);
  const auto state = kernel->make_state();
  ThreadPool pool(2);
  run_and_check(*kernel, state.get(), 64, 33, 1, pool);
  EXPECT_GT(running.calls, 1);
  running.calls = 0;
  run_and_check(*kernel, state.get(), 64, 33, 2, serial());
  EXPECT_EQ(running.calls, 1);
}

// As interpreters of programs call it.
TEST(SnippetCall, NeedsNoState) {
  const auto code = compiled(sum_of_rows_and_row(), run_on_emulated_lanes);
  run_and_check(*snippet_kernel(code, {0, 1}, 2), nullptr, 20, 5, 3, serial());
}

TEST(SnippetCall, TakesNothingFromTheHeapForExtentsAsBefore) {
  const auto code = compiled(sum_of_rows_and_row(), count_calls);
  code->cycles_per_element = 1000;
  const auto kernel = snippet_kernel(code, {0, 1}, 2);
  const auto state = kernel->make_state();
  Call first(200, 33, 1), second(200, 33, 2);
  first.run(*kernel, state.get(), serial());
  const int64_t before = test::allocations;
  second.run(*kernel, state.get(), serial());
  EXPECT_EQ(test::allocations - before, 0);
  EXPECT_EQ(running.calls, 2);
}

// Counts what calls compile when they divide reductions; can be told to compile nothing.
class CountingCompiler final : public SnippetCompiler {
 public:
  Result<std::shared_ptr<const SnippetCode>> compile(const snippet::Body& body) override {
    names.push_back(body.name);
    if (refusal) return error(*refusal, "no code for '", body.name, "'");
    auto code = compiled(body, count_calls);
    code->cycles_per_element = 1;
    return std::shared_ptr<const SnippetCode>(std::move(code));
  }
  std::vector<std::string> names;
  std::optional<Code> refusal;
};

// y[columns] = sum of x[rows, columns] over rows, with `n` columns.
struct ColumnSums {
  ColumnSums() {
    BodyBuilder build("sums", "rk");
    build.output(build.reduce("ReduceSum", build.input(3)));
    snippet::Body body = build.take();
    body.dims[0].sources = {{0, 0}};
    body.dims[1].sources = {{0, 1}};
    code = compiled(body, count_calls);
    code->cycles_per_element = 1;
    x_dims = {{0, kColumns, 4, 0}, {0, kRows, 4 * kColumns, 0}}, y_dims = {{0, kColumns, 4, 0}};
    operands = {{Call::data(x), x_dims, kF32}, {Call::data(y), y_dims, kF32}};
  }
  int calls(const program::Kernel& kernel, program::KernelState& state, ParallelFor& pool) const {
    running.calls = 0;
    CallContext context{operands, {}, "snippet", 0, &state, &pool};
    const auto ran = kernel.run_in_state(context);
    EXPECT_TRUE(ran.ok()) << ran.error().to_string();
    return running.calls;
  }

  static constexpr int64_t kRows = 20000, kColumns = 5;
  std::vector<float> x = std::vector<float>(kRows * kColumns), y = std::vector<float>(kColumns);
  std::vector<DimView> x_dims, y_dims;
  std::vector<BufferView> operands;
  std::shared_ptr<SnippetCode> code;
};

// 100,000 elements at one cycle each: 50,000 cycles, in parts of 5,000.
TEST(SnippetCall, ThreadsShareFoldsOfFewResults) {
  const ColumnSums sums;
  const auto compiler = std::make_shared<CountingCompiler>();
  const auto kernel = snippet_kernel(sums.code, {0}, 1, /*read_again=*/false, compiler);
  const auto state = kernel->make_state();
  EXPECT_EQ(sums.calls(*kernel, *state, serial()), 1);
  EXPECT_TRUE(compiler->names.empty()) << "one thread shares nothing";
  testing::ShreddingParallel two(1, 2), many(1, 20);
  EXPECT_EQ(sums.calls(*kernel, *state, two), 11) << "10 parts, and their joining";
  EXPECT_EQ(compiler->names, (std::vector<std::string>{"sums.parts1", "sums.joins1"}));
  EXPECT_EQ(sums.calls(*kernel, *state, many), 11) << "whoever runs them";
  const int64_t before = test::allocations;
  EXPECT_EQ(sums.calls(*kernel, *state, many), 11);
  EXPECT_EQ(test::allocations - before, 0);
  EXPECT_EQ(compiler->names.size(), 2u) << "made once";
}

TEST(SnippetCall, FoldsThatCannotBeCutRunAsTheyAre) {
  const ColumnSums sums;
  const auto compiler = std::make_shared<CountingCompiler>();
  compiler->refusal = Code::unsupported;
  const auto kernel = snippet_kernel(sums.code, {0}, 1, /*read_again=*/false, compiler);
  testing::ShreddingParallel two(1, 2);
  EXPECT_EQ(sums.calls(*kernel, *kernel->make_state(), two), 1);
  EXPECT_EQ(compiler->names.size(), 1u);
  EXPECT_EQ(sums.calls(*kernel, *kernel->make_state(), two), 1);
  EXPECT_EQ(compiler->names.size(), 1u) << "asked once";
  const auto without = snippet_kernel(sums.code, {0}, 1);
  EXPECT_EQ(sums.calls(*without, *without->make_state(), two), 1);
}

TEST(SnippetCall, WhatACompilerOfStagesFailsByIsAnError) {
  ColumnSums sums;
  const auto compiler = std::make_shared<CountingCompiler>();
  compiler->refusal = Code::internal;
  const auto kernel = snippet_kernel(sums.code, {0}, 1, /*read_again=*/false, compiler);
  const auto state = kernel->make_state();
  testing::ShreddingParallel two(1, 2);
  CallContext context{sums.operands, {}, "snippet", 0, state.get(), &two};
  const auto ran = kernel->run_in_state(context);
  ASSERT_FALSE(ran.ok());
  EXPECT_EQ(ran.error().code(), Code::internal);
  EXPECT_THAT(ran.error().to_string(), ::testing::HasSubstr("folds of 'sums' cut along dim 0"));
  compiler->refusal.reset();
  EXPECT_EQ(sums.calls(*kernel, *state, two), 11) << "errors are not kept";
}

}  // namespace
}  // namespace tenon::irgen
