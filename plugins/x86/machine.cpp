#include "x86/machine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "x86/isa.hpp"
#include "x86/xbyak.hpp"

namespace tenon::x86 {
namespace {

using Xbyak::util::Cpu;
using Words = std::array<uint32_t, 4>;  // eax, ebx, ecx, edx

constexpr uint32_t kAmdLeaves = 0x80000000, kAmdFeatures = 0x80000001, kAmdCaches = 0x8000001d, kIntelCaches = 4;
constexpr uint32_t kTopologyExtensions = 1u << 22;  // kAmdFeatures, ecx: kAmdCaches exists
constexpr uint32_t kZen = 0x17, kZen5 = 0x1a;       // families: the first, and the fifth

Words cpuid(uint32_t leaf, uint32_t number = 0) {
  Words words{};
  Cpu::getCpuidEx(leaf, number, words.data());
  return words;
}

// The leaf that lists caches, in one format for Intel and AMD; 0: none.
uint32_t caches_leaf() {
  if (cpuid(0)[0] >= kIntelCaches && (cpuid(kIntelCaches)[0] & 31) != 0) return kIntelCaches;
  const bool listed = cpuid(kAmdLeaves)[0] >= kAmdCaches && (cpuid(kAmdFeatures)[2] & kTopologyExtensions) != 0;
  return listed ? kAmdCaches : 0;
}

Machine ask() {
  Machine made;
  const Words id = cpuid(0), version = cpuid(1);
  const std::array<uint32_t, 3> vendor{id[1], id[3], id[2]};
  made.vendor.resize(sizeof(vendor));
  std::memcpy(made.vendor.data(), vendor.data(), sizeof(vendor));
  const uint32_t base = version[0] >> 8 & 15;
  made.family = base == 15 ? base + (version[0] >> 20 & 255) : base;
  made.has_vbmi = machine_has_vbmi();
  const uint32_t leaf = caches_leaf();
  constexpr uint32_t kMostCaches = 16, kData = 1, kUnified = 3;
  for (uint32_t i = 0; leaf != 0 && i < kMostCaches; ++i) {
    const Words cache = cpuid(leaf, i);
    const uint32_t kind = cache[0] & 31, level = cache[0] >> 5 & 7;
    if (kind == 0) break;
    if (kind != kData && kind != kUnified) continue;
    const uint64_t ways = (cache[1] >> 22) + 1, partitions = (cache[1] >> 12 & 1023) + 1, line = (cache[1] & 4095) + 1;
    const uint64_t bytes = ways * partitions * line * (uint64_t{cache[2]} + 1);
    if (level == 1) made.l1_bytes = bytes;
    if (level == 2) made.l2_bytes = bytes;
  }
  return made;
}

}  // namespace

const Machine& machine() {
  static const Machine asked = ask();
  return asked;
}

TargetDescription described(TargetDescription target, const Machine& machine) {
  if (machine.has_vbmi && isa_of(target) == Isa::avx512 && !has_vbmi(target)) target.features.emplace_back(kVbmi);
  const bool zen = (machine.vendor == "AuthenticAMD" || machine.vendor == "HygonGenuine") && machine.family >= kZen;
  for (MemorySpace& memory : target.memories) {
    if (memory.name == "l1" && machine.l1_bytes > 0) memory.size_bytes = machine.l1_bytes;
    if (memory.name == "l2" && machine.l2_bytes > 0) memory.size_bytes = machine.l2_bytes;
    if (!zen) continue;
    if (memory.name == "l3") memory.prefetch_reads = memory.prefetch_writes = 0;
    if (memory.name == "host") memory.prefetch_level = 1;
    if (memory.name == "host" && machine.family < kZen5) {
      memory.prefetch_reads = memory.prefetch_writes = 0;
      memory.streams = std::min<uint64_t>(memory.streams, 2);
      memory.load_bytes = 32;
    }
  }
  // A vector of 512 bits occupies both units of a Zen 4.
  constexpr uint64_t kLanes = 16;
  for (Engine& engine : target.engines)
    if (zen && machine.family < kZen5 && engine.lanes == kLanes)
      engine.macs_per_cycle = std::min(engine.macs_per_cycle, engine.lanes);
  return target;
}

double clock_hz() {
  static const double timed = [] {
    using Clock = std::chrono::steady_clock;
    // A dependency chain of products: 3 cycles each on all processors that have AVX2 (Intel's and AMD's optimisation
    // manuals). Load and a clock that is still rising make tries slower, so the fastest one counts.
    constexpr int kTries = 16, kProducts = 8192;
    constexpr double kCycles = 3;
    double least = std::numeric_limits<double>::infinity();
    uint64_t factor = 3;
    for (int i = 0; i < kTries; ++i) {
      const auto begin = Clock::now();
      for (int j = 0; j < kProducts; ++j) asm volatile("imul %0, %0" : "+r"(factor));
      least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return kProducts * kCycles / least;
  }();
  return timed;
}

TargetDescription rated(TargetDescription target, const program::CostModel& machine, double clock_hz) {
  for (MemorySpace& memory : target.memories) {
    const auto holds = [&](const program::CostModel::Memory& level) {
      return level.bytes == 0 || level.bytes >= static_cast<double>(memory.size_bytes);
    };
    const auto level = std::ranges::find_if(machine.memories, holds);
    if (level != machine.memories.end()) memory.bandwidth = Bandwidth{level->bytes_per_second, Bandwidth::Per::second};
  }
  target.clock_hz = static_cast<uint64_t>(std::llround(clock_hz));
  return target;
}

}  // namespace tenon::x86
