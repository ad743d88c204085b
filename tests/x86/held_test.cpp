// Short rows of known length, unrolled: each element is loaded once, lines of rows beyond the caches are prefetched one
// by one, and one quotient serves four rows. Their results: known_extents_test.cpp, bodies_test.cpp.
#include <gtest/gtest.h>
#include <snippet/bodies.hpp>

#include <tenon/snippet/body/params.hpp>
#include <tenon/snippet/lower/lower.hpp>

#include "x86/kernel_support.hpp"
#include "x86/passes/passes.hpp"

namespace tenon::x86 {
namespace {

constexpr int kLanes = 16;
constexpr Ahead kReads{.lines = 64}, kWrites{.lines = 48};

// y = (x - mean) / sqrt(variance) for `rows` rows of `columns`.
snippet::Body normalised(int64_t rows, int64_t columns) {
  snippet::test::BodyBuilder build("rows", "kr");
  const snippet::ValueId x = build.input(3), size = build.input(0);
  const snippet::ValueId d = build.op("Sub", {x, build.op("Div", {build.reduce("ReduceSum", x), size})});
  const snippet::ValueId variance = build.op("Div", {build.reduce("ReduceSum", build.op("Mul", {d, d})), size});
  build.output(build.op("Div", {d, build.op("Sqrt", {variance})}));
  snippet::Body body = build.take();
  body.dims[0].extent = rows, body.dims[1].extent = columns;
  return body;
}

snippet::LinearKernel lowered(int64_t rows, int64_t columns, int held_vectors = 16) {
  const snippet::Body body = normalised(rows, columns);
  auto kernel = snippet::lower(body, {.lanes = kLanes, .held_vectors = held_vectors, .vectors = 32});
  EXPECT_TRUE(kernel.ok() && snippet::CallPlan::write_known(body, *kernel).ok());
  return *std::move(kernel);
}

// The instructions of the loop over several rows at once.
std::vector<snippet::Instruction> first_loop(const snippet::LinearKernel& kernel) {
  const auto named = [](std::string_view op) {
    return [op](const snippet::Instruction& one) { return one.op.str() == op; };
  };
  const auto begin = std::ranges::find_if(kernel.body, named("LoopBegin"));
  return {begin + 1, std::find_if(begin, kernel.body.end(), named("LoopEnd"))};
}

int64_t count(const std::vector<snippet::Instruction>& body, std::string_view op) {
  return std::ranges::count_if(body, [&](const snippet::Instruction& one) { return one.op.str() == op; });
}

TEST(HeldRows, AreLoadedOnceAndHaveNoLoops) {
  const auto body = first_loop(lowered(100, 49));
  EXPECT_EQ(count(body, "Load"), 4 * 4) << "vectors of four rows";
  EXPECT_EQ(count(body, "Store"), 4 * 4);
  EXPECT_EQ(count(body, "TailBegin"), 0);
  EXPECT_EQ(lowered(100, 49).loops.size(), 2u) << "four rows at once, single ones";
}

// Vectors are held as far as registers suffice; each of the three sweeps loads the others again.
TEST(HeldRows, AreHeldAsFarAsRegistersGo) {
  const auto body = first_loop(lowered(100, 175));
  const int64_t loads = count(body, "Load");
  EXPECT_GT(loads, 4 * 11);
  EXPECT_LT(loads, 3 * 4 * 11);
}

TEST(HeldRows, GoByTwoWhereAllOfTwoIsHeld) {
  const auto body = first_loop(lowered(100, 100));
  EXPECT_EQ(count(body, "Load"), 2 * 7);
  EXPECT_EQ(count(body, "Store"), 2 * 7);
}

// Values that are too expensive to recompute are kept in scratch memory by kernels with loops, otherwise in registers.
TEST(HeldRows, KeepNothingInMemory) {
  snippet::test::BodyBuilder build("softmax", "kr");
  const snippet::ValueId x = build.input(3);
  const snippet::ValueId e = build.op("Exp", {build.op("Sub", {x, build.reduce("ReduceMax", x)})});
  build.output(build.op("Add", {x, build.op("Div", {e, build.reduce("ReduceSum", e)})}));
  snippet::Body body = build.take();
  body.dims[0].extent = 100, body.dims[1].extent = 49;
  const auto scratch = [&](int held_vectors) {
    const auto cycles = [](const snippet::Body&, const snippet::BodyNode&) { return 10.0; };
    const auto kernel = snippet::lower(
        body, {.lanes = kLanes, .held_vectors = held_vectors, .vectors = 32, .cycles = cycles, .keep_near = true});
    EXPECT_TRUE(kernel.ok());
    return kernel->scratch.size();
  };
  EXPECT_GT(scratch(0), 0u);
  EXPECT_EQ(scratch(16), 0u);
}

TEST(HeldRows, AreShort) {
  EXPECT_GT(lowered(100, 16 * kLanes + 1).loops.size(), 2u);
  EXPECT_GT(lowered(100, 49, 3).loops.size(), 2u);
  EXPECT_GT(lowered(100, 49, 0).loops.size(), 2u);
}

TEST(HeldRows, LinesAreFetchedOneByOne) {
  snippet::LinearKernel kernel = lowered(100, 49);
  fetch_held_rows(kernel, kReads, kWrites);
  const auto body = first_loop(kernel);
  constexpr int64_t kLines = (4 * 49 * 4 + kLineBytes - 1) / kLineBytes;
  EXPECT_EQ(count(body, "PrefetchRead"), kLines);
  EXPECT_EQ(count(body, "PrefetchWrite"), kLines);
  std::vector<int64_t> read;
  for (size_t i = 0; i < body.size(); ++i) {
    if (!body[i].op.str().starts_with("Prefetch")) continue;
    EXPECT_FALSE(body[i + 1].op.str().starts_with("Prefetch"));
    if (body[i].op == Name("PrefetchRead")) read.push_back(body[i].memory->displacement_bytes);
  }
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], static_cast<int64_t>(64 + i) * kLineBytes);
  EXPECT_TRUE(snippet::verify(kernel).ok());
}

