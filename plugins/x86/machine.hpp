// What this machine's processor says of itself, and what of it becomes part of a target's description.
#pragma once
#include <cstdint>
#include <string>

#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/target/description.hpp>

namespace tenon::x86 {

struct Machine {
  std::string vendor;                   // "GenuineIntel", "AuthenticAMD" ...
  uint32_t family = 0;                  // as displayed: base and extended family
  uint64_t l1_bytes = 0, l2_bytes = 0;  // data caches of one core; 0: not said
  bool has_vbmi = false;
};

// By cpuid; asked once.
const Machine& machine();

// `target` with the data caches `l1` and `l2` as large as the machine's. The last-level cache keeps the size that is
// stated: others use it, too. Its lines are fetched ahead as stated, except on AMD's processors from Zen on: their
// last-level cache belongs to a few cores, and answers before fetching ahead would gain anything, and before Zen 5 so
// do the prefetchers of main memory, which follow two stretches of an array at once, and loads of 32 bytes come from
// there faster than wider ones (docs/performance/lessons/machines.md). What is fetched along rows goes into the nearest
// cache from Zen on. Before Zen 5, vectors of 512 bits are computed one at a
// time. Memories that the target does not state are not added. A target with AVX-512 gets kVbmi where the machine has
// it.
TargetDescription described(TargetDescription target, const Machine& machine);

// Cycles a second that a core reaches under work, timed once, in some 0.1 ms.
double clock_hz();

// `target` at the rates of a machine: each memory with the bandwidth of what holds as much there, and the clock. For
// predictions; decisions are by what is stated, so that the same description gives the same code on any machine.
TargetDescription rated(TargetDescription target, const program::CostModel& machine, double clock_hz);

}  // namespace tenon::x86
