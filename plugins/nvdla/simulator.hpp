// Simulator: commands on a flat DRAM image and a convolution buffer. Exact in results (operators.hpp states the order
// of sums), counted in cycles.
//
// Refused, with the numbers: addresses outside DRAM or unaligned, lines and surfaces that overlap, entries outside of
// the buffer, entries that are read and were not loaded since the last `begin`, a bank that holds data and weights.
//
// Cycles. Loading and computing are two units that work side by side, each in the order of its commands; a load waits
// until nobody reads the entries that it writes, a convolution until those that it reads are there. A convolution takes
// rows * columns * taps * ceil(channels / atomic_c) * ceil(kernels / atomic_k) cycles, or what its results take in SDP,
// PDP or DRAM, if that is more; `elementwise` and `pool` likewise. All units share DRAM, at its bandwidth.
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
  int64_t cycles = 0;         // until the last command was done
  int64_t mac_cycles = 0;     // of the MAC array
  int64_t macs = 0;           // products, padding counted
  int64_t data_bytes = 0;     // from DRAM into the buffer
  int64_t weight_bytes = 0;   // the same, of weights
  int64_t operand_bytes = 0;  // read by SDP and PDP from DRAM
  int64_t stored_bytes = 0;   // to DRAM
  int64_t buffer_bytes = 0;   // read from the buffer by the MAC array: atoms and weights, once each use

  int64_t dram_bytes() const { return data_bytes + weight_bytes + operand_bytes + stored_bytes; }
};

struct Buffer;

// One thread at a time; run() takes threads of `parallel`.
class Simulator {
 public:
  explicit Simulator(const Hardware& hardware);
  ~Simulator();

  // Runs commands in order. The error names the command, by its place and kind; what ran before has been done.
  Result<Counters> run(std::span<const Words> commands, std::span<std::byte> dram, ParallelFor& parallel = serial());

 private:
  Hardware hardware_;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace tenon::nvdla
