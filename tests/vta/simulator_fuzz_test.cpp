// Corrupted streams on the simulator: random ones, and those of the compiler with bits flipped in instructions,
// addresses and micro-ops. Each ends in time, with a result or with an error that names an instruction; the sanitizers
// detect accesses outside. TENON_VTA_FUZZ_STREAMS: the number of each kind (1,500); TENON_VTA_FUZZ_SEED: the first seed
// (1).
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>

#include "fused_ops.hpp"

namespace tenon::vta {
namespace {

using namespace testing;
using ::testing::HasSubstr;

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}
int streams() { return number_of("TENON_VTA_FUZZ_STREAMS", 1500); }
int first_seed() { return number_of("TENON_VTA_FUZZ_SEED", 1); }

// What must hold for any instructions.
void expect_sane(const Result<RunResult>& done) {
  if (!done.ok()) {
    EXPECT_THAT(done.error().to_string(), HasSubstr("instruction ")) << "no instruction is named";
    return;
  }
  const RunCounters& c = done->counters;
  for (const UnitCounters& unit : c.units) {
    EXPECT_GE(std::min({unit.busy_cycles, unit.token_stall_cycles, unit.fetch_stall_cycles}), 0);
    EXPECT_LE(unit.busy_cycles + unit.token_stall_cycles + unit.fetch_stall_cycles, c.cycles);
  }
  EXPECT_LE(c.gemm_cycles + c.alu_cycles, c.of(UnitId::compute).busy_cycles);
}

// The slowest stream so far; a very long run counts as a hang.
class Clock {
 public:
  template <class Run>
  void time(const Run& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), 20) << "seconds for one stream";
  }
};

// ---- Random streams ----

std::vector<uint64_t> random_words(std::mt19937_64& random, uint32_t data) {
  std::vector<uint64_t> words;
  for (uint64_t i = 1 + random() % 12; i > 0; --i) {
    uint64_t low = (random() & ~uint64_t{7}) | random() % 5, high = random();
    // Half of them near to what is allowed: small sizes, addresses in a buffer, few tokens.
    if (random() % 2) {
      low &= random() & random() & 0x00ff0fffffff0f87;
      high &= random() & 0x000f000f00070007;
      if ((low & 7) < 2) low = (low & 0x3ffffff) | uint64_t{data / 16} << 26;
    }
    words.push_back(low), words.push_back(high);
  }
  return words;
}

