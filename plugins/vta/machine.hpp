// Machine: executes the instructions of one VTA sequentially, without timing; the simulator adds that.
#pragma once
#include <cstdint>
#include <vector>

#include <tenon/support/result.hpp>

#include "vta/dram.hpp"
#include "vta/hardware.hpp"
#include "vta/instruction.hpp"

namespace tenon::vta {

// The memories on the chip. Their contents persist from run to run. Reading what was never written is an error, and so
// is any address outside a memory or buffer. Arithmetic wraps around in 32 bits; a shift by 32 or more gives 0, or all
// sign bits.
class Machine {
 public:
  explicit Machine(const Hardware& hardware);

  // Errors name addresses and limits; the caller adds the instruction. After an error, memories have their previous
  // contents or are partly overwritten.
  Result<void> execute(const Instruction& instruction, Dram& dram);

  // The values of an element, for tests and dumps.
  std::vector<int32_t> element(Memory memory, int64_t index) const;

 private:
  struct Sram {
    std::vector<int32_t> values;  // of all elements, in order; micro-ops as their bits
    std::vector<char> written;    // by element
    int64_t width = 1;            // values of an element
  };
  Sram& sram(Memory memory);
  const Sram& sram(Memory memory) const { return const_cast<Machine*>(this)->sram(memory); }

  Result<void> load(const Transfer& transfer, Dram& dram);
  Result<void> load_row(const Transfer& transfer, int64_t row, int64_t at, Dram& dram);
  Result<void> store(const Transfer& transfer, Dram& dram);
  Result<void> gemm(const Steps& steps);
  Result<void> alu(const Instruction& instruction);
  Result<MicroOp> micro_op(int64_t index) const;
  // The first value of element `index`, which must have been written.
  Result<int32_t*> read(Memory memory, int64_t index);
  Result<int32_t*> write(Memory memory, int64_t index);

  Hardware hardware_;
  Sram uop_, wgt_, inp_, acc_;
};

// The ALU operation on single values.
int32_t alu_value(AluOp op, int32_t a, int32_t b);

}  // namespace tenon::vta
