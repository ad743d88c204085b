// Random bodies through lowering and register allocation, on emulated lanes, against the operators one by one. Values
// are whole numbers, so that every order of a sum gives the same bits.
#include <gtest/gtest.h>
#include <snippet/random_body.hpp>

#include <cstdlib>

#include <tenon/support/str.hpp>

namespace tenon::snippet::test {
namespace {

void try_seed(uint64_t seed) {
  SCOPED_TRACE(str("seed ", seed, " (TENON_TEST_SEED)"));
  RandomBody random(seed);
  Body body = random.make();
  HarnessOptions options;
  options.lower.lanes = std::array{1, 4, 8}[random.pick(3)];
  options.lower.unroll = 1 << random.pick(3);
  options.lower.rows = 1 << random.pick(3);
  options.lower.vectors = std::array{16, 32}[random.pick(2)];
  options.lower.recompute_cycles = static_cast<double>(random.pick(6));
  options.lower.resweep_cycles = static_cast<double>(random.pick(6));
  options.lower.whole_rows = random.pick(2) == 0;
  options.lower.join_rows = random.pick(2) == 0;
  options.lower.behind_blocks = !options.lower.join_rows && random.pick(2) == 0;
  options.lower.merge_sweeps = options.lower.behind_blocks && random.pick(2) == 0;
  options.lower.heads = random.pick(2) == 0;
  if (options.lower.heads && (body.outputs.size() > 1 || random.pick(2) == 0))
    options.outputs = testing::GuardAt::lines;
  options.lower.keep_near = random.pick(3) == 0;
  options.lower.keep_joined = random.pick(3) == 0;
  options.lower.skew_rows = random.pick(3) == 0;
  options.blocks = random.block_sizes();
  options.parts = random.pick(3) == 0 ? static_cast<int64_t>(random.pick(6)) + 2 : 1;
  const int registers = std::array{0, 4, 8, 16, 32}[random.pick(5)];
  if (registers > 0) options.machine = test_machine(registers, random.pick(2) == 0, random.pick(2) == 0);
  Dims extents = random.extents(body, options.lower.lanes);
  if (options.lower.join_rows) random.lengthen_rows(body, extents);
  options.lower.held_vectors = std::array{0, 2, 16}[random.pick(3)];
  random.make_known(body, extents);
  check_body(body, extents, random.random(), options);
}

TEST(RandomBodies, MatchTheOperatorsOneByOne) {
  if (const char* seed = std::getenv("TENON_TEST_SEED")) return try_seed(std::strtoull(seed, nullptr, 10));
  const char* count = std::getenv("TENON_TEST_COUNT");
  const uint64_t seeds = count ? std::strtoull(count, nullptr, 10) : 1500;
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) try_seed(seed);
}

}  // namespace
}  // namespace tenon::snippet::test
