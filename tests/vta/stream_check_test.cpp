#include "vta/stream_check.hpp"

#include <gmock/gmock.h>

#include "vta/stream_order.hpp"
#include "vta/streams.hpp"
#include "vta/tokens.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Hardware& hardware() {
  static const Hardware made = default_hardware();
  return made;
}

std::vector<Finding> check(const std::vector<Instruction>& stream, const std::vector<MicroOp>& ops) {
  const auto found = check_stream(stream, hardware(), {.micro_op = [&](int64_t at) -> Result<uint32_t> {
                                    if (static_cast<size_t>(at) >= ops.size())
                                      return error(Code::not_found, "no micro-op ", at);
                                    return encode(ops[static_cast<size_t>(at)], hardware());
                                  }});
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().to_string());
  return found.ok() ? *found : std::vector<Finding>();
}

std::string all(const std::vector<Finding>& findings, const std::vector<Instruction>& stream) {
  std::string text;
  for (const Finding& finding : findings) text += finding.to_string(stream) + "\n";
  return text;
}

// At disjoint addresses in DRAM.
Product product(int64_t rows, int64_t tiles) { return {rows, tiles, 1000, 100, 5000, 0}; }

TEST(StreamCheck, GoodStreamsHaveNoFindings) {
  for (const int64_t rows : {1, 4, 9})
    for (const int64_t tiles : {1, 2, 3, 8}) {
      const Product p = product(rows, tiles);
      const auto stream = p.stream();
      EXPECT_EQ(all(check(stream, p.micro_ops()), stream), "") << rows << " " << tiles;
    }
}

// One side of a token removed: somebody waits for ever, or a token remains.
TEST(StreamCheck, AMissingPushOrPopIsFound) {
  const Product p = product(4, 5);
  const auto good = p.stream();
  int removed = 0;
  for (size_t i = 0; i < good.size(); ++i)
    for (bool Instruction::*flag :
         {&Instruction::pop_prev, &Instruction::pop_next, &Instruction::push_prev, &Instruction::push_next}) {
      if (!(good[i].*flag)) continue;
      auto stream = good;
      stream[i].*flag = false;
      EXPECT_FALSE(check(stream, p.micro_ops()).empty()) << print(good[i]);
      ++removed;
    }
  EXPECT_EQ(removed, 2 * (5 + 3 + 2));
}

// The n-th push and the n-th pop of a queue removed together: each of them orders something.
TEST(StreamCheck, AMissingTokenIsARace) {
  const Product p = product(4, 5);
  const auto good = p.stream();
  int removed = 0;
  for (const TokenQueue queue : {TokenQueue::load_to_compute, TokenQueue::compute_to_load, TokenQueue::compute_to_store,
                                 TokenQueue::store_to_compute}) {
    std::vector<std::pair<size_t, bool>> pushes, pops;  // instruction, its prev
    for (size_t i = 0; i < good.size(); ++i) {
      const TokenUse use = *tokens_of(good[i]);
      for (const bool prev : {true, false}) {
        if (use.pushes[prev ? 0 : 1] == queue) pushes.emplace_back(i, prev);
        if (use.pops[prev ? 0 : 1] == queue) pops.emplace_back(i, prev);
      }
    }
    ASSERT_EQ(pushes.size(), pops.size());
    for (size_t n = 0; n < pushes.size(); ++n) {
      auto stream = good;
      (pushes[n].second ? stream[pushes[n].first].push_prev : stream[pushes[n].first].push_next) = false;
      (pops[n].second ? stream[pops[n].first].pop_prev : stream[pops[n].first].pop_next) = false;
      const auto findings = check(stream, p.micro_ops());
      // FINISH touches no memory: what it waits for is the end of the stream.
      if (stream[pops[n].first].opcode == Opcode::finish) continue;
      EXPECT_FALSE(findings.empty()) << token_queue_name(queue) << " " << n;
      ++removed;
    }
  }
  EXPECT_EQ(removed, 5 + 3 + 1);
}

TEST(StreamCheck, FindingsNameInstructionsAndPlaces) {
  const Product p = product(4, 3);
  auto stream = p.stream();
  // Nobody waits for the half to be free.
  stream[8].pop_next = stream[4].push_prev = false;
  const std::string text = all(check(stream, p.micro_ops()), stream);
  EXPECT_THAT(text, HasSubstr("write after read: GEMM (#4) may still read INP["));
  EXPECT_THAT(text, HasSubstr("when LOAD (#8) writes it"));
}

TEST(StreamCheck, RacesThroughDramAreFound) {
  Instruction zero = gemm({.reset = true, .uop_end = 1});
  Instruction out = store(0, 10, 1);
  out.pop_prev = true;
  zero.push_next = true;
  std::vector<Instruction> stream{load(Memory::uop, 0, 0, 1), zero, out, load(Memory::inp, 0, 10, 1)};
  EXPECT_THAT(
      all(check(stream, {{0, 0, 0}}), stream),
      HasSubstr("read after write: STORE (#2) may not have written byte 160 of DRAM yet when LOAD (#3) reads it"));
  stream[3] = load(Memory::inp, 0, 11, 1);
  EXPECT_EQ(all(check(stream, {{0, 0, 0}}), stream), "");
  stream.push_back(load(Memory::inp, 1, 9, 2));
  EXPECT_THAT(all(check(stream, {{0, 0, 0}}), stream), HasSubstr("byte 160 of DRAM"));
}

TEST(StreamCheck, WhatIsNeverWrittenIsFound) {
  const std::vector<Instruction> stream{load(Memory::uop, 0, 0, 1), gemm({.uop_end = 1})};
  const std::string text = all(check(stream, {{3, 1, 2}}), stream);
  EXPECT_THAT(text, HasSubstr("read before write: GEMM (#1) reads INP[1], which nothing has written"));
}

TEST(StreamCheck, StreamsThatCannotBeFollowedAreErrors) {
  const auto wrong = [](const std::vector<Instruction>& stream) {
    const auto found = check_stream(stream, hardware(), {});
    return found.ok() ? "nothing" : found.error().to_string();
  };
  EXPECT_THAT(wrong({load(Memory::uop, 0, 0, 1)}), HasSubstr("instruction 0: LOAD UOP"));
  EXPECT_THAT(wrong({load(Memory::inp, 2047, 0, 2)}), HasSubstr("INP[2048] is outside of its 2048 elements"));
}

TEST(StreamOrder, ClocksFollowTokensAcrossUnits) {
  Instruction a = load(Memory::inp, 0, 0, 1), b = gemm({}), c = store(0, 0, 1), d = load(Memory::inp, 0, 0, 1);
  a.push_next = b.pop_prev = b.push_next = c.pop_prev = true;
  const StreamOrder order = *order_of({a, b, c, d});
  EXPECT_TRUE(order.ordered(0, 2));  // through b
  EXPECT_TRUE(order.ordered(0, 3));  // one unit
  EXPECT_FALSE(order.ordered(2, 3));
  EXPECT_FALSE(order.ordered(3, 2));
}

}  // namespace
}  // namespace tenon::vta
