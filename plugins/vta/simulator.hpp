// Simulator: a stream of instructions on one VTA, exact in its results and counted in cycles.
//
// The model. One instruction a cycle is fetched into the queue of its unit; a full queue holds up all that follow. A
// unit runs its instructions in order, each when the tokens it pops are there. All units share the DRAM: a transfer
// waits for the one before it, then takes its bytes at the memory's bandwidth, and its unit waits for the latency as
// well. A GEMM or ALU instruction takes the cycles of its steps. Rows of padding cost nothing beside that. Left out:
// refresh and row misses of the DRAM, bytes of the instructions themselves.
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
  int64_t token_stall_cycles = 0;  // free, the next instruction fetched, a token missing
  int64_t fetch_stall_cycles = 0;  // free, nothing fetched
  int64_t instructions = 0;
};

// When an instruction ran.
struct Span {
  uint32_t instruction = 0;  // its number in the stream
  UnitId unit = UnitId::compute;
  int64_t begin = 0, end = 0;  // cycles
};

struct RunCounters {
  int64_t cycles = 0;  // until the last instruction was done
  std::array<UnitCounters, kUnits> units{};
  int64_t gemm_cycles = 0, alu_cycles = 0;  // of the compute unit
  int64_t dram_cycles = 0;                  // in which the DRAM gave or took bytes
  int64_t overlap_cycles = 0;               // in which two units or more were busy
  std::array<int64_t, kMemories> loaded_bytes{};
  int64_t stored_bytes = 0;

  const UnitCounters& of(UnitId unit) const { return units[static_cast<size_t>(unit)]; }
  int64_t dram_bytes() const;
  std::string to_string() const;  // several lines, for people
};

struct RunResult {
  RunCounters counters;
  std::vector<Span> spans;  // by their begin; filled when asked for
  // The first instruction that would not have been done in time: neither it nor what follows it was run.
  std::optional<uint32_t> late;
};

struct RunLimits {
  int64_t cycles = INT64_MAX;
  bool keep_spans = false;
};

// Not thread-safe: one stream at a time.
class Simulator {
 public:
  explicit Simulator(const Hardware& hardware) : hardware_(hardware), machine_(hardware) {}

  // `count` instructions from a physical address on. An error names the instruction and what is wrong with it; a stream
  // in which every unit waits for a token that nobody will push is one, naming who waits for what.
  Result<RunResult> run(Dram& dram, uint64_t address, int64_t count, const RunLimits& limits = {});

  const Hardware& hardware() const { return hardware_; }
  const Machine& machine() const { return machine_; }

 private:
  Hardware hardware_;
  Machine machine_;
};

// The cycles of a stream by the same model, without a machine that computes it. Overlap is not counted.
Result<RunCounters> time_stream(const std::vector<Instruction>& stream, const Hardware& hardware);

// Reads a stream from DRAM.
Result<std::vector<Instruction>> read_stream(Dram& dram, uint64_t address, int64_t count, const Hardware& hardware);

// The run as a trace that chrome://tracing and Perfetto open: a row for each unit, times in microseconds of `clock_hz`.
std::string chrome_trace(const RunResult& result, const std::vector<Instruction>& stream, uint64_t clock_hz);

}  // namespace tenon::vta
