// GraphRunner::bind: when a run can be bound, and what a bound run does.
#include <gtest/gtest.h>

#include <tenon/ir/text.hpp>
#include <tenon/irgen/graph_runner.hpp>
#include <tenon/irgen/reference_kernels.hpp>

namespace tenon::irgen {
namespace {

struct Subject {
  explicit Subject(std::string_view text) : graph(*parse_graph(text)) {
    auto made = GraphRunner::prepare(*graph, reference_kernels());
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    runner = *std::move(made);
  }
  std::unique_ptr<BoundRun> bind(const Datum& input, Datum& output) {
    const Datum* from = &input;
    Datum* to = &output;
    auto made = runner->bind({&from, 1}, {&to, 1});
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return *std::move(made);
  }
  std::unique_ptr<Graph> graph;
  std::unique_ptr<GraphRunner> runner;
};

TEST(BoundGraph, OneProgramIsBound) {
  Subject subject("graph @g(%x: f32[3]) -> %y { %y = Neg %x }");
  Tensor x = Tensor::of<float>({3}, {1, 2, 3});
  Datum y(*Tensor::zeros(kF32, {3}));
  const auto bound = subject.bind(Datum(x), y);
  ASSERT_NE(bound, nullptr);
  for (const float first : {1.f, 8.f}) {
    x.mutable_as<float>()[0] = first;
    ASSERT_TRUE(bound->run().ok());
    EXPECT_EQ(y.tensor().as<float>()[0], -first);
    EXPECT_EQ(y.tensor().as<float>()[2], -3);
  }
}

TEST(BoundGraph, OpenExtentsAreBoundOnceTheyHaveBeenSeen) {
  Subject subject("graph @g(%x: f32[N]) -> %y { %y = Neg %x }");
  const Datum x(Tensor::of<float>({2}, {1, 2}));
  Datum y(*Tensor::zeros(kF32, {2}));
  EXPECT_EQ(subject.bind(x, y), nullptr);
  ASSERT_TRUE(subject.runner->run({&x, 1}).ok());
  const auto bound = subject.bind(x, y);
  ASSERT_NE(bound, nullptr);
  ASSERT_TRUE(bound->run().ok());
  EXPECT_EQ(y.tensor().as<float>()[1], -2);
}

TEST(BoundGraph, WhatDoesNotFitIsLeftToRuns) {
  Subject subject("graph @g(%x: f32[3]) -> %y { %y = Neg %x }");
  const Datum x(Tensor::of<float>({3}, {1, 2, 3})), longer(Tensor::of<float>({4}, {1, 2, 3, 4}));
  Datum y(*Tensor::zeros(kF32, {3})), nothing, short_of_one(*Tensor::zeros(kF32, {2}));
  EXPECT_EQ(subject.bind(longer, y), nullptr);
  EXPECT_EQ(subject.bind(x, nothing), nullptr);
  EXPECT_EQ(subject.bind(x, short_of_one), nullptr);
  Subject parts("graph @g(%x: f32[3]) -> %y { %a = Neg %x  %n = NonZero %a  %y = Cast %n {to = type<f32[*]>} }");
  EXPECT_EQ(parts.bind(x, y), nullptr);
}

}  // namespace
}  // namespace tenon::irgen
