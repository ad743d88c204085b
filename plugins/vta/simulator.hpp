// Simulator: runs a stream of instructions on one VTA, with exact results and a cycle count.
//
// Timing model. One instruction per cycle is fetched into the queue of its unit; a full queue stalls all that follow. A
// unit runs its instructions in order, each when the tokens that it pops are available. All units share the DRAM: a
// transfer waits for the previous one, then occupies the memory for its bytes at the memory's bandwidth; its unit also
// waits for the latency. A GEMM or ALU instruction takes the cycles of its steps. Padding costs nothing extra. Not
// modelled: refresh and row misses of the DRAM, and the fetch of the instructions themselves.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/machine.hpp"

namespace tenon::vta {

struct UnitCounters {
  int64_t busy_cycles = 0;
  int64_t token_stall_cycles = 0;  // idle: the next instruction is fetched, but lacks a token
  int64_t fetch_stall_cycles = 0;  // idle: nothing is fetched
  int64_t instructions = 0;
};

// The time at which an instruction ran.
struct Span {
  uint32_t instruction = 0;  // its number in the stream
  UnitId unit = UnitId::compute;
  int64_t begin = 0, end = 0;  // cycles
};

struct RunCounters {
  int64_t cycles = 0;  // until the last instruction completed
  std::array<UnitCounters, kUnits> units{};
  int64_t gemm_cycles = 0, alu_cycles = 0;  // of the compute unit
  int64_t dram_cycles = 0;                  // in which the DRAM transferred bytes
  int64_t overlap_cycles = 0;               // in which two units or more were busy
  std::array<int64_t, kMemories> loaded_bytes{};
  int64_t stored_bytes = 0;

  const UnitCounters& of(UnitId unit) const { return units[static_cast<size_t>(unit)]; }
  int64_t dram_bytes() const;
  std::string to_string() const;  // several lines, human-readable
};

struct RunResult {
  RunCounters counters;
  std::vector<Span> spans;  // by begin; only if requested
  // The first instruction that would have exceeded the limit: neither it nor what follows was run.
  std::optional<uint32_t> late;
};

struct RunLimits {
  int64_t cycles = INT64_MAX;
  bool keep_spans = false;
};

// Not thread safe: one stream at a time.
class Simulator {
 public:
  explicit Simulator(const Hardware& hardware) : hardware_(hardware), machine_(hardware) {}

  // Runs `count` instructions from a physical address on. An error names the instruction and what is wrong with it. A
  // deadlock, in which every unit waits for a token that is never pushed, is an error that names each unit's token.
  Result<RunResult> run(Dram& dram, uint64_t address, int64_t count, const RunLimits& limits = {});

  const Hardware& hardware() const { return hardware_; }
  const Machine& machine() const { return machine_; }

 private:
  Hardware hardware_;
  Machine machine_;
};

// The cycles of a stream by the same model, without computing its results. Overlap is not counted.
Result<RunCounters> time_stream(const std::vector<Instruction>& stream, const Hardware& hardware);

// Reads a stream from DRAM.
Result<std::vector<Instruction>> read_stream(Dram& dram, uint64_t address, int64_t count, const Hardware& hardware);

// The run as a trace that chrome://tracing and Perfetto open: a row for each unit, times in microseconds of `clock_hz`.
std::string chrome_trace(const RunResult& result, const std::vector<Instruction>& stream, uint64_t clock_hz);

}  // namespace tenon::vta
