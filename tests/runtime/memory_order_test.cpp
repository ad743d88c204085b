#include <tenon/runtime/memory_order.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace tenon {
namespace {

using testing::HasSubstr;

MemoryOrder ordered(const std::vector<OrderNode>& nodes) {
  const auto made = order_for_memory(nodes);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
  std::vector<size_t> at(nodes.size(), SIZE_MAX);
  EXPECT_EQ(made->order.size(), nodes.size());
  for (size_t i = 0; i < made->order.size(); ++i) at[made->order[i]] = i;
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_LT(at[i], nodes.size()) << "node " << i << " is missing";
    for (const size_t operand : nodes[i].operands) EXPECT_LT(at[operand], at[i]);
  }
  EXPECT_EQ(made->peak_bytes, peak_of_order(nodes, made->order));
  EXPECT_LE(made->peak_bytes, made->original_peak_bytes);
  return *made;
}

std::vector<OrderNode> random_graph(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<OrderNode> nodes(count);
  for (size_t i = 0; i < count; ++i) {
    nodes[i].result_bytes = random() % 100;
    for (size_t k = random() % 3; i > 0 && k > 0; --k) nodes[i].operands.push_back(random() % i);
    nodes[i].in_place = random() % 2 == 0;
    nodes[i].kept = random() % 10 == 0;
    nodes[i].scratch_bytes = random() % 5 == 0 ? random() % 50 : 0;
  }
  return nodes;
}

TEST(OrderForMemory, NothingHasAnOrder) { EXPECT_EQ(ordered({}).peak_bytes, 0u); }

// Two branches from two sources, each large inside and small at its end: they run one at a time, not interleaved.
TEST(OrderForMemory, BranchesRunOneAfterTheOther) {
  const std::vector<OrderNode> nodes = {{.result_bytes = 1000},
                                        {.result_bytes = 1000},
                                        {.result_bytes = 10, .operands = {0}},
                                        {.result_bytes = 10, .operands = {1}},
                                        {.result_bytes = 10, .operands = {2, 3}}};
  const MemoryOrder made = ordered(nodes);
  EXPECT_EQ(made.original_peak_bytes, 2010u);
  EXPECT_EQ(made.peak_bytes, 1020u);
}

TEST(OrderForMemory, TheBranchThatNeedsMostComesFirst) {
  const std::vector<OrderNode> nodes = {{.result_bytes = 50},
                                        {.result_bytes = 1000},
                                        {.result_bytes = 10, .operands = {1}},
                                        {.result_bytes = 5, .operands = {0, 2}}};
  EXPECT_EQ(ordered(nodes).peak_bytes, 1010u);
}

TEST(OrderForMemory, AnInPlaceResultCostsNothing) {
  std::vector<OrderNode> nodes = {{.result_bytes = 100}, {.result_bytes = 100, .operands = {0}, .in_place = true}};
  EXPECT_EQ(ordered(nodes).peak_bytes, 100u);
  nodes[0].kept = true;
  EXPECT_EQ(ordered({{.result_bytes = 100}, {.result_bytes = 100, .operands = {0}}}).peak_bytes, 200u);
}

TEST(OrderForMemory, NodesMayBeGivenInAnyOrder) {
  EXPECT_EQ(
      ordered({{.result_bytes = 1, .operands = {2}}, {.result_bytes = 1}, {.result_bytes = 1, .operands = {1}}}).order,
      (std::vector<size_t>{1, 2, 0}));
}

TEST(OrderForMemory, CyclesAndStrangersAreErrors) {
  const std::vector<OrderNode> cycle = {{.result_bytes = 1, .operands = {1}}, {.result_bytes = 1, .operands = {0}}, {}};
  EXPECT_THAT(order_for_memory(cycle).error().message(), HasSubstr("2 of 3 nodes wait for each other in a cycle"));
  const std::vector<OrderNode> stranger = {{.result_bytes = 1, .operands = {7}}};
  EXPECT_THAT(order_for_memory(stranger).error().message(), HasSubstr("node 0 reads node 7 of 1"));
}

TEST(OrderForMemory, HugeSizesDoNotWrap) {
  const std::vector<OrderNode> nodes = {{.result_bytes = SIZE_MAX}, {.result_bytes = SIZE_MAX, .operands = {0}}};
  EXPECT_EQ(ordered(nodes).peak_bytes, SIZE_MAX);
}

// Compared with every possible order: never better than the best, and seldom far from it.
TEST(OrderForMemory, SmallGraphsAreNearTheBestOrder) {
  size_t best_found = 0;
  constexpr size_t kGraphs = 300;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const auto nodes = random_graph(seed, 7);
    std::vector<size_t> order(nodes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    size_t best = SIZE_MAX;
    do {
      std::vector<bool> done(nodes.size(), false);
      bool valid = true;
      for (const size_t node : order) {
        for (const size_t operand : nodes[node].operands) valid = valid && done[operand];
        done[node] = true;
      }
      if (valid) best = std::min(best, peak_of_order(nodes, order));
    } while (std::next_permutation(order.begin(), order.end()));
    const size_t peak = ordered(nodes).peak_bytes;
    EXPECT_GE(peak, best);
    best_found += peak == best;
  }
  EXPECT_GE(best_found, kGraphs * 7 / 10);
}

// What peak_of_order computes incrementally, computed from the lifetimes.
TEST(PeakOfOrder, IsWhatTheLivesSay) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto nodes = random_graph(seed, 30);
    std::vector<size_t> order(nodes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto lives = lifetimes_of_order(nodes, order);
    size_t peak = 0;
    for (size_t step = 0; step < order.size(); ++step) {
      const OrderNode& node = nodes[step];
      size_t alive = 0, saved = 0;
      for (const Lifetime& life : lives) alive += life.first <= step && step <= life.last ? life.bytes : 0;
      for (const size_t operand : node.operands) {
        if (node.in_place && lives[operand].last == step)
          saved = std::max(saved, std::min(lives[operand].bytes, node.result_bytes));
      }
      peak = std::max(peak, alive - saved + node.scratch_bytes);
    }
    EXPECT_EQ(peak_of_order(nodes, order), peak);
  }
}

// Each node alone needs as much as the given order: there is nothing to search for.
TEST(OrderForMemory, AnOrderThatNoneCanBeatStays) {
  const std::vector<OrderNode> nodes = {{.result_bytes = 50},
                                        {.result_bytes = 50},
                                        {.result_bytes = 100, .operands = {0, 1}, .in_place = true},
                                        {.result_bytes = 10, .operands = {2}}};
  const MemoryOrder made = ordered(nodes);
  EXPECT_EQ(made.order, (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(made.peak_bytes, 150u);
}

TEST(OrderForMemory, LongAndLargeGraphsAreNoProblem) {
  std::vector<OrderNode> chain(100000, {.result_bytes = 8});
  for (size_t i = 1; i < chain.size(); ++i) chain[i].operands = {i - 1};
  EXPECT_EQ(ordered(chain).peak_bytes, 16u);
  ordered(random_graph(3, 20000));
}

}  // namespace
}  // namespace tenon
