// Runs with a caller-provided arena for a bound program.
#include <gmock/gmock.h>

#include <tenon/program/exec/bound_program.hpp>
#include <tenon/program/exec/interpreter.hpp>
#include <tenon/runtime/thread_pool.hpp>

#include "program/random_program.hpp"
#include "support_lib/guarded.hpp"

namespace tenon::program {
namespace {

using namespace program::testing;
using tenon::testing::Guarded;

Data random_data() {
  Data data;
  data.add("in", {12, 10});
  data.add("out", {12, 10});
  data.scalar("workers", 3);
  return data;
}

Result<void> run(BoundProgram& bound, Data& data, std::span<std::byte> arena) {
  return bound.run(std::vector<std::byte*>{data.view("in").base, data.view("out").base}, {.arena = arena});
}

// Memory without spare bytes at its end, filled with ones.
struct Arena {
  explicit Arena(int64_t bytes) : memory((static_cast<size_t>(bytes) + kAlignBytes - 1) / kAlignBytes * kAlignBytes) {
    std::ranges::fill(bytes_of(), std::byte{0xff});
  }
  std::span<std::byte> bytes_of() { return {memory.data(), memory.values().size()}; }
  Guarded<std::byte> memory;
};

TEST(LentArena, RandomProgramsGiveTheSameWhereverItLies) {
  ThreadPool pool(3);
  int lent = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const auto program = parse_program(RandomProgram(seed).text(), kernels());
    ASSERT_TRUE(program.ok()) << program.error().to_string();
    Data wanted = random_data();
    const auto interpreted = interpret(*program, wanted.arguments());
    Data shape = random_data();
    auto bound = BoundProgram::bind(*program, shape.arguments(), {.pool = &pool, .arena_of_runs = true});
    if (!bound.ok()) continue;
    lent += bound->lendable_bytes() > 0;
    Arena first(bound->lendable_bytes()), second(bound->lendable_bytes());
    const std::span<std::byte> none;
    for (const auto& arena : {first.bytes_of(), second.bytes_of(), none, first.bytes_of(), first.bytes_of()}) {
      Data data = random_data();
      const auto ran = run(*bound, data, arena);
      ASSERT_EQ(ran.ok(), interpreted.ok());
      if (!ran.ok()) break;
      EXPECT_EQ(data["out"], wanted["out"]);
    }
  }
  EXPECT_GT(lent, 50);
}

constexpr std::string_view kChain = R"(program @chain() {
  output %out : i32 rank 1
  allocate %a : i32[0 +: 16] {
    call iota(out %a; 0)
    allocate %b : i32[0 +: 16] { call add1(in %a, out %b) call add1(in %b, out %out) }
  }
})";

class LentChain : public ::testing::Test {
 protected:
  LentChain() { data_.add("out", {16}); }
  BoundProgram bind(bool of_runs) {
    return *BoundProgram::bind(parsed(std::string(kChain)), data_.arguments(), {.arena_of_runs = of_runs});
  }
  void run(BoundProgram& bound, std::span<std::byte> arena) {
    data_["out"].assign(16, 0);
    const auto ran = bound.run(std::vector<std::byte*>{data_.view("out").base}, {.arena = arena});
    ASSERT_TRUE(ran.ok()) << ran.error().to_string();
    EXPECT_EQ(data_["out"][3], 32);
  }
  Data data_;
};

TEST_F(LentChain, IsWrittenWhereItServes) {
  BoundProgram bound = bind(true);
  ASSERT_EQ(bound.lendable_bytes(), 128);
  Arena enough(128), small(64);
  run(bound, enough.bytes_of());
  EXPECT_NE(enough.bytes_of()[0], std::byte{0xff});
  run(bound, small.bytes_of());
  EXPECT_EQ(small.bytes_of()[0], std::byte{0xff}) << "less than it needs is left alone";
  run(bound, {});
}

TEST_F(LentChain, ServesProgramsThatHaveTheirOwn) {
  BoundProgram bound = bind(false);
  Arena arena(128);
  run(bound, {});
  run(bound, arena.bytes_of());
  EXPECT_NE(arena.bytes_of()[0], std::byte{0xff});
}

TEST(LentArenas, SeveralSpacesAreNotLent) {
  Data data;
  data.add("out", {16});
  const auto bound = BoundProgram::bind(parsed(R"(program @two() {
    output %out : i32 rank 1
    allocate %a : i32[0 +: 16] {
      call iota(out %a; 0)
      allocate %b : i32[0 +: 16] in scratch { call add1(in %a, out %b) call add1(in %b, out %out) }
    }
  })"),
                                        data.arguments(), {.arena_of_runs = true});
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->lendable_bytes(), 0);
}

}  // namespace
}  // namespace tenon::program
