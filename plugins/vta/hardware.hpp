// Hardware: the sizes and speeds of one VTA, from its target file. None of them is a constant of the plugin.
//
//   memories  dram inp wgt acc out uop    bytes, and bytes of one element where stated
//   options   hardware: "0.0.2", inp_width, wgt_width, acc_width (bits), batch, block, queue_depth;
//             others are the compiler's (backend.hpp)
//
// An element of a memory is what one step of the matrix unit takes from it:
//
//   INP  batch x block values of 8 bits       ACC  batch x block values of 32 bits
//   WGT  block x block values of 8 bits       OUT  batch x block values of 8 bits, as deep as ACC
//   UOP  a micro-op of 32 bits                ACC8 an ACC element whose values have 8 bits in DRAM
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/support/result.hpp>
#include <tenon/target/description.hpp>

namespace tenon::vta {

enum class Memory : uint8_t { uop, wgt, inp, acc, out, acc8 };  // numbers as in instructions
inline constexpr size_t kMemories = 6;
std::string_view memory_name(Memory memory);  // "UOP" ...

struct Hardware {
  std::string name;  // of the target, for messages
  int64_t batch = 1, block = 16;
  // Elements of each memory, powers of two; of acc8 those of acc.
  std::array<int64_t, kMemories> depths{};

  uint64_t clock_hz = 0;
  uint64_t dram_bytes = 0;
  double dram_bytes_per_cycle = 0;  // shared by all units
  int64_t dram_latency_cycles = 0;  // of each transfer
  int64_t gemm_step_cycles = 1;     // of one micro-op
  int64_t alu_step_cycles = 1;
  int64_t queue_depth = 0;  // of the instruction queue of a unit

  // Code::invalid_argument for sizes that are not powers of two, contradict one another, or whose addresses do not fit
  // instructions and micro-ops, with the sum of the bits.
  static Result<Hardware> of(const TargetDescription& target);

  int64_t depth(Memory memory) const { return depths[static_cast<size_t>(memory)]; }
  int log_depth(Memory memory) const;
  int64_t lanes() const { return batch * block; }  // values of an element of INP, ACC and OUT
  // Bytes of an element in DRAM.
  int64_t element_bytes(Memory memory) const;
  // The properties that instructions depend on: "0.0.2, batch 1, block 16, UOP 8192, WGT 1024, INP 2048, ACC 2048".
  // Machines with equal fingerprints run the same streams, whatever their speeds.
  std::string fingerprint() const;
};

}  // namespace tenon::vta
