#include "vta/simulator.hpp"

#include <gmock/gmock.h>

#include "vta/streams.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class VtaSimulator : public ::testing::Test {
 protected:
  Result<RunResult> run(const std::vector<Instruction>& stream, const RunLimits& limits = {}) {
    const uint32_t address = put(dram, words_of(stream, simulator.hardware()));
    return simulator.run(dram, address, static_cast<int64_t>(stream.size()), limits);
  }
  std::string wrong(const std::vector<Instruction>& stream) {
    const auto done = run(stream);
    return done.ok() ? "nothing" : done.error().to_string();
  }
  uint32_t image(int64_t elements) {
    return put(dram, std::vector<int8_t>(static_cast<size_t>(elements * 16), 1)) / 16;
  }

  const Hardware h = default_hardware();
  Dram dram{h.dram_bytes};
  Simulator simulator{h};
};

TEST_F(VtaSimulator, ResultsAreThoseOfTheArithmetic) {
  uint32_t seed = 1;
  for (const TargetDescription& target :
       {default_target(), sized(1, 32, 65536, 524288, 262144, 32768), sized(2, 16, 32768, 262144, 131072, 32768),
        sized(4, 8, 32768, 32768, 131072, 32768)})
    for (const Product shape : {Product{1, 1}, Product{4, 3}, Product{7, 8}}) {
      SCOPED_TRACE(str(target.name, " rows ", shape.rows, " tiles ", shape.tiles));
      const Hardware hardware = *Hardware::of(target);
      Dram memory(hardware.dram_bytes);
      Simulator machine(hardware);
      const PlacedProduct placed(hardware, memory, shape, seed++);
      const auto done = machine.run(memory, placed.stream_address, placed.instructions);
      ASSERT_TRUE(done.ok()) << done.error().to_string();
      EXPECT_EQ(placed.result(memory), placed.wanted);
    }
}

TEST_F(VtaSimulator, ATransferTakesItsBytesAndTheLatency) {
  const auto done = run({load(Memory::inp, 0, image(10), 10)});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->counters.cycles, 10 * 16 / 8 + 64);
  EXPECT_EQ(done->counters.dram_cycles, 20);
  EXPECT_EQ(done->counters.dram_bytes(), 160);
  EXPECT_EQ(done->counters.of(UnitId::load).busy_cycles, 84);
}

TEST_F(VtaSimulator, UnitsShareTheDramAndOverlap) {
  const uint32_t bytes = image(100);
  Instruction second = load(Memory::acc8, 0, bytes, 100);  // compute unit
  const auto done = run({load(Memory::inp, 0, bytes, 100), second}, {.keep_spans = true});
  ASSERT_TRUE(done.ok());
  ASSERT_EQ(done->spans.size(), 2u);
  EXPECT_EQ(done->spans[0].end, 200 + 64);
  EXPECT_EQ(done->spans[1].begin, 1);  // fetched one cycle later
  EXPECT_EQ(done->spans[1].end, 400 + 64);
  EXPECT_EQ(done->counters.overlap_cycles, 263);
}

TEST_F(VtaSimulator, TokensHoldUnitsUp) {
  Instruction first = load(Memory::inp, 0, image(8), 8);
  first.push_next = true;
  Instruction second = load(Memory::acc8, 0, image(8), 8);
  second.pop_prev = true;
  const auto done = run({first, second}, {.keep_spans = true});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->spans[1].begin, done->spans[0].end);
  EXPECT_EQ(done->counters.of(UnitId::compute).token_stall_cycles, done->spans[0].end - 1);
  EXPECT_EQ(done->counters.overlap_cycles, 0);
}

TEST_F(VtaSimulator, AFullQueueHoldsUpWhatFollows) {
  TargetDescription target = default_target();
  Setting options = Setting::map();
  options.add("hardware", Setting::text("0.0.2"));
  options.add("queue_depth", Setting::word("2"));
  target.options = options;
  Simulator shallow(*Hardware::of(target));
  std::vector<Instruction> stream;
  const uint32_t bytes = image(1);
  for (int i = 0; i < 4; ++i) stream.push_back(load(Memory::inp, 0, bytes, 1));
  stream.push_back(Instruction());
  const uint32_t address = put(dram, words_of(stream, h));
  const auto done = shallow.run(dram, address, 5, {.keep_spans = true});
  ASSERT_TRUE(done.ok());
  // The fourth load is fetched when the second one starts, FINISH behind it; the queue of 512 lets it run at once.
  EXPECT_EQ(done->counters.of(UnitId::compute).fetch_stall_cycles, 67);
  EXPECT_EQ(run(stream)->counters.of(UnitId::compute).fetch_stall_cycles, 4);
}

