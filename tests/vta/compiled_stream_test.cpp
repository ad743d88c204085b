// Streams from the compiler: the race check finds nothing in them, and detects the removal of any one token.
#include "fused_ops.hpp"

#include "vta/stream_check.hpp"

namespace tenon::vta {
namespace {

using namespace testing;

// A stream with addresses, and its micro-ops.
struct Bound {
  std::vector<Instruction> stream;
  std::vector<uint32_t> micro_ops;
  int64_t first_micro_op = 0;  // in DRAM
};

Result<Bound> bound_stream(const OneOp& one, const Hardware& hardware, bool double_buffer) {
  TENON_TRY(stream, encoded_stream(one, hardware, double_buffer));
  TENON_TRY(bound, stream.bound(separate_addresses(16), hardware));
  const auto first = static_cast<int64_t>(separate_addresses(16)[stream.micro_op_segment]) / 4;
  return Bound{std::move(bound), std::move(stream.micro_ops), first};
}

Result<std::vector<Finding>> check(const Bound& bound, const Hardware& hardware) {
  CheckOptions options;
  options.micro_op = [&](int64_t i) {
    return Result<uint32_t>(bound.micro_ops.at(static_cast<size_t>(i - bound.first_micro_op)));
  };
  return check_stream(bound.stream, hardware, options);
}

// The four flags of an instruction.
bool& flag(Instruction& i, int which) {
  return which == 0 ? i.pop_prev : which == 1 ? i.pop_next : which == 2 ? i.push_prev : i.push_next;
}

// A token is a push and the pop that takes it: the n-th ones of a queue belong together.
struct Token {
  size_t push = 0, pop = 0;
  int push_flag = 0, pop_flag = 0;
};
std::vector<Token> tokens_of_stream(const std::vector<Instruction>& stream) {
  std::vector<Token> tokens;
  struct Queue {
    UnitId from, to;
  };
  for (const Queue& queue : {Queue{UnitId::load, UnitId::compute}, Queue{UnitId::compute, UnitId::load},
                             Queue{UnitId::compute, UnitId::store}, Queue{UnitId::store, UnitId::compute}}) {
    const bool right = queue.from < queue.to;
    std::vector<size_t> pushes, pops;
    for (size_t i = 0; i < stream.size(); ++i) {
      if (stream[i].unit() == queue.from && (right ? stream[i].push_next : stream[i].push_prev)) pushes.push_back(i);
      if (stream[i].unit() == queue.to && (right ? stream[i].pop_prev : stream[i].pop_next)) pops.push_back(i);
    }
    EXPECT_EQ(pushes.size(), pops.size());
    for (size_t t = 0; t < std::min(pushes.size(), pops.size()); ++t)
      tokens.push_back({pushes[t], pops[t], right ? 3 : 2, right ? 0 : 1});
  }
  return tokens;
}

OneOp random_op(std::mt19937& r) {
  switch (pick(r, 0, 4)) {
    case 0: return random_dense(r);
    case 1: return random_addition(r);
    case 2: return random_max(r);
    default: return random_convolution(r);
  }
}

class CompiledStream : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, CompiledStream, ::testing::Range(0, 40));

TEST_P(CompiledStream, HasNoRaceUntilATokenIsGone) {
  std::mt19937 r(static_cast<uint32_t>(GetParam()));
  const OneOp one = random_op(r);
  const auto targets = machines();
  const Hardware hardware = *Hardware::of(targets[static_cast<size_t>(GetParam()) % targets.size()]);
  auto made = bound_stream(one, hardware, GetParam() % 3 != 0);
  if (!made.ok() && made.error().code() == Code::unsupported) GTEST_SKIP() << made.error().to_string();
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  const auto good = check(*made, hardware);
  ASSERT_TRUE(good.ok()) << good.error().to_string();
  ASSERT_TRUE(good->empty()) << one.what << ": " << good->front().to_string(made->stream);

  const auto tokens = tokens_of_stream(made->stream);
  ASSERT_FALSE(tokens.empty());
  // Long streams have alike tokens: some 60 of them, spread.
  for (size_t t = 0; t < tokens.size(); t += tokens.size() / 60 + 1) {
    Bound bad = *made;
    flag(bad.stream[tokens[t].push], tokens[t].push_flag) = false;
    flag(bad.stream[tokens[t].pop], tokens[t].pop_flag) = false;
    const auto both = check(bad, hardware);
    ASSERT_TRUE(both.ok()) << both.error().to_string();
    EXPECT_FALSE(both->empty()) << one.what << ": token " << t << " from " << print(made->stream[tokens[t].push])
                                << " (#" << tokens[t].push << ") to " << print(made->stream[tokens[t].pop]) << " (#"
                                << tokens[t].pop << ") is not missed";
    // Only one end of it: somebody waits for ever, or a token is left over.
    bad = *made;
    flag(bad.stream[tokens[t].pop], tokens[t].pop_flag) = false;
    const auto left = check(bad, hardware);
    EXPECT_TRUE(left.ok() && !left->empty()) << "the pop of token " << t;
    bad = *made;
    flag(bad.stream[tokens[t].push], tokens[t].push_flag) = false;
    const auto stuck = check(bad, hardware);
    EXPECT_TRUE(stuck.ok() && !stuck->empty()) << "the push of token " << t;
  }
}

// FINISH waits for the last store: a driver that treats FINISH as completion finds the complete output.
TEST(CompiledStream, EndsBehindItsLastStore) {
  std::mt19937 r(7);
  const OneOp one = random_convolution(r);
  const auto made = bound_stream(one, default_hardware(), true);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(made->stream.back().opcode, Opcode::finish);
  EXPECT_TRUE(made->stream.back().pop_next);
}

}  // namespace
}  // namespace tenon::vta
