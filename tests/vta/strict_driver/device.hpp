// The three units of the strict driver, in any order that tokens allow: which of the ready ones runs next is random.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "chip.hpp"
#include "instruction.hpp"
#include "memory.hpp"

namespace strict {

class Device {
 public:
  Device(const Options& options, Memory& memory) : options_(options), memory_(memory), random_(options["seed"]) {}

  // Throws a Fault that names the instruction. False: the run does not end.
  bool run(uint32_t address, uint32_t count, uint32_t wait_cycles);

 private:
  const Options options_;
  Memory& memory_;
  std::mt19937 random_;
  uint32_t runs_ = 0;
};

// One run: instructions, in the queues of their units.
class Schedule {
 public:
  Schedule(std::vector<Instruction> stream, uint32_t queue, std::mt19937& random);

  // The number of the instruction to run next; -1 after the last one. A Fault if no unit is ready.
  int64_t next();
  const Instruction& at(int64_t number) const { return stream_[static_cast<size_t>(number)]; }
  // Its tokens, once it is done.
  void done(int64_t number);

 private:
  struct Queues {
    uint32_t *pop_prev, *pop_next, *push_prev, *push_next;  // null: there is no such unit
  };
  Queues queues(Unit unit);
  bool can_go(Unit unit);
  void fetch();

  const std::vector<Instruction> stream_;
  const size_t queue_;
  std::mt19937& random_;
  std::array<Unit, 3> order_{kLoadUnit, kComputeUnit, kStoreUnit};
  bool mixed_ = false;  // draw each time; otherwise the first of `order_` that can go
  size_t fetched_ = 0;
  std::array<std::deque<int64_t>, 3> waiting_;
  uint32_t load_compute_ = 0, compute_load_ = 0, compute_store_ = 0, store_compute_ = 0;  // tokens
};

}  // namespace strict