TEST_F(VtaSimulator, GemmTakesACycleAStep) {
  std::vector<MicroOp> ops{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}};
  const uint32_t uops = put(dram, micro_op_words(ops, h)) / 4;
  const auto done =
      run({load(Memory::uop, 0, uops, 3), gemm({.reset = true, .uop_end = 3, .iter_out = 5, .iter_in = 7})});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->counters.gemm_cycles, 3 * 5 * 7);
}

TEST_F(VtaSimulator, DeadlocksNameWhoWaits) {
  Instruction waits = load(Memory::inp, 0, image(1), 1);
  waits.pop_next = true;
  Instruction also = gemm({});
  also.pop_prev = true;
  const std::string message = wrong({waits, also});
  EXPECT_THAT(message, HasSubstr("deadlock"));
  EXPECT_THAT(message, HasSubstr("instruction 0 (LOAD pop_next INP"));
  EXPECT_THAT(message, HasSubstr("waits for a token compute -> load"));
  EXPECT_THAT(message, HasSubstr("waits for a token load -> compute"));
}

TEST_F(VtaSimulator, ErrorsNameTheInstruction) {
  EXPECT_THAT(wrong({Instruction(), load(Memory::inp, 0, 0, 1)}), HasSubstr("instruction 1: LOAD INP"));
  Instruction no_neighbour = load(Memory::inp, 0, image(1), 1);
  no_neighbour.pop_prev = true;
  EXPECT_THAT(wrong({no_neighbour}), HasSubstr("pop_prev: the load unit has no such neighbour"));
  EXPECT_FALSE(simulator.run(dram, 0, 1).ok());
  EXPECT_FALSE(simulator.run(dram, 0, -1).ok());
  EXPECT_FALSE(simulator.run(dram, 4096, int64_t{1} << 40).ok());
}

TEST_F(VtaSimulator, MoreCyclesThanAllowedAreTold) {
  const auto done = run({load(Memory::inp, 0, image(10), 10)}, {.cycles = 50});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->late, 0u);
}

TEST_F(VtaSimulator, TheTraceHasAnEventForEachInstruction) {
  const std::vector<Instruction> stream{load(Memory::inp, 0, image(1), 1), Instruction()};
  const auto done = run(stream, {.keep_spans = true});
  const std::string trace = chrome_trace(*done, stream, h.clock_hz);
  EXPECT_THAT(trace, HasSubstr("\"ts\": 0, \"dur\": 0.66, \"name\": \"LOAD\""));
  EXPECT_THAT(trace, HasSubstr("\"name\": \"FINISH\""));
}

// Any 128 bits give a result or an error. The sanitizers detect accesses outside.
TEST_F(VtaSimulator, RandomStreams) {
  int ran = 0;
  const uint32_t data = put(dram, std::vector<uint32_t>(1 << 16, 0x00400801));
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    std::mt19937_64 random(seed);
    const auto count = 1 + random() % 12;
    std::vector<uint64_t> words;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t low = random(), high = random();
      low = (low & ~uint64_t{7}) | (random() % 5);
      // Half of them near to what is allowed: small sizes, addresses in a buffer, few tokens.
      if (random() % 2) {
        low &= random() & random() & 0x00ff0fffffff0f87;
        high &= random() & 0x000f000f00070007;
        if ((low & 7) < 2) low = (low & 0x3ffffff) | uint64_t{data / 16} << 26;
      }
      words.push_back(low), words.push_back(high);
    }
    Simulator fresh(h);
    const uint32_t address = put(dram, words);
    ran += fresh.run(dram, address, static_cast<int64_t>(count)).ok();
  }
  EXPECT_GT(ran, 10);
}

}  // namespace
}  // namespace tenon::vta
