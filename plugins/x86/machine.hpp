// What cpuid says about this machine's processor, and which of it becomes part of a target's description.
#pragma once
#include <cstdint>
#include <string>

#include <tenon/program/schedule/auto_schedule.hpp>
#include <tenon/target/description.hpp>

namespace tenon::x86 {

struct Machine {
  std::string vendor;                   // "GenuineIntel", "AuthenticAMD" ...
  uint32_t family = 0;                  // as displayed: base and extended family
  uint64_t l1_bytes = 0, l2_bytes = 0;  // data caches of one core; 0: unknown
  bool has_vbmi = false;
};

// Asks cpuid once.
const Machine& machine();

// `target` with this machine's sizes of the data caches `l1` and `l2`. Memories that the target does not state are not
// added. The last-level cache keeps its stated size, because other cores and machines use it, too. A target with
// AVX-512 gets kVbmi where the machine has it. AMD processors from Zen on change these keys
// (docs/performance/lessons/machines.md):
// - `l3` is not prefetched from: this cache belongs to a few cores and answers before prefetching gains anything;
// - lines of rows are prefetched into the nearest cache (`prefetch_level` 1);
// - before Zen 5, `host` is not prefetched from either, because the hardware prefetchers suffice; these follow two
//   stretches of an array at once, and loads of 32 bytes read main memory faster than wider ones;
// - before Zen 5, vectors of 512 bits are computed one at a time.
TargetDescription described(TargetDescription target, const Machine& machine);

// The clock that a core reaches under load, in cycles per second. Timed once, in about 0.1 ms.
double clock_hz();

// `target` with the rates of a machine: each memory gets the bandwidth of the machine's memory that holds as much, and
// the clock is the machine's. For predictions only: decisions use the stated figures, so that one description gives the
// same code on any machine.
TargetDescription rated(TargetDescription target, const program::CostModel& machine, double clock_hz);

}  // namespace tenon::x86