TEST(HeldRows, OneQuotientServesFourRows) {
  snippet::LinearKernel kernel = lowered(100, 49);
  pack_fours(kernel);
  const auto body = first_loop(kernel);
  EXPECT_EQ(count(body, "FoldFour"), 2) << print(kernel);
  EXPECT_EQ(count(body, "FoldRows"), 0);
  EXPECT_EQ(count(body, "DivFour"), 2);
  EXPECT_EQ(count(body, "SqrtFour"), 1);
  EXPECT_EQ(count(body, "SpreadFour"), 2 * 4);
  EXPECT_EQ(count(body, "Div"), 4 * 4) << "of the elements";
  EXPECT_TRUE(snippet::verify(kernel).ok());
}

// A quotient by a constant becomes products and a sum of two packed groups of four rows.
TEST(HeldRows, OperatorsOfTwoFoursArePacked) {
  snippet::LinearKernel kernel = lowered(100, 49);
  const auto mean = std::ranges::find(kernel.body, Name("Div"), &snippet::Instruction::op);
  ASSERT_NE(mean, kernel.body.end());
  const snippet::RegisterId divisor = mean->in[1];
  for (snippet::Instruction& one : kernel.body)
    if (std::ranges::find(one.out, divisor) != one.out.end())
      one = {.op = "Scalar", .attributes = {{"bits", int64_t{0x42440000}}}, .out = {divisor}};
  divide_by_constants(kernel);
  pack_fours(kernel);
  const auto body = first_loop(kernel);
  EXPECT_EQ(count(body, "SqrtFour"), 1) << print(kernel);
  EXPECT_EQ(count(body, "SpreadFour"), 2 * 4);
  EXPECT_TRUE(snippet::verify(kernel).ok());
}

// An operator on a value per row and a vector, such as a scale of columns, needs all lanes for each row.
TEST(HeldRows, WhatRowsMakeOfAVectorIsNotPacked) {
  snippet::test::BodyBuilder build("rows", "kr");
  const snippet::ValueId x = build.input(3), scale = build.input(2), number = build.input(0);
  const snippet::ValueId sum = build.reduce("ReduceSum", x);
  build.output(build.op("Mul", {x, build.op("Div", {scale, build.op("Add", {sum, number})})}));
  snippet::Body body = build.take();
  body.dims[0].extent = 100, body.dims[1].extent = 16;
  auto kernel = snippet::lower(body, {.lanes = kLanes, .held_vectors = 16, .vectors = 32});
  ASSERT_TRUE(kernel.ok());
  pack_fours(*kernel);
  const auto loop = first_loop(*kernel);
  EXPECT_EQ(count(loop, "FoldFour"), 1) << "the number is one for each row";
  EXPECT_EQ(count(loop, "DivFour"), 0);
  EXPECT_EQ(count(loop, "Div"), 4);
}

// Reductions whose results need no further operators per row are not packed.
TEST(HeldRows, FoldsOfWhichNothingIsMadeAreNotPacked) {
  snippet::test::BodyBuilder build("rows", "kr");
  const snippet::ValueId x = build.input(3);
  build.output(build.op("Sub", {x, build.reduce("ReduceMax", x)}));
  snippet::Body body = build.take();
  body.dims[0].extent = 100, body.dims[1].extent = 49;
  auto kernel = snippet::lower(body, {.lanes = kLanes, .held_vectors = 16, .vectors = 32});
  ASSERT_TRUE(kernel.ok());
  pack_fours(*kernel);
  EXPECT_EQ(count(first_loop(*kernel), "FoldRows"), 1);
  EXPECT_EQ(count(first_loop(*kernel), "FoldFour"), 0);
}

}  // namespace
}  // namespace tenon::x86