TEST(SimulatorFuzz, RandomStreams) {
  const auto targets = machines();
  Clock clock;
  int ran = 0;
  for (int seed = first_seed(); seed < first_seed() + streams(); ++seed) {
    SCOPED_TRACE(str("TENON_VTA_FUZZ_SEED=", seed));
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const Hardware hardware = *Hardware::of(targets[static_cast<size_t>(seed) % targets.size()]);
    Dram dram(hardware.dram_bytes);
    const uint32_t data = put(dram, std::vector<uint32_t>(1 << 12, 0x00400801));
    const std::vector<uint64_t> words = random_words(random, data);
    const uint32_t address = put(dram, words);
    Simulator simulator(hardware);
    clock.time([&] {
      const auto done = simulator.run(dram, address, static_cast<int64_t>(words.size() / 2), {.cycles = 20000});
      expect_sane(done);
      ran += done.ok();
    });
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(ran, streams() / 100);
}

// ---- Streams of the compiler, spoiled ----

// A driver that runs each stream several times corrupted, each time on a fresh machine with the original memory, and
// then unchanged.
class SpoilingDriver final : public Driver {
 public:
  SpoilingDriver(const Hardware& hardware, int times, uint32_t seed)
      : hardware_(hardware), times_(times), dram_(hardware.dram_bytes), random_(seed) {}

  std::string name() const override { return "spoiling"; }
  Result<void*> allocate(size_t bytes) override {
    TENON_TRY(memory, dram_.allocate(bytes));
    buffers_.emplace_back(memory, bytes);
    return static_cast<void*>(memory);
  }
  void free(void* memory) override { ASSERT_TRUE(dram_.free(static_cast<std::byte*>(memory)).ok()); }
  Result<uint32_t> physical_address(void* memory) override {
    return dram_.physical_address(static_cast<const std::byte*>(memory));
  }
  Result<void> copy_from_host(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Result<void> copy_to_host(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Result<void> run(uint32_t address, uint32_t count, uint32_t) override {
    TENON_TRY(clean, Simulator(hardware_).run(dram_, address, count));
    TENON_TRY(stream, read_stream(dram_, address, count, hardware_));
    const auto before = contents();
    for (int i = 0; i < times_ && !::testing::Test::HasFailure(); ++i) {
      const std::string what = spoil(address, stream);
      SCOPED_TRACE(str("spoiled ", i, ": ", what));
      Simulator fresh(hardware_);
      clock_.time([&] {
        const auto done = fresh.run(dram_, address, count, {.cycles = 2 * clean.counters.cycles});
        expect_sane(done);
        failed_ += !done.ok();
      });
      restore(before);
    }
    ran_ += times_;
    return {};
  }
  int ran() const { return ran_; }
  int failed() const { return failed_; }

 private:
  uint32_t draw(size_t below) { return random_() % static_cast<uint32_t>(below); }

  // Flips a few bits of `bytes` bytes at an address.
  void turn_bits(uint64_t address, uint64_t bytes) {
    const auto at = dram_.at(address, bytes);
    ASSERT_TRUE(at.ok()) << at.error().to_string();
    for (uint32_t n = 1 + draw(3); n > 0; --n) (*at)[draw(bytes)] ^= static_cast<std::byte>(1u << draw(8));
  }

  std::string spoil(uint32_t address, const std::vector<Instruction>& stream) {
    const uint32_t one = draw(stream.size()), other = draw(stream.size());
    const uint64_t place = address + uint64_t{one} * 16;
    switch (draw(5)) {
      case 0: {  // another order
        const auto a = *dram_.at(place, 16), b = *dram_.at(address + uint64_t{other} * 16, 16);
        if (one != other) std::swap_ranges(a.begin(), a.end(), b.begin());
        return str("instructions ", one, " and ", other, " swapped");
      }
      case 1:  // an address in DRAM, bits 26 to 57 of a transfer
        for (uint32_t bit : {draw(32), draw(8)}) {
          std::byte& byte = (*dram_.at(place, 16))[(26 + bit) / 8];
          byte ^= static_cast<std::byte>(1u << ((26 + bit) % 8));
        }
        return str("the address of instruction ", one);
      case 2:
        for (const Instruction& i : stream)
          if (i.opcode == Opcode::load && i.transfer.memory == Memory::uop && i.transfer.x_size > 0) {
            turn_bits(uint64_t{i.transfer.dram_base} * 4, uint64_t{i.transfer.x_size} * 4);
            return "a micro-op";
          }
        [[fallthrough]];
      default: turn_bits(place, 16); return str("bits of instruction ", one);
    }
  }

  std::vector<std::vector<std::byte>> contents() const {
    std::vector<std::vector<std::byte>> all;
    for (const auto& [memory, bytes] : buffers_) all.emplace_back(memory, memory + bytes);
    return all;
  }
  void restore(const std::vector<std::vector<std::byte>>& all) {
    for (size_t i = 0; i < all.size(); ++i) std::memcpy(buffers_[i].first, all[i].data(), all[i].size());
  }

  const Hardware hardware_;
  const int times_;
  Dram dram_;
  std::vector<std::pair<std::byte*, size_t>> buffers_;
  std::mt19937 random_;
  Clock clock_;
  int ran_ = 0, failed_ = 0;
};

OneOp random_op(std::mt19937& r) {
  switch (pick(r, 0, 4)) {
    case 0: return random_dense(r);
    case 1: return random_addition(r);
    case 2: return random_max(r);
    default: return random_convolution(r);
  }
}

TEST(SimulatorFuzz, SpoiledStreamsOfTheCompiler) {
  constexpr int kTimes = 50;
  const auto targets = machines();
  int ran = 0, failed = 0;
  for (int seed = first_seed(); ran < streams(); ++seed) {
    SCOPED_TRACE(str("TENON_VTA_FUZZ_SEED=", seed));
    std::mt19937 r(static_cast<uint32_t>(seed));
    const OneOp one = random_op(r);
    const TargetDescription& target = targets[static_cast<size_t>(seed) % targets.size()];
    const Hardware hardware = *Hardware::of(target);
    const auto program = compile_one(one, target);
    if (!program.ok() && program.error().code() == Code::unsupported) continue;
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    const auto driver = std::make_shared<SpoilingDriver>(hardware, kTimes, static_cast<uint32_t>(seed));
    const auto done = run_program(*program, one, driver);
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    ran += driver->ran(), failed += driver->failed();
    if (::testing::Test::HasFailure()) return;
  }
  // Most of what is turned over is noticed, not all of it matters.
  EXPECT_GT(failed, ran / 4);
  EXPECT_LT(failed, ran);
}

}  // namespace
}  // namespace tenon::vta
