// Simulator: runs commands on a flat DRAM image and a convolution buffer. Results are exact (operators.hpp states the
// order of sums), cycles are counted.
//
// Rejected, with the numbers: addresses outside DRAM or unaligned, overlapping lines or surfaces, entries outside the
// buffer, entries that are read but were not loaded since the last `begin`, a bank that holds both data and weights.
//
// Cycles. Loading and computing are two units that run concurrently, each in the order of its commands. A load waits
// until the entries that it overwrites are no longer read, a convolution until those that it reads are loaded. A
// convolution takes rows * columns * taps * ceil(channels / atomic_c) * ceil(kernels / atomic_k) cycles, or the time
// that its results take in SDP, PDP or DRAM, if that is longer; the same holds for `elementwise` and `pool`. All units
// share DRAM, at its bandwidth.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include <tenon/support/parallel.hpp>
#include <tenon/support/result.hpp>

#include "nvdla/command.hpp"
#include "nvdla/hardware.hpp"

namespace tenon::nvdla {

struct Counters {
  int64_t commands = 0;
  int64_t cycles = 0;         // until the last command completed
  int64_t mac_cycles = 0;     // of the MAC array
  int64_t macs = 0;           // products, including padding
  int64_t data_bytes = 0;     // loaded from DRAM into the buffer
  int64_t weight_bytes = 0;   // the same for weights
  int64_t operand_bytes = 0;  // read from DRAM by SDP and PDP
  int64_t stored_bytes = 0;   // written to DRAM
  int64_t buffer_bytes = 0;   // read from the buffer by the MAC array: atoms and weights, each use counted

  int64_t dram_bytes() const { return data_bytes + weight_bytes + operand_bytes + stored_bytes; }
};

struct Buffer;

// One thread at a time; run() uses the threads of `parallel`.
class Simulator {
 public:
  explicit Simulator(const Hardware& hardware);
  ~Simulator();

  // Runs commands in order. An error names the command by its position and kind; earlier commands have been executed.
  Result<Counters> run(std::span<const Words> commands, std::span<std::byte> dram, ParallelFor& parallel = serial());

 private:
  Hardware hardware_;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace tenon::nvdla
